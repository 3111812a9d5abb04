// SPDX-License-Identifier: BSD-3-Clause
#include "roce/ask.h"

#include <endian.h>
#include <string.h>

#include "base/clock.h"
#include "hca/api/hca.h"
#include "hca/exec/carry.h"
#include "hca/exec/fail.h"
#include "hca/exec/flush.h"
#include "hca/exec/op_local.h"
#include "hca/exec/range.h"
#include "hca/run/worker.h"
#include "hca/seg/token.h"
#include "roce/proto/answers.h"
#include "roce/proto/req_timer.h"

enum { ACK_UNIT_NS = 4096, WORD = 8, FETH_LEVEL_SHIFT = 4 };
enum {
	BUSY_NS = 100 * NSEC_PER_USEC,
	NO_MEMORY_NS = NSEC_PER_MSEC, /* then it is tried again */
	LATE_MAX = 256,
};
#define LENGTH_MAX (1ull << HCA_MAX_MSG_LOG)
enum { PACKETS_MAX = 1 << 22 }; /* of a message: what PSNs of 24 bits tell apart */

/* The flow that was entered, and its data that is being sent; lists are large. */
static struct {
	struct flow *f;
	struct exec *x;
	uint64_t left; /* bytes that may be sent in this turn */
	bool stopped;  /* at that limit */
	bool busy;     /* a region changes over: soon again */
	struct work w;
	bool resolved; /* src is the data of w from byte `at` on */
	uint64_t at;
	struct payload src;
	struct held held;
	struct sgl part;
} ask;

static struct end *end_of(const struct flow *f)
{
	return &f->qp->me;
}

/* ---- entries of the send queue ---- */

static bool is_posted(const struct flow *f, uint32_t pos)
{
	uint32_t n = atomic_load_explicit(&flow_seg(f)->sq_tail, memory_order_acquire) - pos;

	return n && n <= end_of(f)->sq_mask + 1;
}

static bool read_entry(struct flow *f, struct work *w, uint32_t pos)
{
	w->x = ask.x;
	w->req = end_of(f);
	w->resp = w->mem = NULL;
	return work_read(w, pos);
}

/* What is done at the requester alone, once all before it has ended.  True: it has ended, too. */
static bool done_here(struct flow *f, struct work *w)
{
	if (w->pos != atomic_load_explicit(&flow_seg(f)->sq_head, memory_order_relaxed))
		return false;
	if (op_local(w) != STEP_DONE)
		return false;
	f->base++;
	return true;
}

static bool sink_fits(struct work *w)
{
	return range_sink(w, &ask.src, &ask.held);
}

/* What is wrong with the request, before any packet of it leaves; 0: nothing. */
static enum ibv_wc_status fault_of(struct flow *f, struct work *w, bool known)
{
	uint64_t packets = roce_packets(w->length, seg_mtu_bytes(flow_seg(f)->mtu));
	enum op_kind kind = w->op->kind;

	if (!known)
		return IBV_WC_LOC_QP_OP_ERR;
	if ((w->op->traits & OP_RD_ATOMIC) && !flow_seg(f)->max_rd_atomic)
		return IBV_WC_LOC_QP_OP_ERR;
	if (w->length > LENGTH_MAX || packets > PACKETS_MAX)
		return IBV_WC_LOC_LEN_ERR;
	if ((kind == OP_ATOMIC || kind == OP_ATOMIC_WRITE) && w->length != WORD)
		return IBV_WC_LOC_LEN_ERR;
	if ((kind == OP_ATOMIC || kind == OP_READ) && !sink_fits(w))
		return IBV_WC_LOC_PROT_ERR;
	return 0;
}

static uint8_t act_of(const struct work *w)
{
	static const uint8_t acts[OP_KINDS] = {
		[OP_SEND] = ROCE_SEND,
		[OP_WRITE] = ROCE_WRITE,
		[OP_READ] = ROCE_READ,
		[OP_FLUSH] = ROCE_FLUSH,
		[OP_ATOMIC_WRITE] = ROCE_ATOMIC_WRITE,
	};

	if (w->op->kind == OP_ATOMIC)
		return w->fetch_add ? ROCE_FETCH_ADD : ROCE_COMPARE_SWAP;
	return acts[w->op->kind];
}

