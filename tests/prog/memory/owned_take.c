// SPDX-License-Identifier: BSD-3-Clause
/*
 * owned_take [ROUNDS]: memory that only functions reach is taken away under load, so many times at
 * either end, and either process is stopped or killed: documented completions, no call after the
 * memory has gone, nobody hangs.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/howto/memory/toy.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 128 * 1024, SHORT_ROUNDS = 15, KILLS = 3, SHORT_ACK = 14, SOON_MS = 20000 };
#define TOY_IOVA 0x5a5a00000000ull

static int rounds = SHORT_ROUNDS;

struct side {
	struct vp_end e;
	struct toy toy;
	struct vp_addr peer;
	uint32_t peer_toy;
	int sock;
};

static void make(struct side *s, int sock)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.timeout = SHORT_ACK;
	o.retry_cnt = 1;
	s->sock = sock;
	vp_make(&s->e, vp_open(), &o);
}

static void reg(struct side *s)
{
	CHECK_EQ(toy_reg(&s->toy, s->e.pd, LEN, TOY_IOVA, s->e.opts.mr_access), 0);
}

static void meet(struct side *s)
{
	if (vp_get_state(&s->e) != IBV_QPS_RESET)
		CHECK_EQ(vp_state(&s->e, IBV_QPS_RESET), 0);
	s->peer = vp_meet(&s->e, s->sock);
	vp_tell(s->sock, s->toy.key);
	s->peer_toy = vp_hear(s->sock);
	vp_sync(s->sock);
}

/* Between the two toys. */
static int post(struct side *s, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = {.addr = TOY_IOVA, .length = LEN, .lkey = s->toy.key};
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = op,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = {.remote_addr = TOY_IOVA, .rkey = s->peer_toy}},
			   *bad;

	return ibv_post_send(s->e.qp, &wr, &bad);
}

/* Posts without end until one fails; its status. */
static enum ibv_wc_status go_on(struct side *s, enum ibv_wr_opcode op)
{
	struct ibv_wc wc;

	do {
		CHECK_EQ(post(s, op), 0);
		if (!vp_poll(s->e.scq, &wc, 2 * VP_DEADLINE_MS))
			die("a request never ended");
	} while (wc.status == IBV_WC_SUCCESS);
	return wc.status;
}

/* The memory has been used since, and is used now as far as can be seen. */
static void await_use(struct side *s)
{
	unsigned before = atomic_load(&s->toy.calls);

	while (atomic_load(&s->toy.calls) < before + 3 || !atomic_load(&s->toy.inside))
		sched_yield();
}

static void take_away(struct side *s)
{
	double start = now_ms();
	unsigned calls;

	toy_dereg(&s->toy);
	CHECK_RANGE(now_ms() - start, 0, SOON_MS);
	CHECK_EQ(atomic_load(&s->toy.inside), 0);
	CHECK(!s->toy.store);
	calls = atomic_load(&s->toy.calls);
	usleep(300);
	CHECK_EQ(atomic_load(&s->toy.calls), calls);
}

static enum ibv_wr_opcode op_of_round(int i)
{
	return i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
}

/* ---- taken away by the responder, then by the requester ---- */

static void requester(struct side *s)
{
	struct ibv_wc wc;

	for (int i = 0; i < rounds; i++) {
		check_case("the responder takes it away, round %d", i);
		meet(s);
		CHECK_EQ(go_on(s, op_of_round(i)), IBV_WC_REM_ACCESS_ERR);
		vp_sync(s->sock);
	}
	for (int i = 0; i < rounds; i++) {
		check_case("the requester takes it away, round %d", i);
		meet(s);
		CHECK_EQ(post(s, op_of_round(i)), 0);
		CHECK_EQ(post(s, op_of_round(i)), 0);
		while (!atomic_load(&s->toy.calls))
			sched_yield();
		take_away(s);
		CHECK(vp_poll(s->e.scq, &wc, VP_DEADLINE_MS));
		if (wc.status == IBV_WC_SUCCESS)
			CHECK(vp_poll(s->e.scq, &wc, VP_DEADLINE_MS));
		CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_PROT_ERR);
		while (ibv_poll_cq(s->e.scq, 1, &wc) > 0)
			;
		reg(s);
		vp_sync(s->sock);
	}
}

