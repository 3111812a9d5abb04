// SPDX-License-Identifier: BSD-3-Clause
#include "roce/proto/responder.h"

#include <errno.h>
#include <stdlib.h>

int rc_resp_start(struct rc_responder *q, const struct rc_resp_config *conf,
	const struct rc_resp_ops *ops, void *arg)
{
	*q = (struct rc_responder){.ops = ops, .arg = arg, .conf = *conf};
	if (!conf->mtu)
		return -EINVAL;
	q->expected = conf->psn & ROCE_PSN_MASK;
	return replay_start(&q->replay, conf->max_reads);
}

void rc_resp_end(struct rc_responder *q)
{
	replay_end(&q->replay);
	ahead_clear(&q->ahead);
	q->dead = true;
}

static void owe_nak(struct rc_responder *q, uint8_t syndrome, uint32_t psn)
{
	q->nak = syndrome;
	q->nak_psn = psn;
	q->silent = true;
}

static void fatal(struct rc_responder *q, enum resp_verdict why, uint32_t psn)
{
	static const uint8_t syndromes[] = {
		[RESP_INVALID] = ROCE_NAK_INVALID_REQUEST,
		[RESP_ACCESS] = ROCE_NAK_REMOTE_ACCESS,
		[RESP_OPERATION] = ROCE_NAK_REMOTE_OPERATION,
	};

	owe_nak(q, syndromes[why], psn);
	q->dead = true;
	q->ops->fatal(q->arg, why);
}

/* Says whether the packet was taken; else what its verdict asks for is set in motion. */
static bool taken(struct rc_responder *q, enum resp_verdict verdict)
{
	if (verdict == RESP_OK)
		return true;
	if (q->conf.unreliable) {
		q->dropped++;
		if (q->open)
			q->ops->drop(q->arg);
		q->open = 0;
		return false;
	}
	if (verdict == RESP_RNR) {
		q->rnr_naks++;
		owe_nak(q, ROCE_RNR_NAK | q->conf.min_rnr_timer, q->expected);
	} else if (verdict == RESP_LATER) {
		q->dropped++;
	} else {
		fatal(q, verdict, q->expected);
	}
	return false;
}

/* A FLUSH carries nothing: its range may be as long as a region. */
static bool too_long(const struct roce_packet *p)
{
	return p->op->headers & ROCE_RETH && p->op->act != ROCE_FLUSH &&
	       p->length > ROCE_MESSAGE_MAX;
}

/* Does its opcode follow the one before, and its payload the rules of its opcode? */
static bool well_formed(const struct rc_responder *q, const struct roce_packet *p)
{
	bool first = p->op->place & ROCE_FIRST;

	if (!roce_payload_fits(p->op, p->payload_len, q->conf.mtu) || too_long(p))
		return false;
	if (p->op->act != ROCE_SEND && p->op->act != ROCE_WRITE)
		return !q->open;
	return first ? !q->open : q->open == p->op->act;
}

/* The bytes of a WRITE are as many as its first packet said. */
static bool length_fits(const struct rc_responder *q, const struct roce_packet *p)
{
	uint64_t so_far = q->offset + p->payload_len;

	if (p->op->act != ROCE_WRITE)
		return true;
	return p->op->place & ROCE_LAST ? so_far == q->length : so_far < q->length;
}

static enum resp_verdict piece(struct rc_responder *q, const struct roce_packet *p)
{
	enum resp_verdict verdict;

	if (p->op->place & ROCE_FIRST) {
		q->offset = 0;
		q->length = p->length;
	}
	if (!length_fits(q, p))
		return RESP_INVALID;
	if (p->op->place & ROCE_FIRST) {
		verdict = q->ops->begin(q->arg, p);
		if (verdict != RESP_OK)
			return verdict;
		q->open = p->op->act;
	}
	verdict = q->ops->place(q->arg, q->offset, p->payload, p->payload_len);
	if (verdict == RESP_OK && p->op->place & ROCE_LAST)
		verdict = q->ops->end(q->arg, p, q->offset + p->payload_len);
	/* its first packet will come again, and begin it anew */
	if ((verdict == RESP_RNR || verdict == RESP_LATER) && p->op->place & ROCE_FIRST &&
		!q->conf.unreliable) {
		q->ops->drop(q->arg);
		q->open = 0;
	}
	return verdict;
}

