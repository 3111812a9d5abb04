// SPDX-License-Identifier: BSD-3-Clause
/*
 * A receive of a shared queue gets bytes of one message alone, also while regions of its pages come
 * and go: what lies behind a short one is as it was before.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	ROUNDS = 30,
	SENDERS = 2,
	LONG = 2 << 20,
	SHORT = 8192,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};

static uint32_t length_of(unsigned sender)
{
	return sender ? SHORT : LONG;
}

/* ---- who sends ---- */

struct sender {
	struct vp_end e;
	unsigned number;
	pthread_barrier_t *go;
};

static void *send_all(void *arg)
{
	struct sender *s = arg;
	uint32_t len = length_of(s->number);
	struct ibv_wc wc;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(s->go);
		CHECK_EQ(
			vp_post_send(&s->e, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, len, NULL, 0), 0);
		vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, i);
		pthread_barrier_wait(s->go);
	}
	return NULL;
}

static void senders(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct sender s[SENDERS];
	pthread_t thread[SENDERS];
	pthread_barrier_t go;

	(void)arg;
	o.len = LONG;
	pthread_barrier_init(&go, NULL, SENDERS + 1);
	for (unsigned i = 0; i < SENDERS; i++) {
		s[i].number = i;
		s[i].go = &go;
		vp_make(&s[i].e, ctx, &o);
		memset(s[i].e.buf, i + 1, LONG);
		vp_meet(&s[i].e, fd);
		if (pthread_create(&thread[i], NULL, send_all, &s[i]))
			die("pthread_create");
	}
	for (int i = 0; i < ROUNDS; i++) {
		vp_sync(fd);
		pthread_barrier_wait(&go);
		pthread_barrier_wait(&go);
	}
	for (unsigned i = 0; i < SENDERS; i++) {
		pthread_join(thread[i], NULL);
		vp_free(&s[i].e);
	}
	pthread_barrier_destroy(&go);
	ibv_close_device(ctx);
}

/* ---- who receives ---- */

static struct {
	struct ibv_pd *pd;
	uint8_t *memory; /* a receive for each sender */
	atomic_bool over;
} me;

/* Regions that peers would map: for each that comes or goes the pages move. */
static void *churn(void *arg)
{
	(void)arg;
	while (!atomic_load(&me.over)) {
		struct ibv_mr *mr = ibv_reg_mr(me.pd, me.memory, SENDERS * LONG, RIGHTS);

		CHECK(mr && ibv_dereg_mr(mr) == 0);
	}
	return NULL;
}

static void post(struct ibv_srq *srq, struct ibv_mr *mr, unsigned i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)me.memory + (size_t)i * LONG, .length = LONG, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void take(struct vp_end *e, unsigned sender)
{
	uint32_t len = length_of(sender);
	const uint8_t *at;
	struct ibv_wc wc;

	if (!vp_poll(e->rcq, &wc, VP_DEADLINE_MS))
		die("no receive");
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, len);
	at = me.memory + wc.wr_id * LONG;
	CHECK(pattern_all(at, len, sender + 1));
	CHECK(pattern_all(at + len, LONG - len, 0));
}

static void receiver(int unused, void *arg)
{
	struct vp_child c = vp_fork(senders, NULL);
	struct ibv_srq_init_attr init = {.attr = {.max_wr = SENDERS, .max_sge = 1}};
	struct ibv_context *ctx = vp_open();
	struct vp_opts o = vp_defaults();
	struct vp_end e[SENDERS];
	pthread_t thread;
	struct ibv_mr *mr;

	(void)unused;
	(void)arg;
	me.pd = ibv_alloc_pd(ctx);
	me.memory = mmap(
		NULL, SENDERS * LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(me.pd, me.memory, SENDERS * LONG, IBV_ACCESS_LOCAL_WRITE);
	o.srq = mr ? ibv_create_srq(me.pd, &init) : NULL;
	if (!o.srq)
		die("ibv_create_srq");
	for (unsigned i = 0; i < SENDERS; i++) {
		vp_make(&e[i], ctx, &o);
		vp_meet(&e[i], c.fd);
	}
	if (pthread_create(&thread, NULL, churn, NULL))
		die("pthread_create");
	for (int n = 0; n < ROUNDS; n++) {
		memset(me.memory, 0, SENDERS * LONG);
		for (unsigned i = 0; i < SENDERS; i++)
			post(o.srq, mr, i);
		vp_sync(c.fd);
		for (unsigned i = 0; i < SENDERS; i++)
			take(&e[i], i);
	}
	atomic_store(&me.over, true);
	pthread_join(thread, NULL);
	vp_join(&c);
	for (unsigned i = 0; i < SENDERS; i++)
		vp_free(&e[i]);
	CHECK_EQ(ibv_destroy_srq(o.srq), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(me.pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	static const char *const movers[] = {"cma", "agent"};

	setenv("WEFT_SHARE", "always", 1);
	for (unsigned i = 0; i < 2; i++) {
		struct vp_child c;

		check_case("mover %s", movers[i]);
		setenv("WEFT_MOVER", movers[i], 1);
		c = vp_fork(receiver, NULL);
		vp_join(&c);
	}
	return check_result();
}
