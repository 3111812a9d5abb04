// SPDX-License-Identifier: BSD-3-Clause
/* Extended CQs, their time stamps, and ibv_resize_cq. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

static uint64_t now_ns(clockid_t which)
{
	struct timespec ts;

	clock_gettime(which, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* The two clocks are read one after the other: allow for what comes between, and for slewing. */
static void check_wallclock(struct ibv_cq_ex *cq, uint64_t before, uint64_t after)
{
	uint64_t since = now_ns(CLOCK_MONOTONIC), at = ibv_wc_read_completion_wallclock_ns(cq);
	uint64_t error = now_ns(CLOCK_MONOTONIC) - since + 1000000;

	CHECK(at + error >= before);
	CHECK(at <= after + error);
}

/* Replaces the CQs of a fresh end by one extended CQ, and its QP. */
static void with_cq_ex(struct vp_end *e, struct ibv_cq_ex *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4, .max_recv_sge = 4},
	};

	ibv_destroy_qp(e->qp);
	e->qp = ibv_create_qp(e->pd, &init);
	CHECK(e->qp);
}

static struct ibv_cq_ex *make_ex(struct ibv_context *ctx, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 100,
		.wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
		.cq_context = &init};

	return ibv_create_cq_ex(ctx, &init);
}

/* ---- polling ---- */

static void one_batch(struct vp_end *a, struct vp_end *b, struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {0};
	const unsigned n = 5;

	CHECK_EQ(ibv_start_poll(cq, &attr), ENOENT);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(vp_post_recv(b, 100 + i, 0, 64), 0);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(vp_post_send(
				 a, i, IBV_WR_SEND_WITH_IMM, IBV_SEND_SIGNALED, 0, 10 + i, NULL, 0),
			0);
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ(i ? ibv_next_poll(cq) : ibv_start_poll(cq, &attr), 0);
		CHECK_EQ(cq->wr_id, 100 + i);
		CHECK_EQ(cq->status, IBV_WC_SUCCESS);
		CHECK_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
		CHECK_EQ(ibv_wc_read_byte_len(cq), 10 + i);
		CHECK_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
		CHECK_EQ(ibv_wc_read_qp_num(cq), b->qp->qp_num);
		CHECK_EQ(ibv_wc_read_src_qp(cq), a->qp->qp_num);
		CHECK_EQ(ibv_wc_read_vendor_err(cq), 0);
	}
	CHECK_EQ(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	attr.comp_mask = 1;
	CHECK_EQ(ibv_start_poll(cq, &attr), EINVAL);
}

static void polling(uint32_t flags)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct ibv_cq_ex *cq;
	struct vp_addr at_a, at_b;

	check_case("a batch, with flags %u", flags);
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	cq = make_ex(b.ctx, IBV_WC_STANDARD_FLAGS, flags);
	CHECK(cq);
	with_cq_ex(&b, cq);
	at_a = vp_addr(&a);
	at_b = vp_addr(&b);
	vp_connect(&a, &at_b);
	vp_connect(&b, &at_a);
	one_batch(&a, &b, cq);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), EBUSY);
	vp_pair_free(&a, &b);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void refusals(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_cq_init_attr_ex init = {.cqe = 10};

	check_case("what a CQ cannot do is refused");
	CHECK(!make_ex(ctx, IBV_WC_EX_WITH_CVLAN, 0) && errno == EOPNOTSUPP);
	CHECK(!make_ex(ctx, IBV_WC_EX_WITH_FLOW_TAG, 0) && errno == EOPNOTSUPP);
	CHECK(!make_ex(ctx, 1ull << 40, 0) && errno == EOPNOTSUPP);
	CHECK(!make_ex(ctx, 0, 1 << 2) && errno == EOPNOTSUPP);
	init.comp_mask = 1 << 20;
	CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EINVAL);
	init.comp_mask = 0;
	init.cqe = 0;
	CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EINVAL);
	init.cqe = UINT32_MAX;
	CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EINVAL);
	ibv_close_device(ctx);
}