static void responder(struct side *s)
{
	for (int i = 0; i < rounds; i++) {
		check_case("taken away under load, round %d", i);
		meet(s);
		await_use(s);
		take_away(s);
		reg(s);
		vp_sync(s->sock);
	}
	for (int i = 0; i < rounds; i++) {
		meet(s);
		vp_sync(s->sock);
	}
}

static void finish(struct side *s)
{
	CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
	s->e.qp = NULL;
	toy_dereg(&s->toy);
	vp_free(&s->e);
	ibv_close_device(s->e.ctx);
}

static void run_responder(int fd, void *arg)
{
	static struct side s;

	(void)arg;
	make(&s, fd);
	reg(&s);
	responder(&s);
	finish(&s);
}

static void taken_away(void)
{
	static struct side s;
	struct vp_child c = vp_fork(run_responder, NULL);

	make(&s, c.fd);
	reg(&s);
	requester(&s);
	finish(&s);
	vp_join(&c);
}

/* ---- a process of its own that uses, or is used ---- */

static void run_used(int fd, void *arg)
{
	static struct side s;

	(void)arg;
	make(&s, fd);
	reg(&s);
	meet(&s);
	vp_hear(fd);
	finish(&s);
}

static void run_user(int fd, void *arg)
{
	static struct side s;

	(void)arg;
	make(&s, fd);
	reg(&s);
	meet(&s);
	vp_tell(fd, go_on(&s, IBV_WR_RDMA_WRITE));
	finish(&s);
}

static void with_end(
	void (*fn)(struct side *s, struct vp_child *c), void (*other)(int fd, void *arg))
{
	static struct side s;
	struct vp_child c = vp_fork(other, NULL);

	make(&s, c.fd);
	reg(&s);
	meet(&s);
	fn(&s, &c);
	finish(&s);
}

static void owner_killed(struct side *s, struct vp_child *c)
{
	check_case("the owner is killed");
	CHECK_EQ(post(s, IBV_WR_RDMA_WRITE), 0);
	kill(c->pid, SIGKILL);
	CHECK_EQ(go_on(s, IBV_WR_RDMA_WRITE), IBV_WC_RETRY_EXC_ERR);
	vp_kill_join(c);
}

static void owner_stopped(struct side *s, struct vp_child *c)
{
	check_case("the owner is stopped");
	vp_stop(c);
	CHECK_EQ(go_on(s, IBV_WR_RDMA_WRITE), IBV_WC_RETRY_EXC_ERR);
	check_case("... and its peer's memory can go");
	take_away(s);
	reg(s);
	kill(c->pid, SIGCONT);
	vp_tell(c->fd, 1);
	vp_join(c);
}

static void user_killed(struct side *s, struct vp_child *c)
{
	check_case("the requester is killed");
	await_use(s);
	vp_kill_join(c);
	take_away(s);
	reg(s);
}

static void user_stopped(struct side *s, struct vp_child *c)
{
	check_case("the requester is stopped");
	await_use(s);
	vp_stop(c);
	take_away(s);
	reg(s);
	kill(c->pid, SIGCONT);
	CHECK_EQ(vp_hear(c->fd), IBV_WC_REM_ACCESS_ERR);
	vp_join(c);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		rounds = atoi(argv[1]);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < KILLS; i++) {
		with_end(owner_killed, run_used);
		with_end(user_killed, run_user);
	}
	with_end(owner_stopped, run_used);
	with_end(user_stopped, run_user);
	taken_away();
	return check_result();
}
