/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which object an event belongs to.  The HCA is given the object's id as cookie, not its
 * address: an event that was taken just before its object was destroyed then finds no object,
 * and an event that is delivered is counted before destroy looks at the count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Embedded in CQs and QPs.  The counts are of events handed to the program. */
struct event_source {
	uint64_t id; /* 0: not registered */
	uint32_t comp_count;
	uint32_t async_count;
};

enum event_class { EVENT_COMP, EVENT_ASYNC };

/* Gives s an id, unique in this process.  Returns 0 or -ENOMEM. */
int event_source_add(struct event_source *s);

/* Forgets s; from now on its counts are final. Harmless if it has no id. */
void event_source_del(struct event_source *s);

/* The cookie that the HCA is given for s. */
static inline void *event_cookie(const struct event_source *s)
{
	return (void *)(uintptr_t)s->id;
}

/* Finds the owner of a cookie and counts one event for it; NULL if it is gone. */
struct event_source *event_source_count(void *cookie, enum event_class class);
