// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer is stopped in the middle of using memory.  If it uses nothing but mapped pages,
 * ibv_dereg_mr goes on without it: what the peer still stores then nobody sees, its request ends
 * in an error, and the place is mapped again only when it has gone on or died.  If it copies by
 * system calls, or fills a receive, ibv_dereg_mr waits for it.  Nor are pages moved under a copy
 * into a region on demand.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum {
	SIZE = 8 << 20,
	PAGE = 4096,
	MESSAGE = 8,
	MESSAGE_AT = SIZE / 2,
	TRIES = 500,
	RECEIVES = 1000, /* never used up: else we bring the next message ourselves, not the peer */
	SOON_MS = 20000, /* dereg that waits for nobody takes 100 ms, and a busy machine's time */
	WAITS_MS = 400,  /* one that waits has not returned after so long */
	GIVEN_BACK_MS = 20000
};

enum ending { GOES_ON, IS_KILLED };

static const struct how {
	const char *name, *share;
	enum ibv_wr_opcode op;
	bool threads;
	enum ending ending;
} passed[] =
	{
		{"write, one thread", "auto", IBV_WR_RDMA_WRITE, false, GOES_ON},
		{"write, two threads", "auto", IBV_WR_RDMA_WRITE, true, GOES_ON},
		{"write, killed", "auto", IBV_WR_RDMA_WRITE, false, IS_KILLED},
},
  waited_for[] = {
	  {"write by copies", "never", IBV_WR_RDMA_WRITE, false, GOES_ON},
	  {"mapped receive", "auto", IBV_WR_SEND, false, GOES_ON},
};

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = SIZE;
	o.recv_wr = RECEIVES;
	o.cqe = 2 * RECEIVES;
	o.timeout = 18; /* no request may fail for want of an answer */
	return o;
}

/* ---- the peer ---- */

/* Posts one request after the other, each with a new byte, until one fails; tells how. */
static void poster(int fd, void *arg)
{
	enum ibv_wr_opcode op = *(enum ibv_wr_opcode *)arg;
	struct vp_opts o = options();
	struct vp_addr to;
	struct vp_end e;
	struct ibv_wc wc;

	vp_make(&e, vp_open(), &o);
	to = vp_meet(&e, fd);
	vp_sync(fd);
	for (unsigned n = 1;; n++) {
		memset(e.buf, n, SIZE);
		CHECK_EQ(vp_post_send(&e, n, op, IBV_SEND_SIGNALED, 0, SIZE, &to, 0), 0);
		while (!vp_poll(e.scq, &wc, VP_DEADLINE_MS))
			;
		if (wc.status != IBV_WC_SUCCESS)
			break;
	}
	vp_tell(fd, wc.status);
	vp_sync(fd);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* ---- the owner ---- */

/* The peer has written some of one message: it is in the middle. */
static bool is_torn(const struct vp_end *e)
{
	return e->buf[0] != e->buf[SIZE - 1];
}

/* A peer that sends never waits for a receive. */
static void post_again(struct vp_end *e)
{
	struct ibv_wc wc;

	while (vp_poll(e->rcq, &wc, 0)) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(vp_post_recv(e, wc.wr_id, 0, SIZE), 0);
	}
}

static void stop_in_the_middle(const struct vp_child *c, struct vp_end *e)
{
	for (int i = 0; i < TRIES; i++) {
		post_again(e);
		usleep(1000 + i * 37 % 3000);
		vp_stop(c);
		if (is_torn(e))
			return;
		kill(c->pid, SIGCONT);
	}
	die("the peer was never stopped in the middle of a message");
}

static void *do_nothing(void *arg)
{
	pthread_mutex_t *m = arg;

	pthread_mutex_lock(m);
	pthread_mutex_unlock(m);
	return NULL;
}

static void set_up(const struct how *h, struct vp_child *c, struct vp_end *e)
{
	struct vp_opts o = options();

	vp_make(e, vp_open(), &o);
	vp_meet(e, c->fd);
	for (int i = 0; i < RECEIVES && h->op == IBV_WR_SEND; i++)
		CHECK_EQ(vp_post_recv(e, i, 0, SIZE), 0);
	vp_sync(c->fd);
}

static bool wait_until_given_back(struct vp_end *e)
{
	double end = now_ms() + GIVEN_BACK_MS;
	struct ibv_wc wc;

	/* Whoever polls looks now and then. */
	while (share_count("quarantined") && now_ms() < end)
		vp_poll(e->rcq, &wc, 20);
	return share_count("quarantined") == 0 && share_count("quarantined_bytes") == 0;
}

