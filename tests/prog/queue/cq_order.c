// SPDX-License-Identifier: BSD-3-Clause
/*
 * Several CQs on one completion channel: events come in the order in which the CQs fired, none is
 * lost when there are very many, and a process that is stopped or killed in the middle of firing
 * one does not hold up those of others.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/far_end.h"
#include "tests/lib/verbs_pair.h"

enum { CQS = 24, PROCS = 5, LAST = PROCS - 1, ROUNDS = 3, MANY = 3000, KEPT = 1000, CHANNELS = 40 };

static struct ibv_context *ctx;
static struct ibv_comp_channel *ch;

/* ---- the C library's write(), of which a child may never come back ---- */

static bool stops_at_write;
static struct ibv_cq *polled_at_write;
static int found_at_write;

__attribute__((visibility("default"))) ssize_t write(int fd, const void *buf, size_t n)
{
	if (stops_at_write && n == sizeof(uint64_t)) {
		stops_at_write = false;
		raise(SIGSTOP);
	}
	if (polled_at_write && n == sizeof(uint64_t)) {
		struct ibv_wc wc;

		found_at_write = ibv_poll_cq(polled_at_write, 1, &wc);
		polled_at_write = NULL;
	}
	return syscall(SYS_write, fd, buf, n);
}

/* ---- ends whose receives complete on CQs of one channel ---- */

static void make(struct vp_end *e, int number)
{
	struct vp_opts o = vp_defaults();

	vp_make(e, ctx, &o);
	CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	CHECK_EQ(ibv_destroy_cq(e->rcq), 0);
	e->rcq = ibv_create_cq(ctx, 16, (void *)(intptr_t)number, ch, 0);
	if (!e->rcq)
		die("create_cq");
	e->qp = vp_extra_qp(e);
}

static void join(struct vp_end *x, struct vp_end *y)
{
	struct vp_addr ax = vp_addr(x), ay = vp_addr(y);

	vp_connect(x, &ay);
	vp_connect(y, &ax);
}

static void begin(void)
{
	ctx = vp_open();
	ch = ibv_create_comp_channel(ctx);
	if (!ch)
		die("create_comp_channel");
	CHECK_EQ(fcntl(ch->fd, F_SETFL, O_NONBLOCK), 0);
}

