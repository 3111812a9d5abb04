// SPDX-License-Identifier: BSD-3-Clause
/*
 * Shared receive queues: two QPs with a CQ each receive from one, receives are free again in any
 * order, requesters that found none go on when one is posted, the limit event comes once, an
 * error of a QP leaves the SRQ alone and tells its owner, and so does the death of a sender.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { DEPTH = 4, LEN = 8192 };

static struct vp_end a[2], b[2];
static struct ibv_pd *pd;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static uint8_t memory[16 * LEN];

static int post(uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory + off, .length = len, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = len ? 1 : 0}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static struct ibv_srq *make_srq(struct ibv_context *ctx, uint32_t depth)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = depth, .max_sge = 2}};

	pd = ibv_alloc_pd(ctx);
	mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
	srq = mr ? ibv_create_srq(pd, &init) : NULL;
	if (!srq)
		die("ibv_create_srq");
	CHECK(init.attr.max_wr >= depth && init.attr.max_sge >= 2);
	return srq;
}

static void free_srq(void)
{
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
}

static void set_up(enum ibv_qp_type type)
{
	struct ibv_context *ctx = vp_open();

	make_srq(ctx, DEPTH);
	for (int i = 0; i < 2; i++) {
		struct vp_opts o = vp_defaults();
		struct vp_addr to_a, to_b;

		o.type = type;
		vp_make(&a[i], ctx, &o);
		o.srq = srq;
		vp_make(&b[i], ctx, &o);
		to_a = vp_addr(&a[i]);
		to_b = vp_addr(&b[i]);
		if (vp_init(&a[i]) || vp_init(&b[i]) || vp_rtr(&a[i], &to_b) ||
			vp_rtr(&b[i], &to_a) || vp_rts(&a[i]) || vp_rts(&b[i]))
			die("connect");
	}
}

static void tear_down(void)
{
	struct ibv_context *ctx = a[0].ctx;

	CHECK_EQ(ibv_destroy_srq(srq), EBUSY);
	for (int i = 0; i < 2; i++) {
		vp_free(&a[i]);
		vp_free(&b[i]);
	}
	free_srq();
	CHECK_EQ(ibv_close_device(ctx), 0);
}

static void send_from(int i, uint64_t id, uint32_t len)
{
	pattern_fill(a[i].buf, len, (uint32_t)id);
	CHECK_EQ(vp_post_send(&a[i], id, IBV_WR_SEND_WITH_IMM, IBV_SEND_SIGNALED, 0, len, NULL, 0),
		0);
}

static void sent(int i, uint64_t id)
{
	struct ibv_wc wc;

	vp_want(a[i].scq, &wc, IBV_WC_SUCCESS, id);
}

/* The next completion of receiver i is of receive id and carries message msg. */
static void got(int i, uint64_t id, uint64_t msg, uint32_t len)
{
	struct ibv_wc wc;

	if (!vp_want(b[i].rcq, &wc, IBV_WC_SUCCESS, id))
		return;
	CHECK_EQ(wc.qp_num, b[i].qp->qp_num);
	CHECK_EQ(wc.src_qp, a[i].qp->qp_num);
	CHECK_EQ(wc.byte_len, len);
	CHECK_EQ(be32toh(wc.imm_data), msg);
	CHECK(pattern_filled(memory + id * LEN, len, (uint32_t)msg));
}

