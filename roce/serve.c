// SPDX-License-Identifier: BSD-3-Clause
#include "roce/serve.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "hca/exec/flush.h"
#include "hca/run/worker.h"
#include "hca/seg/arm.h"
#include "hca/seg/park.h"
#include "roce/tx.h"

enum {
	KEPT_MAX = 64,                     /* packets */
	KEEP_NS = NSEC_PER_MSEC,           /* for a receive that is posted meanwhile */
	KEEP_BUSY_NS = 50 * NSEC_PER_MSEC, /* while a region changes over */
	BUSY_AGAIN_NS = 50 * NSEC_PER_USEC,
	BATCH_MAX = TX_MEMORY_BYTES / 2,
	FETH_TYPES = 0xf,
	FETH_LEVEL_SHIFT = 4,
	FETH_LEVEL = 3,
};

/* Whose thread it is, for the callbacks; under the engine's lock. */
static struct exec *thread;

/* What a READ of this turn reads at once, for one packet after the other. */
static struct {
	uint64_t left;  /* that may be sent in this turn */
	uint8_t *bytes; /* n that were read, the first for the packet of that PSN */
	uint64_t n;
	uint32_t psn;
} serving;

static struct end *end_of(const struct flow *f)
{
	return &f->qp->me;
}

/* ---- verdicts ---- */

static enum resp_verdict refusal(enum ibv_wc_status status)
{
	static const enum resp_verdict verdicts[] = {
		[1] = RESP_INVALID, [2] = RESP_ACCESS, [3] = RESP_OPERATION};

	return verdicts[respond_nak_code(status)];
}

static enum resp_verdict verdict_of(struct flow *f, struct verdict v)
{
	switch (v.answer) {
	case ANSWER_OK:
		return RESP_OK;
	case ANSWER_RNR:
		if (f->last_try)
			return RESP_RNR;
		f->said = ANSWER_RNR;
		return RESP_LATER;
	case ANSWER_LATER:
		flow_for_worker(f, WORK_IN);
		f->said = v.answer;
		return RESP_LATER;
	case ANSWER_BUSY:
		f->said = v.answer;
		return RESP_LATER;
	case ANSWER_NOT_READY:
		count_add(thread, CTR_WIRE_DROP_STATE, 1);
		return RESP_LATER;
	case ANSWER_NAK:
		return refusal(v.status);
	}
	return RESP_LATER;
}

/* ---- requests ---- */

