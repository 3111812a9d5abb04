// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/datagram.h"

#include <endian.h>
#include <netinet/ip.h>
#include <stddef.h>
#include <string.h>

#include "hca/exec/exec_rxq.h"
#include "hca/exec/fail.h"
#include "hca/exec/flush.h"
#include "hca/exec/owned.h"
#include "hca/exec/range.h"
#include "hca/exec/receive.h"
#include "hca/obj/qp.h"
#include "hca/proc/member.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/run/path.h"
#include "hca/run/route.h"

enum {
	MTU_BASE_LOG = 7,
	QKEY_OF_QP = 1u << 31, /* in a request: the QP's own Q_Key counts */
	ROCE_HEADERS = 12 + 8, /* BTH, DETH */
	ICRC_BYTES = 4,
	UDP_HEADER = 8,
	DEFAULT_HOPS = 64,
	MULTICAST_QPN = 0xffffff,
	IPV4_AT = SEG_GRH_BYTES - sizeof(struct iphdr),
};

/*
 * The SL of a receive: no RoCE packet carries one, so adapters use the field to tell which header
 * lies in the 40 bytes, of which IPv4 leaves the first 20 undefined.  UCX reads it there.
 */
enum { SL_L3_IPV6 = 1, SL_L3_IPV4 = 2, SL_UDP = 8 };

/* A datagram on its way. */
struct datagram {
	struct work *w;
	struct hca_qp *from;
	uint32_t qkey;
	const void *bytes;      /* the payload if it is one piece; NULL: */
	struct payload payload; /* large: its list is never zeroed whole */
};

/* ---- the 40 bytes before the payload ---- */

static bool is_mapped_ipv4(const uint8_t *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof prefix);
}

/* Of 16-bit words, not folded. */
static uint32_t ip_sum(const struct iphdr *ip)
{
	uint16_t word[sizeof *ip / sizeof(uint16_t)];
	uint32_t sum = 0;

	memcpy(word, ip, sizeof word);
	for (unsigned i = 0; i < sizeof word / sizeof *word; i++)
		sum += word[i];
	return sum;
}

static uint16_t ip_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Bytes of UDP datagram that the message would be. */
static uint16_t udp_length(const struct work *w)
{
	uint32_t padded = (w->length + 3) & ~3u;

	return UDP_HEADER + ROCE_HEADERS + (w->op->has_imm ? 4 : 0) + padded + ICRC_BYTES;
}

static void make_ipv4(struct path_memo *m, uint8_t hops)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = m->tclass,
		.frag_off = htobe16(IP_DF),
		.ttl = hops,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, m->sgid + 12, 4);
	memcpy(&ip.daddr, m->dgid + 12, 4);
	m->sum = ip_sum(&ip);
	memset(m->grh, 0, sizeof m->grh);
	memcpy(m->grh + IPV4_AT, &ip, sizeof ip);
}

static void make_grh(struct path_memo *m)
{
	uint8_t hops = m->flow >> AV_HOP_SHIFT;
	struct ibv_grh grh = {.next_hdr = IPPROTO_UDP};

	hops = hops ? hops : DEFAULT_HOPS;
	m->ipv4 = is_mapped_ipv4(m->sgid) && is_mapped_ipv4(m->dgid);
	if (m->ipv4) {
		make_ipv4(m, hops);
		return;
	}
	grh.version_tclass_flow =
		htobe32(6u << 28 | (uint32_t)m->tclass << 20 | (m->flow & 0xfffff));
	grh.hop_limit = hops;
	memcpy(grh.sgid.raw, m->sgid, sizeof grh.sgid.raw);
	memcpy(grh.dgid.raw, m->dgid, sizeof grh.dgid.raw);
	_Static_assert(sizeof grh == SEG_GRH_BYTES, "a GRH");
	memcpy(m->grh, &grh, sizeof grh);
}

/* Is this the path of the request, and does it still lead to us or to a group? */
static bool same_path(const struct path_memo *m, const struct fabric_gid *gids, const uint8_t *sgid,
	const struct seg_wqe *slot)
{
	return m->known && !memcmp(m->sgid, sgid, sizeof m->sgid) &&
	       !memcmp(m->dgid, slot->av.dgid, sizeof m->dgid) && m->flow == slot->av.flow &&
	       m->tclass == slot->tclass &&
	       (m->multicast || !memcmp(gids[m->gid].raw, m->dgid, sizeof m->dgid));
}

