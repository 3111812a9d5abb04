// SPDX-License-Identifier: BSD-3-Clause
#include "post.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "include/weft/verbs_ext.h"

enum { WRONG_KEY = 0x55, SHORT_LEN = 4 };

uint64_t wr_id_of(const struct end *e, unsigned index)
{
	return (uint64_t)e->round << 32 | index;
}

static unsigned sges(const struct end *e, const struct pieces *p, struct ibv_sge *s)
{
	for (unsigned i = 0; i < p->n; i++)
		s[i] = (struct ibv_sge){
			.addr = e->own_base + p->off[i], .length = p->len[i], .lkey = e->own->lkey};
	return p->n;
}

/* ---- where a request goes ---- */

static uint64_t target(const struct end *e, const struct request *q)
{
	uint32_t past = op_is_atomic(q->op) || q->op == DO_ATOMIC_WRITE ? 0 : q->len - 1;

	if (q->common)
		return e->peer.word[q->word];
	if (q->fault == FAULT_RANGE)
		return e->peer.base + e->e.size - past;
	return e->peer.base + q->remote;
}

static uint32_t key_of(const struct end *e, const struct request *q)
{
	if (q->common)
		return e->peer.words_rkey;
	if (q->fault == FAULT_RKEY)
		return e->peer.rkey ^ WRONG_KEY;
	return q->fault == FAULT_RIGHT ? e->peer.rkey_mute : e->peer.rkey;
}

static unsigned flags_of(const struct request *q)
{
	return (q->signaled ? IBV_SEND_SIGNALED : 0) | (q->fenced ? IBV_SEND_FENCE : 0) |
	       (q->solicited ? IBV_SEND_SOLICITED : 0) | (q->inlined ? IBV_SEND_INLINE : 0);
}

/* What the SGEs of a request are: of its own memory, by address where the data is inline. */
static unsigned data_of(struct end *e, const struct request *q, struct ibv_sge *s)
{
	unsigned n = sges(e, &q->local, s);

	for (unsigned i = 0; i < n && q->inlined; i++) {
		s[i].addr = (uintptr_t)e->shadow + q->local.off[i];
		s[i].lkey = 0;
	}
	if (q->fault == FAULT_LKEY && n)
		s[0].lkey ^= WRONG_KEY;
	return n;
}

/* ---- ibv_post_send() ---- */

