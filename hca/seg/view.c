// SPDX-License-Identifier: BSD-3-Clause
#include "hca/seg/view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	LINE_UP = CACHE_LINE - 1,
	MAX_WR_LOG = 15,
	MAX_CQ_LOG = 23,
	MAX_STRIDE = 4096,
	STAMP_BYTES = 8
};

uint32_t sq_stride_for(uint32_t max_sge, uint32_t max_inline, bool stamp)
{
	uint32_t tail = max_sge * sizeof(struct seg_sge);

	if (tail < max_inline)
		tail = max_inline;
	tail += stamp ? STAMP_BYTES : 0;
	return (sizeof(struct seg_wqe) + tail + LINE_UP) & ~LINE_UP;
}

uint32_t rq_stride_for(uint32_t max_sge, bool stamp)
{
	uint32_t far = max_sge > RQ_SGE_NEAR ? max_sge - RQ_SGE_NEAR : 0;
	uint32_t tail = far * sizeof(struct seg_sge) + (stamp ? STAMP_BYTES : 0);

	return (sizeof(struct seg_rqe) + tail + LINE_UP) & ~LINE_UP;
}

uint32_t rxq_stride_for(uint32_t max_sge)
{
	uint32_t stride = offsetof(struct seg_rxq_slot, rqe) + rq_stride_for(max_sge, false);

	return (stride + 2 * CACHE_LINE - 1) & ~(2 * CACHE_LINE - 1u);
}

unsigned slots_log_for(uint32_t depth)
{
	unsigned log = 0;

	while ((1u << log) < depth)
		log++;
	return log;
}

bool view_died(const struct view *v)
{
	struct pollfd p = {.fd = v->pidfd.fd, .events = POLLIN};
	int saved = errno;
	bool dead = false;

	if (view_dead(v))
		return true;
	if (own_fd_ok(&v->pidfd))
		dead = poll(&p, 1, 0) == 1 && p.revents & POLLIN;
	else if (v->pid > 0)
		dead = kill(v->pid, 0) < 0 && errno == ESRCH;
	if (dead)
		atomic_store_explicit(&v->seg->hdr.dead, 1, memory_order_release);
	errno = saved;
	return dead;
}

bool view_stopped(const struct view *v)
{
	char path[32], buf[512], *p;
	int saved = errno, fd = -1;
	ssize_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/stat", v->pid);
	if (v->pid > 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, buf, sizeof buf - 1);
		close(fd);
	}
	buf[n > 0 ? n : 0] = '\0';
	p = strrchr(buf, ')'); /* the name before it may hold anything */
	errno = saved;
	return !p || p[1] != ' ' || p[2] == 'T' || p[2] == 't';
}

/* The part [off, off+len) of the heap, or NULL if it does not lie in it. */
static void *heap_part(const struct view *v, uint64_t off, uint64_t len)
{
	if (off < offsetof(struct seg, heap) || off % CACHE_LINE || off > SEG_SIZE ||
		len > SEG_SIZE - off)
		return NULL;
	return (char *)v->seg + off;
}

int cq_ref_init(struct cq_ref *r, const struct view *v, uint32_t index)
{
	struct seg_cq *cq = &v->seg->cq[index & (SEG_CQS - 1)];
	uint32_t resizes = atomic_load_explicit(&cq->resizes, memory_order_acquire);
	const struct seg_ring *place = &cq->place[resizes & 1];

	if (index == SEG_NONE) {
		*r = (struct cq_ref){.index = SEG_NONE};
		return 0;
	}
	r->cq = cq;
	r->index = index & (SEG_CQS - 1);
	r->resizes = resizes;
	r->ring = &cq->ring[resizes & 1];
	r->log_size = place->log_size;
	r->limit = place->limit;
	if (r->log_size > MAX_CQ_LOG || r->limit > 1u << r->log_size ||
		(1u << r->log_size) - r->limit < CQ_SURPLUS_MAX)
		return -EPROTO;
	r->slots = heap_part(v, place->off, 8ull << r->log_size);
	return r->slots ? 0 : -EPROTO;
}

