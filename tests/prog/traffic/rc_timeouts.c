// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests that wait for a receive or for the other end: how long, how they end, and that a
 * program asleep in ibv_get_cq_event() hears of it as one that polls does.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum {
	RNR_CODE = 24, /* 40.96 ms */
	ACK_CODE = 13, /* 33.55 ms */
	SLACK_MS = 60,
	TRIES = 30,     /* one in time is enough: the CPU is taken away now and then */
	LATE_CODE = 18, /* 1 s, eight times */
};

static const double rnr_ms = 40.96, ack_ms = 33.55;
static struct vp_end a, b;

/* Waits for one completion on the send CQ, polling or asleep; events without one are legal. */
static bool await(struct vp_end *e, struct ibv_wc *wc, bool asleep)
{
	struct ibv_cq *cq;
	void *ctx;

	if (!asleep)
		return vp_poll(e->scq, wc, VP_DEADLINE_MS);
	for (;;) {
		struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};

		CHECK_EQ(ibv_req_notify_cq(e->scq, 0), 0);
		if (ibv_poll_cq(e->scq, 1, wc) == 1)
			return true;
		if (!CHECK_EQ(poll(&p, 1, VP_DEADLINE_MS), 1))
			return false;
		CHECK_EQ(ibv_get_cq_event(e->channel, &cq, &ctx), 0);
		CHECK(cq == e->scq || cq == e->rcq);
		ibv_ack_cq_events(cq, 1);
	}
}

/* The first completion has that status, and does not come early; true: nor late. */
static bool ends(
	struct vp_end *e, enum ibv_wc_status status, double since, double nominal, bool asleep)
{
	struct ibv_wc wc;
	double took;

	if (!CHECK(await(e, &wc, asleep)))
		return true; /* it is told of already */
	took = now_ms() - since;
	CHECK_EQ(wc.status, status);
	CHECK_EQ(wc.wr_id, 1);
	CHECK_RANGE(took, nominal - 1, INT64_MAX);
	vp_want(e->scq, &wc, IBV_WC_WR_FLUSH_ERR, 2);
	CHECK_EQ(vp_get_state(e), IBV_QPS_ERR);
	return took <= nominal * 1.5 + SLACK_MS;
}

/* What takes longer than the nominal time and half of it more, does so each time. */
static void in_time(bool (*once)(int a, bool asleep, int b), int a, bool asleep, int b)
{
	int tries = 1;

	while (!once(a, asleep, b) && tries < TRIES)
		tries++;
	CHECK_RANGE(tries, 1, TRIES - 1);
}

static void post_two(struct vp_end *e, enum ibv_wr_opcode op, const struct vp_addr *to)
{
	CHECK_EQ(vp_post_send(e, 1, op, IBV_SEND_SIGNALED, 0, 8, to, 0), 0);
	CHECK_EQ(vp_post_send(e, 2, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
}

/* The other end answers, as soon as it gets a CPU. */
static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.channel = true;
	o.min_rnr_timer = RNR_CODE;
	o.timeout = LATE_CODE;
	o.retry_cnt = 7;
	return o;
}

/* The other end does not answer, or will not. */
static struct vp_opts options_of_one_alone(void)
{
	struct vp_opts o = options();

	o.timeout = ACK_CODE;
	o.retry_cnt = 1;
	return o;
}

static bool rnr(int retry, bool asleep, int unused)
{
	struct vp_opts o = options();
	double since;
	bool soon;

	(void)unused;
	check_case("rnr_retry %d, %s", retry, asleep ? "asleep" : "polling");
	o.rnr_retry = retry;
	vp_pair(&a, &b, &o);
	since = now_ms();
	post_two(&a, IBV_WR_SEND, NULL);
	soon = ends(&a, IBV_WC_RNR_RETRY_EXC_ERR, since, retry * rnr_ms, asleep);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	vp_pair_free(&a, &b);
	return soon;
}

/* A receive in time saves it; false: this one was not posted in time. */
static bool rnr_saved(int retry, bool asleep, int unused)
{
	struct vp_opts o = options();
	bool quiet, soon;
	struct ibv_wc wc;
	double since;

	(void)asleep;
	(void)unused;
	check_case("rnr_retry %d: the receive comes after %d ms", retry, retry * 20);
	o.rnr_retry = retry;
	vp_pair(&a, &b, &o);
	since = now_ms();
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	quiet = !vp_poll(a.scq, &wc, retry * 20);
	CHECK_EQ(vp_post_recv(&b, 2, 0, 8), 0);
	soon = retry == 7 || now_ms() - since < retry * rnr_ms - 1;
	if (soon) {
		CHECK(quiet);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1);
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 2);
		vp_quiet(a.scq, 150); /* no late timer */
		CHECK_EQ(vp_get_state(&a), IBV_QPS_RTS);
	}
	vp_pair_free(&a, &b);
	return soon;
}

