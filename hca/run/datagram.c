// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/datagram.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/gid.h"
#include "hca/exec/fail.h"
#include "hca/exec/owned.h"
#include "hca/exec/range.h"
#include "hca/obj/qp.h"
#include "hca/proc/member.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/run/ah.h"
#include "hca/run/arrive.h"
#include "hca/run/far.h"
#include "hca/run/far_datagram.h"
#include "hca/run/grh.h"
#include "hca/run/path.h"
#include "hca/run/route.h"

enum {
	QKEY_OF_QP = 1u << 31, /* in a request: the QP's own Q_Key counts */
	MULTICAST_QPN = 0xffffff,
	FLOW_LABEL = 0xfffff,
	AWAY_NS = NSEC_PER_SEC,       /* so long a path to elsewhere is believed */
	ASKED_NS = NSEC_PER_SEC / 10, /* so long what weftd said of a number */
};

/* A datagram on its way. */
struct datagram {
	struct work *w;
	struct hca_qp *from;
	struct arrival as;      /* at its receivers */
	struct payload payload; /* large: its list is never zeroed whole */
};

/* ---- where it goes ---- */

/* Are both ends' GIDs still in the table where they were? */
static bool same_gids(struct path_memo *m, uint32_t seq, uint32_t sgid_index)
{
	const struct fabric_gid *gids = proc_at()->fabric->port[0].gid;

	if (!gid_same(m->sgid, gids[sgid_index].raw))
		return false;
	if (!m->away && !m->multicast && !gid_same(gids[m->gid].raw, m->dgid))
		return false;
	if (seq & 1) /* weftd is writing */
		return true;
	m->page_seq = seq;
	m->sgid_index = sgid_index;
	return true;
}

/* Is this the path of the request, and does it still lead where it did? */
static inline bool same_path(struct path_memo *m, const struct seg_wqe *slot)
{
	const uint32_t sgid_index = slot->av.qpn >> AV_SGID_SHIFT;
	uint32_t seq;

	if (!m->known || !gid_same(m->dgid, slot->av.dgid) || m->flow != slot->av.flow ||
		m->tclass != slot->tclass)
		return false;
	if (m->away && clock_coarse_ns() >= m->until_ns)
		return false;
	seq = atomic_load_explicit(&proc_at()->fabric->seq, memory_order_acquire);
	return (m->page_seq == seq && m->sgid_index == sgid_index) || same_gids(m, seq, sgid_index);
}

/* As the program's address handle had it. */
static struct ibv_ah_attr attr_of(const struct seg_wqe *slot)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.flow_label = slot->av.flow & FLOW_LABEL,
			.sgid_index = slot->av.qpn >> AV_SGID_SHIFT,
			.hop_limit = slot->av.flow >> AV_HOP_SHIFT,
			.traffic_class = slot->tclass}};

	memcpy(attr.grh.dgid.raw, slot->av.dgid, sizeof attr.grh.dgid.raw);
	return attr;
}

/* Finds out where it leads; what leaves this host is asked for again after a while. */
static void find_kind(struct path_memo *m, const struct seg_wqe *slot)
{
	struct ibv_ah_attr attr = attr_of(slot);
	const char *why;
	int kind = path_find(&attr, &m->to, &why);

	m->multicast = kind == PATH_GROUP;
	/* What a group's loopback carries would come back, to members who have it already. */
	if (kind == PATH_REMOTE || (m->multicast && !gid_is_loopback(m->sgid)))
		m->away = far_datagram_route(&m->to);
	else
		m->away = NULL;
	m->here = m->away && path_find_gid(m->dgid, &m->gid) == PATH_LOCAL;
	m->until_ns = clock_coarse_ns() + AWAY_NS;
	m->known = m->away || kind == PATH_LOCAL || m->multicast;
	if (kind == PATH_LOCAL)
		path_find_gid(m->dgid, &m->gid);
}

