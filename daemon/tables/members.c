// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/members.h"

#include <errno.h>
#include <string.h>

static uint32_t word_at(const struct seg *seg, uint32_t i)
{
	return atomic_load_explicit(&seg->member[i].id, memory_order_acquire);
}

/* ---- which entry of the hub is a copy of which ---- */

/* Chains hold numbers of entries and one more, 0 ends them. */
static uint16_t *bucket(struct members *m, uint32_t owner, uint32_t from)
{
	return &m->head[(owner * 0x9e3779b1u ^ from * 0x85ebca6bu) >> 19];
}

_Static_assert(SEG_MEMBERS == 1 << (32 - 19), "the shift above");

/* The copy of that entry of owner's, or SEG_MEMBERS. */
static uint32_t find(struct members *m, uint32_t owner, uint32_t from)
{
	uint16_t n = *bucket(m, owner, from);

	while (n && (m->owner[n - 1] != owner || m->from[n - 1] != from))
		n = m->next[n - 1];
	return n ? n - 1u : SEG_MEMBERS;
}

static void clear(struct members *m, struct seg *hub, uint32_t i)
{
	uint16_t *link = bucket(m, m->owner[i], m->from[i]);

	while (*link != i + 1)
		link = &m->next[*link - 1];
	*link = m->next[i];
	m->owner[i] = 0;
	if (i < m->first_free)
		m->first_free = i;
	atomic_store_explicit(&hub->member[i].id, 0, memory_order_release);
}

static int add(struct members *m, struct seg *hub, uint32_t owner, uint32_t from,
	const struct member_copy *c)
{
	uint16_t *list = bucket(m, owner, from);
	uint32_t i = m->first_free;

	while (i < SEG_MEMBERS && m->owner[i])
		i++;
	m->first_free = i;
	if (i == SEG_MEMBERS)
		return -ENOSPC;
	m->owner[i] = owner;
	m->from[i] = from;
	m->next[i] = *list;
	*list = i + 1;
	memcpy(hub->member[i].key, c->key, sizeof c->key);
	atomic_store_explicit(&hub->member[i].id, c->word, memory_order_release);
	if (seg_members_used(hub) < i + 1)
		atomic_store_explicit(&hub->hdr.members_used, i + 1, memory_order_release);
	return 0;
}

/* ---- following a segment ---- */

static bool is_listed(const struct seg *seg, uint32_t from)
{
	return from < seg_members_used(seg) && word_at(seg, from);
}

static int follow(
	struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner, uint32_t from)
{
	struct member_copy c = {.word = from < seg_members_used(seg) ? word_at(seg, from) : 0};
	uint32_t i = find(m, owner, from);

	if (c.word)
		memcpy(c.key, seg->member[from].key, sizeof c.key);
	if (i < SEG_MEMBERS) {
		if (c.word && c.word == word_at(hub, i) &&
			!memcmp(c.key, hub->member[i].key, sizeof c.key))
			return 0;
		clear(m, hub, i);
	}
	return c.word ? add(m, hub, owner, from, &c) : 0;
}

int members_update(struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner)
{
	int ret = 0;

	/* What goes makes room for what comes.  Entries never used are not looked at: to read is to
	 * allocate the page. */
	for (uint32_t i = 0; i < seg_members_used(hub); i++)
		if (m->owner[i] == owner && !is_listed(seg, m->from[i]))
			clear(m, hub, i);
	for (uint32_t i = 0; i < seg_members_used(seg); i++)
		if (follow(m, hub, seg, owner, i))
			ret = -ENOSPC;
	m->missing |= ret != 0;
	return ret;
}

int members_change(
	struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner, uint32_t from)
{
	int ret;

	if (from >= SEG_MEMBERS)
		return members_update(m, hub, seg, owner);
	ret = follow(m, hub, seg, owner, from);
	m->missing |= ret != 0;
	return ret;
}

bool members_ask_missing(struct members *m)
{
	bool missing = m->missing;

	m->missing = false;
	return missing;
}

void members_drop(struct members *m, struct seg *hub, uint32_t owner)
{
	for (uint32_t i = 0; i < seg_members_used(hub); i++)
		if (m->owner[i] == owner)
			clear(m, hub, i);
}

unsigned members_count(const struct members *m, const struct seg *hub)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < seg_members_used(hub); i++)
		n += m->owner[i] != 0;
	return n;
}
