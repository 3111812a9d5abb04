// SPDX-License-Identifier: BSD-3-Clause
/* Completion channels: when an event comes, when none does, and what acknowledging means. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

static struct vp_end a, b;

static bool readable(struct ibv_comp_channel *ch, int ms)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* Takes one event that must be there, of that CQ. */
static void take(struct ibv_comp_channel *ch, struct ibv_cq *want)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	if (!CHECK(readable(ch, VP_DEADLINE_MS)))
		return;
	CHECK_EQ(ibv_get_cq_event(ch, &cq, &context), 0);
	CHECK(cq == want);
	CHECK(context == want->cq_context);
	ibv_ack_cq_events(cq, 1);
}

static void message(unsigned flags)
{
	CHECK_EQ(vp_post_recv(&b, 1, 0, 8), 0);
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED | flags, 0, 8, NULL, 0), 0);
}

static void drain(void)
{
	struct ibv_wc wc;

	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
}

static void basics(void)
{
	struct vp_opts o = vp_defaults();

	o.channel = true;
	vp_pair(&a, &b, &o);
	check_case("not armed: no event");
	message(0);
	drain();
	CHECK(!readable(a.channel, 0) && !readable(b.channel, 20));

	check_case("armed: one event, whatever comes after");
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK(!readable(b.channel, 0));
	message(0);
	message(0);
	take(b.channel, b.rcq);
	CHECK(!readable(b.channel, 20));
	drain();
	drain();

	check_case("armed anew: an event anew");
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	message(0);
	take(b.channel, b.rcq);
	drain();

	check_case("armed twice: one event");
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	message(0);
	take(b.channel, b.rcq);
	CHECK(!readable(b.channel, 20));
	drain();
	vp_pair_free(&a, &b);
}

static void solicited(void)
{
	struct vp_opts o = vp_defaults();

	o.channel = true;
	vp_pair(&a, &b, &o);
	check_case("solicited only");
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 1), 0);
	message(0);
	CHECK(!readable(b.channel, 20));
	message(IBV_SEND_SOLICITED);
	take(b.channel, b.rcq);
	drain();
	drain();

	check_case("solicited only cannot weaken armed for all");
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 1), 0);
	message(0);
	take(b.channel, b.rcq);
	drain();

	check_case("armed for all after solicited only");
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 1), 0);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	message(0);
	take(b.channel, b.rcq);
	drain();

	check_case("both CQs of one channel");
	CHECK_EQ(ibv_req_notify_cq(a.scq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(a.rcq, 0), 0);
	message(0);
	take(a.channel, a.scq);
	CHECK(!readable(a.channel, 0));
	drain();
	CHECK_EQ(vp_post_recv(&a, 1, 0, 8), 0);
	CHECK_EQ(vp_post_send(&b, 2, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
	take(a.channel, a.rcq);

	check_case("a failed completion is solicited");
	CHECK_EQ(ibv_req_notify_cq(a.scq, 1), 0);
	CHECK_EQ(vp_post_send(&a, 3, IBV_WR_RDMA_WRITE, 0, 0, 8, NULL, 0), 0);
	take(a.channel, a.scq);
	vp_pair_free(&a, &b);
}

static void nonblocking(void)
{
	struct vp_opts o = vp_defaults();
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET}, got;
	struct ibv_cq *cq;
	void *context;
	int ep = epoll_create1(EPOLL_CLOEXEC);

	check_case("O_NONBLOCK and epoll");
	o.channel = true;
	vp_pair(&a, &b, &o);
	CHECK_EQ(fcntl(b.channel->fd, F_SETFL, fcntl(b.channel->fd, F_GETFL) | O_NONBLOCK), 0);
	CHECK(fcntl(b.channel->fd, F_GETFD) & FD_CLOEXEC);
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), -1);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, b.channel->fd, &ev), 0);
	CHECK_EQ(epoll_wait(ep, &got, 1, 0), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
		message(0);
		CHECK_EQ(epoll_wait(ep, &got, 1, VP_DEADLINE_MS), 1);
		take(b.channel, b.rcq);
		errno = 0;
		CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), -1);
		CHECK_EQ(errno, EAGAIN);
		drain();
	}
	close(ep);
	vp_pair_free(&a, &b);
}

/* ---- acknowledging ---- */

static _Atomic int destroyed;

static void *destroy(void *arg)
{
	CHECK_EQ(ibv_destroy_cq(arg), 0);
	atomic_store(&destroyed, 1);
	return NULL;
}

