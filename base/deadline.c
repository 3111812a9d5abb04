// SPDX-License-Identifier: BSD-3-Clause
#include "base/deadline.h"

#include <errno.h>
#include <stdlib.h>

static void place(struct deadlines *h, size_t pos, struct deadline *d)
{
	h->heap[pos] = d;
	d->pos = pos + 1;
}

static void sift_up(struct deadlines *h, struct deadline *d)
{
	size_t pos = d->pos - 1;

	while (pos && h->heap[(pos - 1) / 2]->when > d->when) {
		place(h, pos, h->heap[(pos - 1) / 2]);
		pos = (pos - 1) / 2;
	}
	place(h, pos, d);
}

static void sift_down(struct deadlines *h, struct deadline *d)
{
	size_t pos = d->pos - 1;

	for (;;) {
		size_t child = 2 * pos + 1;

		if (child + 1 < h->count && h->heap[child + 1]->when < h->heap[child]->when)
			child++;
		if (child >= h->count || h->heap[child]->when >= d->when)
			break;
		place(h, pos, h->heap[child]);
		pos = child;
	}
	place(h, pos, d);
}

static int make_room(struct deadlines *h)
{
	size_t room = h->room ? 2 * h->room : 16;
	struct deadline **heap;

	if (h->count < h->room)
		return 0;
	heap = realloc(h->heap, room * sizeof *heap);
	if (!heap)
		return -ENOMEM;
	h->heap = heap;
	h->room = room;
	return 0;
}

int deadline_set(struct deadlines *h, struct deadline *d, uint64_t when)
{
	int ret = d->pos ? 0 : make_room(h);

	if (ret)
		return ret;
	d->when = when;
	if (!d->pos)
		place(h, h->count++, d);
	sift_up(h, d);
	sift_down(h, d);
	return 0;
}

void deadline_clear(struct deadlines *h, struct deadline *d)
{
	struct deadline *last;

	if (!d->pos)
		return;
	last = h->heap[--h->count];
	if (last != d) {
		place(h, d->pos - 1, last);
		sift_up(h, last);
		sift_down(h, last);
	}
	d->pos = 0;
}

uint64_t deadline_next(const struct deadlines *h)
{
	return h->count ? h->heap[0]->when : 0;
}

struct deadline *deadline_pop(struct deadlines *h, uint64_t now)
{
	struct deadline *d = h->count ? h->heap[0] : NULL;

	if (!d || d->when > now)
		return NULL;
	deadline_clear(h, d);
	return d;
}

void deadlines_free(struct deadlines *h)
{
	free(h->heap);
	*h = (struct deadlines){0};
}