static void describe(const struct work *w, struct rc_request *r)
{
	*r = (struct rc_request){
		.act = act_of(w),
		.has_imm = w->op->has_imm,
		.has_inv = w->op->invalidates,
		.solicited = w->flags & IBV_SEND_SOLICITED,
		.fence = w->flags & IBV_SEND_FENCE,
		.imm = w->op->has_imm ? be32toh(w->imm) : w->imm,
		.rkey = w->rkey,
		.va = w->raddr,
		.length = w->length,
	};
	if (w->op->kind == OP_ATOMIC) {
		r->swap_add = w->fetch_add ? w->compare_add : w->swap;
		r->compare = w->compare_add;
	} else if (w->op->kind == OP_FLUSH) {
		r->length = w->range_len;
		r->flush = flush_types(w->flush) | (uint32_t)flush_is_whole(w->flush)
							   << FETH_LEVEL_SHIFT;
	}
}

static bool on_request(void *arg, uint32_t entry, struct rc_request *r)
{
	struct flow *f = arg;
	struct work w;
	bool known;

	do {
		if (flow_state(f) != IBV_QPS_RTS || !is_posted(f, f->base + entry))
			return false;
		known = read_entry(f, &w, f->base + entry);
		if (!known || !op_is_local(w.op))
			break;
	} while (done_here(f, &w));
	if (known && op_is_local(w.op))
		return false;
	ask.resolved = false;
	f->bad_status = fault_of(f, &w, known);
	f->bad_entry = entry;
	if (f->bad_status)
		*r = (struct rc_request){.act = ROCE_SEND};
	else
		describe(&w, r);
	return true;
}

/* ---- its data ---- */

/* Where the data of that entry is from `offset` on.  False: an lkey forbids it. */
static bool find_source(struct flow *f, uint32_t pos, uint64_t offset)
{
	if (!ask.resolved || ask.w.pos != pos || ask.at > offset) {
		ask.resolved = read_entry(f, &ask.w, pos) &&
			       range_source(&ask.w, &ask.src, &ask.held) &&
			       !(ask.held.what & HELD_CHANGES);
		ask.at = 0;
	}
	if (!ask.resolved || ask.src.l.left < offset - ask.at)
		return false;
	sgl_consume(&ask.src.l, offset - ask.at);
	ask.at = offset;
	return true;
}

static bool is_for_later(enum move_result moved)
{
	return moved == MOVE_LATER || moved == MOVE_ANEW || moved == MOVE_BUSY ||
	       moved == MOVE_TAKEN;
}

/* Memory that only functions reach is copied first; they are for a worker to call. */
static bool stage(struct flow *f, size_t len)
{
	void *to = tx_memory(ask.x, len);
	struct payload part, dst;
	enum move_result moved = MOVE_LATER;

	if (!to)
		return false;
	payload_of_bytes(&dst, to, len);
	payload_head(&ask.src, len, &part);
	if (!way_is_later(&ask.w, &part, &ask.held))
		moved = carry(&ask.w, &part, &dst, &ask.held);
	if (moved == MOVE_LATER)
		flow_for_worker(f, WORK_OUT);
	else if (moved != MOVE_OK && !is_for_later(moved))
		req_fail(&f->req, ask.w.pos - f->base, IBV_WC_LOC_PROT_ERR);
	sgl_reset(&ask.part);
	sgl_add(&ask.part, (uintptr_t)to, len);
	return moved == MOVE_OK;
}

