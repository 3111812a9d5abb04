// SPDX-License-Identifier: BSD-3-Clause
/* Completion queues: making and ending them, their rings; what waits there when a QP goes. */
#include "hca/queue/cq.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/proc/heap.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "hca/queue/channel.h"
#include "hca/queue/cq_poll.h"
#include "hca/queue/event.h"
#include "hca/queue/own_rxq.h"
#include "hca/seg/arm.h"

enum { MIN_RING_LOG = 8 };

/* A ring of tickets, before the CQ uses it. */
struct new_ring {
	uint64_t off, bytes;
	uint32_t log_size, limit;
};

static int alloc_ring(struct new_ring *r, int cqe)
{
	r->limit = cqe;
	r->log_size = MIN_RING_LOG;
	while ((1 << r->log_size) < cqe + CQ_SURPLUS_MAX)
		r->log_size++;
	r->bytes = 8ull << r->log_size;
	return heap_alloc(r->bytes, &r->off);
}

/* Describes it in one of the two places of the segment's entry. */
static void place_ring(struct seg_cq *s, uint32_t place, const struct new_ring *r)
{
	struct ticket_ring *t = &s->ring[place];

	s->place[place].off = r->off;
	s->place[place].log_size = r->log_size;
	s->place[place].limit = r->limit;
	atomic_store_explicit(&t->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&t->head, 0, memory_order_relaxed);
	atomic_store_explicit(&t->head_seen, 0, memory_order_relaxed);
}

/* From here on tickets are taken out of that ring. */
static void use_ring(struct hca_cq *cq, uint32_t place, const struct new_ring *r)
{
	_Atomic uint64_t *slots = (_Atomic uint64_t *)((char *)proc_seg() + r->off);

	atomic_store_explicit(&cq->log_size, r->log_size, memory_order_relaxed);
	atomic_store_explicit(&cq->slots, slots, memory_order_relaxed);
	atomic_store_explicit(&cq->head, 0, memory_order_relaxed);
	cq->ring = &cq->s->ring[place];
	cq->ring_bytes = r->bytes;
	cq->solicited = (struct cq_marks){.looked = 0};
	atomic_store_explicit(&cq->told_alone, 0, memory_order_relaxed);
}

static uint64_t ring_offset(const struct hca_cq *cq)
{
	_Atomic uint64_t *slots = atomic_load_explicit(&cq->slots, memory_order_relaxed);

	return (uint64_t)((char *)slots - (char *)proc_seg());
}

static void describe(struct hca_cq *cq, const struct new_ring *r)
{
	struct seg_cq *s = &proc_seg()->cq[cq->index];
	uint32_t live = atomic_load_explicit(&s->live, memory_order_relaxed);
	uint32_t place = atomic_load_explicit(&s->resizes, memory_order_relaxed) & 1;

	place_ring(s, place, r);
	s->channel = cq->channel ? cq->channel->id : 0;
	s->ignores_overrun = cq->ignores_overrun;
	atomic_store_explicit(&s->arm, ARM_IDLE, memory_order_relaxed);
	/* Entries that an earlier CQ of this index has left speak of lower numbers. */
	cq->fired_seen = atomic_load_explicit(&s->fired, memory_order_relaxed);
	atomic_store_explicit(&s->told, cq->fired_seen, memory_order_relaxed);
	atomic_store_explicit(&s->given, cq->fired_seen, memory_order_relaxed);
	atomic_store_explicit(&s->failed, 0, memory_order_relaxed);
	atomic_store_explicit(&s->events, 0, memory_order_relaxed);
	atomic_store_explicit(&s->surplus, 0, memory_order_relaxed);
	atomic_store_explicit(&s->moderation, 0, memory_order_relaxed);
	atomic_store_explicit(&s->held, 0, memory_order_relaxed);
	atomic_store_explicit(&s->due, 0, memory_order_relaxed);
	atomic_store_explicit(&s->live, (live | 1) + (live & 1 ? 2 : 0), memory_order_release);
	cq->s = s;
	use_ring(cq, place, r);
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_cq, 1, memory_order_relaxed);
}

static int refuse_depth(const char *call, int cqe)
{
	return log_refused(-EINVAL,
		"%s refused: %d entries, and there may be 1 to %d (max_cqe, ibv_devinfo -v)", call,
		cqe, HCA_MAX_CQE);
}

static int build(struct hca_cq *cq, int cqe)
{
	struct new_ring r;
	int index, rc = alloc_ring(&r, cqe);

	if (rc)
		return rc;
	index = table_add_cq(cq);
	if (index < 0) {
		heap_free(r.off, r.bytes);
		return index;
	}
	cq->index = index;
	describe(cq, &r);
	return 0;
}

int hca_cq_create(
	int *cqe, struct hca_channel *channel, unsigned flags, void *cookie, struct hca_cq **out)
{
	struct hca_cq *cq;
	int rc;

	if (*cqe < 1 || *cqe > HCA_MAX_CQE)
		return refuse_depth("create_cq", *cqe);
	rc = proc_attach(NULL);
	if (rc)
		return rc;
	if (channel && channel->epoch != proc_epoch())
		return log_refused(-EINVAL, "create_cq refused: the channel is of the process that "
					    "this one was forked from");
	cq = calloc(1, sizeof *cq);
	if (!cq)
		return -ENOMEM;
	cq->epoch = proc_epoch();
	cq->cookie = cookie;
	cq->channel = channel;
	cq->stamps = flags & HCA_CQ_STAMPS;
	cq->ignores_overrun = flags & HCA_CQ_IGNORE_OVERRUN;
	rc = build(cq, *cqe);
	if (rc) {
		free(cq);
		return rc;
	}
	if (channel)
		channel_add_cq(channel, cq);
	*out = cq;
	return 0;
}