static void data(struct rc_responder *q, const struct roce_packet *p)
{
	if (!taken(q, piece(q, p)))
		return;
	q->offset += p->payload_len;
	q->expected = roce_psn_add(q->expected, 1);
	if (p->op->place & ROCE_LAST) {
		q->open = 0;
		q->msn = roce_psn_add(q->msn, 1);
	}
	if (p->ack_req && !q->conf.unreliable)
		q->owed++;
}

/* READs, and what changes memory once and is answered by a response. */
static void answered(struct rc_responder *q, const struct roce_packet *p)
{
	bool read = p->op->act == ROCE_READ;
	struct response r = {
		.act = p->op->act,
		.psn = p->psn,
		.packets = read ? roce_packets(p->length, q->conf.mtu) : 1,
		.va = p->va,
		.rkey = p->rkey,
		.length = read ? p->length : 0,
	};

	if (replay_is_full(&q->replay)) { /* more than were granted, which may be none */
		fatal(q, RESP_INVALID, q->expected);
		return;
	}
	if (!replay_has_room(&q->replay)) {
		q->dropped++;
		return;
	}
	if (!taken(q, read ? q->ops->read(q->arg, p) : q->ops->word(q->arg, p, &r.old)))
		return;
	q->expected = roce_psn_add(q->expected, r.packets);
	r.msn = q->msn = roce_psn_add(q->msn, 1);
	replay_add(&q->replay, &r);
}

static void duplicate(struct rc_responder *q, const struct roce_packet *p)
{
	q->duplicates++;
	if (p->op->act == ROCE_SEND || p->op->act == ROCE_WRITE)
		q->ack_now = true;
	else if (!replay_again(&q->replay, p, q->conf.mtu))
		q->dropped++;
}

static void ahead(struct rc_responder *q)
{
	q->out_of_sequence++;
	if (!q->silent)
		owe_nak(q, ROCE_NAK_PSN, q->expected);
}

static void in_sequence(struct rc_responder *q, const struct roce_packet *p)
{
	q->silent = false;
	q->nak = 0;
	q->earned = p->again;
	ahead_pass(&q->ahead, p->psn);
	if (!well_formed(q, p))
		taken(q, RESP_INVALID);
	else if (p->op->act == ROCE_SEND || p->op->act == ROCE_WRITE)
		data(q, p);
	else
		answered(q, p);
}

/* UC: what is lost is lost; with the next message it goes on. */
static void unreliable(struct rc_responder *q, const struct roce_packet *p)
{
	if (p->psn != q->expected || (p->op->place & ROCE_FIRST && q->open)) {
		q->out_of_sequence++;
		if (q->open)
			q->ops->drop(q->arg);
		q->open = 0;
	}
	q->expected = p->psn;
	if (well_formed(q, p))
		data(q, p);
	else
		q->dropped++;
	q->expected = roce_psn_add(p->psn, 1);
}

void rc_resp_request(struct rc_responder *q, const struct roce_packet *p)
{
	int32_t from = roce_psn_diff(p->psn, q->expected);

	if (q->dead)
		return;
	if (q->conf.unreliable)
		unreliable(q, p);
	else if (from > 0)
		ahead(q);
	else if (from < 0)
		duplicate(q, p);
	else
		in_sequence(q, p);
}

void rc_resp_keep(
	struct rc_responder *q, const struct roce_packet *p, const uint8_t *bytes, size_t n)
{
	if (q->dead || !q->weft || q->conf.unreliable || roce_psn_diff(p->psn, q->expected) <= 0 ||
		!roce_payload_fits(p->op, p->payload_len, q->conf.mtu))
		return;
	ahead_put(&q->ahead, q->expected, p->psn, bytes, n);
}

static uint8_t *take_kept(struct rc_responder *q, size_t *n)
{
	uint8_t *bytes = ahead_take(&q->ahead, q->expected, n);

	if (bytes) {
		roce_set_again(bytes); /* and what follows it is the requester's, too */
		q->ack_now = true;     /* it waits for what it had under way */
	}
	return bytes;
}

uint8_t *rc_resp_next_kept(struct rc_responder *q, size_t *n)
{
	uint8_t *bytes = NULL;
	bool missing;

	ahead_expect(&q->ahead, q->expected);
	if (q->dead)
		return NULL;
	if (q->earned)
		bytes = take_kept(q, n);
	missing = q->earned ? ahead_beyond(&q->ahead, q->expected)
			    : ahead_has(&q->ahead, q->expected);
	if (!bytes && missing && !q->silent)
		owe_nak(q, ROCE_NAK_PSN, q->expected);
	return bytes;
}