static bool cut(struct flow *f, uint32_t entry, uint64_t offset, size_t len)
{
	sgl_reset(&ask.part);
	if (!len)
		return true;
	if (!find_source(f, f->base + entry, offset)) {
		ask.busy = ask.held.what & HELD_CHANGES;
		if (!ask.busy)
			req_fail(&f->req, entry, IBV_WC_LOC_PROT_ERR);
		return false;
	}
	sgl_head(&ask.src.l, len, &ask.part);
	return ask.src.way->here || stage(f, len);
}

static bool on_send(
	void *arg, const struct roce_packet *head, uint32_t entry, uint64_t offset, size_t len)
{
	struct flow *f = arg;

	if (f->bad_status && entry == f->bad_entry) {
		req_fail(&f->req, entry, f->bad_status);
		return false;
	}
	if (!ask.left) {
		ask.stopped = true;
		return false;
	}
	if (!tx_has_room() || !cut(f, entry, offset, len) ||
		!tx_put(ask.x, &f->path, head, ask.part.v, ask.part.n))
		return false;
	f->put++;
	ask.left -= len < ask.left ? len : ask.left;
	return true;
}

static int on_place(void *arg, uint32_t entry, uint64_t offset, const void *bytes, size_t len)
{
	struct flow *f = arg;
	struct payload src, dst, part;
	enum move_result moved;
	struct work w;

	if (!len) /* FLUSH and ATOMIC WRITE have nowhere to put anything */
		return 0;
	ask.resolved = false;
	if (!read_entry(f, &w, f->base + entry) || !range_sink(&w, &dst, &ask.held) ||
		dst.l.left < offset + len)
		return -1;
	sgl_consume(&dst.l, offset);
	payload_head(&dst, len, &part);
	payload_of_bytes(&src, (void *)bytes, len);
	moved = way_is_later(&w, &part, &ask.held) ? MOVE_LATER : carry(&w, &src, &part, &ask.held);
	f->is_late = moved == MOVE_LATER;
	return moved == MOVE_OK ? 0 : is_for_later(moved) ? 1 : -1;
}

static void on_complete(void *arg, uint32_t entry, enum ibv_wc_status status)
{
	struct flow *f = arg;
	struct work w;

	ask.resolved = false;
	read_entry(f, &w, f->base + entry);
	if (status == IBV_WC_SUCCESS)
		work_succeed(&w);
	else
		work_fail(&w, status);
}

static const struct rc_req_ops ops = {
	.request = on_request, .send = on_send, .place = on_place, .complete = on_complete};

/* ---- its life ---- */

static uint64_t timeout_of(const struct seg_qp *s)
{
	return s->timeout ? (uint64_t)ACK_UNIT_NS << (s->timeout & 31) : 0;
}

/* False: there is no memory; again later. */
static bool start(struct flow *f)
{
	struct seg_qp *s = flow_seg(f);
	struct rc_req_config conf = {
		.unreliable = f->unreliable,
		.mtu = seg_mtu_bytes(s->mtu),
		.dest_qpn = s->dest_qpn,
		.psn = f->asks ? f->req.next : s->sq_psn,
		.timeout = timeout_of(s),
		.retry_cnt = s->retry_cnt,
		.rnr_retry = s->rnr_retry,
		.entries = end_of(f)->sq_mask + 1,
		.max_reads = s->max_rd_atomic,
	};

	if (f->asks)
		rc_req_end(&f->req);
	kept_clear(&f->late);
	f->base = atomic_load_explicit(&s->sq_head, memory_order_relaxed);
	f->bad_status = 0;
	f->asks = !rc_req_start(&f->req, &conf, &ops, f);
	f->req.other_is_weft = f->origin.weft;
	if (!f->asks)
		s->sq_psn = conf.psn; /* where it is to go on */
	return f->asks;
}

/* What a program may change while requests are under way, or in SQD. */
static void take_changes(struct flow *f)
{
	const struct seg_qp *s = flow_seg(f);

	f->req.conf.timeout = timeout_of(s);
	f->req.conf.retry_cnt = s->retry_cnt;
	f->req.conf.rnr_retry = s->rnr_retry;
	f->resp.conf.min_rnr_timer = s->rnr_timer;
	tx_path_of(&f->path, &s->path, s->dest_qpn);
}

