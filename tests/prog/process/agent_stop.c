// SPDX-License-Identifier: BSD-3-Clause
/*
 * Transfers by agents, of which one side is stopped, killed, or takes its memory away: nobody
 * hangs, nothing is written after it was taken away, and everybody else goes on.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/far_end.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LEN = 48 << 20,
	SMALL = 4096,
	SOON_MS = 20000, /* who waits for a stopped process does so for ever */
	KILLS = 20,
	REQUESTS = 500,
	LATE_MS = 500, /* what waits for a stopped process; or, now and then, for a CPU */
	LATE_MAX = 20,
	SHORT_ACK = 14, /* 67 ms: where a peer is not to answer */
	LONG_ACK = 20,  /* 4 s: where it is to, as soon as it gets a CPU */
	EARLY_MS = 100, /* who is given up before that was so already when it was stopped */
	TRIES = 10
};

/* Of the ends that processes make which are started from now on. */
static int ack_code = LONG_ACK;

static struct vp_opts options(size_t len)
{
	struct vp_opts o = vp_defaults();

	o.len = len;
	o.timeout = ack_code;
	o.retry_cnt = 1;
	return o;
}

/* ---- the other processes, which do as they are told ---- */

enum word { WRITE_ON = 1, CONNECT, DEREG, DESTROY, CHECK_QUIET, REG };

/* Writes without end until a request fails; says that it begins, and answers with its status. */
static uint64_t write_on(struct vp_end *e, int fd, const struct vp_addr *peer)
{
	uint32_t len = LEN / 2;
	struct ibv_wc wc;

	vp_tell(fd, 1);
	do {
		CHECK_EQ(vp_post_send(e, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, len, peer, 0),
			0);
		if (!vp_poll(e->scq, &wc, 2 * VP_DEADLINE_MS))
			die("a request never ended");
	} while (wc.status == IBV_WC_SUCCESS);
	return wc.status;
}

/* Milliseconds that a call takes which must wait for nobody that is stopped. */
static uint64_t timed_dereg(struct vp_end *e)
{
	double start = now_ms(), took;

	CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	e->mr = NULL;
	took = now_ms() - start;
	/* From here on not one byte changes. */
	memset(e->buf, 0x5a, e->len);
	return took;
}

static void *begin(int fd, void *arg)
{
	size_t len = arg ? *(size_t *)arg : LEN;
	struct vp_opts o = options(len);
	static struct vp_end e;

	(void)fd;
	vp_make(&e, vp_open(), &o);
	memset(e.buf, 1, e.len);
	return &e;
}

static uint64_t do_order(struct vp_end *e, int fd, enum word order)
{
	static struct vp_addr peer;

	switch (order) {
	case CONNECT:
		if (vp_get_state(e) != IBV_QPS_RESET)
			CHECK_EQ(vp_state(e, IBV_QPS_RESET), 0);
		peer = vp_meet(e, fd);
		break;
	case WRITE_ON:
		return write_on(e, fd, &peer);
	case DEREG:
		return timed_dereg(e);
	case REG:
		e->mr = ibv_reg_mr(e->pd, e->buf, e->len, e->opts.mr_access);
		break;
	case CHECK_QUIET:
		CHECK(pattern_all(e->buf, e->len, 0x5a));
		break;
	case DESTROY:
		CHECK_EQ(ibv_destroy_qp(e->qp), 0);
		e->qp = NULL;
		break;
	}
	return 0;
}

static void obey(void *e, int fd, const void *order, void *answer)
{
	*(uint64_t *)answer = do_order(e, fd, *(const uint64_t *)order);
}

static void end(void *self)
{
	struct vp_end *e = self;

	vp_free(e);
	ibv_close_device(e->ctx);
}

static const struct far_kind writer = {
	.order = sizeof(uint64_t),
	.answer = sizeof(uint64_t),
	.begin = begin,
	.obey = obey,
	.end = end,
};

static void tell(const struct vp_child *c, uint64_t order)
{
	far_tell(c, &writer, &order);
}

static uint64_t ask(const struct vp_child *c, uint64_t order)
{
	return far_ask_word(c, &writer, order);
}

/* Two such processes connected with each other. */
static void join(const struct vp_child *a, const struct vp_child *b)
{
	struct vp_addr x, y;

	tell(a, CONNECT);
	tell(b, CONNECT);
	if (recv(a->fd, &x, sizeof x, MSG_WAITALL) != sizeof x ||
		recv(b->fd, &y, sizeof y, MSG_WAITALL) != sizeof y ||
		send(a->fd, &y, sizeof y, 0) != sizeof y ||
		send(b->fd, &x, sizeof x, 0) != sizeof x)
		die("addresses");
	vp_hear(a->fd);
	vp_hear(b->fd);
}

static void kill_off(struct vp_child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->fd);
}

static void begin_writing(const struct vp_child *c)
{
	tell(c, WRITE_ON);
	vp_hear(c->fd);
	usleep(3000 + rand() % 20000);
}

/* ---- the cases ---- */

/* How long the writer waits for an owner that is stopped, in ms. */
static double stop_owner(struct vp_child *w, struct vp_child *o)
{
	double start, took;

	join(w, o);
	begin_writing(w);
	start = now_ms();
	vp_stop(o);
	CHECK_EQ(vp_hear(w->fd), IBV_WC_RETRY_EXC_ERR);
	took = now_ms() - start;
	kill(o->pid, SIGCONT);
	return took;
}