int rxq_ref_init(struct rxq_ref *r, const struct view *v, uint32_t index)
{
	struct seg_qp *q = &v->seg->qp[index & (SEG_QPS - 1)];
	uint32_t resizes = atomic_load_explicit(&q->rxq.resizes, memory_order_acquire);
	const struct seg_rxq_place *place = &q->rxq.place[resizes >> 1 & 1];
	uint32_t log = place->log, stride = q->rxq.stride;
	uint32_t state = atomic_load_explicit(&q->state, memory_order_acquire);
	uint8_t *slots;

	if (!(state & QPS_LIVE) || log > MAX_WR_LOG || stride % CACHE_LINE ||
		stride < sizeof(struct seg_rxq_slot) || stride > MAX_STRIDE)
		return -EPROTO;
	slots = heap_part(v, place->slots_off, (uint64_t)stride << log);
	r->entry = q;
	r->index = index & (SEG_QPS - 1);
	r->gen = state >> QPS_GEN_SHIFT;
	r->pd = q->pd;
	r->resizes = resizes & ~1u;
	r->matches_tags = q->type == SEG_TYPE_TM_SRQ;
	r->sge_max = RQ_SGE_NEAR + (stride - sizeof(struct seg_rxq_slot)) / sizeof(struct seg_sge);
	r->ring = (struct rxq_ring){.head = &q->rxq.head,
		.tail = &q->rxq.tail,
		.tail_seen = &q->rxq.tail_seen,
		.slots = slots ? slots + RXQ_STATE_AT : NULL,
		.stride = stride,
		.mask = (1u << log) - 1};
	r->bounce = heap_part(v, place->bounce_off, (uint64_t)SEG_BOUNCE_BYTES << log);
	return r->ring.slots && r->bounce ? 0 : -EPROTO;
}

/* A UD QP and an SRQ's entry have one of their own, other QPs may use a shared one. */
static int shared_init(struct end *e, const struct view *v, const struct seg_qp *q)
{
	e->rxq.ring.slots = NULL;
	e->rxq.matches_tags = false;
	if (q->rxq.place[0].slots_off)
		return rxq_ref_init(&e->rxq, v, e->index);
	return q->srq ? rxq_ref_init(&e->rxq, v, q->srq) : 0;
}

/* A QP whose receives come from an SRQ that matches tags: its list, and the CQ, which is its own.
 */
static int tags_init(struct end *e, const struct view *v)
{
	const struct seg_qp *srq = e->rxq.entry;
	int rc;

	if (!e->rxq.ring.slots || !e->rxq.matches_tags || e->rxq.index == e->index)
		return 0;
	if (e->type != IBV_QPT_RC)
		return -EPROTO;
	e->stamps |= srq->stamps & STAMP_RECV;
	rc = rxq_ref_init(&e->tags, v, srq->srq);
	return rc ? rc : cq_ref_init(&e->recv_cq, v, srq->recv_cq);
}

static int queues_init(struct end *e, const struct view *v, const struct seg_qp *q)
{
	unsigned sq_log = q->sq_log, rq_log = q->rq_log;

	e->sq_stride = q->sq_stride;
	e->rq_stride = q->rq_stride;
	if (sq_log > MAX_WR_LOG || e->sq_stride < sizeof(struct seg_wqe) ||
		e->sq_stride > MAX_STRIDE || e->sq_stride % CACHE_LINE)
		return -EPROTO;
	e->sq_mask = (1u << sq_log) - 1;
	e->sq = heap_part(v, q->sq_off, (uint64_t)e->sq_stride << sq_log);
	e->sge_max = (e->sq_stride - sizeof(struct seg_wqe)) / sizeof(struct seg_sge);
	e->ring = heap_part(v, q->ring_off, SEG_RING_BYTES);
	e->park_buf = heap_part(v, q->park_off, SEG_PARK_BYTES);
	e->stamps = q->stamps;
	if (e->stamps & STAMP_SEND && e->sq_stride < sizeof(struct seg_wqe) + STAMP_BYTES)
		return -EPROTO;
	e->rq = NULL;
	if (rq_log == 0xff)
		return e->sq && e->park_buf ? 0 : -EPROTO;
	if (e->stamps & STAMP_RECV && e->rq_stride < sizeof(struct seg_rqe) + STAMP_BYTES)
		return -EPROTO;
	if (rq_log > MAX_WR_LOG || e->rq_stride < sizeof(struct seg_rqe) ||
		e->rq_stride > MAX_STRIDE || e->rq_stride % CACHE_LINE)
		return -EPROTO;
	e->rq_mask = (1u << rq_log) - 1;
	e->rq = heap_part(v, q->rq_off, (uint64_t)e->rq_stride << rq_log);
	e->rq_sge_max =
		RQ_SGE_NEAR + (e->rq_stride - sizeof(struct seg_rqe)) / sizeof(struct seg_sge);
	return e->sq && e->park_buf && e->rq && e->ring ? 0 : -EPROTO;
}