/* A region of other memory goes and comes: nothing happens to the peer's request. */
static void dereg_another(struct vp_end *e)
{
	static _Alignas(PAGE) uint8_t other[4 * PAGE];
	struct ibv_mr *mr = ibv_reg_mr(
		e->pd, other, sizeof other, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	int64_t passes = status_of(getpid(), "counters", "pass_stopped");

	memset(other, 77, sizeof other);
	CHECK(mr && ibv_dereg_mr(mr) == 0);
	CHECK(pattern_all(other, sizeof other, 77));
	CHECK_EQ(status_of(getpid(), "counters", "pass_stopped"), passes + 1);
}

static void a_child_is_on_its_own(struct vp_end *e)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(!pattern_filled(e->buf, SIZE, 9));
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* While the peer lies there: dereg, and the same memory registered again. */
static void take_away(struct vp_end *e)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	uint8_t *before = malloc(SIZE);
	double start;

	memcpy(before, e->buf, SIZE);
	start = now_ms();
	CHECK_EQ(ibv_dereg_mr(e->mr), 0);
	CHECK_RANGE(now_ms() - start, 0, SOON_MS);
	CHECK(memcmp(before, e->buf, SIZE) == 0);
	free(before);
	CHECK_RANGE(share_count("quarantined_bytes"), SIZE, INT64_MAX);
	CHECK_EQ(share_count("regions"), 0);
	CHECK_EQ(share_count("left_behind"), 0);
	e->mr = ibv_reg_mr(e->pd, e->buf, SIZE, rights);
	CHECK(e->mr != NULL);
	CHECK_EQ(share_count("regions"), 0);
	CHECK_RANGE(share_count("quarantine"), 1, INT64_MAX);
	pattern_fill(e->buf, SIZE, 9);
}

