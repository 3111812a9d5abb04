// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/quarantine.h"

#include <stdlib.h>

#include "hca/proc/proc.h"
#include "hca/proc/tables.h"

/* Late stores need real pages, but at most a copy step for each stopped thread; addresses cost
 * nothing. */
enum { REGIONS_MAX = 1024 };
#define BYTES_MAX (4ull << 30)

struct quarantined {
	struct quarantined *next;
	uint32_t epoch, index;
	uint64_t lo, hi;
	struct late late;
};

static struct {
	struct quarantined *first;
	_Atomic uint32_t n;
	uint64_t bytes;
} quarantine;

static void tell(void)
{
	struct seg_header *hdr = &proc_seg()->hdr;

	atomic_store_explicit(&hdr->n_quarantined,
		atomic_load_explicit(&quarantine.n, memory_order_relaxed), memory_order_relaxed);
	atomic_store_explicit(&hdr->quarantined_bytes, quarantine.bytes, memory_order_relaxed);
}

static void count(const struct quarantined *q, int by)
{
	atomic_fetch_add_explicit(&quarantine.n, by, memory_order_relaxed);
	quarantine.bytes += by * (q->hi - q->lo);
	tell();
}

bool quarantine_any(void)
{
	return atomic_load_explicit(&quarantine.n, memory_order_relaxed);
}

bool quarantine_room(uint64_t bytes)
{
	return atomic_load_explicit(&quarantine.n, memory_order_relaxed) < REGIONS_MAX &&
	       quarantine.bytes + bytes <= BYTES_MAX;
}

bool quarantine_add(struct hca_mr *mr, struct late *late, bool place)
{
	struct quarantined *q = malloc(sizeof *q);

	if (!q)
		return false;
	*q = (struct quarantined){
		.next = quarantine.first, .epoch = mr->epoch, .index = mr->index, .late = *late};
	if (place) {
		q->lo = mr->lo;
		q->hi = mr->hi;
	}
	late->n = 0;
	table_hold_mr(mr->index);
	quarantine.first = q;
	count(q, 1);
	return true;
}

bool quarantine_covers(uint64_t lo, uint64_t hi)
{
	for (const struct quarantined *q = quarantine.first; q; q = q->next)
		if (q->lo < hi && lo < q->hi)
			return true;
	return false;
}

struct quarantined *quarantine_over(void (*empty)(uint64_t lo, uint64_t hi))
{
	struct quarantined **at = &quarantine.first, *q, *over = NULL;

	while ((q = *at)) {
		if (!late_over(&q->late)) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		if (q->lo < q->hi)
			empty(q->lo, q->hi);
		count(q, -1);
		q->next = over;
		over = q;
	}
	return over;
}

void quarantine_free(struct quarantined *q)
{
	while (q) {
		struct quarantined *next = q->next;

		if (q->epoch == proc_epoch())
			table_del_mr(q->index);
		late_put(&q->late);
		free(q);
		q = next;
	}
}

void quarantine_forked_child(void)
{
	/* malloc's locks may be held by nobody here, and the peers are the parent's. */
	quarantine.first = NULL;
	quarantine.bytes = 0;
	atomic_store_explicit(&quarantine.n, 0, memory_order_relaxed);
}
