// SPDX-License-Identifier: BSD-3-Clause
/*
 * XRC: domains by file and anonymous; sends go to the shared receive queue that each names, RDMA
 * to memory of that queue's PD; a queue of another domain is refused; requesters wait for
 * receives; a target QP can be opened twice; and all of it between two processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/xrc_ends.h"

enum { LEN = 65536, RECV = 8192 };

/* One process's part: an initiator, a target, two SRQs in the domain. */
struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *scq, *rcq;
	struct ibv_srq *srq[2];
	uint32_t srqn[2];
	struct ibv_qp *ini, *tgt;
	struct ibv_mr *mr;
	uint8_t *buf;
};

/* What the other one must know. */
struct address {
	uint32_t ini, tgt, srqn[2], rkey;
	uint64_t addr;
	union ibv_gid gid;
};

static void make(struct side *s, struct ibv_context *ctx, int fd)
{
	*s = (struct side){.ctx = ctx, .pd = ibv_alloc_pd(ctx), .buf = calloc(1, LEN)};
	s->xrcd = xrc_domain(ctx, fd, O_CREAT);
	s->scq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	s->rcq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	if (!s->xrcd || !s->scq || !s->rcq)
		die("set-up");
	s->mr = ibv_reg_mr(s->pd, s->buf, LEN,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_ATOMIC);
	for (int i = 0; i < 2; i++) {
		s->srq[i] = xrc_srq(s->pd, s->xrcd, s->rcq);
		CHECK_EQ(ibv_get_srq_num(s->srq[i], &s->srqn[i]), 0);
	}
	s->ini = xrc_initiator(s->pd, s->scq);
	s->tgt = xrc_target(s->xrcd);
}

static void unmake(struct side *s)
{
	CHECK_EQ(ibv_close_xrcd(s->xrcd), EBUSY);
	CHECK_EQ(ibv_destroy_qp(s->ini), 0);
	CHECK_EQ(ibv_destroy_qp(s->tgt), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(ibv_destroy_srq(s->srq[i]), 0);
	CHECK_EQ(ibv_close_xrcd(s->xrcd), 0);
	CHECK_EQ(ibv_destroy_cq(s->scq), 0);
	CHECK_EQ(ibv_destroy_cq(s->rcq), 0);
	CHECK_EQ(ibv_dereg_mr(s->mr), 0);
	CHECK_EQ(ibv_dealloc_pd(s->pd), 0);
	free(s->buf);
}

static struct address address_of(const struct side *s)
{
	struct address a = {s->ini->qp_num, s->tgt->qp_num, {s->srqn[0], s->srqn[1]}, s->mr->rkey,
		(uintptr_t)s->buf, {{0}}};

	CHECK_EQ(ibv_query_gid(s->ctx, 1, VP_GID_INDEX, &a.gid), 0);
	return a;
}

static void connect_to(struct side *s, const struct address *to)
{
	xrc_connect(s->ini, to->tgt, &to->gid);
	xrc_connect(s->tgt, to->ini, &to->gid);
}

static int post_recv(struct side *s, int srq, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + off, len, s->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(s->srq[srq], &wr, &bad);
}

static int post(struct side *s, const struct address *to, uint32_t srqn, enum ibv_wr_opcode op,
	uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->buf + off, len, s->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32((uint32_t)id),
		.qp_type.xrc.remote_srqn = srqn};
	struct ibv_send_wr *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to->addr + 32768;
		wr.wr.atomic.rkey = to->rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = to->addr + 32768;
		wr.wr.rdma.rkey = to->rkey;
	}
	return ibv_post_send(s->ini, &wr, &bad);
}

static void domains(struct ibv_context *ctx)
{
	char path[] = "/tmp/weft-xrcd-XXXXXX";
	int fd = mkstemp(path);
	struct ibv_xrcd *x, *y;

	check_case("domains");
	CHECK(!xrc_domain(ctx, fd, 0) && errno == EAGAIN);
	x = xrc_domain(ctx, fd, O_CREAT | O_EXCL);
	CHECK(x);
	CHECK(!xrc_domain(ctx, fd, O_CREAT | O_EXCL) && errno == EINVAL);
	y = xrc_domain(ctx, fd, 0);
	CHECK(y);
	CHECK_EQ(ibv_close_xrcd(x), 0);
	CHECK_EQ(ibv_close_xrcd(y), 0);
	CHECK(!xrc_domain(ctx, fd, 0) && errno == EAGAIN);
	CHECK(!xrc_domain(ctx, -1, 0) && errno == EINVAL);
	CHECK(!xrc_domain(ctx, 9999, O_CREAT) && errno == EBADF);
	x = xrc_domain(ctx, -1, O_CREAT);
	if (CHECK(x))
		CHECK_EQ(ibv_close_xrcd(x), 0);
	close(fd);
	unlink(path);
}