static void sharing(enum ibv_qp_type type)
{
	static const uint32_t length[] = {8, 1000, 0, LEN};
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;

	check_case("type %d: two QPs share", type);
	set_up(type);
	CHECK_EQ(ibv_post_recv(b[0].qp, &wr, &bad), EINVAL);
	CHECK(bad == &wr);
	for (uint64_t id = 0; id < DEPTH; id++)
		CHECK_EQ(post(id, id * LEN, LEN), 0);
	CHECK_EQ(post(9, 0, LEN), ENOMEM);
	/* (Between queue pairs there is no order but that of what is done.) */
	for (int i = 0; i < 4; i++) {
		send_from(i & 1, 100 + (uint64_t)i, length[i]);
		sent(i & 1, 100 + (uint64_t)i);
	}
	check_case("type %d: freed in another order", type);
	got(1, 1, 101, 1000);
	CHECK_EQ(post(9, 0, LEN), 0);
	CHECK_EQ(post(10, 0, LEN), ENOMEM);
	got(1, 3, 103, LEN);
	got(0, 0, 100, 8);
	got(0, 2, 102, 0);
	send_from(0, 104, 16);
	sent(0, 104);
	{
		struct ibv_wc wc;

		vp_want(b[0].rcq, &wc, IBV_WC_SUCCESS, 9);
	}
	check_case("type %d: many rounds", type);
	for (uint64_t n = 0; n < 5000; n++) {
		int i = n % 3 == 0;

		CHECK_EQ(post(n % 8, n % 8 * LEN, LEN), 0);
		send_from(i, n, n % 200);
		got(i, n % 8, n, n % 200);
		sent(i, n);
	}
	tear_down();
}

enum { EACH = 3000 };

static void *send_many(void *arg)
{
	int i = (int)(intptr_t)arg;
	struct ibv_wc wc;

	for (uint64_t n = 0; n < EACH; n++) {
		CHECK_EQ(
			vp_post_send(&a[i], n, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, n % 100, NULL, 0),
			0);
		vp_want(a[i].scq, &wc, IBV_WC_SUCCESS, n);
	}
	return NULL;
}

static void *take_many(void *arg)
{
	int i = (int)(intptr_t)arg;
	struct ibv_wc wc;

	for (uint64_t n = 0; n < EACH; n++) {
		if (!CHECK(vp_poll(b[i].rcq, &wc, VP_DEADLINE_MS)))
			break;
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.byte_len, n % 100);
		CHECK_EQ(post(wc.wr_id, wc.wr_id * LEN, LEN), 0);
	}
	return NULL;
}

/* A thread sends and a thread polls for each of two connections. */
static void threaded(void)
{
	pthread_t t[4];

	check_case("threads");
	set_up(IBV_QPT_RC);
	for (uint64_t id = 0; id < DEPTH; id++)
		CHECK_EQ(post(id, id * LEN, LEN), 0);
	for (intptr_t i = 0; i < 4; i++)
		if (pthread_create(&t[i], NULL, i < 2 ? send_many : take_many, (void *)(i % 2)))
			die("pthread_create");
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	tear_down();
}

static void parking(void)
{
	check_case("requesters wait for receives");
	set_up(IBV_QPT_RC);
	send_from(0, 1, 100);
	send_from(1, 2, 100);
	vp_quiet(a[0].scq, 20);
	vp_quiet(a[1].scq, 20);
	CHECK_EQ(post(0, 0, LEN), 0);
	CHECK_EQ(post(1, LEN, LEN), 0);
	sent(0, 1);
	sent(1, 2);
	tear_down();
}

