/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpma.so.0.  Include this header first: it gives the public functions default visibility.
 *
 * Public verbs and librdmacm alone lie below, so that the library runs on any adapter.  All
 * functions, internal ones too, return 0 or an RPMA_E_*; internal ones trust their arguments.
 */
#pragma once

#pragma GCC visibility push(default)
#include "include/librpma.h"
#include "include/weft/rpma_list.h"
#pragma GCC visibility pop

#include "rpma/versions.h"