/* A path for the request.  False: it leads nowhere. */
static bool new_path(struct path_memo *m, const struct seg_wqe *slot)
{
	const struct fabric_gid *gids = proc_at()->fabric->port[0].gid;
	const uint8_t *sgid = gids[slot->av.qpn >> AV_SGID_SHIFT].raw;

	m->sgid_index = UINT32_MAX; /* the next one compares again */
	memcpy(m->sgid, sgid, sizeof m->sgid);
	memcpy(m->dgid, slot->av.dgid, sizeof m->dgid);
	m->flow = slot->av.flow;
	m->tclass = slot->tclass;
	find_kind(m, slot);
	grh_make(&m->grh, m->sgid, m->dgid,
		(uint32_t)m->tclass << PATH_TCLASS_SHIFT | (m->flow & FLOW_LABEL),
		m->flow >> AV_HOP_SHIFT);
	return m->known;
}

static inline bool find_path(struct path_memo *m, const struct seg_wqe *slot)
{
	return __builtin_expect(same_path(m, slot), 1) || new_path(m, slot);
}

/* ---- to its receivers ---- */

/* Asks for the lines that the datagram needs at its receiver, who used them last. */
static void fetch_lines(struct hca_qp *from, uint32_t qpn)
{
	const struct end *to = route_guess(from->routes, qpn);

	if (!to || !to->rxq.ring.slots || !to->recv_cq.cq)
		return;
	cq_prefetch(&to->recv_cq);
	rxq_fetch_head(&to->rxq);
}

/* *rc: 0; no route, and why. */
static inline enum step try_deliver(const struct datagram *d, uint32_t qpn, int *rc)
{
	const struct end *to;

	*rc = route_to(d->w, d->from, qpn, &to);
	if (!*rc && to->type == IBV_QPT_UD)
		return arrive(d->w, &d->as, to);
	if (!*rc)
		count_add(d->w->x, CTR_DROP_NO_QP, 1);
	return STEP_DONE;
}

/* STEP_BUSY: nothing was done, the receives are moving to a larger ring. */
static enum step deliver(const struct datagram *d, uint32_t qpn)
{
	int rc;
	enum step s = try_deliver(d, qpn, &rc);

	if (rc)
		count_add(d->w->x, CTR_DROP_NO_QP, 1);
	return s;
}

/* A member whose receives are moving just then does not get it: it cannot wait for one alone. */
static void deliver_to_group(const struct datagram *d)
{
	uint32_t qpn, at = 0;

	while ((qpn = member_next(MEMBER_MCAST, d->from->path->dgid, &at)))
		if ((qpn != d->w->req->qpn || !d->w->req->qp->no_self_mcast) &&
			deliver(d, qpn) == STEP_BUSY)
			count_add(d->w->x, CTR_DROP_NO_RECV, 1);
}

/* ---- to other hosts ---- */

static int send_by(struct datagram *d, uint32_t qpn, const struct datagram_ops *by)
{
	const struct seg_qp *q = d->w->req->qp;
	struct iovec all = {.iov_base = (void *)d->as.bytes, .iov_len = d->as.length};
	struct leaving out = {
		.from = d->from,
		.src_qpn = d->as.from_qpn,
		.dest_qpn = qpn,
		.qkey = d->as.qkey,
		.psn = q->sq_psn + atomic_load_explicit(&q->packets, memory_order_relaxed),
		.imm = d->as.imm,
		.has_imm = d->as.has_imm,
		.solicited = d->as.solicited,
		.length = d->as.length,
		.piece = d->as.bytes ? &all : d->payload.l.v,
		.n_pieces = d->as.bytes ? 1 : d->payload.l.n,
	};

	return by->send(d->w->x, &d->from->path->to, &out);
}

static int send_away(struct datagram *d, uint32_t qpn)
{
	return send_by(d, qpn, d->from->path->away);
}

/* ---- to other fabrics of this host ---- */

static inline bool is_known(const struct path_memo *m, uint32_t qpn)
{
	return m->asked == qpn && qpn && clock_coarse_ns() < m->asked_ns;
}

static void note_elsewhere(struct path_memo *m, uint32_t qpn, bool elsewhere)
{
	m->asked = qpn;
	m->asked_ns = clock_coarse_ns() + ASKED_NS;
	m->elsewhere = elsewhere;
}

/* What goes by packets is not looked for here; weftd is asked once in a while. */
static bool is_elsewhere(struct work *w, struct path_memo *m, uint32_t qpn)
{
	if (!is_known(m, qpn))
		note_elsewhere(m, qpn, route_elsewhere(w, qpn));
	return m->elsewhere;
}

