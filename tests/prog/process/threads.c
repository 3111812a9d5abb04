// SPDX-License-Identifier: BSD-3-Clause
/*
 * Threads on shared objects, in two processes: several post to one QP, several poll one CQ, some
 * arm and sleep, some register memory, some make and destroy queue pairs meanwhile.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum {
	QPS = 2,
	SENDERS = 4, /* two per QP */
	EACH = 3000, /* messages of each sender */
	TOTAL = SENDERS * EACH,
	MESSAGE = 96,
	DEPTH = 64,
	STEP = 128, /* bytes of buffer per request */
};

/* One side: QPs that share a CQ for sends and one for receives. */
struct side {
	struct vp_end first;
	struct ibv_qp *qps[QPS];
	_Atomic int send_done, taken, stop;
	_Atomic uint32_t sum[SENDERS]; /* of the numbers each far sender put into messages */
};

struct sender {
	struct side *side;
	int number;
};

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.channel = true;
	o.send_wr = o.recv_wr = DEPTH;
	o.cqe = 8 * DEPTH;
	o.len = 1 << 20;
	return o;
}

static struct vp_end with_qp(struct side *s, int i)
{
	struct vp_end e = s->first;

	e.qp = s->qps[i];
	return e;
}

static void *send_all(void *arg)
{
	const struct sender *self = arg;
	int me = self->number, done = 0;
	struct vp_end e = with_qp(self->side, me % QPS);
	size_t off = (size_t)(1024 + me) * STEP;
	uint32_t *at = (uint32_t *)(e.buf + off);

	while (done < EACH) {
		at[0] = me;
		at[1] = done + 1;
		/* inline: the bytes are ours again at once */
		struct ibv_sge sge = {.addr = (uintptr_t)at, .length = 8};
		struct ibv_send_wr wr = {.wr_id = me,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
		struct ibv_send_wr *bad;
		int rc = ibv_post_send(e.qp, &wr, &bad);

		if (!rc) {
			done++;
		} else if (rc != ENOMEM) {
			CHECK_EQ(rc, 0);
			break;
		} else {
			usleep(50);
		}
	}
	return NULL;
}

static void took(struct side *s, const struct ibv_wc *wc)
{
	struct vp_end e = with_qp(s, (int)(wc->wr_id >> 32));
	uint32_t *at = (uint32_t *)(e.buf + (wc->wr_id & 0xffff) * STEP);

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	CHECK_EQ(wc->byte_len, 8);
	if (CHECK(at[0] < SENDERS && at[1] >= 1 && at[1] <= EACH))
		atomic_fetch_add(&s->sum[at[0]], at[1]);
	CHECK_EQ(vp_post_recv(&e, wc->wr_id, (wc->wr_id & 0xffff) * STEP, MESSAGE), 0);
	atomic_fetch_add(&s->taken, 1);
}

/* Polls both CQs until all that is expected has come. */
static void *poll_all(void *arg)
{
	double end = now_ms() + 6.0 * VP_DEADLINE_MS;
	struct side *s = arg;
	struct ibv_wc wc[4];

	while ((atomic_load(&s->taken) < TOTAL || atomic_load(&s->send_done) < TOTAL) &&
		now_ms() < end) {
		int n = ibv_poll_cq(s->first.rcq, 4, wc);
		int m;

		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			took(s, &wc[i]);
		m = ibv_poll_cq(s->first.scq, 4, wc);
		CHECK(m >= 0);
		for (int i = 0; i < m; i++)
			CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
		if (m > 0)
			atomic_fetch_add(&s->send_done, m);
		if (n + m <= 0)
			usleep(20);
	}
	CHECK_EQ(atomic_load(&s->taken), TOTAL);
	CHECK_EQ(atomic_load(&s->send_done), TOTAL);
	return NULL;
}

/* Arms both CQs again and again and takes their events. */
static void *arm_all(void *arg)
{
	struct side *s = arg;

	while (!atomic_load(&s->stop)) {
		struct pollfd p = {.fd = s->first.channel->fd, .events = POLLIN};
		struct ibv_cq *cq;
		void *context;

		CHECK_EQ(ibv_req_notify_cq(s->first.rcq, 0), 0);
		CHECK_EQ(ibv_req_notify_cq(s->first.scq, 1), 0);
		if (poll(&p, 1, 2) != 1)
			continue;
		CHECK_EQ(ibv_get_cq_event(s->first.channel, &cq, &context), 0);
		CHECK(cq == s->first.rcq || cq == s->first.scq);
		ibv_ack_cq_events(cq, 1);
	}
	return NULL;
}

/* Registers, makes, connects and destroys beside the traffic. */
static void *churn(void *arg)
{
	struct side *s = arg;

	while (!atomic_load(&s->stop)) {
		struct vp_opts o = options();
		struct vp_end e;
		struct vp_addr me;
		struct ibv_wc wc;

		o.len = 4096;
		vp_make(&e, s->first.ctx, &o);
		me = vp_addr(&e);
		vp_connect(&e, &me);
		CHECK_EQ(vp_post_send(&e, 7, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &me, 64),
			0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 7);
		vp_free(&e);
		usleep(100);
	}
	return NULL;
}

static void connect_all(struct side *s, int fd)
{
	for (int i = 0; i < QPS; i++) {
		struct vp_end e = with_qp(s, i);
		struct vp_addr mine = vp_addr(&e), peer = vp_swap(fd, &mine);

		vp_connect(&e, &peer);
		for (int k = 0; k < DEPTH; k++)
			CHECK_EQ(vp_post_recv(&e, (uint64_t)i << 32 | (i * DEPTH + k),
					 (size_t)(i * DEPTH + k) * STEP, MESSAGE),
				0);
	}
}

static void run(int fd)
{
	void *(*const fn[])(void *) = {poll_all, poll_all, arm_all, churn};
	enum { OTHERS = sizeof fn / sizeof *fn };
	struct side *s = calloc(1, sizeof *s);
	pthread_t sender[SENDERS], other[OTHERS];
	struct sender who[SENDERS];
	struct vp_opts o = options();

	vp_make(&s->first, vp_open(), &o);
	s->qps[0] = s->first.qp;
	s->qps[1] = vp_extra_qp(&s->first);
	connect_all(s, fd);
	vp_sync(fd);
	for (int i = 0; i < OTHERS; i++)
		if (pthread_create(&other[i], NULL, fn[i], s))
			die("pthread_create");
	for (int i = 0; i < SENDERS; i++) {
		who[i] = (struct sender){s, i};
		if (pthread_create(&sender[i], NULL, send_all, &who[i]))
			die("pthread_create");
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(sender[i], NULL);
	pthread_join(other[0], NULL);
	pthread_join(other[1], NULL);
	vp_sync(fd);
	atomic_store(&s->stop, 1);
	pthread_join(other[2], NULL);
	pthread_join(other[3], NULL);
	for (int i = 0; i < SENDERS; i++)
		CHECK_EQ(atomic_load(&s->sum[i]), EACH * (EACH + 1) / 2);
	CHECK_EQ(ibv_destroy_qp(s->qps[1]), 0);
	vp_free(&s->first);
	ibv_close_device(s->first.ctx);
	free(s);
}

static void other_process(int fd, void *arg)
{
	(void)arg;
	check_case("threads of two processes, the other");
	run(fd);
}

static void two_processes(void)
{
	struct vp_child c = vp_fork(other_process, NULL);

	check_case("threads of two processes");
	run(c.fd);
	vp_join(&c);
}

static void *other_side(void *arg)
{
	check_case("threads of one process, the other side");
	run(*(int *)arg);
	return NULL;
}

static void one_process(void)
{
	pthread_t t;
	int sv[2];

	check_case("threads of one process");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) ||
		pthread_create(&t, NULL, other_side, &sv[1]))
		die("setup");
	run(sv[0]);
	pthread_join(t, NULL);
	close(sv[0]);
	close(sv[1]);
}

