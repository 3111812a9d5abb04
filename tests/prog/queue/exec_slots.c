// SPDX-License-Identifier: BSD-3-Clause
/*
 * More threads than a segment has exec slots, each with one of them: what another thread does is
 * done all the same.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { THREADS = 1100, RECVS = 4, STACK = 64 * 1024, WAIT_MS = 30000 };

static struct vp_end a, b;
static pthread_mutex_t posting = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_have;
static atomic_bool over;
static pthread_mutex_t end_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t at_end = PTHREAD_COND_INITIALIZER;

/* ---- those who have the slots ---- */

static void *hold(void *arg)
{
	struct vp_addr to = vp_addr(&b);
	struct ibv_wc wc;

	(void)arg;
	pthread_mutex_lock(&posting);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &to, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1);
	pthread_mutex_unlock(&posting);
	pthread_barrier_wait(&all_have);
	pthread_mutex_lock(&end_lock);
	while (!over)
		pthread_cond_wait(&at_end, &end_lock);
	pthread_mutex_unlock(&end_lock);
	return NULL;
}

static void start(pthread_t *threads)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_barrier_init(&all_have, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], &attr, hold, NULL))
			die("no %d threads here", THREADS);
	pthread_attr_destroy(&attr);
	pthread_barrier_wait(&all_have);
}

static void end(pthread_t *threads)
{
	pthread_mutex_lock(&end_lock);
	over = true;
	pthread_cond_broadcast(&at_end);
	pthread_mutex_unlock(&end_lock);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- one who comes too late ---- */

static void write_goes(void)
{
	struct vp_addr to = vp_addr(&b);
	struct ibv_wc wc;

	check_case("a WRITE is executed");
	a.buf[0] = 77;
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 1, &to, 9), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
	CHECK_EQ(b.buf[9], 77);
}

/* What waits for a receive goes on when one is posted. */
static void parked_goes(void)
{
	struct ibv_wc wc;

	check_case("a SEND that waits is executed");
	CHECK_EQ(vp_post_send(&a, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	CHECK_EQ(vp_post_recv(&b, 4, 64, 8), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 3);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 4);
}

static void event_comes(void)
{
	struct pollfd p = {.fd = b.channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	check_case("arming a CQ that has completions gives an event");
	CHECK_EQ(vp_post_recv(&b, 5, 64, 8), 0);
	CHECK_EQ(vp_post_send(&a, 6, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 6);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	if (CHECK_EQ(poll(&p, 1, WAIT_MS), 1)) {
		CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), 0);
		CHECK(cq == b.rcq);
		ibv_ack_cq_events(cq, 1);
	}
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 5);
}

static void flush_comes(void)
{
	struct ibv_wc wc;

	check_case("ERR flushes");
	for (unsigned i = 0; i < RECVS; i++)
		CHECK_EQ(vp_post_recv(&b, 10 + i, 64, 8), 0);
	CHECK_EQ(vp_state(&b, IBV_QPS_ERR), 0);
	for (unsigned i = 0; i < RECVS; i++)
		vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 10 + i);
	CHECK_EQ(vp_post_recv(&b, 20, 64, 8), 0);
	vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 20);
}

static void *come_late(void *arg)
{
	(void)arg;
	write_goes();
	parked_goes();
	event_comes();
	flush_comes();
	return NULL;
}

int main(void)
{
	pthread_t *threads = calloc(THREADS, sizeof *threads), late;
	struct vp_opts o = vp_defaults();

	o.len = 4096;
	o.channel = true;
	o.rnr_retry = 7;
	vp_pair(&a, &b, &o);
	start(threads);
	CHECK(!pthread_create(&late, NULL, come_late, NULL));
	CHECK(!pthread_join(late, NULL));
	end(threads);
	vp_pair_free(&a, &b);
	free(threads);
	return check_result();
}
