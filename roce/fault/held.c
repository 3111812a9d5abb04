// SPDX-License-Identifier: BSD-3-Clause
#include "roce/fault/held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct fault_held {
	struct fault_held *next;
	uint64_t due;
	uint32_t behind; /* others that still have to pass; 0: time alone counts */
	size_t len;
	_Alignas(16) uint8_t tag[FAULT_TAG_MAX];
	uint8_t packet[];
};

int fault_line_hold(struct fault_line *l, const void *packet, size_t len, const void *tag,
	size_t tag_len, uint64_t due, uint32_t behind)
{
	struct fault_held *h, **at = &l->first;

	if (l->n == FAULT_HELD_MAX)
		return -ENOSPC;
	h = calloc(1, sizeof *h + len);
	if (!h)
		return -ENOMEM;
	h->due = due;
	h->behind = behind;
	h->len = len;
	memcpy(h->tag, tag, tag_len < FAULT_TAG_MAX ? tag_len : FAULT_TAG_MAX);
	memcpy(h->packet, packet, len);
	while (*at)
		at = &(*at)->next;
	*at = h;
	l->n++;
	return 0;
}

void fault_line_passed(struct fault_line *l)
{
	for (struct fault_held *h = l->first; h; h = h->next)
		if (h->behind && !--h->behind)
			h->due = 0;
}

struct fault_held *fault_line_take(struct fault_line *l, uint64_t now)
{
	for (struct fault_held **at = &l->first, *h; (h = *at); at = &h->next)
		if (h->due <= now) {
			*at = h->next;
			l->n--;
			return h;
		}
	return NULL;
}

const void *fault_held_packet(const struct fault_held *h, size_t *len)
{
	*len = h->len;
	return h->packet;
}

const void *fault_held_tag(const struct fault_held *h)
{
	return h->tag;
}

void fault_held_free(struct fault_held *h)
{
	free(h);
}

uint64_t fault_line_due(const struct fault_line *l)
{
	uint64_t due = UINT64_MAX;

	for (const struct fault_held *h = l->first; h; h = h->next)
		due = h->due < due ? h->due : due;
	return due;
}

void fault_line_clear(struct fault_line *l)
{
	while (l->first)
		fault_held_free(fault_line_take(l, UINT64_MAX));
}
