/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What debug_svc() lets the library say, by base/log.h:
 *   fatal  the adapter does not work any more
 *   error  a connection broke, or could not be made, by something that went wrong
 *   warn   nothing is lost yet, but the program should know
 *   info   services and connections as they come, go and change
 *   debug  operations, when they begin and when they return; memory as it is registered
 */
#pragma once

#include <stdatomic.h>

#include "base/log.h"
#include "ti/ti.h"

/* Are operations told of?  All that they cost where they are not. */
extern _Atomic bool trace_ops;

static inline bool trace_on(void)
{
	return atomic_load_explicit(&trace_ops, memory_order_relaxed);
}

/* Makes trace_on() what the log's level is; sets that level first. */
void trace_settle(void);
void trace_set_level(ti_debug_level_t level);

/* An operation on that handle begins, returns. */
void trace_begin(const char *op, const void *handle);
void trace_end(const char *op, const void *handle, ti_status_t status);

ti_status_t op_debug_svc(ti_handle_t h_ti, ti_debug_level_t debug_level);