static const enum ibv_wr_opcode opcodes[] = {
	[DO_SEND] = IBV_WR_SEND,
	[DO_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
	[DO_SEND_INV] = IBV_WR_SEND_WITH_INV,
	[DO_WRITE] = IBV_WR_RDMA_WRITE,
	[DO_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[DO_READ] = IBV_WR_RDMA_READ,
	[DO_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	[DO_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	[DO_ATOMIC_WRITE] = IBV_WR_ATOMIC_WRITE,
};

static void build(struct end *e, unsigned index, struct ibv_send_wr *wr, struct ibv_sge *s)
{
	const struct request *q = &e->r.r[index];

	memset(wr, 0, sizeof *wr);
	wr->wr_id = wr_id_of(e, index);
	wr->opcode = opcodes[q->op];
	wr->send_flags = flags_of(q);
	wr->sg_list = s;
	wr->num_sge = data_of(e, q, s);
	if (q->op == DO_SEND_INV)
		wr->invalidate_rkey = e->peer.rkey;
	else
		wr->imm_data = q->imm;
	if (e->xrcd)
		wr->qp_type.xrc.remote_srqn = e->peer.srqn;
	if (op_is_atomic(q->op)) {
		wr->wr.atomic.remote_addr = target(e, q);
		wr->wr.atomic.rkey = key_of(e, q);
		wr->wr.atomic.compare_add = q->op == DO_ADD ? q->operand : q->compare;
		wr->wr.atomic.swap = q->operand;
	} else if (e->e.type == IBV_QPT_UD) {
		wr->wr.ud.ah = e->ah;
		wr->wr.ud.remote_qpn = e->peer.qpn[q->lane];
		wr->wr.ud.remote_qkey = QKEY;
	} else if (op_is_remote(q->op)) {
		wr->wr.rdma.remote_addr = target(e, q);
		wr->wr.rdma.rkey = key_of(e, q);
	}
}

static int post_list(struct end *e, const unsigned *index, unsigned n)
{
	struct ibv_send_wr wr[DEPTH], *bad;
	struct ibv_sge s[DEPTH][PIECES];

	for (unsigned i = 0; i < n; i++) {
		build(e, index[i], &wr[i], s[i]);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	return ibv_post_send(e->lane[e->r.r[index[0]].lane].qp, wr, &bad);
}

/* ---- ibv_wr_*() ---- */

static void begin_wr(struct end *e, const struct request *q, struct ibv_qp_ex *x)
{
	uint64_t at = target(e, q);
	uint32_t key = key_of(e, q);

	switch (q->op) {
	case DO_SEND:
		ibv_wr_send(x);
		break;
	case DO_SEND_IMM:
		ibv_wr_send_imm(x, q->imm);
		break;
	case DO_SEND_INV:
		ibv_wr_send_inv(x, e->peer.rkey);
		break;
	case DO_WRITE:
		ibv_wr_rdma_write(x, key, at);
		break;
	case DO_WRITE_IMM:
		ibv_wr_rdma_write_imm(x, key, at, q->imm);
		break;
	case DO_READ:
		ibv_wr_rdma_read(x, key, at);
		break;
	case DO_ADD:
		ibv_wr_atomic_fetch_add(x, key, at, q->operand);
		break;
	case DO_SWAP:
		ibv_wr_atomic_cmp_swp(x, key, at, q->compare, q->operand);
		break;
	case DO_ATOMIC_WRITE:
		ibv_wr_atomic_write(x, key, at, &q->operand);
		break;
	default:
		ibv_wr_flush(x, key, at, q->len, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	}
}

static void add_data(struct end *e, const struct request *q, struct ibv_qp_ex *x)
{
	struct ibv_data_buf b[PIECES];
	struct ibv_sge s[PIECES];
	unsigned n = data_of(e, q, s);

	if (q->op == DO_ATOMIC_WRITE || q->op == DO_FLUSH)
		return;
	for (unsigned i = 0; i < n; i++)
		b[i] = (struct ibv_data_buf){(void *)(uintptr_t)s[i].addr, s[i].length};
	if (q->inlined)
		ibv_wr_set_inline_data_list(x, n, b);
	else if (n == 1)
		ibv_wr_set_sge(x, s[0].lkey, s[0].addr, s[0].length);
	else
		ibv_wr_set_sge_list(x, n, s);
}

static int post_wr(struct end *e, const unsigned *index, unsigned n)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(e->lane[e->r.r[index[0]].lane].qp);

	ibv_wr_start(x);
	for (unsigned i = 0; i < n; i++) {
		const struct request *q = &e->r.r[index[i]];

		x->wr_id = wr_id_of(e, index[i]);
		x->wr_flags = flags_of(q) & ~(unsigned)IBV_SEND_INLINE;
		begin_wr(e, q, x);
		if (e->xrcd)
			ibv_wr_set_xrc_srqn(x, e->peer.srqn);
		if (e->e.type == IBV_QPT_UD)
			ibv_wr_set_ud_addr(x, e->ah, e->peer.qpn[q->lane], QKEY);
		add_data(e, q, x);
	}
	return ibv_wr_complete(x);
}

static void post_some(struct end *e, const unsigned *index, unsigned n)
{
	int rc = e->r.r[index[0]].by_wr ? post_wr(e, index, n) : post_list(e, index, n);

	if (rc)
		end_fail(e, "posting %u requests, the first %s of %u bytes: %s", n,
			op_name(e->r.r[index[0]].op), e->r.r[index[0]].len, strerror(rc));
	atomic_fetch_add(&board->requests, n);
}

static void post_those_of(struct end *e, unsigned poster)
{
	unsigned list[DEPTH] = {0}, n = 0;

	for (unsigned i = 0; i < e->r.n; i++) {
		const struct request *q = &e->r.r[i], *first = &e->r.r[list[0]];

		if (q->from != e->side || q->poster != poster)
			continue;
		if (n && (!q->chained || q->lane != first->lane || q->by_wr != first->by_wr)) {
			post_some(e, list, n);
			n = 0;
		}
		list[n++] = i;
	}
	if (n)
		post_some(e, list, n);
}

static void *second_poster(void *arg)
{
	post_those_of(arg, 1);
	return NULL;
}

void post_requests(struct end *e)
{
	pthread_t second;

	if (e->r.two_post && pthread_create(&second, NULL, second_poster, e))
		end_fail(e, "pthread_create: %m");
	post_those_of(e, 0);
	if (e->r.two_post)
		pthread_join(second, NULL);
}

/* ---- receives ---- */

/* The place of the faulty message among those of lane 0 to this end; or -1. */
static int faulty_message(const struct end *e)
{
	int n = 0;

	for (unsigned i = 0; i < e->r.n; i++) {
		const struct request *q = &e->r.r[i];

		if (q->from == e->side || q->lane || !op_is_message(q->op))
			continue;
		if (q->fault >= FAULT_SHORT)
			return n;
		n++;
	}
	return -1;
}

unsigned post_receives_of(const struct end *e, unsigned lane)
{
	int faulty = lane || e->e.fault != FAULT_NO_RECV ? -1 : faulty_message(e);

	return faulty >= 0 ? (unsigned)faulty : e->r.recvs[e->side][lane];
}

static void spoil(const struct end *e, struct ibv_recv_wr *wr)
{
	if (e->e.fault == FAULT_SHORT) {
		wr->num_sge = 1;
		wr->sg_list[0].length = SHORT_LEN;
	} else {
		wr->sg_list[0].lkey ^= WRONG_KEY;
	}
}

static void post_receive(struct end *e, unsigned lane, unsigned number)
{
	unsigned slot = plan_first_slot(&e->r, e->side, lane) + number;
	struct pieces p = plan_receive(&e->r, e->side, slot);
	struct ibv_recv_wr *bad, wr = {.wr_id = WR_RECV | wr_id_of(e, slot)};
	struct ibv_sge s[PIECES];
	int rc;

	wr.sg_list = s;
	wr.num_sge = sges(e, &p, s);
	if (!lane && faulty_message(e) == (int)number)
		spoil(e, &wr);
	atomic_store(&e->posting, slot + 1);
	rc = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad)
		    : ibv_post_recv(e->lane[lane].qp, &wr, &bad);
	atomic_store(&e->posting, 0);
	if (rc)
		end_fail(e, "posting receive %u of lane %u: %s", number, lane, strerror(rc));
	e->lane[lane].recvs_posted++;
}

unsigned post_receives(struct end *e, unsigned n)
{
	unsigned left = 0;

	for (unsigned lane = 0; lane < e->e.lanes; lane++) {
		unsigned all = post_receives_of(e, lane);

		while (n && e->lane[lane].recvs_posted < all) {
			post_receive(e, lane, e->lane[lane].recvs_posted);
			n--;
		}
		left += all - e->lane[lane].recvs_posted;
	}
	return left;
}