/* False: it leads to another host. */
static bool find_path(struct path_memo *m, const struct seg_wqe *slot)
{
	const struct fabric_gid *gids = proc_at()->fabric->port[0].gid;
	const uint8_t *sgid = gids[slot->av.qpn >> AV_SGID_SHIFT].raw;
	int kind;

	if (__builtin_expect(same_path(m, gids, sgid, slot), 1))
		return true;
	memcpy(m->sgid, sgid, sizeof m->sgid);
	memcpy(m->dgid, slot->av.dgid, sizeof m->dgid);
	m->flow = slot->av.flow;
	m->tclass = slot->tclass;
	kind = path_find_gid(m->dgid, &m->gid);
	m->multicast = kind == PATH_GROUP;
	m->known = kind >= 0;
	make_grh(m);
	return m->known;
}

/* The GRH of this datagram. */
static void write_grh(const struct path_memo *m, const struct work *w, uint8_t *to)
{
	uint16_t len = udp_length(w), sum;

	memcpy(to, m->grh, SEG_GRH_BYTES);
	if (!m->ipv4) {
		len = htobe16(len);
		memcpy(to + offsetof(struct ibv_grh, paylen), &len, sizeof len);
		return;
	}
	len = htobe16(sizeof(struct iphdr) + len);
	sum = ip_fold(m->sum + len);
	memcpy(to + IPV4_AT + offsetof(struct iphdr, tot_len), &len, sizeof len);
	memcpy(to + IPV4_AT + offsetof(struct iphdr, check), &sum, sizeof sum);
}

/* ---- at the receiver ---- */

/* Does the receive take want bytes?  0, or the status with which it completes. */
static enum ibv_wc_status fits(const struct end *to, uint32_t pos, uint64_t want)
{
	const struct seg_rqe *r = &rxq_at(&to->rxq, pos)->rqe;

	if (receive_fits_plain(&to->view, to->rxq.pd, r, want))
		return IBV_WC_SUCCESS;
	return receive_fits(&to->view, to->rxq.pd, r, to->rxq.sge_max, want);
}

/*
 * What a slot of the QP's own queue got goes to the oldest receive, which need not be the one that
 * was posted there, and whose region may be gone by right.  So the owner looks, which has the
 * payload then.
 */
static bool is_for_owner(const struct end *to, enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_PROT_ERR && to->rxq.entry == to->qp;
}

/* Asks for the lines that the datagram needs at its receiver, who used them last. */
static void fetch_lines(struct hca_qp *from, uint32_t qpn)
{
	const struct end *to = route_guess(from->routes, qpn);

	if (!to || !to->rxq.ring.slots || !to->recv_cq.cq)
		return;
	cq_prefetch(&to->recv_cq);
	rxq_fetch_head(&to->rxq);
}

/* Fills the receive at pos, which is ours. */
static void fill(const struct datagram *d, const struct end *to, uint32_t pos)
{
	struct work *w = d->w;
	struct outcome o = {.byte_len = w->length + SEG_GRH_BYTES};
	struct received r = {
		.opcode = IBV_WC_RECV,
		.wc_flags = IBV_WC_GRH | (w->op->has_imm ? IBV_WC_WITH_IMM : 0),
		.solicited = w->flags & IBV_SEND_SOLICITED,
		.imm = w->imm,
		.src_qp = w->req->qpn,
		.sl = SL_UDP | (d->from->path.ipv4 ? SL_L3_IPV4 : SL_L3_IPV6),
	};
	uint8_t *room = rxq_room(&to->rxq, pos, o.byte_len, &r.where);

	o.status = fits(to, pos, o.byte_len);
	if (o.status == IBV_WC_SUCCESS || is_for_owner(to, o.status)) {
		write_grh(&d->from->path, w, room);
		if (d->bytes)
			memcpy(room + SEG_GRH_BYTES, d->bytes, w->length);
		else
			sgl_gather(&d->payload.l, room + SEG_GRH_BYTES);
		exec_rxq_complete(w->x, to, to, &to->rxq, pos, &o, &r);
		count_add(w->x, CTR_SEND_RING, 1);
		rxq_fetch(&to->rxq, pos + 1); /* most likely of the next one */
		return;
	}
	/* The receive is at fault: an error of the receiver alone. */
	qp_set_error(to);
	exec_rxq_complete(w->x, to, to, &to->rxq, pos, &o, &r);
	qp_flush(w->x, to, false);
}