/* The event comes, and the limit is gone with it. */
static void limit_reached(void)
{
	struct ibv_async_event ev;
	struct ibv_srq_attr now;

	if (CHECK(vp_async(a[0].ctx, &ev, VP_DEADLINE_MS))) {
		CHECK_EQ(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
		CHECK(ev.element.srq == srq);
		ibv_ack_async_event(&ev);
	}
	CHECK_EQ(ibv_query_srq(srq, &now), 0);
	CHECK_EQ(now.srq_limit, 0);
}

static void limit(void)
{
	struct ibv_srq_attr attr = {.srq_limit = 2}, now;
	struct ibv_async_event ev;

	check_case("the limit event");
	set_up(IBV_QPT_RC);
	for (uint64_t id = 0; id < DEPTH; id++)
		CHECK_EQ(post(id, id * LEN, LEN), 0);
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	CHECK_EQ(ibv_query_srq(srq, &now), 0);
	CHECK_EQ(now.srq_limit, 2);
	CHECK(now.max_wr >= DEPTH && now.max_sge >= 2);
	send_from(0, 0, 8);
	send_from(0, 1, 8);
	CHECK(!vp_async(a[0].ctx, &ev, 20));
	send_from(0, 2, 8);
	limit_reached();
	send_from(0, 3, 8);
	CHECK(!vp_async(a[0].ctx, &ev, 20));
	check_case("a limit above what is there");
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	if (CHECK(vp_async(a[0].ctx, &ev, VP_DEADLINE_MS)))
		ibv_ack_async_event(&ev);
	attr.srq_limit = DEPTH + 1;
	CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	CHECK_EQ(ibv_modify_srq(srq, &attr, 1 << 7), EINVAL);
	tear_down();
}

/* The event comes when there are fewer than the limit: not for as many, by any way to get there. */
static void limit_of_what_is_there(void)
{
	struct ibv_srq_attr attr, now;
	struct ibv_async_event ev;

	set_up(IBV_QPT_RC);
	for (uint64_t id = 0; id < DEPTH; id++)
		CHECK_EQ(post(id, id * LEN, LEN), 0);
	for (uint32_t left = DEPTH; left; left--) {
		check_case("a limit of %u, of which all are there", left);
		attr.srq_limit = left;
		CHECK_EQ(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
		if (!CHECK(!vp_async(a[0].ctx, &ev, 20)))
			ibv_ack_async_event(&ev);
		CHECK_EQ(ibv_query_srq(srq, &now), 0);
		CHECK_EQ(now.srq_limit, left);
		send_from(0, left, 8);
		limit_reached();
	}
	tear_down();
}

static void error_of_one(void)
{
	struct ibv_async_event ev;
	struct ibv_wc wc;

	check_case("a QP in ERR leaves the SRQ alone");
	set_up(IBV_QPT_RC);
	CHECK_EQ(post(0, 0, LEN), 0);
	CHECK_EQ(post(1, LEN, LEN), 0);
	CHECK_EQ(vp_state(&b[0], IBV_QPS_ERR), 0);
	if (CHECK(vp_async(a[0].ctx, &ev, VP_DEADLINE_MS))) {
		CHECK_EQ(ev.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
		CHECK(ev.element.qp == b[0].qp);
		ibv_ack_async_event(&ev);
	}
	vp_quiet(b[0].rcq, 10);
	CHECK_EQ(vp_state(&b[0], IBV_QPS_ERR), 0);
	CHECK(!vp_async(a[0].ctx, &ev, 10));
	send_from(1, 7, 100);
	sent(1, 7);
	got(1, 0, 7, 100);
	check_case("a receive that is too small");
	CHECK_EQ(post(2, 0, 8), 0);
	send_from(1, 8, 100);
	sent(1, 8); /* into receive 1 */
	got(1, 1, 8, 100);
	send_from(1, 9, 100);
	vp_want(b[1].rcq, &wc, IBV_WC_LOC_LEN_ERR, 2);
	vp_want(a[1].scq, &wc, IBV_WC_REM_INV_REQ_ERR, 9);
	check_case("completions of a QP that goes, go, and their receives are free");
	tear_down();
	set_up(IBV_QPT_RC);
	for (uint64_t id = 0; id < DEPTH; id++)
		CHECK_EQ(post(id, id * LEN, LEN), 0);
	send_from(0, 1, 8);
	send_from(0, 2, 8);
	sent(0, 1);
	sent(0, 2);
	CHECK_EQ(post(5, 0, LEN), ENOMEM);
	CHECK_EQ(ibv_destroy_qp(b[0].qp), 0);
	b[0].qp = NULL;
	vp_quiet(b[0].rcq, 5);
	CHECK_EQ(post(5, 0, LEN), 0);
	CHECK_EQ(post(6, 0, LEN), 0);
	CHECK_EQ(post(7, 0, LEN), ENOMEM);
	tear_down();
}

static void creation(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_device_attr dev;
	struct ibv_srq *s;

	check_case("creation");
	pd = ibv_alloc_pd(ctx);
	CHECK_EQ(ibv_query_device(ctx, &dev), 0);
	CHECK(dev.max_srq > 0 && dev.max_srq_wr > 0 && dev.max_srq_sge > 0);
	init.attr.max_wr = dev.max_srq_wr + 1;
	CHECK(!ibv_create_srq(pd, &init) && errno == EINVAL);
	init.attr.max_wr = 0;
	CHECK(!ibv_create_srq(pd, &init) && errno == EINVAL);
	init.attr.max_wr = 1;
	init.attr.max_sge = dev.max_srq_sge + 1;
	CHECK(!ibv_create_srq(pd, &init) && errno == EINVAL);
	init.attr = (struct ibv_srq_attr){.max_wr = dev.max_srq_wr, .max_sge = dev.max_srq_sge};
	s = ibv_create_srq(pd, &init);
	CHECK(s);
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	CHECK_EQ(ibv_destroy_srq(s), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	ibv_close_device(ctx);
}

/* Sends until it is killed. */
static void sender(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;
	struct ibv_wc wc;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	vp_sync(fd);
	for (uint64_t n = 0;; n++) {
		vp_post_send(&e, n, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, n % 6000, NULL, 0);
		while (!ibv_poll_cq(e.scq, 1, &wc))
			;
	}
}

/* However often a sender dies, no receive is lost. */
static void deaths(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct ibv_wc wc;

	check_case("senders are killed");
	make_srq(ctx, DEPTH);
	o.srq = srq;
	for (uint64_t id = 0; id < DEPTH; id++)
		CHECK_EQ(post(id, id * LEN, LEN), 0);
	for (int round = 0; round < 20; round++) {
		struct vp_child c = vp_fork(sender, NULL);
		struct vp_end e;
		double until;

		vp_make(&e, ctx, &o);
		vp_meet(&e, c.fd);
		vp_sync(c.fd);
		until = now_ms() + 5 + round;
		while (now_ms() < until)
			if (ibv_poll_cq(e.rcq, 1, &wc) > 0)
				CHECK_EQ(post(wc.wr_id, wc.wr_id * LEN, LEN), 0);
		vp_kill_join(&c);
		while (vp_poll(e.rcq, &wc, 30)) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(post(wc.wr_id, wc.wr_id * LEN, LEN), 0);
		}
		vp_free(&e);
	}
	check_case("all receives are there");
	o.srq = NULL;
	vp_make(&a[0], ctx, &o);
	o.srq = srq;
	vp_make(&b[0], ctx, &o);
	{
		struct vp_addr to_a = vp_addr(&a[0]), to_b = vp_addr(&b[0]);

		if (vp_init(&a[0]) || vp_init(&b[0]) || vp_rtr(&a[0], &to_b) ||
			vp_rtr(&b[0], &to_a) || vp_rts(&a[0]) || vp_rts(&b[0]))
			die("connect");
	}
	for (uint64_t n = 0; n < DEPTH; n++) {
		send_from(0, n, 8);
		sent(0, n);
		CHECK(vp_poll(b[0].rcq, &wc, VP_DEADLINE_MS));
	}
	vp_free(&a[0]);
	vp_free(&b[0]);
	free_srq();
	ibv_close_device(ctx);
}

int main(void)
{
	struct ibv_context *ctx;

	deaths();
	ctx = vp_open(); /* keeps the process attached */
	creation();
	sharing(IBV_QPT_RC);
	sharing(IBV_QPT_UC);
	threaded();
	parking();
	limit();
	limit_of_what_is_there();
	error_of_one();
	ibv_close_device(ctx);
	return check_result();
}
