// SPDX-License-Identifier: BSD-3-Clause
/*
 * A process is stopped, or killed, after some instructions of a send that fires a CQ.  While it
 * lies there the owner of that CQ gets the events of another process on the same channel; when it
 * goes on, its own come, too; and whenever poll(2) says that the channel can be read there is one.
 *
 * usage: event_steps [STOPS [KILLS]]
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stepper.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { STOPS = 60, KILLS = 10, LEN = 8, STEPPED = 0, OTHER = 1, PEERS = 2, SKIP = 77 };

static struct vp_child child[PEERS];
static struct vp_end end[PEERS];
static unsigned came[PEERS], events[PEERS];
static struct ibv_comp_channel *channel;
static struct agent stepped;

/* ---- a peer ---- */

static void trap(void)
{
#if defined(__x86_64__)
	__asm__ volatile("int3");
#endif
}

static void peer(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	bool traps = arg;
	struct vp_end e;
	struct ibv_wc wc;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	while (vp_hear(fd)) {
		if (traps)
			trap();
		CHECK_EQ(vp_post_send(&e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
		if (traps)
			trap();
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, 1);
		vp_sync(fd);
	}
}

/* ---- the owner ---- */

static void arm(unsigned i)
{
	CHECK_EQ(ibv_req_notify_cq(end[i].rcq, 0), 0);
}

static void start(unsigned i)
{
	struct vp_opts o = vp_defaults();

	o.on = channel;
	vp_make(&end[i], channel->context, &o);
	vp_meet(&end[i], child[i].fd);
	came[i] = events[i] = 0;
	if (i == STEPPED) {
		stepped = (struct agent){.pid = child[i].pid};
		if (stepper_attach(&stepped)) {
			puts("a process may not be stepped here");
			exit(SKIP);
		}
	}
}

static void restart(unsigned i)
{
	vp_free(&end[i]);
	child[i] = vp_fork(peer, i == STEPPED ? &child[i] : NULL);
	start(i);
}

static void take_event(void)
{
	struct ibv_cq *cq = NULL;
	void *context;
	struct vp_end *e;
	struct ibv_wc wc;

	if (!CHECK_EQ(ibv_get_cq_event(channel, &cq, &context), 0))
		return;
	e = context;
	events[e - end]++;
	ibv_ack_cq_events(cq, 1);
	while (ibv_poll_cq(e->rcq, 1, &wc) == 1) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		came[e - end]++;
	}
}

/* Sleeps until a message more of peer i has come. */
static bool await(unsigned i, unsigned n)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	while (came[i] < n) {
		if (!CHECK_EQ(poll(&p, 1, VP_DEADLINE_MS), 1))
			return false;
		take_event();
	}
	return true;
}

/* The event that was told with the last message may be one more. */
static void quiet(void)
{
	struct pollfd p = {.fd = channel->fd, .events = POLLIN};

	while (poll(&p, 1, 0) == 1)
		take_event();
}

/* Has the process stepped into its send by n steps; how many there were, or -1. */
static long step_into(long n, bool *behind)
{
	long made;

	for (unsigned i = 0; i < PEERS; i++) {
		CHECK_EQ(vp_post_recv(&end[i], 2, 0, LEN), 0);
		arm(i);
	}
	vp_tell(child[STEPPED].fd, 1);
	made = stepper_into(&stepped, n, behind);
	return CHECK(made >= 0) ? made : -1;
}

static bool other_sends(void)
{
	unsigned n = came[OTHER] + 1;

	vp_tell(child[OTHER].fd, 1);
	if (!await(OTHER, n))
		return false;
	vp_sync(child[OTHER].fd);
	return true;
}

/* Stopped there; how many steps it has in all. */
static long stop_at(long n)
{
	bool behind, ok;
	long made = step_into(n, &behind);

	if (made < 0)
		return -1;
	ok = other_sends();
	CHECK_EQ(stepper_go_on(&stepped, behind), 0);
	ok = await(STEPPED, came[STEPPED] + (came[STEPPED] < came[OTHER])) && ok;
	vp_sync(child[STEPPED].fd);
	quiet();
	return ok ? made : -1;
}

static bool kill_at(long n)
{
	bool behind, ok;

	if (step_into(n, &behind) < 0)
		return false;
	kill(child[STEPPED].pid, SIGKILL);
	waitpid(child[STEPPED].pid, NULL, 0);
	close(child[STEPPED].fd);
	ok = other_sends();
	quiet();
	restart(STEPPED);
	came[STEPPED] = came[OTHER];
	return ok;
}

int main(int argc, char **argv)
{
	long stops = argc > 1 ? atol(argv[1]) : STOPS, kills = argc > 2 ? atol(argv[2]) : KILLS;
	long length;

	if (!stepper_works()) {
		puts("no steps on this machine");
		return SKIP;
	}
	for (unsigned i = 0; i < PEERS; i++)
		child[i] = vp_fork(peer, i == STEPPED ? &child[i] : NULL);
	channel = ibv_create_comp_channel(vp_open());
	CHECK_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned i = 0; i < PEERS; i++)
		start(i);
	stop_at(0);
	length = stop_at(LONG_MAX);
	for (long i = 0; i < stops && length > 0; i++) {
		check_case("stopped %ld of %ld steps into a send", i * length / stops, length);
		if (stop_at(i * length / stops) < 0)
			break;
	}
	for (long i = 0; i < kills && length > 0; i++) {
		check_case("killed %ld of %ld steps into a send", i * length / kills, length);
		if (!kill_at(i * length / kills))
			break;
	}
	stepper_detach(&stepped);
	for (unsigned i = 0; i < PEERS; i++) {
		vp_tell(child[i].fd, 0);
		vp_join(&child[i]);
	}
	return check_result();
}