static void send_beside(struct datagram *d, uint32_t qpn)
{
	const struct datagram_ops *by = far_datagram_beside();
	struct seg_path *to = &d->from->path->to;

	if (!by) {
		count_add(d->w->x, CTR_DROP_NO_QP, 1);
		return;
	}
	to->beside = 1;
	send_by(d, qpn, by);
	to->beside = 0;
}

static enum step send_here(struct datagram *d, uint32_t qpn)
{
	struct path_memo *m = d->from->path;
	enum step s = STEP_DONE;
	int rc = 0;

	if (__builtin_expect(!m->elsewhere || !is_known(m, qpn), 1))
		s = try_deliver(d, qpn, &rc);
	else
		rc = -EADDRNOTAVAIL;
	if (__builtin_expect(!rc, 1))
		return s;
	if (rc != -EADDRNOTAVAIL) {
		count_add(d->w->x, CTR_DROP_NO_QP, 1);
		return s;
	}
	if (!is_known(m, qpn))
		note_elsewhere(m, qpn, true);
	send_beside(d, qpn);
	return s;
}

/* To one QP, or to a group. */
static enum step send_to(struct datagram *d, uint32_t qpn)
{
	const struct path_memo *m = d->from->path;

	if (m->multicast) {
		deliver_to_group(d);
		if (m->away)
			send_away(d, MULTICAST_QPN);
		return STEP_DONE;
	}
	if (!m->away)
		return send_here(d, qpn);
	if (m->here && is_elsewhere(d->w, d->from->path, qpn)) {
		send_beside(d, qpn);
		return STEP_DONE;
	}
	return send_away(d, qpn) == -EAGAIN ? STEP_BUSY : STEP_DONE;
}

/* The payload of owned memory is read by whoever may, to where a datagram never parks. */
static enum step fetch_payload(struct datagram *d, const struct held *held)
{
	struct work *w = d->w;

	if (way_is_later(w, &d->payload, held))
		return STEP_LATER;
	if (owned_gather(w, &d->payload, held, w->req->park_buf) != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	d->as.bytes = w->req->park_buf;
	return STEP_DONE;
}

/* The payload, where it is.  An lkey may not cover it. */
static enum step find_payload(struct datagram *d)
{
	struct work *w = d->w;
	struct held held;

	/* Of an empty payload no byte is read: any pointer that is not NULL will do. */
	d->as.bytes = w->length ? range_source_plain(w) : w;
	d->as.list = &d->payload.l;
	if (d->as.bytes)
		return STEP_DONE;
	if (!range_source(w, &d->payload, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	return d->payload.way->here ? STEP_DONE : fetch_payload(d, &held);
}

/* All but the payload. */
static void describe(struct datagram *d, const struct seg_wqe *slot)
{
	const struct work *w = d->w;
	struct grh *grh = &d->from->path->grh;

	d->as.from_qpn = w->req->qpn;
	d->as.qkey = slot->av.qkey & QKEY_OF_QP ? w->req->qp->qkey : slot->av.qkey;
	d->as.imm = w->imm;
	d->as.has_imm = w->op->has_imm;
	d->as.solicited = w->flags & IBV_SEND_SOLICITED;
	d->as.ipv4 = grh->ipv4;
	d->as.length = w->length;
	d->as.grh = grh_of(grh, w->length, w->op->has_imm);
}

int datagram_send(struct work *w)
{
	const struct seg_wqe *slot = end_wqe(w->req, w->pos);
	struct datagram d;
	enum step s;

	d.w = w;
	d.from = table_qp(w->req->index);
	/* Its type in the segment may be anything by now: who connects has no path to remember. */
	if (w->op->kind != OP_SEND || !d.from || !d.from->path)
		return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
	fetch_lines(d.from, slot->av.qpn & MULTICAST_QPN);
	if (w->length > seg_mtu_bytes(w->req->qp->mtu) || w->length > SEG_RING_MSG_MAX)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	s = find_payload(&d);
	if (s != STEP_DONE)
		return s;
	if (!find_path(d.from->path, slot)) {
		if (ah_is_of_another(slot))
			return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
		count_add(w->x, CTR_DROP_NO_QP, 1);
		return work_succeed(w);
	}
	describe(&d, slot);
	if (send_to(&d, slot->av.qpn & MULTICAST_QPN) == STEP_BUSY)
		return STEP_BUSY;
	return work_succeed(w);
}
