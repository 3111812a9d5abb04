// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/members.h"

#include <errno.h>
#include <stdlib.h>
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

static void clear(struct members *m, struct seg *hub, uint32_t i)
{
	m->owner[i] = 0;
	atomic_store_explicit(&hub->member[i].id, 0, memory_order_release);
}

/* From *at on, which moves behind it; false: there is no room. */
static bool add(struct members *m, struct seg *hub, uint32_t owner, const struct member_wish *w,
	uint32_t *at)
{
	uint32_t i = *at;

	while (i < SEG_MEMBERS && m->owner[i])
		i++;
	*at = i;
	if (i == SEG_MEMBERS)
		return false;
	m->owner[i] = owner;
	memcpy(hub->member[i].key, w->key, sizeof w->key);
	atomic_store_explicit(&hub->member[i].id, w->word, memory_order_release);
	if (used(hub) < i + 1)
		atomic_store_explicit(&hub->hdr.members_used, i + 1, memory_order_release);
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct member_wish *x = a, *y = b;

	if (x->word != y->word)
		return x->word < y->word ? -1 : 1;
	return memcmp(x->key, y->key, sizeof x->key);
}

/* What the segment lists now, in order, each once: it may change while we look. */
static uint32_t read_wishes(struct members *m, const struct seg *seg)
{
	uint32_t n = 0, out = 0;

	for (uint32_t i = 0; i < used(seg) && n < SEG_MEMBERS; i++) {
		m->wish[n] = (struct member_wish){.word = word_at(seg, i)};
		memcpy(m->wish[n].key, seg->member[i].key, sizeof m->wish[n].key);
		n += m->wish[n].word != 0;
	}
	qsort(m->wish, n, sizeof *m->wish, compare);
	for (uint32_t i = 0; i < n; i++)
		if (!out || compare(&m->wish[out - 1], &m->wish[i]))
			m->wish[out++] = m->wish[i];
	return out;
}

int members_update(struct members *m, struct seg *hub, const struct seg *seg, uint32_t owner)
{
	uint32_t n = read_wishes(m, seg), at = 0;
	bool room = true;

	for (uint32_t i = 0; i < used(hub); i++) {
		struct member_wish there = {.word = word_at(hub, i)}, *w;

		if (m->owner[i] != owner)
			continue;
		memcpy(there.key, hub->member[i].key, sizeof there.key);
		w = bsearch(&there, m->wish, n, sizeof there, compare);
		if (w && !w->listed)
			w->listed = true;
		else
			clear(m, hub, i);
	}
	for (uint32_t i = 0; i < n; i++)
		if (!m->wish[i].listed)
			room = add(m, hub, owner, &m->wish[i], &at) && room;
	return room ? 0 : -ENOSPC;
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
