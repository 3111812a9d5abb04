// SPDX-License-Identifier: BSD-3-Clause
/*
 * The fd of async events can be read if and only if there is one: after objects with events have
 * gone, and after a peer has died that had raised some.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { PAIRS = 4, LEN = 64 };

static struct vp_end end[PAIRS + 1];

static bool readable(struct ibv_context *ctx)
{
	struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* As many as there are, and one each time that the fd can be read. */
static void take_all(struct ibv_context *ctx, unsigned want)
{
	struct ibv_async_event ev;
	unsigned n = 0;

	while (readable(ctx)) {
		if (!CHECK_EQ(ibv_get_async_event(ctx, &ev), 0))
			return;
		ibv_ack_async_event(&ev);
		n++;
	}
	CHECK_EQ(n, want);
	errno = 0;
	CHECK_EQ(ibv_get_async_event(ctx, &ev), -1);
	CHECK_EQ(errno, EAGAIN);
}

static void await_event(struct ibv_context *ctx)
{
	double until = now_ms() + VP_DEADLINE_MS;

	while (!readable(ctx) && now_ms() < until)
		usleep(200);
	CHECK(readable(ctx));
}

/* ---- a CQ that is lost, and goes ---- */

static void lost_cq(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct vp_end a, b;
	struct vp_addr to_a, to_b;

	check_case("a CQ goes with its event");
	CHECK_EQ(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	vp_make(&a, ctx, &o);
	o.cqe = 1;
	vp_make(&b, ctx, &o);
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	vp_connect(&a, &to_b);
	vp_connect(&b, &to_a);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(vp_post_recv(&b, 1, 0, LEN), 0);
		CHECK_EQ(vp_post_send(&a, 2, IBV_WR_SEND, 0, 0, LEN, NULL, 0), 0);
	}
	await_event(ctx);
	vp_free(&b);
	take_all(ctx, 0);
	vp_free(&a);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* ---- a peer that has raised some, and dies ---- */

/* Writes where it may not: each of our queue pairs has an event. */
static void raiser(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct vp_end last;

	(void)arg;
	for (int i = 0; i < PAIRS; i++) {
		struct vp_addr to;
		struct vp_end e;
		struct ibv_wc wc;

		vp_make(&e, ctx, &o);
		to = vp_meet(&e, fd);
		vp_sync(fd); /* both are in RTS: our request is the end of that */
		to.rkey ^= 1;
		CHECK_EQ(vp_post_send(&e, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, LEN, &to, 0),
			0);
		vp_want(e.scq, &wc, IBV_WC_REM_ACCESS_ERR, 1);
	}
	vp_make(&last, ctx, &o);
	vp_meet(&last, fd);
	vp_sync(fd);
	pause();
}

/* On return weftd has seen to all that the dead one left. */
static void await_death(struct vp_end *e)
{
	struct ibv_comp_channel *channel;
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	vp_want(e->scq, &wc, IBV_WC_RETRY_EXC_ERR, 1);
	channel = ibv_create_comp_channel(e->ctx); /* it answers when it is through with that */
	CHECK(channel && !ibv_destroy_comp_channel(channel));
}

static void dead_peer(unsigned taken)
{
	struct vp_child child = vp_fork(raiser, NULL);
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct ibv_async_event ev;

	check_case("a peer dies, %u of %d events taken", taken, PAIRS);
	CHECK_EQ(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	o.timeout = 8; /* 1 ms, eight times */
	for (int i = 0; i <= PAIRS; i++) {
		vp_make(&end[i], ctx, &o);
		vp_meet(&end[i], child.fd);
		if (i < PAIRS)
			vp_sync(child.fd);
	}
	vp_sync(child.fd);
	for (unsigned i = 0; i < taken; i++) {
		CHECK_EQ(ibv_get_async_event(ctx, &ev), 0);
		ibv_ack_async_event(&ev);
	}
	vp_kill_join(&child);
	await_death(&end[PAIRS]);
	take_all(ctx, PAIRS - taken);
	for (int i = 0; i <= PAIRS; i++)
		vp_free(&end[i]);
	take_all(ctx, 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	lost_cq();
	for (unsigned taken = 0; taken < PAIRS; taken++)
		dead_peer(taken);
	return check_result();
}
