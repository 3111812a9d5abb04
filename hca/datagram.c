// SPDX-License-Identifier: BSD-3-Clause
#include "hca/datagram.h"

#include <endian.h>
#include <netinet/ip.h>
#include <string.h>

#include "hca/ah.h"
#include "hca/member.h"
#include "hca/proc.h"
#include "hca/route.h"
#include "hca/tables.h"

enum {
	MTU_BASE_LOG = 7,
	QKEY_OF_QP = 1u << 31, /* in a request: the QP's own Q_Key counts */
	ROCE_HEADERS = 12 + 8, /* BTH, DETH */
	ICRC_BYTES = 4,
	UDP_HEADER = 8,
	DEFAULT_HOPS = 64,
	MULTICAST_QPN = 0xffffff,
};

/* A datagram on its way. */
struct datagram {
	struct work *w;
	struct hca_qp *from;
	struct seg_av av;
	uint8_t grh[SEG_GRH_BYTES];
	struct payload payload;
	uint32_t qkey;
};

/* ---- the 40 bytes before the payload ---- */

static bool is_mapped_ipv4(const uint8_t *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof prefix);
}

static uint16_t ip_checksum(const void *header)
{
	const uint16_t *word = header;
	uint32_t sum = 0;

	for (unsigned i = 0; i < sizeof(struct iphdr) / sizeof *word; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* Bytes of UDP datagram that the message would be. */
static uint16_t udp_length(const struct work *w)
{
	uint32_t padded = (w->length + 3) & ~3u;

	return UDP_HEADER + ROCE_HEADERS + (w->op->has_imm ? 4 : 0) + padded + ICRC_BYTES;
}

static void make_ipv4(struct datagram *d, const uint8_t *sgid, uint8_t tclass, uint8_t hops)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = tclass,
		.tot_len = htobe16(sizeof ip + udp_length(d->w)),
		.frag_off = htobe16(IP_DF),
		.ttl = hops,
		.protocol = IPPROTO_UDP,
	};

	memcpy(&ip.saddr, sgid + 12, 4);
	memcpy(&ip.daddr, d->av.dgid + 12, 4);
	ip.check = ip_checksum(&ip);
	memset(d->grh, 0, sizeof d->grh);
	memcpy(d->grh + sizeof d->grh - sizeof ip, &ip, sizeof ip);
}

static void make_grh(struct datagram *d)
{
	const uint8_t *sgid = proc_at()->fabric->port.gid[d->av.qpn >> AV_SGID_SHIFT].raw;
	uint8_t tclass = end_wqe(d->w->req, d->w->pos)->aux[0];
	uint8_t hops = d->av.flow >> AV_HOP_SHIFT;
	struct ibv_grh grh = {.next_hdr = IPPROTO_UDP};

	hops = hops ? hops : DEFAULT_HOPS;
	if (is_mapped_ipv4(sgid) && is_mapped_ipv4(d->av.dgid)) {
		make_ipv4(d, sgid, tclass, hops);
		return;
	}
	grh.version_tclass_flow =
		htobe32(6u << 28 | (uint32_t)tclass << 20 | (d->av.flow & 0xfffff));
	grh.paylen = htobe16(udp_length(d->w));
	grh.hop_limit = hops;
	memcpy(grh.sgid.raw, sgid, sizeof grh.sgid.raw);
	memcpy(grh.dgid.raw, d->av.dgid, sizeof grh.dgid.raw);
	_Static_assert(sizeof grh == SEG_GRH_BYTES, "a GRH");
	memcpy(d->grh, &grh, sizeof grh);
}

/* ---- at the receiver ---- */