static struct roce_packet answer_of(
	const struct rc_responder *q, int opcode, uint32_t psn, uint8_t syndrome)
{
	return (struct roce_packet){
		.op = roce_op(opcode),
		.opcode = opcode,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = q->conf.dest_qpn,
		.psn = psn,
		.syndrome = syndrome,
		.msn = q->msn,
	};
}

static int response_opcode(const struct response *r)
{
	enum roce_place place =
		(r->sent == 0 ? ROCE_FIRST : 0) | (r->sent + 1 == r->packets ? ROCE_LAST : 0);

	if (r->act == ROCE_COMPARE_SWAP || r->act == ROCE_FETCH_ADD)
		return roce_opcode(
			ROCE_RC, ROCE_ATOMIC_ACK, ROCE_ONLY, ROCE_AETH | ROCE_ATOMIC_ACK_ETH);
	return roce_opcode(ROCE_RC, ROCE_READ_RESPONSE, place, place ? ROCE_AETH : 0);
}

/* One packet of a response: its bytes, 0 where there is no room, or a negative number. */
static int64_t send_response(struct rc_responder *q, struct response *r)
{
	uint64_t offset = (uint64_t)r->sent * q->conf.mtu, left = r->length - offset;
	struct roce_packet head = answer_of(
		q, response_opcode(r), roce_psn_add(r->psn, r->sent), ROCE_ACK_NO_CREDITS);
	int sent;

	head.msn = r->msn;
	head.again = q->weft && r->again;
	head.old = r->old;
	head.payload_len = left < q->conf.mtu ? left : q->conf.mtu;
	head.pad = -head.payload_len & 3;
	sent = q->ops->send(q->arg, &head, r->va + offset, r->rkey, head.payload_len, r->again);
	if (sent <= 0)
		return sent;
	r->sent++;
	return head.payload_len + 1;
}

static bool say(struct rc_responder *q, uint8_t syndrome, uint32_t psn)
{
	struct roce_packet head =
		answer_of(q, roce_opcode(ROCE_RC, ROCE_ACK, ROCE_ONLY, ROCE_AETH), psn, syndrome);

	return q->ops->send(q->arg, &head, 0, 0, 0, false) > 0;
}

/*
 * A READ that was answered before, whose memory has gone since: who has the answer may well have
 * told the program, which took the memory away, and asked again before that; it ignores the NAK.
 */
static bool refuse_again(struct rc_responder *q, const struct response *r)
{
	if (!say(q, ROCE_NAK_REMOTE_ACCESS, roce_psn_add(r->psn, r->sent)))
		return false;
	replay_sent(&q->replay);
	return true;
}

/* False: there is more to send than may be sent now. */
static bool send_responses(struct rc_responder *q, uint64_t bytes)
{
	for (struct response *r; (r = replay_next(&q->replay)) != NULL;) {
		int64_t sent = bytes ? send_response(q, r) : 0;

		if (sent < 0 && r->again) {
			if (!refuse_again(q, r))
				return false;
			continue;
		}
		if (sent < 0) {
			while (replay_next(&q->replay))
				replay_sent(&q->replay);
			if (!q->dead)
				fatal(q, RESP_ACCESS, roce_psn_add(r->psn, r->sent));
			return true;
		}
		if (sent == 0)
			return false;
		bytes -= (uint64_t)sent < bytes ? (uint64_t)sent : bytes;
		if (r->sent == r->packets)
			replay_sent(&q->replay);
	}
	return true;
}

bool rc_resp_run(struct rc_responder *q, uint64_t bytes, bool ack)
{
	if (!send_responses(q, bytes))
		return true;
	if (q->nak) {
		if (!say(q, q->nak, q->nak_psn))
			return true;
		/* a NAK acknowledges all before it */
		q->nak = 0;
		q->owed = 0;
		q->ack_now = false;
	}
	if (q->ack_now || (ack && q->owed)) {
		if (!say(q, ROCE_ACK_NO_CREDITS, roce_psn_add(q->expected, -1)))
			return true;
		q->owed = 0;
		q->ack_now = false;
	}
	return false;
}