static void end(void)
{
	CHECK_EQ(ibv_destroy_comp_channel(ch), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

static bool readable(int ms)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

/* The number of the CQ whose event is next, which must come; -1 if not. */
static int next(void)
{
	struct ibv_cq *cq;
	void *number;

	if (!CHECK(readable(VP_DEADLINE_MS)) || !CHECK_EQ(ibv_get_cq_event(ch, &cq, &number), 0))
		return -1;
	ibv_ack_cq_events(cq, 1);
	return (int)(intptr_t)number;
}

static void none(void)
{
	struct ibv_cq *cq;
	void *number;

	errno = 0;
	CHECK_EQ(ibv_get_cq_event(ch, &cq, &number), -1);
	CHECK_EQ(errno, EAGAIN);
}

static void arm(struct vp_end *e)
{
	CHECK_EQ(ibv_req_notify_cq(e->rcq, 0), 0);
}

static void message(struct vp_end *from, struct vp_end *to)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_recv(to, 1, 0, 8), 0);
	CHECK_EQ(vp_post_send(from, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(from->scq, &wc, IBV_WC_SUCCESS, 2);
	vp_want(to->rcq, &wc, IBV_WC_SUCCESS, 1);
}

/* ---- in one process ---- */

static struct vp_end from[CQS], to[CQS];

static void make_all(int n)
{
	struct vp_opts o = vp_defaults();

	begin();
	for (int i = 0; i < n; i++) {
		vp_make(&from[i], ctx, &o);
		make(&to[i], i);
		join(&from[i], &to[i]);
	}
}

static void free_all(int n)
{
	for (int i = 0; i < n; i++) {
		vp_free(&from[i]);
		vp_free(&to[i]);
	}
	end();
}

static void in_order(void)
{
	make_all(CQS);
	for (int step = 1; step < CQS; step += 2) {
		if (CQS % step == 0 && step > 1)
			continue;
		check_case("%d CQs, each %d-th", CQS, step);
		for (int i = 0; i < CQS; i++) {
			arm(&to[i * step % CQS]);
			message(&from[i * step % CQS], &to[i * step % CQS]);
		}
		for (int i = 0; i < CQS; i++)
			CHECK_EQ(next(), i * step % CQS);
		none();
	}
	check_case("a CQ goes with its events, others stay");
	for (int i = 0; i < 3; i++) {
		arm(&to[i]);
		message(&from[i], &to[i]);
	}
	CHECK_EQ(ibv_destroy_qp(to[1].qp), 0);
	CHECK_EQ(ibv_destroy_cq(to[1].rcq), 0);
	CHECK_EQ(next(), 0);
	CHECK_EQ(next(), 2);
	CHECK(!readable(0));
	none();
	to[1].rcq = to[1].scq;
	to[1].qp = vp_extra_qp(&to[1]);
	free_all(CQS);
}

/* More events than the order is kept of. */
static void overflow(void)
{
	int of[2] = {0, 0};

	check_case("%d events that nobody takes", MANY);
	make_all(3);
	for (int i = 0; i < MANY; i++) {
		arm(&to[i % 2]);
		message(&from[i % 2], &to[i % 2]);
	}
	arm(&to[2]);
	message(&from[2], &to[2]);
	for (int i = 0; i < KEPT; i++) {
		int n = next();

		if (n == 2 || n < 0)
			break; /* it was not kept waiting */
		of[n]++;
	}
	CHECK(of[0] + of[1] < KEPT);
	for (int i = of[0] + of[1] + 1; i <= MANY && !check_failures(); i++)
		of[next() & 1]++;
	CHECK_EQ(of[0], MANY / 2);
	CHECK_EQ(of[1], MANY / 2);
	none();
	check_case("in order again");
	for (int i = 2; i >= 0; i--) {
		arm(&to[i]);
		message(&from[i], &to[i]);
	}
	for (int i = 2; i >= 0; i--)
		CHECK_EQ(next(), i);
	none();
	free_all(3);
}

/* ---- from several processes ---- */

enum word { WORD_SEND, WORD_SEND_STOPPING, WORD_SEND_POLLING };

static void *begin_sender(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	static struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	return &e;
}

static void send_as_told(void *self, int fd, const void *order, void *answer)
{
	enum word word = *(const uint64_t *)order;
	struct vp_end *e = self;
	struct ibv_wc wc;

	(void)fd;
	(void)answer;
	stops_at_write = word == WORD_SEND_STOPPING;
	polled_at_write = word == WORD_SEND_POLLING ? e->scq : NULL;
	CHECK_EQ(vp_post_send(e, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	if (word == WORD_SEND_POLLING)
		CHECK_EQ(found_at_write, 1);
	else
		vp_want(e->scq, &wc, IBV_WC_SUCCESS, 2);
}

static void end_sender(void *self)
{
	struct vp_end *e = self;

	vp_free(e);
	ibv_close_device(e->ctx);
}

static const struct far_kind sender = {
	.order = sizeof(uint64_t),
	.answer = sizeof(uint64_t),
	.begin = begin_sender,
	.obey = send_as_told,
	.end = end_sender,
};

static struct vp_child procs[PROCS];

static void start_all(void)
{
	for (int i = 0; i < PROCS; i++)
		procs[i] = far_start(&sender, NULL);
	begin();
	for (int i = 0; i < PROCS; i++) {
		make(&to[i], i);
		vp_meet(&to[i], procs[i].fd);
	}
}

/* Of all processes the first so many live. */
static void end_all(int alive)
{
	for (int i = 0; i < alive; i++)
		far_end(&procs[i]);
	for (int i = 0; i < PROCS; i++)
		vp_free(&to[i]);
	end();
}

static void expect(int i)
{
	arm(&to[i]);
	CHECK_EQ(vp_post_recv(&to[i], 1, 0, 8), 0);
}

static void got(int i)
{
	struct ibv_wc wc;

	vp_want(to[i].rcq, &wc, IBV_WC_SUCCESS, 1);
}

static void send_by(int i)
{
	expect(i);
	far_ask_word(&procs[i], &sender, WORD_SEND);
}

static void processes(void)
{
	check_case("%d processes", PROCS);
	start_all();
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < PROCS; i++)
			send_by((i * 3 + round) % PROCS);
		for (int i = 0; i < PROCS; i++) {
			CHECK_EQ(next(), (i * 3 + round) % PROCS);
			got((i * 3 + round) % PROCS);
		}
		none();
	}
	end_all(PROCS);
}

/* Who is woken by a message may answer: the sender's own completion is there before. */
static void sender_first(void)
{
	check_case("a sleeper is told after the send has completed");
	start_all();
	for (int i = 0; i < PROCS; i++) {
		expect(i);
		far_ask_word(&procs[i], &sender, WORD_SEND_POLLING);
		CHECK_EQ(next(), i);
		got(i);
	}
	none();
	end_all(PROCS);
}

/* The last has the CQ that is first when all are looked at; it stops before it writes the fd. */
static void stop_one(void)
{
	int status;

	expect(LAST);
	far_tell(&procs[LAST], &sender, &(uint64_t){WORD_SEND_STOPPING});
	CHECK_EQ(waitpid(procs[LAST].pid, &status, WUNTRACED), procs[LAST].pid);
	CHECK(WIFSTOPPED(status));
}

/* Those of all others come; perhaps the stopped one's, too. */
static void others_come(void)
{
	int seen = 0;

	for (int i = 0; i < LAST; i++)
		send_by(i);
	while (seen < LAST && !check_failures()) {
		int i = next();

		if (i == LAST)
			continue;
		CHECK_EQ(i, seen);
		got(i);
		seen++;
	}
}

static void stopped(void)
{
	check_case("a process stopped in the middle of firing");
	start_all();
	stop_one();
	others_come();
	others_come();
	kill(procs[LAST].pid, SIGCONT);
	vp_hear(procs[LAST].fd);
	got(LAST);
	while (readable(0)) { /* the count that it wrote late is one too many */
		struct ibv_cq *cq;
		void *number;

		if (ibv_get_cq_event(ch, &cq, &number))
			CHECK_EQ(errno, EAGAIN);
		else
			ibv_ack_cq_events(cq, 1);
	}
	check_case("... and later");
	for (int i = LAST; i >= 0; i--)
		send_by(i);
	for (int i = LAST; i >= 0; i--) {
		CHECK_EQ(next(), i);
		got(i);
	}
	none();
	end_all(PROCS);
}

static void killed(void)
{
	check_case("a process killed in the middle of firing");
	start_all();
	stop_one();
	vp_kill_join(&procs[LAST]);
	CHECK_EQ(next(), LAST); /* weftd tells */
	got(LAST);
	others_come();
	end_all(LAST);
}

/* ---- channels come and go ---- */

static void channels(void)
{
	check_case("%d channels", CHANNELS);
	for (int i = 0; i < CHANNELS; i++) {
		make_all(2);
		for (int j = 1; j >= 0; j--) {
			arm(&to[j]);
			message(&from[j], &to[j]);
		}
		CHECK_EQ(next(), 1);
		if (i % 2)
			CHECK_EQ(next(), 0);
		free_all(2);
	}
}

int main(void)
{
	processes();
	sender_first();
	stopped();
	killed();
	in_order();
	overflow();
	channels();
	return check_result();
}
