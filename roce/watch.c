// SPDX-License-Identifier: BSD-3-Clause
#include "roce/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/own_fd.h"
#include "base/thread.h"
#include "rdv/rdv.h"
#include "roce/engine.h"
#include "roce/join.h"
#include "roce/mcast.h"
#include "roce/port/keeper.h"

enum {
	IN_VAIN_MAX = 64, /* wake-ups in a row for packets that others had taken */
	NAP_NS = NSEC_PER_MSEC,
	SLACK_NS = 50 * NSEC_PER_USEC, /* so much later is as good */
	GROUPS = KEEPER_FDS + 1,
	BELL,
	WEFTD,
	FDS,
};

static struct {
	struct lock lock;
	bool started;
	struct own_fd bell;
	_Atomic uint64_t until; /* when it wakes by itself; 0: soon, UINT64_MAX: never */
} watch;

void watch_wake(void)
{
	static const uint64_t one = 1;
	int saved = errno;

	if (own_fd_ok(&watch.bell) && write(watch.bell.fd, &one, sizeof one) < 0)
		errno = saved;
	errno = saved;
}

void watch_until(uint64_t next, bool self)
{
	uint64_t until = atomic_load_explicit(&watch.until, memory_order_relaxed);

	if (self || !next || next + SLACK_NS >= until)
		return;
	atomic_store_explicit(&watch.until, next, memory_order_relaxed);
	watch_wake();
}

/* ---- the thread ---- */

/* What it sleeps on; -1 is not looked at. */
static void fill(struct pollfd p[FDS])
{
	const struct rdv_wire *wire = join_sockets();

	for (int i = 0; i < KEEPER_FDS; i++)
		p[i] = (struct pollfd){
			.fd = wire->fd[i], .events = POLLIN | (tx_waits(i) ? POLLOUT : 0)};
	p[KEEPER_FDS] = (struct pollfd){.fd = wire->hand, .events = POLLIN};
	p[GROUPS] = (struct pollfd){.fd = mcast_fd(), .events = POLLIN};
	p[BELL] = (struct pollfd){.fd = watch.bell.fd, .events = POLLIN};
	p[WEFTD] = (struct pollfd){.fd = rdv_socket()}; /* its end alone */
}

/* Until when it may sleep now, as *left; said before the engine goes on. */
static struct timespec *plan(struct pollfd p[FDS], struct timespec *left)
{
	uint64_t next, now = clock_ns();

	engine_stop();
	next = engine_next();
	fill(p);
	atomic_store_explicit(&watch.until, next ? next : UINT64_MAX, memory_order_relaxed);
	engine_go();
	if (!next)
		return NULL;
	next = next > now ? next - now : 0;
	left->tv_sec = (time_t)(next / NSEC_PER_SEC);
	left->tv_nsec = (long)(next % NSEC_PER_SEC);
	return left;
}

static void hush(void)
{
	uint64_t n;

	if (own_fd_ok(&watch.bell) && read(watch.bell.fd, &n, sizeof n) < 0)
		return;
}

/*
 * A new weftd steers our packets only once we have come to it.  A moment later, for its end may be
 * another's to see, or not quite there yet.
 */
static void find_weftd(void)
{
	const struct timespec ms = {.tv_nsec = NSEC_PER_MSEC};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
	rdv_check();
}

/* Sleeps, and serves.  True: it woke for packets that were gone. */
static bool on_duty(void)
{
	struct pollfd p[FDS];
	struct timespec left;
	int n = ppoll(p, FDS, plan(p, &left), NULL);
	bool packets = false;

	atomic_store_explicit(&watch.until, 0, memory_order_relaxed);
	for (int i = 0; i < BELL && n > 0; i++)
		packets |= p[i].revents;
	if (n > 0 && p[BELL].revents)
		hush();
	if (n > 0 && p[WEFTD].revents)
		find_weftd();
	engine_run(ENGINE_WATCH);
	return packets;
}

static bool unserved(void)
{
	const struct rdv_wire *wire = join_sockets();
	struct pollfd p[KEEPER_FDS];

	for (int i = 0; i < KEEPER_FDS; i++)
		p[i] = (struct pollfd){.fd = wire->fd[i], .events = POLLIN};
	return poll(p, KEEPER_FDS, 0) > 0;
}

/* While the program looks itself. */
static void nap(void)
{
	const struct timespec ms = {.tv_nsec = NAP_NS};
	uint32_t looks;

	do {
		looks = engine_looks();
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
	} while (engine_looks() != looks && !unserved());
}

static void *run(void *arg)
{
	unsigned in_vain = 0;

	thread_runs_briefly();
	while (1) {
		uint32_t looks = engine_looks();

		on_duty();
		/* others took what woke us */
		in_vain = engine_looks() != looks ? in_vain + 1 : 0;
		if (in_vain < IN_VAIN_MAX)
			continue;
		nap();
		in_vain = 0;
	}
	return arg;
}

static int start(void)
{
	pthread_t thread;
	int rc;

	watch.bell = own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (watch.bell.fd < 0)
		return -errno;
	rc = thread_start(&thread, "weft-watch", THREAD_SMALL, run, NULL);
	if (rc) {
		own_fd_close(&watch.bell);
		return -rc;
	}
	pthread_detach(thread);
	watch.started = true;
	return 0;
}

int watch_start(void)
{
	int rc = 0;

	lock_take(&watch.lock);
	if (!watch.started)
		rc = start();
	lock_drop(&watch.lock);
	if (rc)
		log_line(LOG_LVL_ERROR,
			"no thread for packets of other hosts: only calls serve them");
	return rc;
}

void watch_forked_child(void)
{
	atomic_store_explicit(&watch.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&watch.until, 0, memory_order_relaxed);
	watch.started = false;
	own_fd_close(&watch.bell);
}
