// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "wire/roce.h"

/* bytes: NULL where nothing is kept. */
struct ahead_packet {
	uint32_t psn;
	size_t n;
	uint8_t *bytes;
};

static struct ahead_packet *slot_of(const struct ahead *a, uint32_t psn)
{
	return &a->slot[psn % AHEAD_MAX];
}

bool ahead_put(struct ahead *a, uint32_t expected, uint32_t psn, const uint8_t *bytes, size_t n)
{
	struct ahead_packet *slot;

	if (roce_psn_diff(psn, expected) >= AHEAD_MAX)
		return false;
	if (!a->slot)
		a->slot = calloc(AHEAD_MAX, sizeof *a->slot);
	if (!a->slot)
		return false;
	slot = slot_of(a, psn);
	free(slot->bytes); /* older, or the same */
	*slot = (struct ahead_packet){.psn = psn, .n = n, .bytes = malloc(n)};
	if (!slot->bytes)
		return false;
	memcpy(slot->bytes, bytes, n);
	if (!ahead_beyond(a, psn))
		a->end = roce_psn_add(psn, 1);
	a->used = true;
	return true;
}

uint8_t *ahead_take(struct ahead *a, uint32_t psn, size_t *n)
{
	struct ahead_packet *slot;
	uint8_t *bytes;

	if (a->used && roce_psn_diff(a->end, psn) <= 0)
		ahead_clear(a); /* what is left came in another way, too */
	slot = a->slot ? slot_of(a, psn) : NULL;
	if (!slot || !slot->bytes || slot->psn != psn)
		return NULL;
	bytes = slot->bytes;
	*n = slot->n;
	slot->bytes = NULL;
	return bytes;
}

bool ahead_beyond(const struct ahead *a, uint32_t psn)
{
	return a->used && roce_psn_diff(a->end, psn) > 1;
}

void ahead_clear(struct ahead *a)
{
	for (uint32_t i = 0; a->slot && i < AHEAD_MAX; i++)
		free(a->slot[i].bytes);
	free(a->slot);
	*a = (struct ahead){0};
}