int hca_cq_close(struct hca_cq *cq)
{
	if (cq->epoch == proc_epoch() && atomic_load_explicit(&cq->users, memory_order_acquire))
		return log_busy("ibv_destroy_cq", "QPs or SRQs use the CQ");
	if (cq->channel)
		channel_del_cq(cq->channel, cq);
	if (cq->epoch == proc_epoch())
		cq_forget_events(cq->index);
	return 0;
}

void hca_cq_free(struct hca_cq *cq)
{
	if (cq->epoch == proc_epoch()) {
		atomic_fetch_and_explicit(&cq->s->live, ~1u, memory_order_release);
		heap_free(ring_offset(cq), cq->ring_bytes);
		atomic_fetch_sub_explicit(&proc_seg()->hdr.n_cq, 1, memory_order_relaxed);
		table_del_cq(cq->index);
	}
	free(cq->early.t);
	free(cq);
}

/* ---- when a QP or SRQ goes ---- */

static bool is_of(uint64_t ticket, uint32_t index)
{
	return ticket_is_rxq(ticket) ? own_rxq_purge(ticket, index) : ticket_qp(ticket) == index;
}

/* What was taken out early is served first; the lock is held. */
static void keep_for_later(struct hca_cq *cq, const struct ticket_run *kept)
{
	free(cq->early.t);
	cq->early.t = kept->t;
	cq->early.n = kept->n;
	cq->early.at = 0;
	atomic_store_explicit(&cq->early.left, kept->n, memory_order_relaxed);
}

/* Takes out n tickets at most, and keeps those that are not of that entry. */
static void take_out(struct hca_cq *cq, uint32_t index, uint64_t n, struct ticket_run *kept)
{
	uint64_t t;

	while (n-- && (t = cq_next_ticket(cq)))
		if (!is_of(t, index))
			kept->t[kept->n++] = t;
	keep_for_later(cq, kept);
}

/* All stay where they are; those of an entry that goes are stale from now on. */
static void make_stale(struct hca_cq *cq, uint32_t index)
{
	uint64_t pos = atomic_load_explicit(&cq->head, memory_order_relaxed), t;

	for (uint32_t i = cq->early.at; i < cq->early.n; i++)
		is_of(cq->early.t[i], index);
	for (; (t = cq_peek(cq, pos)); pos++)
		is_of(t, index);
}

/* Who pushes for the entry has done so: its tickets are among those that wait now. */
void cq_purge(struct hca_cq *cq, uint32_t index)
{
	struct ticket_run kept = {.t = NULL};
	uint64_t n;

	if (!cq)
		return;
	lock_take(&cq->lock);
	n = cq_waiting(cq) + 1; /* the tail may not have moved past the last */
	if (!cq_looks_empty(cq)) {
		kept.t = calloc(n, sizeof *kept.t);
		if (kept.t)
			take_out(cq, index, n, &kept);
		else
			make_stale(cq, index);
	}
	lock_drop(&cq->lock);
}

/* ---- another ring ---- */

/*
 * From the store of `resizes` on producers find the new ring; those that looked before are
 * waited for.  Then all that is in the old ring came before what is in the new one.
 */
static void switch_ring(struct hca_cq *cq, const struct new_ring *r, struct ticket_run *kept)
{
	uint32_t n = atomic_load_explicit(&cq->s->resizes, memory_order_relaxed) + 1;
	uint64_t old = ring_offset(cq), old_bytes = cq->ring_bytes;
	uint64_t t;

	place_ring(cq->s, n & 1, r);
	atomic_store_explicit(&cq->s->resizes, n, memory_order_seq_cst);
	quiesce();
	while ((t = cq_next_ticket(cq)))
		kept->t[kept->n++] = t;
	keep_for_later(cq, kept);
	use_ring(cq, n & 1, r);
	heap_free(old, old_bytes);
}

int hca_cq_resize(struct hca_cq *cq, int *cqe)
{
	struct ticket_run kept = {.t = NULL};
	struct new_ring r;
	int rc = 0;

	if (*cqe < 1 || *cqe > HCA_MAX_CQE)
		return refuse_depth("resize_cq", *cqe);
	if (cq->epoch != proc_epoch())
		return -EINVAL;
	lock_take(&cq->lock);
	if (cq_waiting(cq) > (uint64_t)*cqe)
		rc = log_refused(-EINVAL,
			"resize_cq refused: more completions wait than its %d entries", *cqe);
	/* As many as can come before the switch: it must not fail half-way. */
	if (!rc) {
		kept.t = calloc(cq->early.n - cq->early.at + cq->ring_bytes / sizeof *kept.t,
			sizeof *kept.t);
		rc = kept.t ? alloc_ring(&r, *cqe) : -ENOMEM;
	}
	if (!rc)
		switch_ring(cq, &r, &kept);
	else
		free(kept.t);
	lock_drop(&cq->lock);
	return rc;
}