/* Completions that do not fit are lost: no event, and the QP goes on. */
static void ignored_overrun(void)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 10,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
	struct vp_opts o = vp_defaults();
	struct ibv_async_event ev;
	struct vp_addr at_a, at_b;
	struct vp_end a, b;
	struct ibv_cq_ex *cq;
	struct ibv_wc wc;

	check_case("an overrun that is to be ignored");
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	cq = ibv_create_cq_ex(b.ctx, &init);
	CHECK(cq);
	with_cq_ex(&b, cq);
	at_a = vp_addr(&a);
	at_b = vp_addr(&b);
	vp_connect(&a, &at_b);
	vp_connect(&b, &at_a);
	for (int i = 0; i < 30; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
		CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, i));
	}
	CHECK(!vp_async(b.ctx, &ev, 10));
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	for (int i = 0; i < 10; i++)
		CHECK(vp_want(ibv_cq_ex_to_cq(cq), &wc, IBV_WC_SUCCESS, i));
	vp_quiet(ibv_cq_ex_to_cq(cq), 5);
	CHECK_EQ(vp_post_recv(&b, 30, 0, 64), 0);
	CHECK_EQ(vp_post_send(&a, 30, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	CHECK(vp_poll(ibv_cq_ex_to_cq(cq), &wc, VP_DEADLINE_MS));
	vp_pair_free(&a, &b);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* ---- time stamps ---- */

static void stamps(void)
{
	const uint64_t both =
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	const struct timespec nap = {.tv_nsec = 30 * 1000 * 1000};
	struct ibv_values_ex clock = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_device_attr_ex dev;
	struct vp_opts o = vp_defaults();
	uint64_t before, after, before_real, after_real, last = 0;
	struct vp_end a, b;
	struct ibv_cq_ex *cq;
	struct vp_addr at_a, at_b;

	check_case("the time of a completion is when it was made, not when it is polled");
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	CHECK_EQ(ibv_query_device_ex(b.ctx, NULL, &dev), 0);
	CHECK_EQ(dev.completion_timestamp_mask, UINT64_MAX);
	CHECK_EQ(dev.hca_core_clock, 1000000);
	cq = make_ex(b.ctx, both, 0);
	CHECK(cq);
	with_cq_ex(&b, cq);
	at_a = vp_addr(&a);
	at_b = vp_addr(&b);
	vp_connect(&a, &at_b);
	vp_connect(&b, &at_a);
	before = now_ns(CLOCK_MONOTONIC);
	before_real = now_ns(CLOCK_REALTIME);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
		CHECK_EQ(vp_post_recv(&a, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&b, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	}
	after = now_ns(CLOCK_MONOTONIC);
	after_real = now_ns(CLOCK_REALTIME);
	nanosleep(&nap, NULL);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(i ? ibv_next_poll(cq) : ibv_start_poll(cq, &attr), 0);
		CHECK(ibv_wc_read_completion_ts(cq) >= before);
		CHECK(ibv_wc_read_completion_ts(cq) <= after);
		CHECK(ibv_wc_read_completion_ts(cq) >= last);
		last = ibv_wc_read_completion_ts(cq);
		check_wallclock(cq, before_real, after_real);
	}
	ibv_end_poll(cq);
	CHECK_EQ(ibv_query_rt_values_ex(b.ctx, &clock), 0);
	CHECK((uint64_t)clock.raw_clock.tv_nsec >= last);
	CHECK((uint64_t)clock.raw_clock.tv_nsec <= now_ns(CLOCK_MONOTONIC));
	vp_pair_free(&a, &b);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* ---- resize ---- */

static void resize(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct ibv_wc wc;

	check_case("a CQ is resized with completions in it, which stay and stay in order");
	o.cqe = 8;
	o.recv_wr = o.send_wr = 200;
	vp_pair(&a, &b, &o);
	for (int i = 0; i < 6; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
	}
	CHECK_EQ(ibv_resize_cq(b.rcq, 5), EINVAL);
	CHECK_EQ(b.rcq->cqe, 8);
	CHECK_EQ(ibv_resize_cq(b.rcq, 0), EINVAL);
	CHECK_EQ(ibv_resize_cq(b.rcq, 1 << 30), EINVAL);
	CHECK_EQ(ibv_resize_cq(b.rcq, 2000), 0);
	CHECK(b.rcq->cqe >= 2000);
	for (int i = 6; i < 150; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
	}
	CHECK_EQ(ibv_resize_cq(b.rcq, 150), 0);
	CHECK_EQ(ibv_resize_cq(b.rcq, 151), 0);
	for (int i = 0; i < 150; i++)
		CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i));
	CHECK_EQ(ibv_resize_cq(b.rcq, 2), 0);
	for (int i = 0; i < 500; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
		CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i));
		CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, i));
	}
	vp_quiet(b.rcq, 5);
	vp_pair_free(&a, &b);
}

/* A peer process sends all the time while the CQ changes its size. */
enum { UNDER_WAY = 20000 };

static void sender(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	vp_sync(fd);
	for (int i = 0; i < UNDER_WAY; i++) {
		CHECK_EQ(vp_post_send(&e, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
		if (!vp_want(e.scq, &wc, IBV_WC_SUCCESS, i))
			break;
	}
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void *resizer(void *arg)
{
	struct vp_end *e = arg;

	for (int i = 0; i < 300; i++)
		CHECK_EQ(ibv_resize_cq(e->rcq, i % 2 ? 300 : 3000), 0);
	return NULL;
}

static void resize_under_way(void)
{
	struct vp_child c = vp_fork(sender, NULL);
	struct vp_opts o = vp_defaults();
	pthread_t thread;
	struct ibv_wc wc;
	struct vp_end e;

	check_case("a CQ is resized while a peer process completes on it: nothing is lost");
	o.cqe = 300;
	o.recv_wr = 128;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	for (int i = 0; i < 100; i++)
		CHECK_EQ(vp_post_recv(&e, i, 0, 64), 0);
	vp_sync(c.fd);
	CHECK_EQ(pthread_create(&thread, NULL, resizer, &e), 0);
	for (int i = 0; i < UNDER_WAY; i++) {
		if (!vp_want(e.rcq, &wc, IBV_WC_SUCCESS, i))
			break;
		CHECK_EQ(vp_post_recv(&e, i + 100, 0, 64), 0);
	}
	pthread_join(thread, NULL);
	vp_sync(c.fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
	vp_join(&c);
}

int main(void)
{
	resize_under_way();
	refusals();
	ignored_overrun();
	polling(0);
	polling(IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	stamps();
	resize();
	return check_result();
}