/* STEP_BUSY: nothing was done, the receives are moving to a larger ring. */
static enum step deliver(const struct datagram *d, uint32_t qpn)
{
	struct exec *x = d->w->x;
	const struct end *to;
	uint32_t pos;

	if (route_to(d->w, d->from, qpn, &to) || to->type != IBV_QPT_UD || !to->rxq.ring.slots ||
		!end_receives(to)) {
		count_add(x, CTR_DROP_NO_QP, 1);
		return STEP_DONE;
	}
	if (to->qp->qkey != d->qkey) {
		count_add(x, CTR_DROP_QKEY, 1);
		return STEP_DONE;
	}
	if (!rxq_in_place(&to->rxq) && receive_find_ring(d->w, &to) == STEP_BUSY)
		return STEP_BUSY;
	if (!rxq_in_place(&to->rxq) || !exec_rxq_take(x, to, &pos)) {
		count_add(x, CTR_DROP_NO_RECV, 1);
		return STEP_DONE;
	}
	if (!end_receives(to))
		exec_rxq_untake(x, to, pos);
	else
		fill(d, to, pos);
	return STEP_DONE;
}

/* A member whose receives are moving just then does not get it: it cannot wait for one alone. */
static void deliver_to_group(const struct datagram *d)
{
	uint32_t qpn, at = 0;

	while ((qpn = member_next(MEMBER_MCAST, d->from->path.dgid, &at)))
		if ((qpn != d->w->req->qpn || !d->w->req->qp->no_self_mcast) &&
			deliver(d, qpn) == STEP_BUSY)
			count_add(d->w->x, CTR_DROP_NO_RECV, 1);
}

/* The payload of owned memory is read by a worker, to where a datagram never parks. */
static enum step fetch_payload(struct datagram *d, const struct held *held)
{
	struct work *w = d->w;

	if (way_is_later(w, &d->payload))
		return STEP_LATER;
	if (owned_gather(w, &d->payload, held, w->req->park_buf) != MOVE_OK)
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	d->bytes = w->req->park_buf;
	return STEP_DONE;
}

/* The payload, where it is.  An lkey may not cover it. */
static enum step find_payload(struct datagram *d)
{
	struct work *w = d->w;
	struct held held;

	/* Of an empty payload no byte is read: any pointer that is not NULL will do. */
	d->bytes = w->length ? range_source_plain(w) : w;
	if (d->bytes)
		return STEP_DONE;
	if (!range_source(w, &d->payload, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	return d->payload.way->here ? STEP_DONE : fetch_payload(d, &held);
}

int datagram_send(struct work *w)
{
	const struct seg_wqe *slot = end_wqe(w->req, w->pos);
	struct datagram d;
	enum step s;

	d.w = w;
	d.from = table_qp(w->req->index);
	if (w->op->kind != OP_SEND || !d.from)
		return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
	fetch_lines(d.from, slot->av.qpn & MULTICAST_QPN);
	if (w->length > 1u << (MTU_BASE_LOG + (w->req->qp->mtu & 7)) ||
		w->length > SEG_RING_MSG_MAX)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	s = find_payload(&d);
	if (s != STEP_DONE)
		return s;
	d.qkey = slot->av.qkey & QKEY_OF_QP ? w->req->qp->qkey : slot->av.qkey;
	if (!find_path(&d.from->path, slot))
		count_add(w->x, CTR_DROP_NO_QP, 1);
	else if (d.from->path.multicast)
		deliver_to_group(&d);
	else if (deliver(&d, slot->av.qpn & MULTICAST_QPN) == STEP_BUSY)
		return STEP_BUSY;
	return work_succeed(w);
}
