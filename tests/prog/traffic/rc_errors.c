// SPDX-License-Identifier: BSD-3-Clause
/*
 * What is at fault completes as an HCA completes it: the status at both ends, the state of both
 * QPs afterwards, the flush of what is behind, the async event, and that RESET heals.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/by_packet.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { NONE = -1, LEN = 1 << 16, RECV_LEN = 256 };

static struct vp_end a, b;
static struct vp_addr to_b;
static struct ibv_pd *other_pd;
static struct ibv_mr *mr_other, *mr_ro, *mr_gone_a, *mr_gone_b;

/* ---- a table of single faults ---- */

struct fault {
	const char *name;
	int op;                       /* enum ibv_wr_opcode */
	int send_status, recv_status; /* recv_status NONE: no receive is consumed */
	int event;                    /* at b, NONE for none */
	bool b_fails;                 /* b goes to ERR too */
	void (*spoil)(struct ibv_send_wr *wr, struct ibv_recv_wr *rwr);
	int mr_access, qp_access; /* of b where not 0 */
	int max_dest_rd_atomic;   /* of b where not 0: value + 1 */
};

static void local_key(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->lkey ^= 0x5500;
}

static void local_variant(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->lkey ^= 1;
}

static void local_zero_key(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->lkey = 0;
}

static void local_pd(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->lkey = mr_other->lkey;
}

static void local_end(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->addr = (uintptr_t)a.buf + LEN - wr->sg_list->length + 1;
}

static void local_start(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->addr = (uintptr_t)a.buf - 1;
}

static void local_wrap(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->addr = UINT64_MAX - 3;
}

static void local_gone(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->lkey = mr_gone_a->lkey;
}

static void local_readonly(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->lkey = mr_ro->lkey;
}

static void local_too_long(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	static struct ibv_sge sge[2];

	(void)r;
	sge[0] = sge[1] = wr->sg_list[0];
	sge[0].length = 1u << 31;
	sge[1].length = 1;
	wr->sg_list = sge;
	wr->num_sge = 2;
}

static void local_short(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->sg_list->length = 4;
}

static void remote_key(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP)
		wr->wr.atomic.rkey ^= 1;
	else
		wr->wr.rdma.rkey ^= 1;
}

static void remote_zero_key(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->wr.rdma.rkey = 0;
}

static void remote_pd(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->wr.rdma.rkey = mr_other->rkey;
}

static void remote_end(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->wr.rdma.remote_addr = to_b.addr + LEN - wr->sg_list->length + 1;
}

static void remote_start(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->wr.rdma.remote_addr = to_b.addr - 1;
}

static void remote_wrap(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->wr.rdma.remote_addr = UINT64_MAX - 3;
}

static void remote_gone(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->wr.rdma.rkey = mr_gone_b->rkey;
}

static void remote_unaligned(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)r;
	wr->wr.atomic.remote_addr += 4;
}

static void recv_key(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)wr;
	r->sg_list->lkey ^= 1;
}

static void recv_pd(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)wr;
	r->sg_list->lkey = mr_other->lkey;
}

static void recv_readonly(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)wr;
	r->sg_list->lkey = mr_ro->lkey;
}

static void recv_gone(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)wr;
	r->sg_list->lkey = mr_gone_b->lkey;
}

static void recv_end(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)wr;
	r->sg_list->addr = (uintptr_t)b.buf + LEN - 4;
}

static void recv_small(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	r->sg_list->length = wr->sg_list->length - 1;
}

static void recv_empty(struct ibv_send_wr *wr, struct ibv_recv_wr *r)
{
	(void)wr;
	r->num_sge = 0;
}