static void acks(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_cq *cq = NULL;
	void *context;
	pthread_t t;

	check_case("destroy waits until events are acknowledged");
	o.channel = true;
	vp_pair(&a, &b, &o);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
		message(0);
		CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), 0);
		drain();
	}
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	b.qp = NULL;
	if (pthread_create(&t, NULL, destroy, b.rcq))
		die("pthread_create");
	usleep(30000);
	CHECK_EQ(atomic_load(&destroyed), 0);
	ibv_ack_cq_events(cq, 1);
	usleep(30000);
	CHECK_EQ(atomic_load(&destroyed), 0);
	ibv_ack_cq_events(cq, 1);
	pthread_join(t, NULL);
	CHECK_EQ(atomic_load(&destroyed), 1);
	b.rcq = b.scq;
	vp_pair_free(&a, &b);
}

/* A CQ goes while its event waits in the channel: the event goes with it. */
static void destroyed_pending(void)
{
	struct vp_opts o = vp_defaults();

	check_case("a CQ destroyed with an event not taken");
	o.channel = true;
	vp_pair(&a, &b, &o);
	CHECK_EQ(fcntl(b.channel->fd, F_SETFL, O_NONBLOCK), 0);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	message(0);
	CHECK(readable(b.channel, VP_DEADLINE_MS));
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	b.qp = NULL;
	CHECK_EQ(ibv_destroy_cq(b.rcq), 0);
	b.rcq = b.scq;
	{
		struct ibv_cq *cq;
		void *context;

		errno = 0;
		CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), -1);
		CHECK_EQ(errno, EAGAIN);
	}
	vp_pair_free(&a, &b);
}

/* ---- armed when completions wait already ---- */

static void arm(struct ibv_cq *cq, int solicited_only)
{
	CHECK_EQ(ibv_req_notify_cq(cq, solicited_only), 0);
}

/* It is armed: is there an event at once? */
static void fires(bool want)
{
	CHECK_EQ(readable(b.channel, 0), want);
	if (want)
		take(b.channel, b.rcq);
	CHECK(!readable(b.channel, 0));
}

static void solicited_waits(void)
{
	struct ibv_wc wc;

	check_case("armed for solicited ones when such a one waits");
	message(0);
	arm(b.rcq, 1);
	fires(false);
	message(IBV_SEND_SOLICITED);
	take(b.channel, b.rcq);
	arm(b.rcq, 1);
	fires(true);
	message(0);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
	arm(b.rcq, 1);
	fires(true);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
	arm(b.rcq, 1); /* only the last waits now */
	fires(false);
	arm(b.rcq, 0);
	fires(true);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
	for (int i = 0; i < 3; i++)
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
}

/* What waits moves when a QP goes, and into another ring. */
static void moved(void)
{
	struct ibv_qp *other = vp_extra_qp(&b);

	check_case("what waits has moved");
	message(IBV_SEND_SOLICITED);
	CHECK_EQ(ibv_destroy_qp(other), 0);
	arm(b.rcq, 1);
	fires(true);
	CHECK_EQ(ibv_resize_cq(b.rcq, 500), 0);
	arm(b.rcq, 1);
	fires(true);
	drain();
	arm(b.rcq, 1);
	fires(false);
	message(IBV_SEND_SOLICITED);
	take(b.channel, b.rcq);
	drain();
}

static void armed_late(void)
{
	struct vp_opts o = vp_defaults();

	check_case("armed when a completion waits");
	o.channel = true;
	vp_pair(&a, &b, &o);
	message(0);
	arm(b.rcq, 0);
	fires(true);
	arm(b.rcq, 0); /* of that one the program was told */
	fires(false);
	drain();
	arm(b.rcq, 0);
	fires(false);
	message(0);
	take(b.channel, b.rcq);
	message(0);
	arm(b.rcq, 0);
	fires(true);
	drain();
	arm(b.rcq, 0); /* polled, but one is left */
	fires(true);
	drain();
	arm(b.rcq, 0);
	message(0);
	take(b.channel, b.rcq);
	drain();
	solicited_waits();
	moved();
	vp_pair_free(&a, &b);
}

/* A CQ without a channel may be armed: nothing comes of it. */
static void no_channel(void)
{
	struct vp_opts o = vp_defaults();
	struct pollfd p = {.events = POLLIN};

	check_case("no channel");
	vp_pair(&a, &b, &o);
	p.fd = b.ctx->async_fd;
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	message(0);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	drain();
	vp_pair_free(&a, &b);
}

/*
 * A producer that was stopped in the middle of firing may write the fd once more than there are
 * events.  A program that sees by poll(2) that it can read is not left waiting.
 */