/* One side of the traffic; both run the same. */
static void requests(struct side *s, const struct address *to)
{
	struct ibv_wc wc;

	check_case("RDMA");
	pattern_fill(s->buf, 4096, 3);
	CHECK_EQ(post(s, to, to->srqn[0], IBV_WR_RDMA_WRITE, 1, 0, 4096), 0);
	vp_want(s->scq, &wc, IBV_WC_SUCCESS, 1);
	CHECK_EQ(post(s, to, to->srqn[1], IBV_WR_RDMA_READ, 2, 8192, 4096), 0);
	vp_want(s->scq, &wc, IBV_WC_SUCCESS, 2);
	CHECK(pattern_filled(s->buf + 8192, 4096, 3));
	CHECK_EQ(post(s, to, to->srqn[0], IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 16384, 8), 0);
	vp_want(s->scq, &wc, IBV_WC_SUCCESS, 3);
	CHECK(!memcmp(s->buf + 16384, s->buf, 8));
}

static void sends(struct side *from, struct side *at, const struct address *to)
{
	struct ibv_wc wc;

	check_case("sends to two SRQs");
	CHECK_EQ(post_recv(at, 1, 11, 0, RECV), 0);
	CHECK_EQ(post_recv(at, 0, 10, RECV, RECV), 0);
	pattern_fill(from->buf + 40000, 500, 9);
	CHECK_EQ(post(from, to, to->srqn[0], IBV_WR_SEND_WITH_IMM, 20, 40000, 500), 0);
	CHECK_EQ(post(from, to, to->srqn[1], IBV_WR_SEND_WITH_IMM, 21, 40000, 20), 0);
	vp_want(at->rcq, &wc, IBV_WC_SUCCESS, 10);
	CHECK_EQ(wc.qp_num, at->tgt->qp_num);
	CHECK_EQ(wc.src_qp, from->ini->qp_num);
	CHECK_EQ(be32toh(wc.imm_data), 20);
	CHECK(pattern_filled(at->buf + RECV, 500, 9));
	vp_want(at->rcq, &wc, IBV_WC_SUCCESS, 11);
	CHECK(pattern_filled(at->buf, 20, 9));
	vp_want(from->scq, &wc, IBV_WC_SUCCESS, 20);
	vp_want(from->scq, &wc, IBV_WC_SUCCESS, 21);
	check_case("waiting for a receive");
	CHECK_EQ(post(from, to, to->srqn[1], IBV_WR_SEND_WITH_IMM, 22, 40000, 64), 0);
	vp_quiet(from->scq, 10);
	CHECK_EQ(post_recv(at, 1, 12, 0, RECV), 0);
	vp_want(at->rcq, &wc, IBV_WC_SUCCESS, 12);
	vp_want(from->scq, &wc, IBV_WC_SUCCESS, 22);
	check_case("post_recv on these QPs");
	{
		struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

		CHECK_EQ(ibv_post_recv(at->tgt, &wr, &bad), EINVAL);
		CHECK_EQ(ibv_post_recv(from->ini, &wr, &bad), EINVAL);
	}
}

static void opened_twice(struct side *s)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = s->tgt->qp_num,
		.xrcd = s->xrcd,
		.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp *again = ibv_open_qp(s->ctx, &attr);

	check_case("open_qp");
	if (CHECK(again)) {
		CHECK_EQ(again->qp_num, s->tgt->qp_num);
		CHECK_EQ(again->state, IBV_QPS_RTS);
		CHECK_EQ(ibv_destroy_qp(again), 0);
	}
	attr.qp_num = s->ini->qp_num;
	CHECK(!ibv_open_qp(s->ctx, &attr) && errno == ENOENT);
	attr.qp_type = IBV_QPT_RC;
	CHECK(!ibv_open_qp(s->ctx, &attr) && errno == EINVAL);
}

/* A queue of another domain. */
static void strange_srq(struct side *s, const struct address *to)
{
	struct ibv_xrcd *other = xrc_domain(s->ctx, -1, O_CREAT);
	struct ibv_srq *srq = xrc_srq(s->pd, other, s->rcq);
	struct ibv_wc wc;
	uint32_t srqn;

	check_case("an SRQ of another domain");
	CHECK_EQ(ibv_get_srq_num(srq, &srqn), 0);
	CHECK_EQ(post(s, to, srqn, IBV_WR_SEND, 30, 0, 8), 0);
	vp_want(s->scq, &wc, IBV_WC_REM_INV_REQ_ERR, 30);
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_xrcd(other), 0);
}

static void one_process(struct ibv_context *ctx)
{
	struct side a, b;
	struct address to_a, to_b;
	char path[] = "/tmp/weft-xrcd-XXXXXX";
	int fd = mkstemp(path);

	make(&a, ctx, fd);
	make(&b, ctx, fd);
	to_a = address_of(&a);
	to_b = address_of(&b);
	connect_to(&a, &to_b);
	connect_to(&b, &to_a);
	requests(&a, &to_b);
	sends(&a, &b, &to_b);
	opened_twice(&b);
	strange_srq(&a, &to_b);
	unmake(&a);
	unmake(&b);
	close(fd);
	unlink(path);
}

