// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/answers.h"

#include "roce/proto/req_timer.h"

enum { MISSED_MAX = 4 };

static bool entry_done(struct rc_requester *q, const struct rc_entry *e)
{
	if (!req_answered_by_data(e->r.act))
		return roce_psn_diff(q->acked, entry_end(e)) >= 0;
	/* all its parts have been asked for, and none is left in the list of those under way */
	return roce_psn_diff(q->next, entry_end(e)) >= 0 &&
	       (!q->reads.count || roce_psn_diff(reads_at(&q->reads, 0)->psn, entry_end(e)) >= 0);
}

static void end_entries(struct rc_requester *q)
{
	while (q->head != q->tail) {
		bool fails = q->failing && q->head == q->fail_at;

		if (!fails && !entry_done(q, req_entry(q, q->head)))
			return;
		if (q->at == q->head)
			q->at++;
		q->dead = fails;
		q->ops->complete(q->arg, q->head++, fails ? q->fail_status : IBV_WC_SUCCESS);
		if (fails)
			return;
	}
}

/* Sent again from before, and answered meanwhile: not a third time.  Reads are asked for anew. */
static void skip_answered(struct rc_requester *q)
{
	if (roce_psn_diff(q->acked, q->next) > 0) {
		q->other_keeps |= q->went_back;
		q->went_back = false;
	}
	while (roce_psn_diff(q->acked, q->next) > 0) {
		const struct rc_entry *e = req_entry(q, req_entry_of(q, q->next));

		if (req_answered_by_data(e->r.act))
			return;
		q->next = roce_psn_diff(q->acked, entry_end(e)) < 0 ? q->acked : entry_end(e);
	}
}

/* The oldest PSN that nothing answers. */
static uint32_t oldest(struct rc_requester *q)
{
	uint32_t una = q->acked, packets, hole;

	if (q->reads.count) {
		hole = read_hole(reads_at(&q->reads, 0), &packets);
		if (roce_psn_diff(hole, una) < 0)
			una = hole;
	}
	return roce_psn_diff(una, q->next) < 0 ? una : q->next;
}

void req_settle(struct rc_requester *q, uint64_t now)
{
	uint32_t una;

	reads_retire(&q->reads);
	skip_answered(q);
	una = oldest(q);
	if (roce_psn_diff(una, q->una) > 0) {
		window_acked(&q->window, roce_psn_diff(una, q->una));
		q->una = una;
		req_progress(q, now);
	}
	end_entries(q);
	if (q->una == q->next)
		q->asked = 0;
}

void req_fail(struct rc_requester *q, uint32_t entry, enum ibv_wc_status status)
{
	if (q->failing && (int32_t)(q->fail_at - entry) <= 0)
		return;
	q->failing = true;
	q->fail_at = entry;
	q->fail_status = status;
}

/* The other end has carried out all below that PSN: what meets RNR NAKs now is another request. */
static void acknowledged(struct rc_requester *q, uint32_t below, uint64_t now)
{
	if (roce_psn_diff(below, q->acked) <= 0)
		return;
	q->acked = below;
	q->rnr_tries = q->conf.rnr_retry;
	if (q->timed_at && roce_psn_diff(below, q->timed_psn) > 0) {
		window_measured(&q->window, now - q->timed_at);
		q->timed_at = 0;
	}
}

static void smaller_window(struct rc_requester *q, uint32_t psn)
{
	if (roce_psn_diff(psn, q->recover) < 0)
		return;
	window_lost(&q->window);
	q->recover = q->sent;
	q->missed = MISSED_MAX;
}

/* One packet, or some in a row, among others that came: many of them are as a window that was lost.
 */
static void missed(struct rc_requester *q, uint32_t psn)
{
	if (roce_psn_diff(psn, q->recover) >= 0) {
		q->recover = q->sent;
		q->missed = 0;
	}
	if (q->missed++ < MISSED_MAX)
		window_missed(&q->window);
}

/*
 * An answer that covers the packet of a probe and no more: what had been sent behind it was lost.
 * One that covers more comes from a responder which is just at it, and had no CPU before.
 */
static void probe_answered(struct rc_requester *q, uint64_t now)
{
	if (!q->probing)
		return;
	q->probing = false;
	if (roce_psn_diff(q->probe_end, q->acked) <= 0 || roce_psn_diff(q->acked, q->probe) > 1)
		return;
	smaller_window(q, q->acked);
	req_go_back(q, q->acked, now);
}