static void count_too_many(void)
{
	struct vp_opts o = vp_defaults();
	const uint64_t one = 1;
	struct ibv_cq *never_armed;

	check_case("readable without an event");
	o.channel = true;
	vp_pair(&a, &b, &o);
	never_armed = ibv_create_cq(b.ctx, 1, NULL, b.channel, 0);
	CHECK(never_armed);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(fcntl(b.channel->fd, F_SETFL, i & 1 ? O_NONBLOCK : 0), 0);
		CHECK_EQ(write(b.channel->fd, &one, sizeof one), sizeof one);
		take(b.channel, b.rcq);
		CHECK(!readable(b.channel, 0));
		CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
		message(0);
		take(b.channel, b.rcq);
		drain();
	}
	CHECK(!readable(b.channel, 0));
	CHECK_EQ(ibv_destroy_cq(never_armed), 0);
	vp_pair_free(&a, &b);
}

/* ---- many ---- */

enum { CQS = 8, PENDING = 20000 };

static void several_cqs(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end from[CQS], to[CQS];
	struct ibv_context *ctx = vp_open(); /* a channel is of one */
	struct ibv_comp_channel *ch;
	unsigned seen = 0;

	check_case("%d CQs on one channel", CQS);
	for (int i = 0; i < CQS; i++) {
		vp_make(&from[i], vp_open(), &o);
		vp_make(&to[i], ctx, &o);
		CHECK_EQ(ibv_destroy_qp(to[i].qp), 0);
		CHECK_EQ(ibv_destroy_cq(to[i].rcq), 0);
	}
	ch = ibv_create_comp_channel(ctx);
	for (int i = 0; i < CQS; i++) {
		struct vp_addr x, y;

		to[i].rcq = ibv_create_cq(ctx, 16, (void *)(uintptr_t)(i + 1), ch, 0);
		if (!to[i].rcq)
			die("create_cq");
		to[i].qp = vp_extra_qp(&to[i]);
		x = vp_addr(&from[i]);
		y = vp_addr(&to[i]);
		vp_connect(&to[i], &x);
		vp_connect(&from[i], &y);
		CHECK_EQ(ibv_req_notify_cq(to[i].rcq, 0), 0);
		CHECK_EQ(vp_post_recv(&to[i], i, 0, 8), 0);
	}
	for (int i = CQS - 1; i >= 0; i--)
		CHECK_EQ(vp_post_send(&from[i], i, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
	for (int i = 0; i < CQS; i++) {
		struct ibv_cq *cq;
		void *context;

		if (!CHECK(readable(ch, VP_DEADLINE_MS)))
			break;
		CHECK_EQ(ibv_get_cq_event(ch, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		CHECK(cq == to[(uintptr_t)context - 1].rcq);
		seen |= 1u << ((uintptr_t)context - 1);
	}
	CHECK_EQ(seen, (1u << CQS) - 1);
	CHECK(!readable(ch, 10));
	for (int i = 0; i < CQS; i++) {
		vp_free(&from[i]);
		vp_free(&to[i]);
	}
	CHECK_EQ(ibv_destroy_comp_channel(ch), 0);
	for (int i = 0; i < CQS; i++)
		CHECK_EQ(ibv_close_device(from[i].ctx), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* Nobody takes an event for a long time; none is lost, nobody blocks. */
static void pending(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;

	check_case("%d events wait", PENDING);
	o.channel = true;
	vp_pair(&a, &b, &o);
	for (int i = 0; i < PENDING; i++) {
		CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
		message(0);
		if (!vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2) ||
			!vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1))
			return;
	}
	for (int i = 0; i < PENDING; i++)
		take(b.channel, b.rcq);
	CHECK(!readable(b.channel, 5));
	vp_pair_free(&a, &b);
}

/* ---- between processes: a ping-pong of sleepers ---- */

enum { ROUNDS = 2000 };

static void sleep_for(struct vp_end *e, uint64_t id)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(e->rcq, 1, &wc))) {
		struct ibv_cq *cq;
		void *context;

		CHECK_EQ(ibv_req_notify_cq(e->rcq, 0), 0);
		n = ibv_poll_cq(e->rcq, 1, &wc);
		if (n)
			break;
		if (!readable(e->channel, VP_DEADLINE_MS))
			die("an event is lost");
		CHECK_EQ(ibv_get_cq_event(e->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
	}
	CHECK_EQ(n, 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, id);
}

static void ping_pong(int fd, bool first)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	check_case("sleepers of two processes");
	o.channel = true;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	CHECK_EQ(vp_post_recv(&e, 0, 0, 8), 0);
	vp_sync(fd);
	for (int i = 0; i < ROUNDS; i++) {
		if (!first)
			sleep_for(&e, i);
		if (!first)
			CHECK_EQ(vp_post_recv(&e, i + 1, 0, 8), 0);
		CHECK_EQ(vp_post_send(&e, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, i);
		if (first)
			sleep_for(&e, i);
		if (first)
			CHECK_EQ(vp_post_recv(&e, i + 1, 0, 8), 0);
	}
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void sleeper(int fd, void *arg)
{
	(void)arg;
	ping_pong(fd, false);
}

static void two_processes(void)
{
	struct vp_child c = vp_fork(sleeper, NULL);

	ping_pong(c.fd, true);
	vp_join(&c);
}

/* ---- moderation ---- */

static void moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = count, .cq_period = period}};

	CHECK_EQ(ibv_modify_cq(cq, &attr), 0);
}

/* n messages from a to b, whose CQ is moderated; none is polled. */
static void send_some(int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, i);
	}
}

