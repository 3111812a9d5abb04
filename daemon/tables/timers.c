// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/timers.h"

#include <errno.h>
#include <stdlib.h>

static struct timer **bucket_of(struct timers *t, uint32_t attach_id, uint32_t qp)
{
	return &t->bucket[(attach_id * 0x9e3779b1u ^ qp * 0x85ebca6bu) >> 22];
}

_Static_assert(TIMER_BUCKETS == 1 << (32 - 22), "the shift above");

static void place(struct timers *t, size_t pos, struct timer *e)
{
	t->heap[pos] = e;
	e->pos = pos;
}

static void sift_up(struct timers *t, struct timer *e)
{
	size_t pos = e->pos;

	while (pos && t->heap[(pos - 1) / 2]->when > e->when) {
		place(t, pos, t->heap[(pos - 1) / 2]);
		pos = (pos - 1) / 2;
	}
	place(t, pos, e);
}

static void sift_down(struct timers *t, struct timer *e)
{
	size_t pos = e->pos;

	for (;;) {
		size_t child = 2 * pos + 1;

		if (child + 1 < t->count && t->heap[child + 1]->when < t->heap[child]->when)
			child++;
		if (child >= t->count || t->heap[child]->when >= e->when)
			break;
		place(t, pos, t->heap[child]);
		pos = child;
	}
	place(t, pos, e);
}

static struct timer *find(struct timers *t, uint32_t attach_id, uint32_t qp)
{
	struct timer *e = *bucket_of(t, attach_id, qp);

	while (e && (e->attach_id != attach_id || e->qp != qp))
		e = e->chain;
	return e;
}

static struct timer *add(struct timers *t, uint32_t attach_id, uint32_t qp)
{
	struct timer **head = bucket_of(t, attach_id, qp), *e;

	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 16;
		struct timer **heap = realloc(t->heap, room * sizeof *heap);

		if (!heap)
			return NULL;
		t->heap = heap;
		t->room = room;
	}
	e = malloc(sizeof *e);
	if (!e)
		return NULL;
	*e = (struct timer){.attach_id = attach_id, .qp = qp, .chain = *head};
	*head = e;
	place(t, t->count++, e);
	return e;
}

static void unlink_timer(struct timers *t, struct timer *e)
{
	struct timer **link = bucket_of(t, e->attach_id, e->qp);

	while (*link != e)
		link = &(*link)->chain;
	*link = e->chain;
	free(e);
}

int timers_set(struct timers *t, uint32_t attach_id, uint32_t qp, uint64_t when)
{
	struct timer *e = find(t, attach_id, qp);

	if (!e)
		e = add(t, attach_id, qp);
	if (!e)
		return -ENOMEM;
	e->when = when;
	sift_up(t, e);
	sift_down(t, e);
	return 0;
}

uint64_t timers_next(const struct timers *t)
{
	return t->count ? t->heap[0]->when : 0;
}

bool timers_pop(struct timers *t, uint64_t now, uint32_t *attach_id, uint32_t *qp)
{
	if (!t->count || t->heap[0]->when > now)
		return false;
	*attach_id = t->heap[0]->attach_id;
	*qp = t->heap[0]->qp;
	unlink_timer(t, t->heap[0]);
	if (--t->count) {
		place(t, 0, t->heap[t->count]);
		sift_down(t, t->heap[0]);
	}
	return true;
}

void timers_drop(struct timers *t, uint32_t attach_id)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i++) {
		if (t->heap[i]->attach_id == attach_id)
			unlink_timer(t, t->heap[i]);
		else
			place(t, kept++, t->heap[i]);
	}
	t->count = kept;
	for (size_t i = kept / 2; i-- > 0;)
		sift_down(t, t->heap[i]);
}
