// SPDX-License-Identifier: BSD-3-Clause
#include "verbs/events.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/lock.h"

/*
 * A table of slots.  id = generation << 32 | slot: a slot is used again, an id is not.
 */
struct slot {
	struct event_source *source; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

enum { NO_SLOT = UINT32_MAX, FIRST_SLOTS = 64 };

static struct lock table_lock;
static struct slot *table;
static uint32_t table_size;
static uint32_t first_free = NO_SLOT;

static int grow(void)
{
	uint32_t size = table_size ? table_size * 2 : FIRST_SLOTS;
	struct slot *bigger = reallocarray(table, size, sizeof(*table));

	if (!bigger)
		return -ENOMEM;
	for (uint32_t i = table_size; i < size; i++)
		bigger[i] = (struct slot){.generation = 1, .next_free = i + 1};
	bigger[size - 1].next_free = NO_SLOT;
	first_free = table_size;
	table = bigger;
	table_size = size;
	return 0;
}

int event_source_add(struct event_source *s)
{
	int rc = 0;

	lock_take(&table_lock);
	if (first_free == NO_SLOT)
		rc = grow();
	if (!rc) {
		uint32_t i = first_free;

		first_free = table[i].next_free;
		table[i].source = s;
		*s = (struct event_source){.id = (uint64_t)table[i].generation << 32 | i};
	}
	lock_drop(&table_lock);
	return rc;
}

static struct slot *find(uint64_t id)
{
	uint32_t i = (uint32_t)id;

	if (i >= table_size || table[i].generation != id >> 32 || !table[i].source)
		return NULL;
	return &table[i];
}

void event_source_del(struct event_source *s)
{
	struct slot *slot;

	lock_take(&table_lock);
	slot = find(s->id);
	if (slot) {
		slot->source = NULL;
		slot->generation++;
		slot->next_free = first_free;
		first_free = (uint32_t)s->id;
	}
	lock_drop(&table_lock);
}

struct event_source *event_source_count(void *cookie, enum event_class class)
{
	struct event_source *s = NULL;
	struct slot *slot;

	lock_take(&table_lock);
	slot = find((uintptr_t)cookie);
	if (slot) {
		s = slot->source;
		if (class == EVENT_COMP)
			s->comp_count++;
		else
			s->async_count++;
	}
	lock_drop(&table_lock);
	return s;
}