/* RNR for ever: a parked request and its sleeper survive a second. */
static void rnr_for_ever(void)
{
	struct vp_opts o = options();

	check_case("rnr_retry 7 waits");
	o.rnr_retry = 7;
	vp_pair(&a, &b, &o);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_quiet(a.scq, 1000);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_RTS);
	vp_pair_free(&a, &b);
}

/* ---- the other end is not there ---- */

enum absent { DESTROYED, IN_RESET, IN_INIT, WRONG_PSN, WRONG_QPN, OTHER_PEER, IN_ERR, KINDS };

static const char *const absent_names[] = {"destroyed", "in RESET", "in INIT", "wrong PSN",
	"no such QP number", "connected to another", "in ERR"};

static void make_absent(enum absent kind, const struct vp_addr *to_a)
{
	struct vp_addr wrong = *to_a;

	if (kind == IN_RESET || kind == WRONG_QPN)
		return;
	CHECK_EQ(vp_init(&b), 0);
	if (kind == IN_INIT)
		return;
	if (kind == WRONG_PSN)
		wrong.psn = (wrong.psn - 1) & 0xffffff; /* else what comes would have come before */
	if (kind == OTHER_PEER)
		wrong.qpn ^= 1;
	CHECK_EQ(vp_rtr(&b, &wrong), 0);
	CHECK_EQ(vp_rts(&b), 0);
	if (kind == IN_ERR)
		CHECK_EQ(vp_state(&b, IBV_QPS_ERR), 0);
}

static bool absent(int kind, bool asleep, int retry_cnt)
{
	struct vp_opts o = options_of_one_alone();
	struct vp_addr to_a, to_b;
	double since;
	bool soon;

	check_case("the other end is %s, %s, retry_cnt %d", absent_names[kind],
		asleep ? "asleep" : "polling", retry_cnt);
	o.retry_cnt = retry_cnt;
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	make_absent(kind, &to_a);
	if (kind == WRONG_QPN)
		to_b.qpn += 77;
	vp_connect(&a, &to_b);
	if (kind == DESTROYED) {
		CHECK_EQ(ibv_destroy_qp(b.qp), 0);
		b.qp = NULL;
	}
	since = now_ms();
	post_two(&a, IBV_WR_RDMA_WRITE, &to_b);
	soon = ends(&a, IBV_WC_RETRY_EXC_ERR, since, ack_ms * (retry_cnt + 1), asleep);
	vp_pair_free(&a, &b);
	return soon;
}

/* The other end comes in time: INIT, then RTR. */
static void late_peer(void)
{
	struct vp_opts o = options();
	struct vp_addr to_a, to_b;
	struct ibv_wc wc;

	check_case("the other end gets ready while the request waits");
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	vp_connect(&a, &to_b);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_quiet(a.scq, 60);
	CHECK_EQ(vp_init(&b), 0);
	CHECK_EQ(vp_post_recv(&b, 2, 0, 8), 0);
	vp_quiet(a.scq, 60);
	CHECK_EQ(vp_rtr(&b, &to_a), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 2);
	vp_pair_free(&a, &b);
}

/* A request waits for a receive; then its peer leaves: no receive will come any more. */
static bool peer_leaves(int kind, bool asleep, int unused)
{
	struct vp_opts o = options_of_one_alone();
	double since;
	bool soon;

	(void)unused;
	check_case("the other end is %s while a request waits for a receive, %s",
		absent_names[kind], asleep ? "asleep" : "polling");
	o.rnr_retry = 7;
	vp_pair(&a, &b, &o);
	since = now_ms(); /* it may get no answer from now on, if the other end has no CPU */
	post_two(&a, IBV_WR_SEND, NULL);
	vp_quiet(a.scq, 20);
	if (kind == IN_RESET) {
		CHECK_EQ(vp_state(&b, IBV_QPS_RESET), 0);
	} else if (kind == IN_ERR) {
		CHECK_EQ(vp_state(&b, IBV_QPS_ERR), 0);
	} else {
		CHECK_EQ(ibv_destroy_qp(b.qp), 0);
		b.qp = NULL;
	}
	soon = ends(&a, IBV_WC_RETRY_EXC_ERR, since, 2 * ack_ms, asleep);
	vp_pair_free(&a, &b);
	return soon;
}

/* The flush wakes a sleeper: another thread's, here our own arming before modify. */
static void flush_event(void)
{
	struct vp_opts o = options();
	struct ibv_wc wc;

	check_case("the flush of a waiting request is an event");
	o.rnr_retry = 7;
	vp_pair(&a, &b, &o);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_SEND, 0, 0, 8, NULL, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(a.scq, 1), 0); /* solicited only: a failure counts */
	CHECK_EQ(vp_state(&a, IBV_QPS_ERR), 0);
	{
		struct pollfd p = {.fd = a.channel->fd, .events = POLLIN};
		struct ibv_cq *cq;
		void *ctx;

		if (CHECK_EQ(poll(&p, 1, VP_DEADLINE_MS), 1)) {
			CHECK_EQ(ibv_get_cq_event(a.channel, &cq, &ctx), 0);
			ibv_ack_cq_events(cq, 1);
		}
	}
	vp_want(a.scq, &wc, IBV_WC_WR_FLUSH_ERR, 1);
	vp_pair_free(&a, &b);
}