static struct request request_of(const struct flow *f, const struct roce_packet *p)
{
	static const uint8_t opcodes[] = {
		[ROCE_SEND] = IBV_WR_SEND,
		[ROCE_WRITE] = IBV_WR_RDMA_WRITE,
		[ROCE_READ] = IBV_WR_RDMA_READ,
		[ROCE_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[ROCE_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[ROCE_FLUSH] = IBV_WR_FLUSH,
		[ROCE_ATOMIC_WRITE] = IBV_WR_ATOMIC_WRITE,
	};
	bool adds = p->op->act == ROCE_FETCH_ADD;

	return (struct request){
		.opcode = opcodes[p->op->act],
		.from_qpn = f->resp.conf.dest_qpn,
		.psn = p->psn,
		.rkey = p->rkey,
		.raddr = p->va,
		.length = p->op->headers & ROCE_RETH ? p->length : 0,
		.compare_add = adds ? p->swap_add : p->compare,
		.swap = p->swap_add,
		.flush = flush_operand(
			p->flush & FETH_TYPES, p->flush >> FETH_LEVEL_SHIFT & FETH_LEVEL),
	};
}

static enum resp_verdict on_begin(void *arg, const struct roce_packet *p)
{
	struct flow *f = arg;
	struct request rq = request_of(f, p);

	return verdict_of(f, respond_begin(&f->in, thread, end_of(f), &rq));
}

static enum resp_verdict on_place(void *arg, uint64_t offset, const void *bytes, size_t len)
{
	struct flow *f = arg;

	if (!len)
		return RESP_OK;
	return verdict_of(f, respond_place(&f->in, thread, offset, bytes, len));
}

static enum ibv_wr_opcode whole_opcode(const struct roce_packet *p)
{
	if (p->op->act == ROCE_WRITE)
		return p->op->headers & ROCE_IMM ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
	if (p->op->headers & ROCE_IMM)
		return IBV_WR_SEND_WITH_IMM;
	return p->op->headers & ROCE_IETH ? IBV_WR_SEND_WITH_INV : IBV_WR_SEND;
}

static enum resp_verdict on_end(void *arg, const struct roce_packet *p, uint64_t length)
{
	struct flow *f = arg;
	struct last_piece last = {.solicited = p->solicited,
		.imm = p->op->headers & ROCE_IETH ? p->invalidate : htobe32(p->imm)};

	(void)length;
	f->in.rq.opcode = whole_opcode(p);
	return verdict_of(f, respond_end(&f->in, thread, &last));
}

static void on_drop(void *arg)
{
	struct flow *f = arg;

	respond_drop(&f->in, thread);
}

static enum resp_verdict on_read(void *arg, const struct roce_packet *p)
{
	struct flow *f = arg;
	struct request rq = request_of(f, p);

	return verdict_of(f, respond_read(thread, end_of(f), &rq, 0, NULL, 0));
}

static enum resp_verdict on_word(void *arg, const struct roce_packet *p, uint64_t *old)
{
	struct flow *f = arg;
	struct request rq = request_of(f, p);

	if (p->op->act == ROCE_ATOMIC_WRITE)
		memcpy(&rq.word, p->payload, sizeof rq.word);
	return verdict_of(f, respond_at_once(thread, end_of(f), &rq, old));
}

/* ---- answers ---- */

/* What is still to be sent of the response that is under way. */
static uint64_t left_of_response(struct flow *f)
{
	const struct response *r = replay_next(&f->resp.replay);

	return r ? r->length - (uint64_t)r->sent * f->resp.conf.mtu : 0;
}

/* How much is read at once: what may be sent in this turn, in whole packets. */
static uint64_t batch(struct flow *f, uint64_t least)
{
	uint64_t left = left_of_response(f), mtu = f->resp.conf.mtu;
	uint64_t may = (serving.left + mtu - 1) / mtu * mtu;

	if (may > BATCH_MAX)
		may = BATCH_MAX;
	if (left > may)
		left = may;
	return left > least ? left : least;
}

/* Reads what the packet is to carry, and what will follow it.  As rc_resp_ops.send. */
static int read_ahead(struct flow *f, struct request *rq)
{
	uint8_t *to;
	struct verdict v;

	rq->length = batch(f, rq->length);
	serving.n = 0;
	to = tx_memory(thread, rq->length);
	if (!to)
		return 0;
	v = respond_read(thread, end_of(f), rq, 0, to, rq->length);
	if (v.answer == ANSWER_LATER)
		flow_for_worker(f, WORK_IN);
	if (v.answer != ANSWER_OK)
		return v.answer == ANSWER_NAK ? -1 : 0;
	serving.bytes = to;
	serving.n = rq->length;
	serving.psn = rq->psn;
	return 1;
}

static int send_read(struct flow *f, const struct roce_packet *head, struct request *rq)
{
	size_t len = rq->length;
	struct iovec piece;
	int got = serving.n >= len && serving.psn == head->psn ? 1 : read_ahead(f, rq);

	if (got <= 0)
		return got;
	piece = (struct iovec){.iov_base = serving.bytes, .iov_len = len};
	if (!tx_put(thread, &f->path, head, &piece, 1))
		return 0;
	serving.bytes += len;
	serving.n -= len;
	serving.psn = roce_psn_add(head->psn, 1);
	serving.left -= len < serving.left ? len : serving.left;
	return 1;
}

static int on_send(void *arg, const struct roce_packet *head, uint64_t va, uint32_t rkey,
	size_t len, bool again)
{
	struct flow *f = arg;
	struct request rq = {.opcode = IBV_WR_RDMA_READ,
		.from_qpn = f->resp.conf.dest_qpn,
		.psn = head->psn,
		.rkey = rkey,
		.raddr = va,
		.length = len,
		.again = again};

	if (!tx_has_room())
		return 0;
	return len ? send_read(f, head, &rq) : tx_put(thread, &f->path, head, NULL, 0);
}

/* A NAK that was found by the order of packets alone: the queue pair does not know yet. */
static void on_fatal(void *arg, enum resp_verdict why)
{
	struct flow *f = arg;
	struct end *me = end_of(f);

	if (!qp_set_error(me))
		return;
	raise_qp_event(
		thread, me, why == RESP_ACCESS ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
	slot_enter(thread->slot, me->view.attach, me->view.attach);
	qp_flush(thread, me, false);
	slot_leave(thread->slot);
}

const struct rc_resp_ops serve_ops = {
	.begin = on_begin,
	.place = on_place,
	.end = on_end,
	.drop = on_drop,
	.read = on_read,
	.word = on_word,
	.send = on_send,
	.fatal = on_fatal,
};

bool serve_answer(struct flow *f, struct exec *x, uint64_t bytes, bool ack)
{
	thread = x;
	serving.n = 0;
	serving.left = bytes;
	return rc_resp_run(&f->resp, bytes, ack);
}

/* ---- what cannot be served yet ---- */

static void keep(struct flow *f, const uint8_t *bytes, size_t len)
{
	if (!kept_put(&f->kept, bytes, len, KEPT_MAX))
		count_add(thread, CTR_WIRE_DROP_KEPT, 1);
}

static void drop_kept(struct flow *f)
{
	kept_clear(&f->kept);
	f->kept_due = f->kept_until = 0;
}

/* Whoever posts a receive calls the engine. */
static void ask_for_receive(struct flow *f)
{
	struct end *me = end_of(f);

	park_set(&me->qp->park);
	if (me->rxq.ring.slots)
		park_set(&me->rxq.entry->rxq.park);
}

/* Does the program sleep until a message comes? */
static bool sleeps(const struct flow *f)
{
	struct seg_cq *cq = f->qp->me.recv_cq.cq;

	return cq && arm_wants(&cq->arm, true);
}

/*
 * Serves one packet; false: it could not be, and f->said is why.  While the program wakes up there
 * is time to acknowledge, so that the other one's send ends before the answer comes: an adapter
 * answers so, and a program whose CQs share a channel may wait for these two in this order.
 */
static bool serve(struct flow *f, const struct roce_packet *p, const uint8_t *bytes, size_t len,
	bool last_try)
{
	bool wakes = sleeps(f);
	uint32_t owed = f->resp.owed;

	f->said = ANSWER_OK;
	f->last_try = last_try;
	rc_resp_keep(&f->resp, p, bytes, len);
	rc_resp_request(&f->resp, p);
	if (wakes && f->resp.owed != owed)
		f->resp.ack_now = true;
	return f->said == ANSWER_OK;
}

/* Who posts a receive, or a worker, is told of what is kept; a region that changes over is not. */
static void set_due(struct flow *f, uint64_t now)
{
	f->kept_due = f->said == ANSWER_BUSY ? now + BUSY_AGAIN_NS : f->kept_until;
	if (f->said == ANSWER_RNR)
		ask_for_receive(f);
}

static void begin_keeping(struct flow *f, uint64_t now)
{
	f->kept_until = now + (f->said == ANSWER_RNR ? KEEP_NS : KEEP_BUSY_NS);
	set_due(f, now);
}

/* What came before a packet that was lost, which has come now; what cannot be served is kept. */
static void serve_ahead(struct flow *f, uint64_t now)
{
	struct roce_packet p;
	uint8_t *bytes;
	size_t len;

	while (!f->kept.first && (bytes = rc_resp_next_kept(&f->resp, &len))) {
		if (roce_parse(bytes, len, &p) == ROCE_GOOD && !serve(f, &p, bytes, len, false)) {
			begin_keeping(f, now);
			keep(f, bytes, len);
		}
		ahead_free(bytes);
	}
}

/* So that what was lost comes while we read what has come since. */
static void tell_gap(struct flow *f, struct exec *x)
{
	if (f->resp.nak != ROCE_NAK_PSN)
		return;
	serve_answer(f, x, 0, true);
	tx_flush(x);
}

void serve_packet(struct flow *f, struct exec *x, const struct roce_packet *p, const uint8_t *bytes,
	size_t len, uint64_t now)
{
	thread = x;
	if (f->served_ns != now) /* another pass */
		respond_look_anew(&f->in);
	f->served_ns = now;
	if (f->kept.first) {
		keep(f, bytes, len);
		return;
	}
	if (serve(f, p, bytes, len, f->unreliable) || (f->unreliable && f->said != ANSWER_LATER)) {
		serve_ahead(f, now);
		tell_gap(f, x);
		return;
	}
	begin_keeping(f, now);
	keep(f, bytes, len);
	if (f->said == ANSWER_RNR)
		serve_kept(f, x, now); /* one that was posted before we asked */
}

/* The first that is kept.  False: it stays. */
static bool serve_first(struct flow *f, uint64_t now)
{
	struct roce_packet p;
	bool over = now >= f->kept_until;

	if (roce_parse(f->kept.first->bytes, f->kept.first->len, &p) != ROCE_GOOD)
		return true;
	if (serve(f, &p, f->kept.first->bytes, f->kept.first->len, over))
		return true;
	if (f->said == ANSWER_LATER) /* a worker will come, when it has a CPU */
		f->kept_until = now + KEEP_BUSY_NS;
	else if (over)
		return true; /* as if it had been lost */
	set_due(f, now);
	return false;
}

void serve_kept(struct flow *f, struct exec *x, uint64_t now)
{
	thread = x;
	respond_look_anew(&f->in);
	while (f->kept.first && serve_first(f, now)) {
		kept_take_off(&f->kept);
		if (f->resp.nak)
			drop_kept(f);
		f->kept_until = now + KEEP_NS;
	}
	if (!f->kept.first) {
		f->kept_due = f->kept_until = 0;
		serve_ahead(f, now);
	}
}

void serve_stop(struct flow *f, struct exec *x)
{
	thread = x;
	drop_kept(f);
	if (f->resp.open)
		respond_drop(&f->in, x);
	f->resp.open = 0;
	f->resp.dead = true;
	ahead_clear(&f->resp.ahead);
}