static void poll_some(int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++)
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i);
}

static void moderation(void)
{
	struct vp_opts o = vp_defaults();
	double began;

	check_case("moderation: an event for so many completions, or after some time");
	o.channel = true;
	vp_pair(&a, &b, &o);
	moderate(b.rcq, 4, 0);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	send_some(3);
	CHECK(!readable(b.channel, 20));
	send_some(1);
	take(b.channel, b.rcq);
	poll_some(3);
	poll_some(1);
	send_some(3); /* what waits when it is armed counts as well */
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK(!readable(b.channel, 0));
	send_some(1);
	CHECK(readable(b.channel, 0));
	take(b.channel, b.rcq);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK(readable(b.channel, 0));
	take(b.channel, b.rcq);
	poll_some(3);
	poll_some(1);
	moderate(b.rcq, 100, 50000);
	began = now_ms();
	send_some(1);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK(readable(b.channel, VP_DEADLINE_MS));
	CHECK(now_ms() - began >= 49);
	take(b.channel, b.rcq);
	poll_some(1);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	began = now_ms();
	send_some(2);
	CHECK(!readable(b.channel, 10) || now_ms() - began >= 49);
	CHECK(readable(b.channel, VP_DEADLINE_MS)); /* told by weftd */
	CHECK(now_ms() - began >= 49);
	take(b.channel, b.rcq);
	poll_some(2);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	send_some(2);
	take(b.channel, b.rcq); /* asleep in our call */
	poll_some(2);
	moderate(b.rcq, 100, 0);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	send_some(1);
	CHECK(!readable(b.channel, 20));
	moderate(b.rcq, 0, 0); /* what waited, waits no more */
	take(b.channel, b.rcq);
	poll_some(1);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	send_some(1);
	take(b.channel, b.rcq);
	poll_some(1);
	vp_pair_free(&a, &b);
}

/* ---- a peer that dies ---- */

static void connect_only(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	vp_sync(fd);
	pause();
}

/* An event says that there is a completion: a death alone is none. */
static void peer_killed(void)
{
	struct vp_child child = vp_fork(connect_only, NULL);
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	check_case("an event and its completion after the death of the peer");
	o.channel = true;
	o.timeout = 14; /* 67 ms, twice */
	o.retry_cnt = 1;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, child.fd);
	vp_sync(child.fd);
	CHECK_EQ(ibv_req_notify_cq(e.scq, 0), 0);
	vp_kill_join(&child);
	CHECK_EQ(vp_post_send(&e, 7, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	take(e.channel, e.scq);
	CHECK_EQ(ibv_poll_cq(e.scq, 1, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

/* ---- blocking, and EINTR ---- */

static void on_alarm(int signal)
{
	(void)signal;
}

static void interrupted(void)
{
	struct vp_opts o = vp_defaults();
	struct sigaction sa = {.sa_handler = on_alarm};
	struct ibv_cq *cq;
	void *context;

	check_case("a signal ends the wait with EINTR");
	o.channel = true;
	vp_pair(&a, &b, &o);
	sigaction(SIGALRM, &sa, NULL);
	ualarm(20000, 20000); /* again and again: the first may come before the wait */
	errno = 0;
	CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), -1);
	CHECK_EQ(errno, EINTR);
	ualarm(0, 0);
	vp_pair_free(&a, &b);
}

int main(void)
{
	two_processes();
	basics();
	solicited();
	nonblocking();
	acks();
	armed_late();
	no_channel();
	destroyed_pending();
	count_too_many();
	several_cqs();
	pending();
	moderation();
	peer_killed();
	interrupted();
	return check_result();
}
