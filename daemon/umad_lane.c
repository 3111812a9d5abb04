// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/umad_lane.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/session.h"
#include "daemon/umad_recv.h"
#include "daemon/umad_send.h"

enum {
	LANES_MAX = 4096,  /* of a file */
	LANES_OF_ONE = 16, /* for one connection: they end all at once, and each end takes time */
	LANE_NUMBERS = 1 << 16,
};

_Static_assert(LANE_NUMBERS <= 1 << (64 - TIDS_LANE_SHIFT), "a transaction has room for a lane");

struct ulane *ulane_find(const struct ufile *f, uint32_t number)
{
	struct ulane *l = f->lanes;

	while (l && l->number != number)
		l = l->next;
	return l;
}

/* From 1, used again as late as possible: there are more of them than lanes. */
static uint32_t new_number(struct ufile *f)
{
	do
		f->last_lane = f->last_lane + 1 < LANE_NUMBERS ? f->last_lane + 1 : 1;
	while (ulane_find(f, f->last_lane));
	return f->last_lane;
}

static void enlist(struct ulane *l, struct session *c)
{
	struct ufile *f = l->file;

	l->next = f->lanes;
	l->link = &f->lanes;
	if (l->next)
		l->next->link = &l->next;
	f->lanes = l;
	f->n_lanes++;
	f->all->n_lanes++;
	l->session = c;
	l->session_next = c->lanes;
	l->session_link = &c->lanes;
	if (l->session_next)
		l->session_next->session_link = &l->session_next;
	c->lanes = l;
}

static unsigned lanes_of(const struct session *c, const struct ufile *f)
{
	unsigned n = 0;

	for (const struct ulane *l = c->lanes; l; l = l->session_next)
		n += l->file == f;
	return n;
}

int ulane_make(struct ufile *f, struct session *c, struct ulane **out, int *fd)
{
	struct ulane *l;
	void *mem;
	int ret;

	if (f->n_lanes >= LANES_MAX || lanes_of(c, f) >= LANES_OF_ONE)
		return -EMFILE;
	l = calloc(1, sizeof *l);
	if (!l)
		return -ENOMEM;
	ret = ufile_memory("weft-umad-lane", sizeof *l->mem, fd, &mem);
	if (ret) {
		free(l);
		return ret;
	}
	*l = (struct ulane){.mem = mem, .number = new_number(f), .file = f};
	enlist(l, c);
	*out = l;
	return 0;
}

static void delist(struct ulane *l)
{
	*l->link = l->next;
	if (l->next)
		l->next->link = l->link;
	*l->session_link = l->session_next;
	if (l->session_next)
		l->session_next->session_link = l->session_link;
	l->file->n_lanes--;
	l->file->all->n_lanes--;
}

/* ---- the end of a lane ---- */

/* The entries of a lane's transactions that are under way. */
struct under_way {
	uint64_t *entry;
	size_t n;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool is_under_way(void *arg, uint64_t entry)
{
	const struct under_way *w = arg;

	return w->n && bsearch(&entry, w->entry, w->n, sizeof entry, compare);
}

static void sweep(const struct ulane *l)
{
	struct under_way w = {0};
	size_t room = 0;

	for (const struct uflight *t = l->file->flights; t; t = t->next)
		room += t->listed && t->lane == l->number;
	w.entry = room ? malloc(room * sizeof *w.entry) : NULL;
	if (room && !w.entry)
		return; /* they stay listed: none is told wrongly that it is no duplicate */
	for (const struct uflight *t = l->file->flights; t && room; t = t->next)
		if (t->listed && t->lane == l->number)
			w.entry[w.n++] = tids_entry(t->hash, t->lane);
	if (w.n)
		qsort(w.entry, w.n, sizeof *w.entry, compare);
	tids_sweep(&l->file->page->tids, l->number, is_under_way, &w);
	free(w.entry);
}

void ulane_end(struct ulane *l)
{
	struct ufile *f = l->file;

	if (!f->facts.gone)
		(void)usend_lane(l, 1u << UMAD_SEND_LOG_SIZE);
	atomic_store_explicit(&l->mem->ended, 1, memory_order_release);
	delist(l);
	if (!f->facts.gone) {
		sweep(l);
		urecv_bury(f, l);
	}
	munmap(l->mem, sizeof *l->mem);
	free(l);
}

void ulanes_gone(struct session *c)
{
	while (c->lanes)
		ulane_end(c->lanes);
}
