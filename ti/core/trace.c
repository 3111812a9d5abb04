// SPDX-License-Identifier: BSD-3-Clause
#include "ti/core/trace.h"

#include "ti/core/service.h"

_Atomic uint8_t trace_ops = TRACE_UNKNOWN;

bool trace_settle(void)
{
	bool on = log_enabled(LOG_LVL_DEBUG);

	atomic_store_explicit(&trace_ops, on ? TRACE_ON : TRACE_OFF, memory_order_relaxed);
	return on;
}

void trace_set_level(ti_debug_level_t level)
{
	static const enum log_level levels[] = {
		[TI_DBG_OFF] = LOG_LVL_FATAL,
		[TI_DBG_STD] = LOG_LVL_ERROR,
		[TI_DBG_VERBOSE] = LOG_LVL_INFO,
		[TI_DBG_DEBUG] = LOG_LVL_DEBUG,
	};

	log_set_level(levels[level]);
	(void)trace_settle();
}

void trace_begin(const char *op, const void *handle)
{
	log_line(LOG_LVL_DEBUG, "ti: %s(%p) begins", op, handle);
}

void trace_end(const char *op, const void *handle, ti_status_t status)
{
	log_line(LOG_LVL_DEBUG, "ti: %s(%p) returns: %s", op, handle, ti_status_2_str(status));
}

ti_status_t op_debug_svc(ti_handle_t h_ti, ti_debug_level_t debug_level)
{
	struct service *ti = service_get(h_ti);

	if (!ti)
		return TI_INVALID_HANDLE;
	service_put(ti);
	if ((unsigned)debug_level > TI_DBG_DEBUG)
		return TI_INVALID_PARAMETER;
	trace_set_level(debug_level);
	return TI_SUCCESS;
}
