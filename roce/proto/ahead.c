// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/ahead.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/spare.h"
#include "wire/roce.h"

/*
 * Memory of packets.  What one loss needs the next one needs again: given back to malloc() in
 * between, 256 packets took ten times as long to keep as to copy.
 */
struct block {
	size_t room;
	uint8_t bytes[];
};

struct pool {
	struct spare spare;
	const uint32_t most;
	const size_t room;
};

static struct pool pools[] = {
	{.most = 256, .room = 1152}, {.most = 128, .room = 4224}}; /* of MTU 1024, 4096 */

static struct pool *pool_for(size_t n)
{
	return &pools[n > pools[0].room];
}

static uint8_t *get(size_t n)
{
	struct pool *pool = pool_for(n);
	struct block *b = n > pool->room ? NULL : spare_get(&pool->spare, sizeof *b + pool->room);

	if (!b)
		return NULL;
	b->room = pool->room;
	return b->bytes;
}

void ahead_free(uint8_t *bytes)
{
	struct block *b;
	struct pool *pool;

	if (!bytes)
		return;
	b = (struct block *)(bytes - offsetof(struct block, bytes));
	pool = pool_for(b->room);
	spare_put(&pool->spare, b, pool->most);
}

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

static void in_vain(struct ahead *a, struct ahead_packet *slot)
{
	if (!slot->bytes)
		return;
	ahead_free(slot->bytes);
	slot->bytes = NULL;
	a->passed++;
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
	if (slot->bytes && slot->psn == psn) {
		if (roce_same(slot->bytes, slot->n, bytes, n))
			return true;
		a->passed++; /* this one, too */
		in_vain(a, slot);
		return false;
	}
	in_vain(a, slot); /* an older one */
	*slot = (struct ahead_packet){.psn = psn, .n = n, .bytes = get(n)};
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

	if (!ahead_has(a, psn))
		return NULL;
	slot = slot_of(a, psn);
	bytes = slot->bytes;
	*n = slot->n;
	slot->bytes = NULL;
	return bytes;
}

void ahead_pass(struct ahead *a, uint32_t psn)
{
	if (ahead_has(a, psn))
		in_vain(a, slot_of(a, psn));
}

void ahead_expect(struct ahead *a, uint32_t psn)
{
	if (a->used && roce_psn_diff(a->end, psn) <= 0)
		ahead_clear(a);
}

bool ahead_has(const struct ahead *a, uint32_t psn)
{
	return a->slot && slot_of(a, psn)->bytes && slot_of(a, psn)->psn == psn;
}

bool ahead_beyond(const struct ahead *a, uint32_t psn)
{
	return a->used && roce_psn_diff(a->end, psn) > 1;
}

void ahead_clear(struct ahead *a)
{
	for (uint32_t i = 0; a->slot && i < AHEAD_MAX; i++)
		in_vain(a, &a->slot[i]);
	free(a->slot);
	*a = (struct ahead){.passed = a->passed};
}