static void note_state(struct flow *f)
{
	uint32_t state = flow_state(f);

	if (state == f->state)
		return;
	if (state == IBV_QPS_RTS && (!f->asks || f->req.dead) && !start(f))
		return;
	if (state == IBV_QPS_RTS)
		take_changes(f);
	if (state != IBV_QPS_SQD)
		f->drains = false;
	f->state = state;
}

bool ask_enter(struct flow *f, struct exec *x)
{
	struct end *me = end_of(f);

	if (ask.f == f)
		return true;
	ask_leave(x);
	slot_enter(x->slot, me->view.attach, me->view.attach);
	if (!token_take(&me->qp->token, x->owner)) {
		slot_leave(x->slot);
		return false;
	}
	ask.f = f;
	ask.x = x;
	ask.resolved = false;
	ask.left = 0;
	note_state(f);
	return true;
}

static bool under_way(const struct flow *f)
{
	return f->asks && !f->req.dead && f->req.head != f->req.tail;
}

bool ask_draining(struct flow *f, bool tell)
{
	bool drains = under_way(f);

	f->drains |= drains && tell;
	return drains;
}

static void tell_drained(struct flow *f, struct exec *x)
{
	if (!f->drains || under_way(f) || flow_state(f) != IBV_QPS_SQD)
		return;
	f->drains = false;
	raise_qp_event(x, end_of(f), IBV_EVENT_SQ_DRAINED);
}

static void flush_in_error(struct flow *f, struct exec *x)
{
	if (!sends_flush(end_of(f)))
		return;
	ask_stop(f);
	qp_flush(x, end_of(f), true);
}

void ask_leave(struct exec *x)
{
	struct flow *f = ask.f;

	if (!f)
		return;
	tx_flush(x); /* it names memory that may go now */
	while (token_drop(&flow_seg(f)->token, x->owner) == TOKEN_KICKED)
		flush_in_error(f, x);
	slot_leave(x->slot);
	ask.f = NULL;
}

bool ask_run(struct flow *f, struct exec *x, uint64_t bytes, bool due, uint64_t now)
{
	flush_in_error(f, x);
	if (!f->asks)
		f->again_ns = flow_state(f) == IBV_QPS_RTS ? now + NO_MEMORY_NS : 0;
	if (!f->asks || f->req.dead)
		return false;
	ask.left = bytes;
	ask.stopped = ask.busy = false;
	if (due)
		rc_req_expire(&f->req, now);
	rc_req_run(&f->req, now);
	if (f->req.failing)
		req_settle(&f->req, now);
	f->again_ns = ask.busy ? now + BUSY_NS : 0;
	tell_drained(f, x);
	flush_in_error(f, x);
	return ask.stopped && !f->req.dead;
}

void ask_answer(
	struct flow *f, const struct roce_packet *p, const uint8_t *bytes, size_t len, uint64_t now)
{
	if (!f->asks || sends_flush(end_of(f)))
		return;
	ask.left = UINT64_MAX; /* a packet that was asked for again */
	f->is_late = f->late.first && p->op->act != ROCE_ACK; /* they go in order */
	if (!f->is_late)
		rc_req_answer(&f->req, p, now);
	if (!f->is_late)
		return;
	/* for a worker, which puts its data where they belong; what finds no room is asked for
	 * again */
	kept_put(&f->late, bytes, len, LATE_MAX);
	flow_for_worker(f, WORK_OUT);
}

void ask_late(struct flow *f, uint64_t now)
{
	struct kept_list all = f->late;
	struct roce_packet p;

	f->late = (struct kept_list){0};
	for (; all.first; kept_take_off(&all))
		if (roce_parse(all.first->bytes, all.first->len, &p) == ROCE_GOOD)
			ask_answer(f, &p, all.first->bytes, all.first->len, now);
}

void ask_stop(struct flow *f)
{
	if (f->asks)
		f->req.dead = true;
	kept_clear(&f->late);
}