enum {
	SEND = IBV_WR_SEND,
	WRITE = IBV_WR_RDMA_WRITE,
	WRITE_IMM = IBV_WR_RDMA_WRITE_WITH_IMM,
	READ = IBV_WR_RDMA_READ,
	CAS = IBV_WR_ATOMIC_CMP_AND_SWP,
	FADD = IBV_WR_ATOMIC_FETCH_AND_ADD,
	LW = IBV_ACCESS_LOCAL_WRITE,
	RW = IBV_ACCESS_REMOTE_WRITE,
	RR = IBV_ACCESS_REMOTE_READ,
	RA = IBV_ACCESS_REMOTE_ATOMIC,
	LEN_ERR = IBV_WC_LOC_LEN_ERR,
	PROT_ERR = IBV_WC_LOC_PROT_ERR,
	ACCESS_ERR = IBV_WC_REM_ACCESS_ERR,
	INV_REQ = IBV_WC_REM_INV_REQ_ERR,
	OP_ERR = IBV_WC_REM_OP_ERR,
	EV_ACCESS = IBV_EVENT_QP_ACCESS_ERR,
	EV_REQ = IBV_EVENT_QP_REQ_ERR,
};

static const struct fault faults[] = {
	{"send: wrong lkey", SEND, PROT_ERR, NONE, NONE, false, local_key},
	{"send: lkey of another generation", SEND, PROT_ERR, NONE, NONE, false, local_variant},
	{"send: lkey 0", SEND, PROT_ERR, NONE, NONE, false, local_zero_key},
	{"send: lkey of another PD", SEND, PROT_ERR, NONE, NONE, false, local_pd},
	{"send: past the end", SEND, PROT_ERR, NONE, NONE, false, local_end},
	{"send: before the start", SEND, PROT_ERR, NONE, NONE, false, local_start},
	{"send: address wraps", SEND, PROT_ERR, NONE, NONE, false, local_wrap},
	{"send: deregistered", SEND, PROT_ERR, NONE, NONE, false, local_gone},
	{"send: over 2 GiB", SEND, LEN_ERR, NONE, NONE, false, local_too_long},
	{"write: wrong lkey", WRITE, PROT_ERR, NONE, NONE, false, local_key},
	{"write: past the end here", WRITE, PROT_ERR, NONE, NONE, false, local_end},
	{"write: deregistered here", WRITE, PROT_ERR, NONE, NONE, false, local_gone},
	{"write: over 2 GiB", WRITE, LEN_ERR, NONE, NONE, false, local_too_long},
	{"read: wrong lkey", READ, PROT_ERR, NONE, NONE, false, local_key},
	{"read: no LOCAL_WRITE", READ, PROT_ERR, NONE, NONE, false, local_readonly},
	{"read: past the end here", READ, PROT_ERR, NONE, NONE, false, local_end},
	{"read: over 2 GiB", READ, LEN_ERR, NONE, NONE, false, local_too_long},
	{"atomic: wrong lkey", CAS, PROT_ERR, NONE, NONE, false, local_key},
	{"atomic: no LOCAL_WRITE", FADD, PROT_ERR, NONE, NONE, false, local_readonly},
	{"atomic: 4 bytes", CAS, LEN_ERR, NONE, NONE, false, local_short},

	{"write: wrong rkey", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, remote_key},
	{"write: rkey 0", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, remote_zero_key},
	{"write: rkey of another PD", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, remote_pd},
	{"write: past the end", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, remote_end},
	{"write: before the start", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, remote_start},
	{"write: address wraps", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, remote_wrap},
	{"write: deregistered", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, remote_gone},
	{"write: no right in MR", WRITE, ACCESS_ERR, NONE, EV_ACCESS, true, NULL, LW | RR | RA},
	{"write: no right in QP", WRITE, INV_REQ, NONE, EV_REQ, true, NULL, 0, RR | RA},
	{"write with imm: wrong rkey", WRITE_IMM, ACCESS_ERR, NONE, EV_ACCESS, true, remote_key},
	{"read: wrong rkey", READ, ACCESS_ERR, NONE, EV_ACCESS, true, remote_key},
	{"read: past the end", READ, ACCESS_ERR, NONE, EV_ACCESS, true, remote_end},
	{"read: no right in MR", READ, ACCESS_ERR, NONE, EV_ACCESS, true, NULL, LW | RW | RA},
	{"read: no right in QP", READ, INV_REQ, NONE, EV_REQ, true, NULL, 0, RW | RA},
	{"atomic: wrong rkey", CAS, ACCESS_ERR, NONE, EV_ACCESS, true, remote_key},
	{"atomic: no right in MR", FADD, ACCESS_ERR, NONE, EV_ACCESS, true, NULL, LW | RW | RR},
	{"atomic: no right in QP", CAS, INV_REQ, NONE, EV_REQ, true, NULL, 0, RW | RR},

	{"atomic: unaligned", CAS, INV_REQ, NONE, EV_REQ, true, remote_unaligned},
	{"atomic: unaligned", FADD, INV_REQ, NONE, EV_REQ, true, remote_unaligned},
	{"read: none allowed", READ, INV_REQ, NONE, EV_REQ, true, NULL, 0, 0, 1},
	{"atomic: none allowed", CAS, INV_REQ, NONE, EV_REQ, true, NULL, 0, 0, 1},

	{"receive: too small", SEND, INV_REQ, LEN_ERR, NONE, true, recv_small},
	{"receive: no SGE", SEND, INV_REQ, LEN_ERR, NONE, true, recv_empty},
	{"receive: wrong lkey", SEND, OP_ERR, PROT_ERR, NONE, true, recv_key},
	{"receive: lkey of another PD", SEND, OP_ERR, PROT_ERR, NONE, true, recv_pd},
	{"receive: no LOCAL_WRITE", SEND, OP_ERR, PROT_ERR, NONE, true, recv_readonly},
	{"receive: deregistered", SEND, OP_ERR, PROT_ERR, NONE, true, recv_gone},
	{"receive: past the end", SEND, OP_ERR, PROT_ERR, NONE, true, recv_end},
};

