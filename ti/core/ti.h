/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libweftti.so.0.  Include this header first: it gives the public functions default visibility.
 *
 * Public verbs and rdma_cm alone lie below, so that the library runs on any adapter.  The functions
 * of the vector are op_NAME(); they return what <sdp_ti.h> and sdp_ti(3) say.  Internal functions
 * return a ti_status_t where a program sees it, else 0 or a negative errno.
 */
#pragma once

#pragma GCC visibility push(default)
#include "include/sdp_ti.h"
#include "include/ti_exports.h"
#include "include/weft/ti.h"
#pragma GCC visibility pop

#include <stdbool.h>

enum { TI_NEVER = 0xFFFFFFFF }; /* of connect_request_timeout */