static void check_passed(int fd, void *arg)
{
	const struct how *h = arg;
	pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
	enum ibv_wr_opcode op = h->op;
	struct vp_child c;
	pthread_t thread;
	struct vp_end e;

	(void)fd;
	setenv("WEFT_SHARE", h->share, 1);
	c = vp_fork(poster, &op);
	pthread_mutex_lock(&running);
	if (h->threads && pthread_create(&thread, NULL, do_nothing, &running))
		die("pthread_create");
	set_up(h, &c, &e);
	CHECK_EQ(share_count("regions"), 1);
	for (int i = 0; i < 3; i++) {
		check_case("%s: another region", h->name);
		stop_in_the_middle(&c, &e);
		dereg_another(&e);
		kill(c.pid, SIGCONT);
	}
	check_case("%s", h->name);
	stop_in_the_middle(&c, &e);
	take_away(&e);
	if (!h->threads)
		a_child_is_on_its_own(&e);
	if (h->ending == GOES_ON) {
		kill(c.pid, SIGCONT);
		CHECK_EQ(vp_hear(c.fd), IBV_WC_REM_ACCESS_ERR);
	} else {
		vp_kill_join(&c);
	}
	CHECK(wait_until_given_back(&e));
	CHECK(pattern_filled(e.buf, SIZE, 9));
	CHECK_EQ(status_of(getpid(), "counters", "wait_stopped"), 0);
	check_case("%s: mapped again", h->name);
	CHECK_EQ(ibv_dereg_mr(e.mr), 0);
	e.mr = ibv_reg_mr(e.pd, e.buf, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK_EQ(share_count("regions"), 1);
	CHECK(pattern_filled(e.buf, SIZE, 9));
	pthread_mutex_unlock(&running);
	if (h->threads)
		pthread_join(thread, NULL);
	if (h->ending == GOES_ON) {
		vp_sync(c.fd);
		vp_join(&c);
	}
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* ---- what came before ---- */

static void sender_then_poster(int fd, void *arg)
{
	struct vp_opts o = options();
	struct vp_addr to;
	struct vp_end e;
	struct ibv_wc wc;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	to = vp_meet(&e, fd);
	vp_sync(fd);
	pattern_fill(e.buf, MESSAGE, 5);
	CHECK_EQ(vp_post_send(&e, 0, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, MESSAGE, NULL, 0), 0);
	for (unsigned n = 0; vp_want(e.scq, &wc, IBV_WC_SUCCESS, n);) {
		memset(e.buf, ++n, SIZE);
		CHECK_EQ(vp_post_send(&e, n, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, SIZE, &to, 0),
			0);
	}
}

/* A message waits to be polled: its bytes are in place when ibv_dereg_mr returns. */
static void check_message(int fd, void *arg)
{
	struct vp_opts o = options();
	struct vp_child c;
	struct ibv_wc wc;
	struct vp_end e;

	(void)fd;
	(void)arg;
	setenv("WEFT_SHARE", "auto", 1);
	c = vp_fork(sender_then_poster, NULL);
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	CHECK_EQ(vp_post_recv(&e, 1, MESSAGE_AT, MESSAGE), 0);
	vp_sync(c.fd);
	check_case("a message that waits, and a peer that is stopped");
	for (int i = 0; i == 0 || !is_torn(&e); i++) {
		if (i == TRIES)
			die("the peer was never stopped in the middle of a message");
		kill(c.pid, SIGCONT);
		usleep(1000 + i * 37 % 3000);
		vp_stop(&c);
	}
	CHECK_EQ(ibv_dereg_mr(e.mr), 0);
	CHECK_RANGE(share_count("quarantined_bytes"), SIZE, INT64_MAX);
	CHECK(pattern_filled(e.buf + MESSAGE_AT, MESSAGE, 5));
	vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 1);
	vp_kill_join(&c);
	CHECK(wait_until_given_back(&e));
	e.mr = ibv_reg_mr(e.pd, e.buf, SIZE, IBV_ACCESS_LOCAL_WRITE);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* ---- those that are waited for ---- */

struct dereg {
	struct ibv_mr *mr;
	_Atomic bool done;
};

static void *dereg(void *arg)
{
	struct dereg *d = arg;

	CHECK_EQ(ibv_dereg_mr(d->mr), 0);
	d->done = true;
	return NULL;
}

static void check_waited_for(int fd, void *arg)
{
	const struct how *h = arg;
	enum ibv_wr_opcode op = h->op;
	struct dereg d = {.done = false};
	struct vp_child c;
	pthread_t thread;
	struct vp_end e;

	(void)fd;
	setenv("WEFT_SHARE", h->share, 1);
	c = vp_fork(poster, &op);
	set_up(h, &c, &e);
	check_case("%s", h->name);
	stop_in_the_middle(&c, &e);
	d.mr = e.mr;
	if (pthread_create(&thread, NULL, dereg, &d))
		die("pthread_create");
	usleep(WAITS_MS * 1000);
	CHECK(!d.done);
	CHECK_EQ(share_count("quarantined"), 0);
	kill(c.pid, SIGCONT);
	pthread_join(thread, NULL);
	/* The next message finds no memory: of the key, or for any of the receives. */
	CHECK_EQ(vp_hear(c.fd), op == IBV_WR_SEND ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR);
	vp_sync(c.fd);
	vp_join(&c);
	e.mr = ibv_reg_mr(e.pd, e.buf, SIZE, IBV_ACCESS_LOCAL_WRITE);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

/* A peer stands still in the middle of a copy into a region on demand, whose pages stay. */
static void check_on_demand(int fd, void *arg)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	enum ibv_wr_opcode op = IBV_WR_RDMA_WRITE;
	struct vp_opts o = options();
	struct ibv_mr *other;
	struct vp_child c;
	struct vp_end e;

	(void)fd;
	(void)arg;
	setenv("WEFT_SHARE", "always", 1);
	c = vp_fork(poster, &op);
	o.mr_access = rights | IBV_ACCESS_ON_DEMAND;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	vp_sync(c.fd);
	check_case("on demand, and another region on its pages");
	stop_in_the_middle(&c, &e);
	other = ibv_reg_mr(e.pd, e.buf, SIZE, rights);
	CHECK(other != NULL);
	CHECK_EQ(share_count("regions"), 0);
	CHECK_EQ(share_count("peer_stopped"), 1);
	CHECK_RANGE(share_count("on_demand"), 1, INT64_MAX);
	kill(c.pid, SIGCONT);
	CHECK_EQ(ibv_dereg_mr(other), 0);
	CHECK_EQ(ibv_dereg_mr(e.mr), 0);
	CHECK_EQ(vp_hear(c.fd), IBV_WC_REM_ACCESS_ERR);
	vp_sync(c.fd);
	vp_join(&c);
	e.mr = ibv_reg_mr(e.pd, e.buf, SIZE, IBV_ACCESS_LOCAL_WRITE);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static bool can_copy(void)
{
	char from = 1, to = 0;
	struct iovec l = {&to, 1}, r = {&from, 1};

	return process_vm_readv(getpid(), &l, 1, &r, 1, 0) == 1;
}

int main(void)
{
	struct vp_child c;

	/* For a peer's agent nobody waits. */
	setenv("WEFT_MOVER", "cma", 1);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		if (passed[i].threads && !can_hold_off()) {
			printf("%s: other threads cannot be held off here\n", passed[i].name);
			continue;
		}
		c = vp_fork(check_passed, (void *)&passed[i]);
		vp_join(&c);
	}
	c = vp_fork(check_message, NULL);
	vp_join(&c);
	for (size_t i = 0; i < sizeof waited_for / sizeof *waited_for; i++) {
		if (strcmp(waited_for[i].share, "never") == 0 && !can_copy()) {
			printf("%s: the kernel refuses it\n", waited_for[i].name);
			continue;
		}
		c = vp_fork(check_waited_for, (void *)&waited_for[i]);
		vp_join(&c);
	}
	if (can_copy()) {
		c = vp_fork(check_on_demand, NULL);
		vp_join(&c);
	}
	return check_result();
}
