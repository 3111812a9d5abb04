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
#include "ti/core/ti.h"

enum trace_ops { TRACE_OFF, TRACE_ON, TRACE_UNKNOWN /* the log was not asked yet */ };

extern _Atomic uint8_t trace_ops; /* enum trace_ops */

/* Asks the log. */
bool trace_settle(void);

/* Are operations told of?  All that they cost where they are not. */
static inline bool trace_on(void)
{
	uint8_t ops = atomic_load_explicit(&trace_ops, memory_order_relaxed);

	return ops != TRACE_OFF && (ops == TRACE_ON || trace_settle());
}

/* Sets the log's level, and trace_on() with it. */
void trace_set_level(ti_debug_level_t level);

/* An operation on that handle begins, returns. */
void trace_begin(const char *op, const void *handle);
void trace_end(const char *op, const void *handle, ti_status_t status);

ti_status_t op_debug_svc(ti_handle_t h_ti, ti_debug_level_t debug_level);