/* The entry of a shared receive queue: nothing to execute. */
static int no_queues(struct end *e, const struct seg_qp *q)
{
	e->stamps = q->stamps;
	e->sq = e->rq = e->ring = e->park_buf = NULL;
	e->sq_mask = e->rq_mask = e->sge_max = e->rq_sge_max = 0;
	return 0;
}

/* Executors rely on a CQ where its type has one. */
static bool has_its_cqs(const struct end *e)
{
	switch (e->type) {
	case IBV_QPT_XRC_RECV:
	case SEG_TYPE_SRQ:
		return true;
	case IBV_QPT_XRC_SEND:
		return e->send_cq.cq;
	case SEG_TYPE_XRC_SRQ:
	case SEG_TYPE_TM_SRQ:
	case SEG_TYPE_TM_LIST:
		return e->recv_cq.cq;
	default:
		return e->send_cq.cq && e->recv_cq.cq;
	}
}

int end_init(struct end *e, const struct view *v, uint32_t index)
{
	struct seg_qp *q = &v->seg->qp[index & (SEG_QPS - 1)];
	uint32_t state = atomic_load_explicit(&q->state, memory_order_acquire);
	int rc;

	if (!(state & QPS_LIVE))
		return -ENOENT;
	e->view = *v;
	e->qp = q;
	e->index = index & (SEG_QPS - 1);
	atomic_store_explicit(&e->gen, state >> QPS_GEN_SHIFT, memory_order_relaxed);
	e->qpn = q->qpn;
	e->pd = q->pd;
	e->sig_all = q->sq_sig_all;
	e->next = NULL;
	e->type = atomic_load_explicit(&q->type, memory_order_relaxed);
	if (e->type >= SEG_TYPE_SRQ)
		rc = no_queues(e, q);
	else
		rc = queues_init(e, v, q);
	if (!rc)
		rc = shared_init(e, v, q);
	if (!rc)
		rc = cq_ref_init(&e->send_cq, v, q->send_cq);
	if (!rc)
		rc = cq_ref_init(&e->recv_cq, v, q->recv_cq);
	if (!rc)
		rc = tags_init(e, v);
	return !rc && !has_its_cqs(e) ? -EPROTO : rc;
}

int64_t view_find_qpn(const struct view *v, uint32_t qpn)
{
	uint32_t block = (qpn & 0xffffff) / SEG_QPN_PER_BLOCK;
	uint32_t word = atomic_load_explicit(&v->seg->qpn_block[block], memory_order_acquire);
	const struct seg_qp *q;
	uint32_t index;

	if (!word)
		return -ENOENT;
	index = qpn_first_index(word) + qpn_to_index(word, qpn % SEG_QPN_PER_BLOCK);
	index &= SEG_QPS - 1;
	q = &v->seg->qp[index];
	/* The state first: it is shown last, when the rest of a new QP is there. */
	if (!(atomic_load_explicit(&q->state, memory_order_acquire) & QPS_LIVE) || q->qpn != qpn)
		return -ENOENT;
	return index;
}