static bool next_event(struct ibv_context *ctx, struct ibv_async_event *ev, int ms)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

	if (poll(&p, 1, ms) != 1)
		return false;
	if (!CHECK_EQ(ibv_get_async_event(ctx, ev), 0))
		return false;
	ibv_ack_async_event(ev);
	return true;
}

static void want_event(int type, struct ibv_qp *qp)
{
	struct ibv_async_event ev = {.event_type = 99};

	if (!CHECK(next_event(b.ctx, &ev, VP_DEADLINE_MS)))
		return;
	CHECK_EQ(ev.event_type, type);
	CHECK(ev.element.qp == qp);
}

static void no_event(void)
{
	struct ibv_async_event ev;

	CHECK(!next_event(b.ctx, &ev, 0));
}

static void setup(const struct vp_opts *oa, const struct vp_opts *ob)
{
	struct vp_addr to_a;

	vp_make(&a, vp_open(), oa);
	vp_make(&b, vp_open(), ob);
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	vp_connect(&b, &to_a);
	vp_connect(&a, &to_b);
}

static struct ibv_mr *reg(struct vp_end *e, void *p, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, p, len, access);

	if (!mr)
		die("reg_mr");
	return mr;
}

/* Regions that are wrong each in its way; those that are gone keep their struct's keys. */
static struct ibv_mr *gone(struct vp_end *e)
{
	static struct ibv_mr copy[2];
	struct ibv_mr *mr = reg(e, e->buf, LEN, LW | RW | RR | RA);
	struct ibv_mr *keep = &copy[e == &b];

	*keep = *mr;
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	return keep;
}

static void spoiled_regions(struct vp_end *victim)
{
	other_pd = ibv_alloc_pd(victim->ctx);
	mr_other = ibv_reg_mr(other_pd, victim->buf, LEN, LW | RW | RR | RA);
	mr_ro = reg(victim, victim->buf, LEN, RR);
	mr_gone_a = gone(&a);
	mr_gone_b = gone(&b);
}

static void free_spoiled(void)
{
	CHECK_EQ(ibv_dereg_mr(mr_other), 0);
	CHECK_EQ(ibv_dealloc_pd(other_pd), 0);
	CHECK_EQ(ibv_dereg_mr(mr_ro), 0);
}