/* The owner of the memory is stopped: as with an adapter that does not answer. */
static void owner_stopped(void)
{
	struct vp_child w, o;
	double took = 0;

	ack_code = SHORT_ACK;
	w = far_start(&writer, NULL);
	o = far_start(&writer, NULL);
	check_case("the owner is stopped");
	for (int i = 0; i < TRIES && took < EARLY_MS; i++)
		took = stop_owner(&w, &o);
	CHECK_RANGE(took, EARLY_MS, SOON_MS);
	check_case("and goes on: both connect anew");
	join(&w, &o);
	begin_writing(&w);
	kill_off(&o);
	check_case("the owner is dead");
	CHECK_EQ(vp_hear(w.fd), IBV_WC_RETRY_EXC_ERR);
	far_end(&w);
	ack_code = LONG_ACK;
}

/* While a request waits for a stopped process, those to another one pass. */
static void third_party(void)
{
	static size_t small = SMALL;
	struct vp_child stopped = far_start(&writer, &small), other = far_start(&writer, &small);
	struct vp_opts o = options(SMALL);
	struct vp_end a, b;
	struct vp_addr mine, to_a, to_b;
	struct ibv_wc wc;
	int late = 0;
	double start;

	o.timeout = 0; /* for ever */
	check_case("two peers, one stopped");
	vp_make(&a, vp_open(), &o);
	vp_make(&b, a.ctx, &o);
	mine = vp_addr(&a);
	tell(&stopped, CONNECT);
	to_a = vp_swap(stopped.fd, &mine);
	vp_connect(&a, &to_a);
	vp_hear(stopped.fd);
	mine = vp_addr(&b);
	tell(&other, CONNECT);
	to_b = vp_swap(other.fd, &mine);
	vp_connect(&b, &to_b);
	vp_hear(other.fd);
	vp_stop(&stopped);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to_a, 0),
			0);
	for (int i = 0; i < REQUESTS; i++) {
		start = now_ms();
		CHECK_EQ(vp_post_send(
				 &b, 2, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, SMALL, &to_b, 0),
			0);
		if (!vp_want(b.scq, &wc, IBV_WC_SUCCESS, 2))
			break;
		late += now_ms() - start > LATE_MS;
	}
	CHECK_RANGE(late, 0, LATE_MAX);
	vp_quiet(a.scq, 300); /* timeout 0: it waits */
	check_case("memory and QP of the one that waits can be taken away");
	start = now_ms();
	CHECK_EQ(ibv_dereg_mr(a.mr), 0);
	a.mr = NULL;
	CHECK_EQ(ibv_destroy_qp(a.qp), 0);
	a.qp = NULL;
	CHECK_RANGE(now_ms() - start, 0, SOON_MS);
	kill(stopped.pid, SIGCONT);
	far_end(&stopped);
	far_end(&other);
	vp_free(&a);
	vp_free(&b);
	ibv_close_device(b.ctx);
}

/* The requester is stopped in mid-transfer: the owner's memory is its own again at once. */
static void requester_stopped(void)
{
	struct vp_child w = far_start(&writer, NULL), o = far_start(&writer, NULL);

	for (int i = 0; i < 5; i++) {
		check_case("the requester is stopped, round %d", i);
		join(&w, &o);
		begin_writing(&w);
		vp_stop(&w);
		CHECK_RANGE(ask(&o, DEREG), 0, SOON_MS);
		kill(w.pid, SIGCONT);
		CHECK_EQ(vp_hear(w.fd), IBV_WC_REM_ACCESS_ERR);
		ask(&o, CHECK_QUIET);
		ask(&o, REG);
	}
	far_end(&w);
	far_end(&o);
}

/* Memory and QP are taken away under a transfer. */
static void taken_away(void)
{
	struct vp_child w = far_start(&writer, NULL), o = far_start(&writer, NULL);

	for (int i = 0; i < 10; i++) {
		check_case("dereg under a transfer, round %d", i);
		join(&w, &o);
		begin_writing(&w);
		CHECK_RANGE(ask(&o, DEREG), 0, SOON_MS);
		CHECK_EQ(vp_hear(w.fd), IBV_WC_REM_ACCESS_ERR);
		ask(&o, CHECK_QUIET);
		ask(&o, REG);
	}
	far_end(&w);
	far_end(&o);
	check_case("destroy_qp under a transfer");
	ack_code = SHORT_ACK;
	w = far_start(&writer, NULL);
	o = far_start(&writer, NULL);
	join(&w, &o);
	begin_writing(&w);
	ask(&o, DESTROY);
	CHECK_EQ(vp_hear(w.fd), IBV_WC_RETRY_EXC_ERR);
	far_end(&w);
	far_end(&o);
	ack_code = LONG_ACK;
}

/* Requesters are killed at any instant; what they leave is given back. */
static void requesters_killed(void)
{
	struct vp_child o = far_start(&writer, NULL);
	struct vp_child w;

	for (int i = 0; i < KILLS; i++) {
		check_case("the requester is killed, round %d", i);
		w = far_start(&writer, NULL);
		join(&w, &o);
		begin_writing(&w);
		kill_off(&w);
		CHECK_RANGE(ask(&o, DEREG), 0, SOON_MS);
		ask(&o, CHECK_QUIET);
		ask(&o, REG);
	}
	check_case("and the next one is served");
	ack_code = SHORT_ACK;
	w = far_start(&writer, NULL);
	join(&w, &o);
	begin_writing(&w);
	kill_off(&o);
	CHECK_EQ(vp_hear(w.fd), IBV_WC_RETRY_EXC_ERR);
	far_end(&w);
	ack_code = LONG_ACK;
}

int main(void)
{
	setenv("WEFT_MOVER", "agent", 1);
	setenv("WEFT_SHARE", "never", 1);
	signal(SIGPIPE, SIG_IGN);
	srand(getpid());
	owner_stopped();
	requester_stopped();
	taken_away();
	requesters_killed();
	third_party();
	return check_result();
}
