// SPDX-License-Identifier: BSD-3-Clause
/*
 * owned_back [had]: a requester that sleeps until a completion reads from memory that only
 * functions of another process reach.  The kernel refuses that process its memory, so what was
 * handed over comes back, to a process that has no agent; or (had) had one, which has ended.
 */
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/howto/memory/toy.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 20000, SKIP = 77, HANG_S = 20 };
#define TOY_IOVA 0x5a5a00000000ull

static void filter(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);

	if (!f || seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_readv), 0) ||
		seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(process_vm_writev), 0) ||
		seccomp_load(f)) {
		printf("no seccomp here\n");
		exit(SKIP);
	}
	seccomp_release(f);
}

static void make(struct vp_end *e)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.channel = true;
	vp_make(e, vp_open(), &o);
}

static void free_end(struct vp_end *e)
{
	vp_free(e);
	ibv_close_device(e->ctx);
}

static void owner(int fd, void *arg)
{
	static uint8_t bytes[LEN];
	struct vp_end e;
	struct toy t;

	(void)arg;
	make(&e);
	vp_meet(&e, fd);
	filter(); /* for the agent, which begins with the region, as well */
	CHECK_EQ(toy_reg(&t, e.pd, LEN, TOY_IOVA, e.opts.mr_access), 0);
	pattern_fill(bytes, LEN, 1);
	toy_put(&t, 0, bytes, LEN);
	pthread_mutex_lock(&t.lock); /* the functions stop, until who waits for them is asleep */
	vp_tell(fd, t.key);
	while (!atomic_load(&t.calls))
		sched_yield();
	await_sleep(getppid());
	pthread_mutex_unlock(&t.lock);
	vp_sync(fd);
	CHECK_EQ(ibv_destroy_qp(e.qp), 0);
	e.qp = NULL;
	toy_dereg(&t);
	vp_sync(fd);
	free_end(&e);
}

/* As a program does that looks only when there is an event, of which the fd tells. */
static void sleep_for(struct vp_end *e, struct ibv_wc *wc)
{
	struct pollfd p = {.fd = e->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	while (!ibv_poll_cq(e->scq, 1, wc)) {
		if (poll(&p, 1, HANG_S * 1000) != 1)
			die("no event comes");
		CHECK_EQ(ibv_get_cq_event(e->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		CHECK_EQ(ibv_req_notify_cq(cq, 0), 0);
	}
}

static void read_from(struct vp_end *e, uint32_t key)
{
	const struct vp_addr from = {.addr = TOY_IOVA, .rkey = key};
	struct ibv_wc wc;

	CHECK_EQ(ibv_req_notify_cq(e->scq, 0), 0);
	CHECK_EQ(vp_post_send(e, 1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, LEN, &from, 0), 0);
	sleep_for(e, &wc);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK(pattern_filled(e->buf, LEN, 1));
}

static void had_one(struct vp_end *e)
{
	struct toy t;

	CHECK_EQ(toy_reg(&t, e->pd, LEN, TOY_IOVA, e->opts.mr_access), 0);
	toy_dereg(&t);
}

int main(int argc, char **argv)
{
	struct vp_child other = vp_fork(owner, NULL);
	struct vp_end e;

	check_case("what comes back to one that sleeps");
	make(&e);
	if (argc > 1 && !strcmp(argv[1], "had"))
		had_one(&e);
	vp_meet(&e, other.fd);
	read_from(&e, (uint32_t)vp_hear(other.fd));
	vp_sync(other.fd);
	vp_sync(other.fd);
	free_end(&e);
	vp_join(&other);
	return check_result();
}
