// SPDX-License-Identifier: BSD-3-Clause
/*
 * Each packet of each RC operation is lost once, on its way there or back, with another request
 * behind it or without: what was asked for is done, once, and completes with success.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LEN = 3000, /* three packets */
	THERE = 0,  /* in the server's buffer: what requests work on */
	TAKEN = 16384,
	TAIL = 32768, /* where the server receives the request behind */
	TAIL_LEN = 8,
	COUNTER = 41, /* before an atomic operation */
	ADDED = 1,    /* what vp_post_send() adds or compares with */
	FLUSHES = IBV_ACCESS_FLUSH_GLOBAL,
	DONE = 1,
	SERVER_SEED = 7,
	CLIENT_SEED = 8,
};

enum act {
	SEND,
	SEND_IMM,
	SEND_INV,
	WRITE,
	WRITE_IMM,
	READ,
	FETCH_ADD,
	COMPARE_SWAP,
	ATOMIC_WRITE,
	FLUSH
};

/* What each is, and its packets that leave and that come back. */
static const struct op {
	const char *name;
	enum act act;
	enum ibv_wr_opcode opcode;
	uint32_t len;
	int out, in;
	bool receives;
} ops[] = {
	{"SEND", SEND, IBV_WR_SEND, LEN, 3, 1, true},
	{"SEND with immediate", SEND_IMM, IBV_WR_SEND_WITH_IMM, 100, 1, 1, true},
	{"SEND with invalidate", SEND_INV, IBV_WR_SEND_WITH_INV, LEN, 3, 1, true},
	{"WRITE", WRITE, IBV_WR_RDMA_WRITE, LEN, 3, 1, false},
	{"WRITE with immediate", WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM, LEN, 3, 1, true},
	{"READ", READ, IBV_WR_RDMA_READ, LEN, 1, 3, false},
	{"FETCH ADD", FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1, 1, false},
	{"COMPARE SWAP", COMPARE_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 1, 1, false},
	{"ATOMIC WRITE", ATOMIC_WRITE, IBV_WR_ATOMIC_WRITE, 8, 1, 1, false},
	{"FLUSH", FLUSH, IBV_WR_FLUSH, LEN, 1, 1, false},
};

enum { OPS = sizeof ops / sizeof *ops };

/* One run: which packet is lost. */
struct run {
	uint32_t op;
	uint32_t in;  /* it comes back, else it leaves */
	uint32_t nth; /* 0: none */
	uint32_t tail;
};

static struct ibv_qp *make_qp(struct vp_end *e)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				  IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_WRITE |
				  IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_BIND_MW,
	};

	return ibv_create_qp_ex(e->ctx, &init);
}

static void make_end(struct vp_end *e, struct ibv_context *ctx, uint32_t seed)
{
	struct vp_opts o = vp_defaults();

	o.mr_access |= FLUSHES | IBV_ACCESS_MW_BIND;
	o.qp_access |= FLUSHES;
	vp_make(e, ctx, &o);
	CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	e->qp = make_qp(e);
	if (!e->qp)
		die("ibv_create_qp_ex");
	pattern_fill(e->buf, LEN, seed);
}

/* ---- the server ---- */

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof word);
	return word;
}

static void check_there(const struct vp_end *e, const struct op *op, uint64_t before)
{
	const uint8_t *there = e->buf + THERE;

	switch (op->act) {
	case SEND:
	case SEND_IMM:
	case SEND_INV:
		CHECK(pattern_filled(e->buf + TAKEN, op->len, CLIENT_SEED));
		break;
	case WRITE:
	case WRITE_IMM:
		CHECK(pattern_filled(there, op->len, CLIENT_SEED));
		break;
	case FETCH_ADD:
		CHECK_EQ(word_at(there), before + ADDED);
		break;
	case COMPARE_SWAP:
		CHECK_EQ(word_at(there), op->act); /* its wr_id */
		break;
	case ATOMIC_WRITE:
		CHECK(pattern_filled(there, op->len, CLIENT_SEED));
		break;
	case READ:
	case FLUSH:
		CHECK(pattern_filled(there, LEN, SERVER_SEED));
		break;
	}
}