/* Fills the receive at pos, which is ours. */
static void fill(const struct datagram *d, const struct end *to, uint32_t pos)
{
	struct work *w = d->w;
	struct outcome o = {.byte_len = w->length + SEG_GRH_BYTES};
	struct received r = {
		.opcode = IBV_WC_RECV,
		.wc_flags = IBV_WC_GRH | (w->op->has_imm ? IBV_WC_WITH_IMM : 0),
		.where = RQ_IN_BOUNCE,
		.solicited = w->flags & IBV_SEND_SOLICITED,
		.imm = w->imm,
		.src_qp = w->req->qpn,
		.sl = d->av.flow >> AV_SL_SHIFT,
	};
	uint8_t *bounce = rxq_bounce(&to->rx, pos);

	o.status = receive_fits(
		&to->view, to->rx.pd, &rxq_at(&to->rx, pos)->rqe, to->rx.sge_max, o.byte_len);
	if (o.status == IBV_WC_SUCCESS) {
		memcpy(bounce, d->grh, sizeof d->grh);
		if (w->length)
			sgl_gather(&d->payload.l, bounce + sizeof d->grh);
		complete_shared(w->x, to, to, &to->rx, pos, &o, &r);
		count_add(w->x, CTR_SEND_RING, 1);
		return;
	}
	/* The receive is at fault: an error of the receiver alone. */
	qp_set_error(to);
	complete_shared(w->x, to, to, &to->rx, pos, &o, &r);
	qp_flush(w->x, to, false);
}

/* STEP_BUSY: nothing was done, the receives are moving to a larger ring. */
static enum step deliver(const struct datagram *d, uint32_t qpn)
{
	const struct end *to = route_find(d->w, d->from, qpn);
	struct exec *x = d->w->x;
	uint32_t pos;

	if (!to || to->type != IBV_QPT_UD || !to->rx.ring.slots || !end_receives(to)) {
		count_add(x, CTR_DROP_NO_QP, 1);
		return STEP_DONE;
	}
	if (to->qp->qkey != d->qkey) {
		count_add(x, CTR_DROP_QKEY, 1);
		return STEP_DONE;
	}
	if (!rxq_in_place(&to->rx) && work_find_ring(d->w, &to) == STEP_BUSY)
		return STEP_BUSY;
	if (!rxq_in_place(&to->rx) || !shared_take(x, to, &pos)) {
		count_add(x, CTR_DROP_NO_RECV, 1);
		return STEP_DONE;
	}
	if (!end_receives(to))
		shared_untake(x, to, pos);
	else
		fill(d, to, pos);
	return STEP_DONE;
}

/* A member whose receives are moving just then does not get it: it cannot wait for one alone. */
static void deliver_to_group(const struct datagram *d)
{
	uint32_t qpn, at = 0;

	while ((qpn = member_next(MEMBER_MCAST, d->av.dgid, &at)))
		if ((qpn != d->w->req->qpn || !d->w->req->qp->no_self_mcast) &&
			deliver(d, qpn) == STEP_BUSY)
			count_add(d->w->x, CTR_DROP_NO_RECV, 1);
}

int datagram_send(struct work *w)
{
	struct datagram d; /* large: its lists are never zeroed whole */
	struct held held;

	d.w = w;
	d.from = table_qp(w->req->index);
	if (w->op->kind != OP_SEND || !d.from)
		return work_failed(w, IBV_WC_LOC_QP_OP_ERR);
	if (w->length > 1u << (MTU_BASE_LOG + (w->req->qp->mtu & 7)) ||
		w->length > SEG_RING_MSG_MAX)
		return work_failed(w, IBV_WC_LOC_LEN_ERR);
	if (!work_source(w, &d.payload, &held))
		return work_failed(w, IBV_WC_LOC_PROT_ERR);
	d.av = end_wqe(w->req, w->pos)->av;
	d.qkey = d.av.qkey & QKEY_OF_QP ? w->req->qp->qkey : d.av.qkey;
	make_grh(&d);
	if (gid_is_multicast(d.av.dgid))
		deliver_to_group(&d);
	else if (!gid_is_local(d.av.dgid))
		count_add(w->x, CTR_DROP_NO_QP, 1);
	else if (deliver(&d, d.av.qpn & MULTICAST_QPN) == STEP_BUSY)
		return STEP_BUSY;
	return work_succeed(w);
}
