// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/place.h"

#include "base/atomic.h"

static struct {
	struct place *first;
	_Atomic uint32_t n; /* that are emptied without waiting */
	bool left_behind;
} places;

static void count(const struct place *p, int by)
{
	if (!p->kind->waits)
		atomic_fetch_add_explicit(&places.n, by, memory_order_relaxed);
}

void place_add(struct place *p, const struct place_kind *kind)
{
	p->kind = kind;
	p->next = places.first;
	places.first = p;
	count(p, 1);
}

bool place_covers(uint64_t lo, uint64_t hi)
{
	for (const struct place *p = places.first; p; p = p->next)
		if (p->lo < hi && lo < p->hi)
			return true;
	return false;
}

bool place_any(void)
{
	return atomic_load_explicit(&places.n, memory_order_relaxed);
}

struct place *place_sweep(bool waits)
{
	struct place **at = &places.first, *p, *over = NULL;

	while ((p = *at)) {
		if (p->kind->waits != waits || !p->kind->over(p)) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		p->kind->empty(p);
		count(p, -1);
		p->next = over;
		over = p;
	}
	return over;
}

void place_end(struct place *over)
{
	while (over) {
		struct place *next = over->next;

		over->kind->end(over);
		over = next;
	}
}

void place_leave_behind(void)
{
	places.left_behind = true;
}

bool place_stays(void)
{
	for (const struct place *p = places.first; p; p = p->next)
		if (p->kind->stays)
			return true;
	return places.left_behind;
}

void place_forked_child(void)
{
	/* malloc's locks may be held by nobody here, and the peers are the parent's. */
	places.first = NULL;
	places.left_behind = false;
	atomic_store_explicit(&places.n, 0, memory_order_relaxed);
}