static uint32_t window_key(const struct ibv_mw *mw)
{
	return ibv_inc_rkey(mw->rkey);
}

/* A window that the client's request makes void. */
static struct ibv_mw *bind_window(struct vp_end *e)
{
	struct ibv_mw *mw = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	if (!mw)
		die("ibv_alloc_mw");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = window_key(mw);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = e->mr,
		.addr = (uintptr_t)e->buf,
		.length = LEN,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ};
	CHECK_EQ(vp_run(e, &wr), IBV_WC_SUCCESS);
	return mw;
}

static void expect_receive(struct vp_end *e, uint64_t id)
{
	struct ibv_wc wc;

	vp_want(e->rcq, &wc, IBV_WC_SUCCESS, id);
}

/* That of the operation itself. */
static void expect_taken(struct vp_end *e, const struct op *op, uint32_t key)
{
	struct ibv_wc wc;

	if (!vp_want(e->rcq, &wc, IBV_WC_SUCCESS, 1))
		return;
	CHECK_EQ(wc.wc_flags, op->act == SEND       ? 0
			      : op->act == SEND_INV ? IBV_WC_WITH_INV
						    : IBV_WC_WITH_IMM);
	if (op->act == SEND_INV)
		CHECK_EQ(wc.invalidated_rkey, key);
	else if (op->act != SEND)
		CHECK_EQ(be32toh(wc.imm_data), op->act);
}

/* Before it is connected: from then on a thread of the library may change it. */
static uint64_t set_word(struct vp_end *e, const struct op *op)
{
	uint64_t before = op->act == COMPARE_SWAP ? ADDED : COUNTER;

	if (op->act == FETCH_ADD || op->act == COMPARE_SWAP)
		memcpy(e->buf + THERE, &before, sizeof before);
	return before;
}

static void post_receives(struct vp_end *e, const struct op *op)
{
	if (op->receives)
		CHECK_EQ(vp_post_recv(e, 1, TAKEN, LEN), 0);
	CHECK_EQ(vp_post_recv(e, 2, TAIL, TAIL_LEN), 0);
}

static void serve_run(int fd, struct ibv_context *ctx, const struct run *run)
{
	const struct op *op = &ops[run->op];
	struct ibv_mw *mw;
	struct ibv_wc wc;
	struct vp_end e;
	uint64_t before;

	check_case("server: %s, %s %u", op->name, run->in ? "in" : "out", run->nth);
	make_end(&e, ctx, SERVER_SEED);
	before = set_word(&e, op);
	vp_meet(&e, fd);
	post_receives(&e, op);
	mw = op->act == SEND_INV ? bind_window(&e) : NULL;
	vp_tell(fd, mw ? window_key(mw) : 0); /* it may begin */
	if (op->receives)
		expect_taken(&e, op, mw ? window_key(mw) : 0);
	if (run->tail)
		expect_receive(&e, 2);
	vp_hear(fd);
	CHECK_EQ(vp_get_state(&e), IBV_QPS_RTS); /* a call: what was placed, we see */
	check_there(&e, op, before);
	CHECK(!vp_poll(e.rcq, &wc, 0));
	vp_tell(fd, DONE);
	if (mw)
		CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_free(&e);
}

static void serve(int fd, void *arg)
{
	struct ibv_context *ctx = vp_open();
	struct run run;

	(void)arg;
	for (;;) {
		vp_get(fd, &run, sizeof run);
		if (run.op >= OPS)
			break;
		serve_run(fd, ctx, &run);
	}
	ibv_close_device(ctx);
}

/* ---- the client, a process for each run: rules count from its start ---- */

