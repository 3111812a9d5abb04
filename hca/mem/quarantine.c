// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/quarantine.h"

#include <stdlib.h>

#include "hca/mem/place.h"
#include "hca/mem/share_move.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"

/* Late stores need real pages, but at most a copy step for each stopped thread; addresses cost
 * nothing. */
enum { REGIONS_MAX = 1024 };
#define BYTES_MAX (4ull << 30)

struct quarantined {
	struct place place; /* first member */
	uint32_t epoch, index;
	struct late late;
};

static struct {
	uint32_t n;
	uint64_t bytes;
} quarantine;

static void tell(void)
{
	struct seg_header *hdr = &proc_seg()->hdr;

	atomic_store_explicit(&hdr->n_quarantined, quarantine.n, memory_order_relaxed);
	atomic_store_explicit(&hdr->quarantined_bytes, quarantine.bytes, memory_order_relaxed);
}

static void count(const struct quarantined *q, int by)
{
	quarantine.n += by;
	quarantine.bytes += by * (q->place.hi - q->place.lo);
	tell();
}

bool quarantine_room(uint64_t bytes)
{
	return quarantine.n < REGIONS_MAX && quarantine.bytes + bytes <= BYTES_MAX;
}

static bool over(const struct place *p)
{
	return late_over(&((const struct quarantined *)p)->late);
}

static void empty(struct place *p)
{
	if (p->lo < p->hi)
		share_each_gap(p->lo, p->hi, share_back, NULL);
	count((struct quarantined *)p, -1);
}

static void end(struct place *p)
{
	struct quarantined *q = (struct quarantined *)p;

	if (q->epoch == proc_epoch())
		table_del_mr(q->index);
	late_put(&q->late);
	free(q);
}

static const struct place_kind kind = {.over = over, .empty = empty, .end = end};

bool quarantine_add(struct hca_mr *mr, struct late *late, bool place)
{
	struct quarantined *q = malloc(sizeof *q);

	if (!q)
		return false;
	*q = (struct quarantined){.epoch = mr->epoch, .index = mr->index, .late = *late};
	if (place) {
		q->place.lo = mr->lo;
		q->place.hi = mr->hi;
	}
	late->n = 0;
	table_hold_mr(mr);
	place_add(&q->place, &kind);
	count(q, 1);
	return true;
}

void quarantine_forked_child(void)
{
	quarantine.n = 0;
	quarantine.bytes = 0;
}