static void heal(void)
{
	struct ibv_wc wc;

	vp_reconnect(&a, &b);
	CHECK_EQ(vp_post_recv(&b, 70, 512, 64), 0);
	pattern_fill(a.buf, 64, 9);
	CHECK_EQ(vp_post_send(&a, 71, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 64, NULL, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 71);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 70);
	CHECK(pattern_filled(b.buf + 512, 64, 9));
	vp_quiet(a.scq, 0);
	vp_quiet(b.rcq, 0);
}

/* The fault completes; what is behind it flushes in order, unsignalled requests too. */
static void expect(const struct fault *f)
{
	struct ibv_wc wc;

	memset(&wc, 0xee, sizeof wc);
	vp_want(a.scq, &wc, f->send_status, 1);
	CHECK_EQ(wc.qp_num, a.qp->qp_num);
	vp_want(a.scq, &wc, IBV_WC_WR_FLUSH_ERR, 2);
	vp_want(a.scq, &wc, IBV_WC_WR_FLUSH_ERR, 3);
	vp_quiet(a.scq, 0);
	vp_want(a.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 50);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_ERR);
	CHECK_EQ(vp_get_state(&b), f->b_fails ? IBV_QPS_ERR : IBV_QPS_RTS);
	if (f->recv_status != NONE)
		vp_want(b.rcq, &wc, f->recv_status, 100);
	if (f->b_fails) {
		if (f->recv_status == NONE)
			vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 100);
		vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 101);
	}
	vp_quiet(b.rcq, 0);
	if (f->event != NONE)
		want_event(f->event, b.qp);
	no_event();
}

/* late: the receive comes after the send, so that its post finishes the parked request. */
static void one_fault(const struct fault *f, bool late)
{
	bool sends = f->op == SEND, is_atomic = f->op == CAS || f->op == FADD;
	struct vp_opts oa = vp_defaults(), ob = oa;
	struct ibv_sge sge, rsge;
	struct ibv_recv_wr rwr = {.wr_id = 100, .sg_list = &rsge, .num_sge = 1}, *rbad;
	struct ibv_send_wr wr = {.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = (enum ibv_wr_opcode)f->op,
		.send_flags = f->send_status == LEN_ERR ? 0 : IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;

	check_case("%s%s", f->name, late ? ", receive posted later" : "");
	ob.mr_access = f->mr_access ? f->mr_access : ob.mr_access;
	ob.qp_access = f->qp_access ? f->qp_access : ob.qp_access;
	ob.max_dest_rd_atomic =
		f->max_dest_rd_atomic ? f->max_dest_rd_atomic - 1 : ob.max_dest_rd_atomic;
	setup(&oa, &ob);
	spoiled_regions(f->recv_status == NONE && f->event == NONE ? &a : &b);
	CHECK_EQ(vp_post_recv(&a, 50, 0, 64), 0);
	memset(b.buf, 0x33, LEN);
	memset(a.buf, 0x44, LEN);
	sge = vp_sge(&a, 1024, is_atomic ? 8 : 128);
	rsge = vp_sge(&b, 2048, RECV_LEN);
	if (is_atomic) {
		wr.wr.atomic.remote_addr = to_b.addr + 4096;
		wr.wr.atomic.rkey = to_b.rkey;
	} else if (!sends) {
		wr.wr.rdma.remote_addr = to_b.addr + 4096;
		wr.wr.rdma.rkey = to_b.rkey;
	}
	if (f->spoil)
		f->spoil(&wr, &rwr);
	if (!late)
		CHECK_EQ(ibv_post_recv(b.qp, &rwr, &rbad), 0);
	if (!late)
		CHECK_EQ(vp_post_recv(&b, 101, 0, 64), 0);
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_RDMA_WRITE, 0, 0, 8, &to_b, 0), 0);
	CHECK_EQ(vp_post_send(&a, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	if (late)
		CHECK_EQ(ibv_post_recv(b.qp, &rwr, &rbad), 0);
	if (late)
		CHECK_EQ(vp_post_recv(&b, 101, 0, 64), 0);
	expect(f);
	CHECK(pattern_all(b.buf, LEN, 0x33));
	CHECK(pattern_all(a.buf, LEN, 0x44));
	if (!f->max_dest_rd_atomic && !f->mr_access && !f->qp_access)
		heal();
	free_spoiled();
	vp_pair_free(&a, &b);
}

static void table(void)
{
	for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) {
		one_fault(&faults[i], false);
		if (faults[i].recv_status != NONE)
			one_fault(&faults[i], true);
	}
}

