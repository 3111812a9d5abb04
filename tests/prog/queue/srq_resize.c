// SPDX-License-Identifier: BSD-3-Clause
/*
 * ibv_modify_srq of IBV_SRQ_MAX_WR: a shared receive queue grows and shrinks with receives posted
 * and completions waiting, also while peers deliver to it; and the time stamps of its completions.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 8192, ROOM = 512 };

static struct ibv_srq *srq;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t memory[ROOM * LEN];

static int post(uint64_t id)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory + id % ROOM * LEN, .length = LEN, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int set_max_wr(uint32_t n)
{
	struct ibv_srq_attr attr = {.max_wr = n};

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static uint32_t max_wr(void)
{
	struct ibv_srq_attr now;

	CHECK_EQ(ibv_query_srq(srq, &now), 0);
	return now.max_wr;
}

static void make_srq(struct ibv_context *ctx, uint32_t depth)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = depth, .max_sge = 2}};

	pd = ibv_alloc_pd(ctx);
	mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
	srq = mr ? ibv_create_srq(pd, &init) : NULL;
	if (!srq)
		die("ibv_create_srq");
}

static void free_srq(void)
{
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
}

static void connect_ends(struct vp_end *a, struct vp_end *b)
{
	struct vp_addr to_a = vp_addr(a), to_b = vp_addr(b);

	vp_connect(a, &to_b);
	vp_connect(b, &to_a);
}

static struct vp_opts with_srq(struct vp_opts o)
{
	o.srq = srq;
	return o;
}

static uint32_t length_of(uint64_t n)
{
	static const uint32_t lengths[] = {8, 1000, 0, LEN, 4096, 37};

	return lengths[n % 6];
}

static void send_one(struct vp_end *a, uint64_t n)
{
	struct ibv_wc wc;

	pattern_fill(a->buf, length_of(n), (uint32_t)n);
	CHECK_EQ(vp_post_send(a, n, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, length_of(n), NULL, 0), 0);
	vp_want(a->scq, &wc, IBV_WC_SUCCESS, n);
}

static void got(struct vp_end *b, uint64_t n)
{
	struct ibv_wc wc;

	if (vp_want(b->rcq, &wc, IBV_WC_SUCCESS, n)) {
		CHECK_EQ(wc.byte_len, length_of(n));
		CHECK(pattern_filled(memory + n % ROOM * LEN, length_of(n), (uint32_t)n));
	}
}

static void smaller(struct vp_end *a, struct vp_end *b)
{
	struct ibv_srq_attr both = {.max_wr = 200, .srq_limit = 201};

	check_case("a smaller one, and its limit");
	CHECK_EQ(set_max_wr(2), 0);
	CHECK_EQ(post(0), 0);
	CHECK_EQ(post(1), 0);
	CHECK_EQ(post(2), ENOMEM);
	send_one(a, 0);
	got(b, 0);
	CHECK_EQ(ibv_modify_srq(srq, &both, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	CHECK_EQ(max_wr(), 2);
	both.srq_limit = 0;
	CHECK_EQ(ibv_modify_srq(srq, &both, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), 0);
	CHECK(max_wr() >= 200);
	send_one(a, 1);
	got(b, 1);
}

static void goes_round(struct vp_end *a, struct vp_end *b)
{
	check_case("a queue whose positions went round");
	for (uint64_t n = 0; n < 3000; n++) {
		if (n % 600 == 0)
			CHECK_EQ(set_max_wr(300 + 600 * (uint32_t)(n / 600)), 0);
		CHECK_EQ(post(n), 0);
		send_one(a, n);
		got(b, n);
	}
}

static void sizes(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct ibv_device_attr dev;
	struct vp_end a, b;

	check_case("what is posted and what waits stays, in order");
	CHECK_EQ(ibv_query_device(ctx, &dev), 0);
	CHECK(dev.device_cap_flags & IBV_DEVICE_SRQ_RESIZE);
	make_srq(ctx, 4);
	o.cqe = ROOM;
	vp_make(&a, ctx, &o);
	o = with_srq(o);
	vp_make(&b, ctx, &o);
	connect_ends(&a, &b);
	for (uint64_t n = 0; n < 4; n++)
		CHECK_EQ(post(n), 0);
	CHECK_EQ(post(4), ENOMEM);
	send_one(&a, 0);
	send_one(&a, 1);
	CHECK_EQ(set_max_wr(3), EINVAL);
	CHECK_EQ(set_max_wr(0), EINVAL);
	CHECK_EQ(set_max_wr((uint32_t)dev.max_srq_wr + 1), EINVAL);
	CHECK_EQ(max_wr(), 4);
	CHECK_EQ(set_max_wr(100), 0);
	CHECK(max_wr() >= 100);
	for (uint64_t n = 4; n < 100; n++)
		CHECK_EQ(post(n), 0);
	CHECK_EQ(post(100), ENOMEM);
	for (uint64_t n = 2; n < 50; n++)
		send_one(&a, n);
	CHECK_EQ(set_max_wr(ROOM), 0);
	for (uint64_t n = 100; n < ROOM; n++)
		CHECK_EQ(post(n), 0);
	for (uint64_t n = 50; n < ROOM; n++)
		send_one(&a, n);
	for (uint64_t n = 0; n < ROOM; n++)
		got(&b, n);
	smaller(&a, &b);
	goes_round(&a, &b);
	vp_free(&a);
	vp_free(&b);
	free_srq();
	ibv_close_device(ctx);
}

/* ---- while it is used ---- */

