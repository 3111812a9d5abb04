// SPDX-License-Identifier: BSD-3-Clause
/*
 * A process with an open device and connected queue pairs forks.  The child's inherited objects
 * answer errors and disturb nobody; it can open the device anew; the parent's traffic goes on.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { ROUNDS = 20, MESSAGES = 50 };

static struct vp_end a, b;
static struct vp_addr to_b;

/* The parent's own pair works. */
static void traffic(int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++) {
		uint64_t id = 1000 + i;

		CHECK_EQ(vp_post_recv(&b, id, 0, 256), 0);
		CHECK_EQ(vp_post_send(&a, id, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 200, NULL, 0), 0);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, id);
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, id);
		CHECK_EQ(vp_post_send(&a, id, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 4000, &to_b,
				 8192),
			0);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, id);
	}
}

/* Everything inherited answers, none of it with success that would not be true. */
static void use_stale(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = a.scq, .recv_cq = a.rcq, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;

	check_case("the child uses what it inherited");
	CHECK(vp_post_send(&a, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0) != 0);
	CHECK(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &to_b, 0) != 0);
	CHECK(vp_post_recv(&b, 1, 0, 8) != 0);
	CHECK(ibv_poll_cq(a.scq, 1, &wc) <= 0);
	CHECK(ibv_poll_cq(b.rcq, 1, &wc) <= 0);
	CHECK(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) != 0);
	ibv_req_notify_cq(a.scq, 0);
	ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init);
	CHECK(!ibv_create_qp(a.pd, &init));
	CHECK(!ibv_create_cq(a.ctx, 8, NULL, a.channel, 0));
	CHECK(!ibv_reg_mr(a.pd, a.buf, 4096, IBV_ACCESS_LOCAL_WRITE));
}

static void destroy_stale(void)
{
	check_case("the child destroys what it inherited");
	ibv_destroy_qp(a.qp);
	ibv_dereg_mr(a.mr);
	ibv_destroy_cq(a.scq);
	ibv_destroy_cq(a.rcq);
	ibv_destroy_comp_channel(a.channel);
	ibv_dealloc_pd(a.pd);
	ibv_close_device(a.ctx);
}

/* Opens the device as a process of its own and talks to the parent. */
static void talk(int fd, bool asks)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	CHECK_EQ(vp_post_recv(&e, 5, 0, 6000), 0);
	vp_sync(fd);
	pattern_fill(e.buf + 8192, 6000, asks);
	CHECK_EQ(vp_post_send(&e, 6, IBV_WR_SEND, IBV_SEND_SIGNALED, 8192, 6000, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 6);
	vp_want(e.rcq, &wc, IBV_WC_SUCCESS, 5);
	CHECK(pattern_filled(e.buf, 6000, !asks));
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

enum act { IDLE, USE, USE_AND_DESTROY, OPEN, USE_AND_OPEN, GRANDCHILD, ACTS };

static void child(int fd, void *arg)
{
	enum act act = *(enum act *)arg;

	if (act == USE || act == USE_AND_DESTROY || act == USE_AND_OPEN)
		use_stale();
	if (act == USE_AND_DESTROY)
		destroy_stale();
	if (act == GRANDCHILD) {
		unsigned before = check_failures();
		pid_t pid = fork();
		int status;

		if (!pid) {
			talk(fd, false);
			_exit(check_failures() != before);
		}
		waitpid(pid, &status, 0);
		check_child(status);
		return;
	}
	if (act == OPEN || act == USE_AND_OPEN)
		talk(fd, false);
}

static void forks(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		enum act act = round % ACTS;
		struct vp_child c;

		check_case("round %d, the child's part is %d", round, act);
		memset(b.buf, 0, b.len);
		c = vp_fork(child, &act);
		traffic(MESSAGES);
		if (act >= OPEN)
			talk(c.fd, true);
		vp_join(&c);
		traffic(MESSAGES);
		CHECK_EQ(vp_get_state(&a), IBV_QPS_RTS);
	}
}

/* ---- events that wait when a process forks ---- */

static void ask_for_events(int fd, void *arg)
{
	struct ibv_async_event ev;
	struct ibv_cq *cq;
	void *context;

	(void)fd, (void)arg;
	CHECK_FAILS(ibv_get_cq_event(b.channel, &cq, &context), EINVAL);
	CHECK_FAILS(ibv_get_async_event(b.ctx, &ev), EINVAL);
}

static void events_stay(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_async_event ev;
	struct vp_end from, to;
	struct ibv_cq *cq;
	struct vp_child c;
	struct ibv_wc wc;
	void *context;

	check_case("events that wait are the parent's");
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	traffic(1);
	vp_pair(&from, &to, &o);
	CHECK_EQ(vp_post_send(&from, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8,
			 &(struct vp_addr){.rkey = 1}, 0),
		0);
	vp_want(from.scq, &wc, IBV_WC_REM_ACCESS_ERR, 1);
	c = vp_fork(ask_for_events, NULL);
	vp_join(&c);
	CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	if (CHECK(vp_async(to.ctx, &ev, VP_DEADLINE_MS)))
		ibv_ack_async_event(&ev);
	vp_pair_free(&from, &to);
}

/* The child is killed, and another stays on while the parent goes on. */
static void killed_child(void)
{
	enum act act = OPEN;
	struct vp_child c = vp_fork(child, &act);
	int status;

	check_case("the child is killed while it is attached");
	traffic(MESSAGES);
	usleep(20000);
	kill(c.pid, SIGKILL);
	waitpid(c.pid, &status, 0);
	close(c.fd);
	traffic(MESSAGES);
}

/* Memory of the child is its own: what arrives at the parent is not seen there, and vice versa. */
static void private_memory(void)
{
	struct ibv_wc wc;
	int status, go[2];
	pid_t pid;

	check_case("the child's snapshot is private");
	memset(b.buf, 0x41, 4096);
	if (pipe(go))
		die("pipe");
	pid = fork();
	if (!pid) {
		char c;

		close(go[1]);
		if (read(go[0], &c, 1) < 0)
			_exit(3);
		_exit(pattern_all(b.buf, 4096, 0x41) ? 0 : 2);
	}
	close(go[0]);
	memset(a.buf, 0x42, 4096);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 4096, &to_b, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1);
	CHECK(pattern_all(b.buf, 4096, 0x42));
	close(go[1]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	check_child(status);
}

/* ---- forks while other threads post ---- */

static _Atomic int stop;

static void *post_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop))
		traffic(10);
	return NULL;
}

static void busy_forks(void)
{
	pthread_t t;

	check_case("forks while another thread posts");
	if (pthread_create(&t, NULL, post_on, NULL))
		die("pthread_create");
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			struct ibv_context *ctx = vp_open();
			struct ibv_pd *pd = ibv_alloc_pd(ctx);

			_exit(pd && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx) ? 0 : 4);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		check_child(status);
	}
	atomic_store(&stop, 1);
	pthread_join(t, NULL);
	traffic(MESSAGES);
}

int main(void)
{
	struct vp_opts o = vp_defaults();

	o.channel = true;
	vp_pair(&a, &b, &o);
	to_b = vp_addr(&b);
	traffic(MESSAGES);
	forks();
	events_stay();
	killed_child();
	private_memory();
	busy_forks();
	vp_pair_free(&a, &b);
	return check_result();
}