/* ---- flush, and posting in each state ---- */

static void flush(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;

	check_case("modify to ERR flushes");
	vp_pair(&a, &b, &o);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(vp_post_recv(&a, 100 + i, 0, 8), 0);
		CHECK_EQ(vp_post_send(
				 &a, i, IBV_WR_SEND, i % 2 ? 0 : IBV_SEND_SIGNALED, 0, 8, NULL, 0),
			0);
	}
	vp_quiet(a.scq, 5);
	CHECK_EQ(vp_state(&a, IBV_QPS_ERR), 0);
	for (int i = 0; i < 5; i++) {
		vp_want(a.scq, &wc, IBV_WC_WR_FLUSH_ERR, i);
		vp_want(a.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 100 + i);
	}
	check_case("posting to a QP in ERR");
	CHECK_EQ(vp_post_send(&a, 8, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
	CHECK_EQ(vp_post_recv(&a, 9, 0, 8), 0);
	vp_want(a.scq, &wc, IBV_WC_WR_FLUSH_ERR, 8);
	vp_want(a.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 9);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	CHECK_EQ(vp_post_recv(&b, 10, 0, 8), 0);
	if (!by_packet())
		vp_quiet(b.rcq, 5);
	else if (vp_poll(b.rcq, &wc, 5)) /* what was sent before a failed may be on its way yet */
		CHECK(wc.wr_id == 10 && wc.status == IBV_WC_SUCCESS);
	check_case("RESET drops what is queued and what is completed");
	CHECK_EQ(vp_post_recv(&a, 11, 0, 8), 0);
	CHECK_EQ(vp_state(&a, IBV_QPS_RESET), 0);
	vp_quiet(a.rcq, 5);
	heal();
	vp_pair_free(&a, &b);
}

static void post_states(void)
{
	static const struct {
		enum ibv_qp_state state;
		int send, recv;
	} rows[] = {
		{IBV_QPS_RESET, EINVAL, EINVAL},
		{IBV_QPS_INIT, EINVAL, 0},
		{IBV_QPS_RTR, EINVAL, 0},
		{IBV_QPS_RTS, 0, 0},
		{IBV_QPS_SQD, 0, 0},
		{IBV_QPS_ERR, 0, 0},
	};
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;

	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	to_b = vp_addr(&b);
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad = NULL;
		struct ibv_recv_wr rwr = {.num_sge = 0}, *rbad = NULL;

		check_case("posting in state %d", rows[i].state);
		if (rows[i].state == IBV_QPS_INIT)
			CHECK_EQ(vp_init(&a), 0);
		else if (rows[i].state == IBV_QPS_RTR)
			CHECK_EQ(vp_rtr(&a, &to_b), 0);
		else if (rows[i].state == IBV_QPS_RTS)
			CHECK_EQ(vp_rts(&a), 0);
		else if (i)
			CHECK_EQ(vp_state(&a, rows[i].state), 0);
		CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), rows[i].send);
		CHECK(!rows[i].send || bad == &wr);
		CHECK_EQ(ibv_post_recv(a.qp, &rwr, &rbad), rows[i].recv);
		CHECK(!rows[i].recv || rbad == &rwr);
	}
	for (int i = 0; i < 3; i++)
		vp_want(a.scq, &wc, IBV_WC_WR_FLUSH_ERR, 0);
	for (int i = 0; i < 5; i++)
		vp_want(a.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 0);
	vp_pair_free(&a, &b);
}

