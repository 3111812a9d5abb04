/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is told of transport events. */
#pragma once

#include "ti/core/ti.h"

struct listener; /* who registered */

/*
 * Tells all whose device name is a prefix of name, or of old_name if that is not NULL; name NULL:
 * of no device in particular.  On the system thread; data is valid until this returns.
 */
void events_tell(ti_event_t event, const void *data, const char *name, const char *old_name);

/* The same for one alone; nothing if it is gone. */
void events_tell_one(
	const struct listener *who, ti_event_t event, const void *data, const char *name);

/* Tells all in this thread, whichever devices they asked for: of an end. */
void events_raise_here(ti_event_t event, const void *data);

/* The notify function that providers get. */
void events_notify(const ti_event_t event, const void *p_data, const void *p_context);

/* After a fork: nobody is registered. */
void events_forked(void);

/*
 * From its return on the events that the kernel's messages raise come, and before them an ONLINE
 * for each device that is.  Of devices only those whose name begins with prefix; NULL: all.
 */
ti_status_t events_register(const void *context, ti_event_cb_t cb, const char *prefix);

/* Waits for a callback of it that runs, unless one of events calls this. */
ti_status_t op_events_deregister(const void *p_Context, ti_event_cb_t Event_callback);