static void post_extended(struct vp_end *e, const struct op *op, const struct vp_addr *to)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(e->qp);

	ibv_wr_start(x);
	x->wr_id = op->act;
	x->wr_flags = IBV_SEND_SIGNALED;
	if (op->act == FLUSH)
		ibv_wr_flush(
			x, to->rkey, to->addr + THERE, op->len, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	else
		ibv_wr_atomic_write(x, to->rkey, to->addr + THERE, e->buf);
	CHECK_EQ(ibv_wr_complete(x), 0);
}

static int post_invalidating(struct vp_end *e, const struct op *op, uint32_t key)
{
	struct ibv_sge sge = vp_sge(e, 0, op->len);
	struct ibv_send_wr *bad, wr = {.wr_id = op->act,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = op->opcode,
					 .send_flags = IBV_SEND_SIGNALED,
					 .invalidate_rkey = key};

	return ibv_post_send(e->qp, &wr, &bad);
}

/* key: of the server's window, if it has one. */
static void post(struct vp_end *e, const struct op *op, const struct vp_addr *to, uint32_t key)
{
	size_t from =
		op->act == READ || op->act == FETCH_ADD || op->act == COMPARE_SWAP ? TAKEN : 0;

	if (op->act == FLUSH || op->act == ATOMIC_WRITE)
		post_extended(e, op, to);
	else if (op->act == SEND_INV)
		CHECK_EQ(post_invalidating(e, op, key), 0);
	else
		CHECK_EQ(vp_post_send(e, op->act, op->opcode, IBV_SEND_SIGNALED, from, op->len, to,
				 THERE),
			0);
}

static void check_got(const struct vp_end *e, const struct op *op)
{
	if (op->act == READ)
		CHECK(pattern_filled(e->buf + TAKEN, op->len, SERVER_SEED));
	else if (op->act == FETCH_ADD)
		CHECK_EQ(word_at(e->buf + TAKEN), COUNTER);
	else if (op->act == COMPARE_SWAP)
		CHECK_EQ(word_at(e->buf + TAKEN), ADDED);
}

static void client(int fd, const struct run *run)
{
	const struct op *op = &ops[run->op];
	struct vp_addr to;
	struct vp_end e;
	struct ibv_wc wc;

	check_case("%s, %s %u%s", op->name, run->in ? "in" : "out", run->nth,
		run->tail ? ", one behind" : "");
	make_end(&e, vp_open(), CLIENT_SEED);
	to = vp_meet(&e, fd);
	post(&e, op, &to, vp_hear(fd));
	if (run->tail)
		CHECK_EQ(vp_post_send(&e, 99, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, TAIL_LEN, NULL, 0),
			0);
	if (vp_want(e.scq, &wc, IBV_WC_SUCCESS, op->act))
		check_got(&e, op);
	if (run->tail)
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 99);
	vp_tell(fd, DONE);
	vp_hear(fd);
	CHECK_EQ(vp_get_state(&e), IBV_QPS_RTS);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void run_one(const struct vp_child *server, struct run run)
{
	unsigned before = check_failures();
	char rule[64];
	int status;
	pid_t pid;

	vp_put(server->fd, &run, sizeof run);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(rule, sizeof rule, "drop %s nth=%u", run.in ? "in" : "out", run.nth);
		if (run.nth)
			setenv("WEFT_FAULT", rule, 1);
		client(server->fd, &run);
		_exit(check_failures() != before);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	check_child(status);
}

/* Packets of the operation, then those of the one behind, whose loss is another's. */
static void run_op(const struct vp_child *server, uint32_t i)
{
	for (uint32_t tail = 0; tail < 2; tail++) {
		run_one(server, (struct run){.op = i, .tail = tail});
		for (int n = 1; n <= ops[i].out; n++)
			run_one(server, (struct run){i, 0, n, tail});
		for (int n = 1; n <= ops[i].in; n++)
			run_one(server, (struct run){i, 1, n, tail});
	}
}

int main(void)
{
	struct run end = {.op = OPS};
	struct vp_child server = vp_fork(serve, NULL);

	for (uint32_t i = 0; i < OPS; i++)
		run_op(&server, i);
	vp_put(server.fd, &end, sizeof end);
	vp_join(&server);
	return check_result();
}