enum { UNDER_WAY = 10000, WINDOW = 32 };

static void sender(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	(void)arg;
	o.rnr_retry = 7;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	vp_sync(fd);
	for (uint64_t n = 0; n < UNDER_WAY; n++)
		send_one(&e, n);
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void *resizer(void *arg)
{
	uint32_t size = WINDOW * 2;

	(void)arg;
	for (int i = 0; i < 60; i++) {
		const struct timespec nap = {.tv_nsec = 500 * 1000};

		CHECK_EQ(set_max_wr(i % 3 == 2 ? WINDOW * 2 : size), 0);
		if (i % 6 == 0 && size < 32768)
			size *= 2;
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* Two peer processes send all the time: one's messages are in order, of either none is lost. */
static void under_way(void)
{
	struct vp_child c[2] = {vp_fork(sender, NULL), vp_fork(sender, NULL)};
	struct ibv_context *ctx = vp_open();
	uint64_t next[2] = {0, 0}, posted = 0;
	struct vp_end e[2];
	pthread_t thread;
	struct ibv_wc wc;

	check_case("a resize while peers deliver");
	make_srq(ctx, WINDOW * 2);
	for (int i = 0; i < 2; i++) {
		struct vp_opts o = with_srq(vp_defaults());

		vp_make(&e[i], ctx, &o);
		vp_meet(&e[i], c[i].fd);
	}
	while (posted < WINDOW)
		CHECK_EQ(post(posted++), 0);
	vp_sync(c[0].fd);
	vp_sync(c[1].fd);
	CHECK_EQ(pthread_create(&thread, NULL, resizer, NULL), 0);
	for (double until = now_ms() + VP_DEADLINE_MS; next[0] + next[1] < 2 * UNDER_WAY;) {
		for (int i = 0; i < 2; i++) {
			if (ibv_poll_cq(e[i].rcq, 1, &wc) < 1)
				continue;
			until = now_ms() + VP_DEADLINE_MS;
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.byte_len, length_of(next[i]));
			CHECK(pattern_filled(memory + wc.wr_id % ROOM * LEN, length_of(next[i]),
				(uint32_t)next[i]));
			next[i]++;
			CHECK_EQ(post(wc.wr_id), 0);
		}
		if (!CHECK(now_ms() < until))
			break;
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		vp_sync(c[i].fd);
		vp_free(&e[i]);
		vp_join(&c[i]);
	}
	free_srq();
	ibv_close_device(ctx);
}

/* Datagrams: a sender that knew the queue before finds its new place. */
static void datagrams(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct vp_end a, b;
	struct vp_addr to_b;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	check_case("datagrams");
	o.type = IBV_QPT_UD;
	make_srq(ctx, 2);
	vp_make(&a, ctx, &o);
	o = with_srq(o);
	vp_make(&b, ctx, &o);
	connect_ends(&a, &b);
	to_b = vp_addr(&b);
	ah = vp_ah(&a, &to_b.gid);
	CHECK(ah);
	for (uint64_t n = 0; n < 100; n++) {
		if (n % 10 == 0)
			CHECK_EQ(set_max_wr(2 << n / 10), 0);
		CHECK_EQ(post(n), 0);
		CHECK_EQ(vp_post_ud(&a, n, ah, to_b.qpn, VP_QKEY, 0, 64), 0);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, n);
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, n);
	}
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	vp_free(&a);
	vp_free(&b);
	free_srq();
	ibv_close_device(ctx);
}

/* ---- time stamps ---- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void stamps(void)
{
	const struct timespec nap = {.tv_nsec = 30 * 1000 * 1000};
	struct ibv_cq_init_attr_ex init = {
		.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 8, .max_send_sge = 1}};
	struct ibv_poll_cq_attr attr = {0};
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	uint64_t before, after, last = 0;
	struct ibv_cq_ex *cq;
	struct vp_end a, b;

	check_case("a completion of an SRQ has the time at which it was made");
	make_srq(ctx, 8);
	vp_make(&a, ctx, &o);
	o = with_srq(o);
	vp_make(&b, ctx, &o);
	cq = ibv_create_cq_ex(ctx, &init);
	CHECK(cq);
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(cq);
	qp.srq = srq;
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	b.qp = ibv_create_qp(b.pd, &qp);
	CHECK(b.qp);
	connect_ends(&a, &b);
	for (uint64_t n = 0; n < 6; n++)
		CHECK_EQ(post(n), 0);
	before = now_ns();
	for (uint64_t n = 0; n < 3; n++)
		send_one(&a, n);
	CHECK_EQ(set_max_wr(64), 0);
	for (uint64_t n = 3; n < 6; n++)
		send_one(&a, n);
	after = now_ns();
	nanosleep(&nap, NULL);
	for (uint64_t n = 0; n < 6; n++) {
		CHECK_EQ(n ? ibv_next_poll(cq) : ibv_start_poll(cq, &attr), 0);
		CHECK_EQ(cq->wr_id, n);
		CHECK(ibv_wc_read_completion_ts(cq) >= before);
		CHECK(ibv_wc_read_completion_ts(cq) >= last);
		last = ibv_wc_read_completion_ts(cq);
		CHECK(last <= after);
	}
	ibv_end_poll(cq);
	vp_free(&a);
	vp_free(&b);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	free_srq();
	ibv_close_device(ctx);
}

int main(void)
{
	under_way();
	sizes();
	datagrams();
	stamps();
	return check_result();
}