static void partner(int fd, void *arg)
{
	struct ibv_context *ctx = vp_open();
	struct address mine, to;
	struct side s;
	struct ibv_wc wc;

	(void)arg;
	make(&s, ctx, -1);
	mine = address_of(&s);
	if (write(fd, &mine, sizeof mine) != sizeof mine || read(fd, &to, sizeof to) != sizeof to)
		die("exchange");
	connect_to(&s, &to);
	vp_sync(fd);
	CHECK_EQ(post_recv(&s, 0, 1, 0, RECV), 0);
	vp_want(s.rcq, &wc, IBV_WC_SUCCESS, 1);
	CHECK(pattern_filled(s.buf, 5000, 4));
	vp_sync(fd);
	requests(&s, &to);
	vp_sync(fd);
	vp_hear(fd); /* the other one has posted */
	CHECK_EQ(post_recv(&s, 1, 2, 0, RECV), 0);
	vp_want(s.rcq, &wc, IBV_WC_SUCCESS, 2);
	vp_sync(fd);
	unmake(&s);
	ibv_close_device(ctx);
}

static void two_processes(void)
{
	struct vp_child c = vp_fork(partner, NULL);
	struct ibv_context *ctx = vp_open();
	struct address mine, to;
	struct side s;
	struct ibv_wc wc;

	make(&s, ctx, -1);
	mine = address_of(&s);
	if (write(c.fd, &mine, sizeof mine) != sizeof mine ||
		read(c.fd, &to, sizeof to) != sizeof to)
		die("exchange");
	connect_to(&s, &to);
	vp_sync(c.fd);
	check_case("a send between processes");
	pattern_fill(s.buf, 5000, 4);
	CHECK_EQ(post(&s, &to, to.srqn[0], IBV_WR_SEND, 1, 0, 5000), 0);
	vp_want(s.scq, &wc, IBV_WC_SUCCESS, 1);
	vp_sync(c.fd);
	vp_sync(c.fd);
	check_case("a send that waits, between processes");
	CHECK_EQ(post(&s, &to, to.srqn[1], IBV_WR_SEND, 2, 0, 16), 0);
	vp_tell(c.fd, 1);
	vp_want(s.scq, &wc, IBV_WC_SUCCESS, 2);
	vp_sync(c.fd);
	unmake(&s);
	vp_join(&c);
	ibv_close_device(ctx);
}

static void holder(int fd, void *arg)
{
	struct ibv_context *ctx = vp_open();
	struct address mine;
	struct side s;

	make(&s, ctx, *(int *)arg);
	mine = address_of(&s);
	CHECK_EQ(post_recv(&s, 0, 1, 0, RECV), 0);
	if (write(fd, &mine, sizeof mine) != sizeof mine)
		die("exchange");
	vp_sync(fd);
	unmake(&s);
	ibv_close_device(ctx);
}

/* Can only its process reach the memory, by a thread of its own?  (tests/claims/claim.c) */
static bool by_agent(void)
{
	const char *mover = getenv("WEFT_MOVER"), *share = getenv("WEFT_SHARE");
	const char *clients = getenv("WEFT_PEER_CLIENTS");

	if (clients && strstr(clients, "claim_owned"))
		return true;
	return mover && share && strcmp(mover, "agent") == 0 && strcmp(share, "never") == 0;
}

/* Both ends are here, the SRQ is not: no thread of ours may sleep for its agent. */
static void third_process(void)
{
	char path[] = "/tmp/weft-xrcd-XXXXXX";
	int fd = mkstemp(path);
	struct vp_child c = vp_fork(holder, &fd);
	struct ibv_context *ctx = vp_open();
	struct address mine, srqs;
	struct side s;
	struct ibv_wc wc;

	check_case("an SRQ of a third process");
	make(&s, ctx, fd);
	mine = address_of(&s);
	if (read(c.fd, &srqs, sizeof srqs) != sizeof srqs)
		die("exchange");
	connect_to(&s, &mine);
	CHECK_EQ(post(&s, &mine, srqs.srqn[0], IBV_WR_SEND, 1, 0, 5000), 0);
	vp_want(s.scq, &wc, by_agent() ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS, 1);
	vp_sync(c.fd);
	unmake(&s);
	vp_join(&c);
	ibv_close_device(ctx);
	close(fd);
	unlink(path);
}

int main(void)
{
	struct ibv_context *ctx;

	two_processes();
	third_process();
	ctx = vp_open(); /* keeps the process attached */
	domains(ctx);
	one_process(ctx);
	ibv_close_device(ctx);
	return check_result();
}