/* SQD: what is posted waits; RTS lets it go. */
static void drained(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_wc wc;

	check_case("SQD holds sends back, receives go on");
	vp_pair(&a, &b, &o);
	CHECK_EQ(ibv_modify_qp(b.qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	want_event(IBV_EVENT_SQ_DRAINED, b.qp);
	CHECK_EQ(vp_post_recv(&a, 1, 0, 8), 0);
	CHECK_EQ(vp_post_recv(&b, 2, 0, 8), 0);
	CHECK_EQ(vp_post_send(&b, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	CHECK_EQ(vp_post_send(&a, 4, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 4);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 2);
	vp_quiet(b.scq, 30);
	CHECK_EQ(vp_state(&b, IBV_QPS_RTS), 0);
	vp_want(b.scq, &wc, IBV_WC_SUCCESS, 3);
	vp_want(a.rcq, &wc, IBV_WC_SUCCESS, 1);
	no_event();
	vp_pair_free(&a, &b);
}

/* The event is for who asks for it: en_sqd_async_notify, whose bit in the mask says that it counts.
 */
static void drained_in_silence(void)
{
	static const struct {
		int mask, notify;
	} how[] = {{IBV_QP_EN_SQD_ASYNC_NOTIFY, 0}, {0, 1}, {0, 0}};
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;

	vp_pair(&a, &b, &o);
	for (unsigned i = 0; i < sizeof how / sizeof *how; i++) {
		struct ibv_qp_attr sqd = {
			.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = how[i].notify};

		check_case("SQD, mask %#x, en_sqd_async_notify %d", how[i].mask, how[i].notify);
		CHECK_EQ(ibv_modify_qp(b.qp, &sqd, IBV_QP_STATE | how[i].mask), 0);
		CHECK_EQ(vp_get_state(&b), IBV_QPS_SQD);
		no_event();
		CHECK_EQ(vp_state(&b, IBV_QPS_RTS), 0);
		CHECK_EQ(vp_post_recv(&a, i, 0, 8), 0);
		CHECK_EQ(vp_post_send(&b, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
		vp_want(b.scq, &wc, IBV_WC_SUCCESS, i);
		vp_want(a.rcq, &wc, IBV_WC_SUCCESS, i);
		no_event();
	}
	vp_pair_free(&a, &b);
}

/* ---- other events ---- */

static void comm_est(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to_a;
	struct ibv_wc wc;

	check_case("COMM_EST: the first message meets a responder in RTR");
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	CHECK_EQ(vp_init(&b), 0);
	CHECK_EQ(vp_rtr(&b, &to_a), 0);
	vp_connect(&a, &to_b);
	CHECK_EQ(vp_post_recv(&b, 1, 0, 8), 0);
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
	want_event(IBV_EVENT_COMM_EST, b.qp);
	no_event();
	vp_pair_free(&a, &b);
}

static void cq_overrun(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_async_event ev = {.event_type = 99};
	struct ibv_wc wc;
	int n, taken = 0;
	double until;

	check_case("CQ overrun");
	o.cqe = 4;
	o.send_wr = 2000;
	vp_pair(&a, &b, &o);
	to_b = vp_addr(&b);
	vp_overrun(&a, &to_b);
	if (CHECK(next_event(a.ctx, &ev, VP_DEADLINE_MS))) {
		CHECK_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
		CHECK(ev.element.cq == a.scq);
	}
	while ((n = ibv_poll_cq(a.scq, 1, &wc)) > 0)
		taken++;
	CHECK(n < 0);
	CHECK_RANGE(taken, 0, a.scq->cqe);
	/* The CQ's event comes first, where a worker completes. */
	until = now_ms() + VP_DEADLINE_MS;
	while (vp_get_state(&a) != IBV_QPS_ERR && now_ms() < until)
		sched_yield();
	CHECK_EQ(vp_get_state(&a), IBV_QPS_ERR);
	vp_pair_free(&a, &b);
}

int main(void)
{
	struct ibv_context *ctx = vp_open(); /* keeps the process attached */

	table();
	flush();
	post_states();
	drained();
	drained_in_silence();
	comm_est();
	cq_overrun();
	ibv_close_device(ctx);
	return check_result();
}