/* ---- another process that dies, or whose memory goes ---- */

static void victim(int fd, void *arg)
{
	struct vp_opts o = options();

	(void)arg;
	vp_make(&b, vp_open(), &o);
	vp_meet(&b, fd);
	vp_sync(fd);
	for (;;)
		pause();
}

static bool killed(int waiting, bool asleep, int unused)
{
	struct vp_child c = vp_fork(victim, NULL);
	struct vp_opts o = options_of_one_alone();
	struct ibv_context *ctx;
	double since;
	int status;
	bool soon;

	(void)unused;
	check_case("the other process is killed %s, %s",
		waiting ? "while a request waits" : "before", asleep ? "asleep" : "polling");
	o.rnr_retry = 7;
	ctx = vp_open();
	vp_make(&a, ctx, &o);
	vp_meet(&a, c.fd);
	vp_sync(c.fd);
	since = now_ms(); /* as in peer_leaves() */
	if (waiting)
		post_two(&a, IBV_WR_SEND, NULL);
	vp_quiet(a.scq, 20);
	kill(c.pid, SIGKILL);
	CHECK_EQ(waitpid(c.pid, &status, 0), c.pid);
	close(c.fd);
	if (!waiting) {
		since = now_ms();
		post_two(&a, IBV_WR_SEND, NULL);
	}
	soon = ends(&a, IBV_WC_RETRY_EXC_ERR, since, 2 * ack_ms, asleep);
	vp_free(&a);
	ibv_close_device(ctx);
	return soon;
}

enum { HOLE = 1 << 15, BIG = 8192 };

/* Registers its buffer, then unmaps a part of it. */
static void with_hole(int fd, void *arg)
{
	struct vp_opts o = options();
	int kind = *(int *)arg;
	struct ibv_wc wc;

	/* Pages that peers map stay, like those that an adapter has pinned. */
	setenv("WEFT_SHARE", "never", 1);
	vp_make(&b, vp_open(), &o);
	vp_meet(&b, fd);
	munmap(b.buf + HOLE, HOLE);
	if (kind == IBV_WR_SEND)
		CHECK_EQ(vp_post_recv(&b, 9, HOLE, BIG), 0);
	vp_sync(fd);
	vp_sync(fd);
	if (kind == IBV_WR_SEND)
		vp_want(b.rcq, &wc, IBV_WC_LOC_PROT_ERR, 9);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
	vp_free(&b);
}

static void hole(int kind)
{
	struct vp_child c = vp_fork(with_hole, &kind);
	struct vp_opts o = options();
	struct vp_addr peer;
	struct ibv_wc wc;

	check_case("the other process has unmapped its memory, opcode %d", kind);
	vp_make(&a, vp_open(), &o);
	peer = vp_meet(&a, c.fd);
	vp_sync(c.fd);
	CHECK_EQ(vp_post_send(&a, 1, kind, IBV_SEND_SIGNALED, 0,
			 kind == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : BIG, &peer, HOLE),
		0);
	vp_want(a.scq, &wc, kind == IBV_WR_SEND ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR, 1);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_ERR);
	vp_sync(c.fd);
	vp_join(&c);
	vp_free(&a);
	ibv_close_device(a.ctx);
}

int main(void)
{
	for (int asleep = 0; asleep < 2; asleep++)
		for (int waiting = 0; waiting < 2; waiting++)
			in_time(killed, waiting, asleep, 0);
	hole(IBV_WR_SEND);
	hole(IBV_WR_RDMA_WRITE);
	hole(IBV_WR_RDMA_READ);
	hole(IBV_WR_ATOMIC_FETCH_AND_ADD);
	for (int retry = 0; retry <= 2; retry++)
		for (int asleep = 0; asleep < 2; asleep++)
			in_time(rnr, retry, asleep, 0);
	in_time(rnr_saved, 2, false, 0);
	in_time(rnr_saved, 7, false, 0);
	rnr_for_ever();
	for (int kind = 0; kind < KINDS; kind++)
		for (int asleep = 0; asleep < 2; asleep++)
			in_time(absent, kind, asleep, asleep ? 0 : 1);
	for (int asleep = 0; asleep < 2; asleep++) {
		in_time(peer_leaves, DESTROYED, asleep, 0);
		in_time(peer_leaves, IN_RESET, asleep, 0);
		in_time(peer_leaves, IN_ERR, asleep, 0);
	}
	late_peer();
	flush_event();
	return check_result();
}