static void no_receive(struct rc_requester *q, const struct roce_packet *p, uint64_t now)
{
	if (q->rnr_until)
		return;
	q->rnr_naks++;
	if (!q->rnr_tries) {
		req_fail(q, req_entry_of(q, p->psn), IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (q->conf.rnr_retry != RNR_RETRY_FOR_EVER)
		q->rnr_tries--;
	q->probing = false;
	q->rnr_psn = p->psn;
	q->rnr_until = now + rc_rnr_time(p->syndrome & 0x1f);
}

static void negative(struct rc_requester *q, const struct roce_packet *p, uint64_t now)
{
	switch (p->syndrome) {
	case ROCE_NAK_PSN:
		q->nak_psn++;
		if (q->rnr_until)
			return;
		q->probing = false;
		if (req_fill(q, p->psn)) {
			missed(q, p->psn);
			return;
		}
		smaller_window(q, p->psn);
		req_go_back(q, p->psn, now);
		q->went_back = true;
		return;
	case ROCE_NAK_INVALID_REQUEST:
		req_fail(q, req_entry_of(q, p->psn), IBV_WC_REM_INV_REQ_ERR);
		return;
	case ROCE_NAK_REMOTE_ACCESS:
		req_fail(q, req_entry_of(q, p->psn), IBV_WC_REM_ACCESS_ERR);
		return;
	case ROCE_NAK_REMOTE_OPERATION:
		req_fail(q, req_entry_of(q, p->psn), IBV_WC_REM_OP_ERR);
		return;
	default:
		q->ignored++;
	}
}

static void acknowledge(struct rc_requester *q, const struct roce_packet *p, uint64_t now)
{
	uint8_t kind = p->syndrome & ROCE_SYNDROME_KIND;

	if (kind == 0) {
		acknowledged(q, roce_psn_add(p->psn, 1), now);
		probe_answered(q, now);
		return;
	}
	acknowledged(q, p->psn, now);
	if (kind == ROCE_RNR_NAK)
		no_receive(q, p, now);
	else
		negative(q, p, now);
}

static uint64_t round_trip(const struct rc_requester *q)
{
	return q->window.rtt ? q->window.rtt : window_patience(&q->window) / 2;
}

/*
 * A response overtook others: they are asked for again at once, and once in a round trip from then
 * on.
 */
static void chase(struct rc_requester *q, uint32_t psn, uint64_t now)
{
	for (uint32_t i = 0; i < q->reads.count; i++) {
		struct rc_read *read = reads_at(&q->reads, i);
		int32_t end = roce_psn_diff(psn, read->psn);
		uint32_t from = now - read->asked < round_trip(q) ? read->chased : 0;

		if (end <= 0)
			return;
		if (end > (int32_t)read->packets)
			end = (int32_t)read->packets;
		if (req_ask_missing(q, read, from, (uint32_t)end, now))
			missed(q, psn);
	}
}

/* The same, where responses count in their order alone: all from the missing one on is asked for.
 */
static void overtaken(struct rc_requester *q, uint32_t turn, uint64_t now)
{
	q->ignored++;
	if (roce_psn_diff(turn, q->recover) < 0)
		return;
	smaller_window(q, turn);
	req_go_back(q, turn, now);
}

/* How many bytes the response of that PSN must carry. */
static uint64_t response_length(const struct rc_requester *q, const struct rc_entry *e, uint64_t at)
{
	uint64_t left = e->r.length - at;

	if (e->r.act != ROCE_READ)
		return 0;
	return left < q->conf.mtu ? left : q->conf.mtu;
}

static bool fits_read(const struct rc_requester *q, const struct rc_entry *e,
	const struct roce_packet *p, uint64_t at)
{
	bool atomic = e->r.act == ROCE_COMPARE_SWAP || e->r.act == ROCE_FETCH_ADD;

	return (p->op->act == ROCE_ATOMIC_ACK) == atomic &&
	       p->payload_len == response_length(q, e, at);
}

/* In its turn, and the first time: nothing says why what follows it came before it. */
static void doubt_next(struct rc_requester *q, uint32_t psn, uint64_t now)
{
	uint32_t i, chased;
	struct rc_read *next = reads_doubt_next(&q->reads, psn, &i);

	if (!next)
		return;
	chased = next->chased;
	req_ask_missing(q, next, i, i + 1, now);
	if (next->chased < chased)
		next->chased = chased;
}

/* False: it is as if it had been lost. */
static bool placed(
	struct rc_requester *q, struct rc_read *read, const struct roce_packet *p, uint64_t at)
{
	bool atomic = p->op->act == ROCE_ATOMIC_ACK;
	int err =
		q->ops->place(q->arg, read->entry, at, atomic ? (const void *)&p->old : p->payload,
			atomic ? sizeof p->old : p->payload_len);

	if (err < 0)
		req_fail(q, read->entry, IBV_WC_LOC_PROT_ERR);
	return !err;
}

static void response(struct rc_requester *q, const struct roce_packet *p, uint64_t now)
{
	struct rc_read *read = reads_find(&q->reads, p->psn);
	uint32_t i = read ? (p->psn - read->psn) & ROCE_PSN_MASK : 0;
	uint64_t at = read ? read->offset + (uint64_t)i * q->conf.mtu : 0;
	int32_t early = read ? roce_psn_diff(p->psn, reads_turn(&q->reads)) : -1;

	if (early < 0 || !fits_read(q, req_entry(q, read->entry), p, at)) {
		q->ignored++;
		return;
	}
	if (early && !q->other_is_weft) {
		overtaken(q, roce_psn_add(p->psn, -early), now);
		return;
	}
	/* one that came before may be somebody else's */
	if (!placed(q, read, p, at))
		return;
	/* else it may have waited for another packet, which was lost */
	if (!read->got && !read->again && read->resent == q->resent)
		window_measured(&q->window, now - read->asked);
	read_came(&q->reads, read, i);
	if (!early && !p->again)
		doubt_next(q, p->psn, now);
	q->probing = false;
	acknowledged(q, read->psn, now);
	if (read_complete(read))
		acknowledged(q, roce_psn_add(read->psn, read->packets), now);
	chase(q, p->psn, now);
	req_progress(q, now);
}

void rc_req_answer(struct rc_requester *q, const struct roce_packet *p, uint64_t now)
{
	if (q->dead)
		return;
	if (q->conf.unreliable || roce_psn_diff(p->psn, q->una) < 0 ||
		roce_psn_diff(p->psn, q->sent) >= 0) {
		q->ignored++;
		return;
	}
	if (p->op->act == ROCE_ACK)
		acknowledge(q, p, now);
	else
		response(q, p, now);
	req_settle(q, now);
}

void rc_req_congested(struct rc_requester *q)
{
	smaller_window(q, q->acked);
}
