// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/arrive.h"

#include <string.h>

#include "base/log.h"
#include "hca/exec/exec_rxq.h"
#include "hca/exec/flush.h"
#include "hca/exec/receive.h"
#include "hca/obj/qp.h"
#include "hca/proc/member.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"

/*
 * The SL of a receive: no RoCE packet carries one, so adapters use the field to tell which header
 * lies in the 40 bytes, of which IPv4 leaves the first 20 undefined.  UCX reads it there.
 */
enum { SL_L3_IPV6 = 1, SL_L3_IPV4 = 2, SL_UDP = 8 };

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

/* Fills the receive at pos, which is ours. */
static void fill(struct exec *x, const struct arrival *a, const struct end *to, uint32_t pos)
{
	struct outcome o = {.byte_len = a->length + SEG_GRH_BYTES};
	struct received r = {
		.opcode = IBV_WC_RECV,
		.wc_flags = IBV_WC_GRH | (a->has_imm ? IBV_WC_WITH_IMM : 0),
		.solicited = a->solicited,
		.imm = a->imm,
		.src_qp = a->from_qpn,
		.sl = SL_UDP | (a->ipv4 ? SL_L3_IPV4 : SL_L3_IPV6),
	};
	uint8_t *room = rxq_room(&to->rxq, pos, o.byte_len, &r.where);

	o.status = fits(to, pos, o.byte_len);
	if (o.status == IBV_WC_SUCCESS || is_for_owner(to, o.status)) {
		memcpy(room, a->grh, SEG_GRH_BYTES);
		if (a->bytes)
			memcpy(room + SEG_GRH_BYTES, a->bytes, a->length);
		else
			sgl_gather(a->list, room + SEG_GRH_BYTES);
		exec_rxq_complete(x, to, to, &to->rxq, pos, &o, &r);
		count_add(x, CTR_SEND_RING, 1);
		rxq_fetch(&to->rxq, pos + 1); /* most likely of the next one */
		return;
	}
	/* The receive is at fault: an error of the receiver alone. */
	qp_set_error(to);
	exec_rxq_complete(x, to, to, &to->rxq, pos, &o, &r);
	qp_flush(x, to, false);
}

/* The receive that it goes into: STEP_DONE; STEP_BUSY; STEP_RNR: there is none. */
static enum step take(struct work *w, const struct end **to, uint32_t *pos)
{
	if (!rxq_in_place(&(*to)->rxq)) {
		enum step s = receive_find_ring(w, to);

		if (s != STEP_DONE)
			return s == STEP_BUSY ? s : STEP_RNR;
		if (!rxq_in_place(&(*to)->rxq))
			return STEP_RNR;
	}
	return exec_rxq_take(w->x, *to, pos) ? STEP_DONE : STEP_RNR;
}

/* The first in words, and then every tenfold of them. */
static void tell_qkey(const struct arrival *a, const struct end *to)
{
	static _Atomic uint32_t dropped;
	uint32_t n, power = 1;

	if (!log_refusals())
		return;
	n = atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed) + 1;
	while (power < n && power <= UINT32_MAX / 10)
		power *= 10;
	if (n == power)
		log_refusal("a datagram from QP %#x to QP %#x is dropped: its Q_Key is %#x, that "
			    "of the "
			    "QP %#x (the %u. of such)",
			a->from_qpn, to->qpn, a->qkey, to->qp->qkey, n);
}

enum step arrive(struct work *w, const struct arrival *a, const struct end *to)
{
	struct exec *x = w->x;
	uint32_t pos;
	enum step s;

	if (!to->rxq.ring.slots || !end_receives(to)) {
		count_add(x, CTR_DROP_NO_QP, 1);
		return STEP_DONE;
	}
	if (to->qp->qkey != a->qkey) {
		count_add(x, CTR_DROP_QKEY, 1);
		tell_qkey(a, to);
		return STEP_DONE;
	}
	s = take(w, &to, &pos);
	if (s == STEP_BUSY)
		return s;
	if (s == STEP_RNR) {
		count_add(x, CTR_DROP_NO_RECV, 1);
		return STEP_DONE;
	}
	if (!end_receives(to))
		exec_rxq_untake(x, to, pos);
	else
		fill(x, a, to, pos);
	return STEP_DONE;
}

/* ---- from elsewhere, to this process ---- */

static enum arrived give(struct exec *x, const struct hca_qp *qp, const struct arrival *a)
{
	struct end now;
	struct work w = {.x = x, .mem_now = &now};

	if (!qp)
		return ARRIVED_NO_QP;
	if (qp->me.type != IBV_QPT_UD)
		return ARRIVED_TYPE;
	if (!end_receives(&qp->me))
		return ARRIVED_STATE;
	if (a->length > seg_mtu_bytes(qp->me.qp->mtu) || a->length > SEG_RING_MSG_MAX)
		return ARRIVED_LENGTH;
	/* It cannot wait for a ring that moves: what comes by a wire may be lost. */
	if (arrive(&w, a, &qp->me) == STEP_BUSY)
		count_add(x, CTR_DROP_NO_RECV, 1);
	return ARRIVED;
}

enum arrived arrive_here(struct exec *x, uint32_t qpn, const struct arrival *a)
{
	struct view v = proc_view();
	int64_t index = view_find_qpn(&v, qpn);
	enum arrived how;

	if (index < 0)
		return ARRIVED_NO_QP;
	how = give(x, table_enter_qp(x, (uint32_t)index), a);
	slot_leave(x->slot);
	return how;
}

void arrive_at_group(struct exec *x, const uint8_t mgid[16], const struct arrival *a)
{
	uint32_t qpn, at = 0;

	while ((qpn = member_next_own(MEMBER_MCAST, mgid, &at)))
		if (arrive_here(x, qpn, a) == ARRIVED_STATE)
			count_add(x, CTR_DROP_NO_QP, 1);
}
