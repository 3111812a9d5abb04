// SPDX-License-Identifier: BSD-3-Clause
/*
 * A request that the responder's queue pair does not allow is invalid there, whatever it names; one
 * that the key does not allow is an access error.  For each request that needs a right.
 */
#include <string.h>

#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LEN = 4096,
	WORD = 8,
	RIGHTS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT,
	OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE |
	      IBV_QP_EX_WITH_FLUSH,
};

enum op { WRITE, WRITE_IMM, READ, CAS, FADD, ATOMIC_WRITE, FLUSH_GLOBAL, FLUSH_PERSISTENT, OP_MAX };

static const struct {
	const char *name;
	int right;
	bool may_be_empty;
} ops[OP_MAX] = {
	[WRITE] = {"WRITE", IBV_ACCESS_REMOTE_WRITE, true},
	[WRITE_IMM] = {"WRITE WITH IMMEDIATE", IBV_ACCESS_REMOTE_WRITE, true},
	[READ] = {"READ", IBV_ACCESS_REMOTE_READ, true},
	[CAS] = {"COMPARE AND SWAP", IBV_ACCESS_REMOTE_ATOMIC, false},
	[FADD] = {"FETCH AND ADD", IBV_ACCESS_REMOTE_ATOMIC, false},
	[ATOMIC_WRITE] = {"ATOMIC WRITE", IBV_ACCESS_REMOTE_WRITE, false},
	[FLUSH_GLOBAL] = {"FLUSH, visible", IBV_ACCESS_FLUSH_GLOBAL, false},
	[FLUSH_PERSISTENT] = {"FLUSH, durable", IBV_ACCESS_FLUSH_PERSISTENT, false},
};

static struct vp_end a, b;
static struct ibv_qp_ex *x;

/* The requester's queue pair has the calls of all requests. */
static void make_requester(const struct vp_opts *o)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.cap = {8, 8, 1, 1, 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = OPS,
	};

	vp_make(&a, vp_open(), o);
	CHECK_EQ(ibv_destroy_qp(a.qp), 0);
	init.send_cq = a.scq;
	init.recv_cq = a.rcq;
	init.pd = a.pd;
	a.qp = ibv_create_qp_ex(a.ctx, &init);
	if (!a.qp)
		die("ibv_create_qp_ex");
	x = ibv_qp_to_qp_ex(a.qp);
}

static void connect_with(int mr_rights, int qp_rights)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr at_a, at_b;

	o.len = LEN;
	o.mr_access = IBV_ACCESS_LOCAL_WRITE | RIGHTS;
	o.qp_access = RIGHTS;
	make_requester(&o);
	o.mr_access = IBV_ACCESS_LOCAL_WRITE | mr_rights;
	o.qp_access = qp_rights;
	vp_make(&b, vp_open(), &o);
	at_a = vp_addr(&a);
	at_b = vp_addr(&b);
	vp_connect(&a, &at_b);
	vp_connect(&b, &at_a);
}

static void put(enum op op, const struct vp_addr *to)
{
	switch (op) {
	case WRITE:
		return ibv_wr_rdma_write(x, to->rkey, to->addr);
	case WRITE_IMM:
		return ibv_wr_rdma_write_imm(x, to->rkey, to->addr, 1);
	case READ:
		return ibv_wr_rdma_read(x, to->rkey, to->addr);
	case CAS:
		return ibv_wr_atomic_cmp_swp(x, to->rkey, to->addr, 0, 1);
	case FADD:
		return ibv_wr_atomic_fetch_add(x, to->rkey, to->addr, 1);
	case ATOMIC_WRITE:
		return ibv_wr_atomic_write(x, to->rkey, to->addr, a.buf);
	case FLUSH_GLOBAL:
		return ibv_wr_flush(x, to->rkey, to->addr, WORD, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	case FLUSH_PERSISTENT:
		return ibv_wr_flush(
			x, to->rkey, to->addr, WORD, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	default:
		return;
	}
}

static enum ibv_wc_status run(enum op op, const struct vp_addr *to, uint32_t len)
{
	struct ibv_wc wc = {0};

	ibv_wr_start(x);
	x->wr_id = 1;
	x->wr_flags = IBV_SEND_SIGNALED;
	put(op, to);
	if (op < ATOMIC_WRITE)
		ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf + WORD, len);
	CHECK_EQ(ibv_wr_complete(x), 0);
	CHECK(vp_poll(a.scq, &wc, VP_DEADLINE_MS));
	return wc.status;
}

/* The responder goes to ERR without a completion but flushes, and says why. */
static void want_end(enum ibv_event_type type)
{
	struct ibv_async_event ev;
	struct ibv_wc wc;

	CHECK_EQ(vp_get_state(&a), IBV_QPS_ERR);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
	vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 7);
	if (CHECK(vp_async(b.ctx, &ev, VP_DEADLINE_MS))) {
		CHECK_EQ(ev.event_type, type);
		ibv_ack_async_event(&ev);
	}
	CHECK(pattern_all(b.buf, LEN, 0));
}

static void refused(enum op op, int mr_rights, int qp_rights, uint32_t len,
	enum ibv_wc_status status, enum ibv_event_type type)
{
	struct vp_addr to;

	connect_with(mr_rights, qp_rights);
	to = vp_addr(&b);
	memset(a.buf, 0x11, LEN);
	CHECK_EQ(vp_post_recv(&b, 7, 0, LEN), 0);
	CHECK_EQ(run(op, &to, len), status);
	want_end(type);
	vp_pair_free(&a, &b);
}

int main(void)
{
	for (enum op op = 0; op < OP_MAX; op++) {
		int others = RIGHTS & ~ops[op].right;

		check_case("%s: not by the queue pair", ops[op].name);
		refused(op, RIGHTS, others, WORD, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		check_case("%s: by neither", ops[op].name);
		refused(op, others, others, WORD, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		check_case("%s: not by the key", ops[op].name);
		refused(op, others, RIGHTS, WORD, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		if (!ops[op].may_be_empty)
			continue;
		check_case("%s of no bytes: not by the queue pair", ops[op].name);
		refused(op, RIGHTS, others, 0, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	}
	return check_result();
}
