// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/members.h"

#include <string.h>

static uint32_t used(const struct seg *seg)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.members_used, memory_order_acquire);

	return n < SEG_MEMBERS ? n : SEG_MEMBERS;
}

static uint32_t word_at(const struct seg *seg, uint32_t i)
{
	return atomic_load_explicit(&seg->member[i].id, memory_order_acquire);
}

static bool has(const struct seg *seg, uint32_t word, const uint8_t key[16])
{
	for (uint32_t i = 0; i < used(seg); i++)
		if (word_at(seg, i) == word && !memcmp(seg->member[i].key, key, 16))
			return true;
	return false;
}

static void clear(struct members *m, struct seg *hub, uint32_t i)
{
	m->owner[i] = 0;
	atomic_store_explicit(&hub->member[i].id, 0, memory_order_release);
}

static void add(
	struct members *m, struct seg *hub, uint32_t owner, uint32_t word, const uint8_t key[16])
{
	uint32_t i = 0;

	while (i < SEG_MEMBERS && m->owner[i])
		i++;
	if (i == SEG_MEMBERS)
		return;
	m->owner[i] = owner;
	memcpy(hub->member[i].key, key, 16);
	atomic_store_explicit(&hub->member[i].id, word, memory_order_release);
	if (used(hub) < i + 1)
		atomic_store_explicit(&hub->hdr.members_used, i + 1, memory_order_release);
}

/* Is it in the hub already, from that process? */
static bool listed(const struct members *m, const struct seg *hub, uint32_t owner, uint32_t word,
	const uint8_t key[16])
{
	for (uint32_t i = 0; i < used(hub); i++)
		if (m->owner[i] == owner && word_at(hub, i) == word &&
			!memcmp(hub->member[i].key, key, 16))
			return true;
	return false;
}

void members_update(struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner)
{
	for (uint32_t i = 0; i < used(hub); i++)
		if (m->owner[i] == owner && !has(seg, word_at(hub, i), hub->member[i].key))
			clear(m, hub, i);
	for (uint32_t i = 0; i < used(seg); i++) {
		uint32_t word = word_at(seg, i);
		uint8_t key[16];

		memcpy(key, seg->member[i].key, sizeof key);
		if (word && !listed(m, hub, owner, word, key))
			add(m, hub, owner, word, key);
	}
}

void members_drop(struct members *m, struct seg *hub, uint32_t owner)
{
	for (uint32_t i = 0; i < used(hub); i++)
		if (m->owner[i] == owner)
			clear(m, hub, i);
}

unsigned members_count(const struct members *m, const struct seg *hub)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < used(hub); i++)
		n += m->owner[i] != 0;
	return n;
}
