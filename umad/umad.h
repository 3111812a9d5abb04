/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibumad.so.3.  Include this header first: it gives the public functions default visibility, all
 * else of the library is hidden.
 */
#pragma once

#include <stdbool.h>

#pragma GCC visibility push(default)
#include <infiniband/umad.h>
#include <infiniband/umad_str.h>
#pragma GCC visibility pop