/* ---- one QP, one CQ, many threads ---- */

static struct vp_end near_end, far_end;
static struct vp_addr far_addr;

static void *write_and_add(void *arg)
{
	struct ibv_sge sge = vp_sge(&near_end, (size_t)(intptr_t)arg * 64, 8);
	int done = 0;

	while (done < EACH) {
		struct ibv_send_wr wr = {.wr_id = 3,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.atomic = {far_addr.addr, 1, 0, far_addr.rkey}};
		struct ibv_send_wr *bad;
		struct ibv_wc wc;

		if (ibv_post_send(near_end.qp, &wr, &bad) == 0)
			done++;
		while (ibv_poll_cq(near_end.scq, 1, &wc) > 0)
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	return NULL;
}

static void shared_counter(void)
{
	struct vp_opts o = vp_defaults();
	pthread_t t[SENDERS];
	double end;

	check_case("%d threads add to one word through one QP", SENDERS);
	vp_pair(&near_end, &far_end, &o);
	far_addr = vp_addr(&far_end);
	for (int i = 0; i < SENDERS; i++)
		if (pthread_create(&t[i], NULL, write_and_add, (void *)(intptr_t)i))
			die("pthread_create");
	for (int i = 0; i < SENDERS; i++)
		pthread_join(t[i], NULL);
	end = now_ms() + VP_DEADLINE_MS;
	while (__atomic_load_n((uint64_t *)far_end.buf, __ATOMIC_ACQUIRE) != TOTAL &&
		now_ms() < end) {
		struct ibv_wc wc;

		ibv_poll_cq(near_end.scq, 1, &wc);
	}
	CHECK_EQ(__atomic_load_n((uint64_t *)far_end.buf, __ATOMIC_ACQUIRE), TOTAL);
	vp_pair_free(&near_end, &far_end);
}

/* What another process did between two accesses of ours, the thread sanitizer cannot see. */
#ifdef __SANITIZE_THREAD__
enum { SEES_ALL = false };
#else
enum { SEES_ALL = true };
#endif

int main(void)
{
	if (SEES_ALL)
		two_processes();
	one_process();
	shared_counter();
	return check_result();
}
