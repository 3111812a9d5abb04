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
#include "roce/beside.h"
#include "roce/engine.h"
#include "roce/join.h"
#include "roce/mcast.h"
#include "roce/port/keeper.h"

enum {
	/* so many more wake-ups in vain than others make it nap, */
	IN_VAIN_MIN = 16,
	IN_VAIN_MAX = 16384, /* ... after naps that were wrong */
	IN_VAIN_BACK = 3,    /* as many in vain count as much as one that was not */
	IN_VAIN_TICK = 8,    /* a tick in which the program looked all the time counts as many */
	LOOKS_ALL_TIME = 64, /* looks in a tick */
	TICK_NS = NSEC_PER_MSEC,
	LATELY_NS = 50 * NSEC_PER_USEC,
	NAP_NS = NSEC_PER_MSEC,
	SLACK_NS = 50 * NSEC_PER_USEC,    /* so much later is as good */
	SEEK_MIN_NS = 10 * NSEC_PER_MSEC, /* without a weftd it looks for one, ever more seldom */
	GROUPS = KEEPER_FDS + 1,
	BESIDE,
	BELL,
	WEFTD,
	FDS,
};

#define SEEK_MAX_NS    NSEC_PER_SEC
#define SEEK_FAILED_NS (5 * NSEC_PER_SEC) /* each failure is told */

static struct {
	struct lock lock;
	bool started;
	_Atomic uint32_t number; /* of the one that is on duty; earlier ones end when they wake */
	struct own_fd bell;
	_Atomic uint64_t until;    /* when it wakes by itself; 0: soon, UINT64_MAX: never */
	_Atomic unsigned sleepers; /* threads of the program that packets wake */
	_Atomic bool away;         /* packets do not wake it, since they wake those */
	_Atomic bool relieved;     /* one of those is awake again */
} watch;

void watch_wake(void)
{
	static const uint64_t one = 1;
	int saved = errno;

	if (own_fd_ok(&watch.bell) && write(watch.bell.fd, &one, sizeof one) < 0)
		errno = saved;
	errno = saved;
}

bool watch_until(uint64_t next, bool self)
{
	uint64_t until = atomic_load_explicit(&watch.until, memory_order_relaxed);

	if (self || !next || next + SLACK_NS >= until)
		return false;
	atomic_store_explicit(&watch.until, next, memory_order_relaxed);
	return true;
}

static _Thread_local bool sleeps __attribute__((tls_model("initial-exec")));

void watch_sleeper(void)
{
	watch_awake();
	sleeps = true;
	atomic_fetch_add_explicit(&watch.sleepers, 1, memory_order_seq_cst);
}

void watch_no_sleeper(void)
{
	if (!sleeps) /* a signal's handler called us meanwhile */
		return;
	sleeps = false;
	if (atomic_fetch_sub_explicit(&watch.sleepers, 1, memory_order_seq_cst) > 1 ||
		!atomic_load_explicit(&watch.away, memory_order_seq_cst) ||
		!atomic_exchange_explicit(&watch.away, false, memory_order_seq_cst))
		return;
	atomic_store_explicit(&watch.relieved, true, memory_order_relaxed);
	watch_wake();
}

void watch_awake(void)
{
	if (sleeps)
		watch_no_sleeper();
}

/* ---- the thread ---- */

/* Do packets wake a thread of the program, which serves them? */
static bool stay_away(void)
{
	atomic_store_explicit(&watch.away, true, memory_order_seq_cst);
	if (atomic_load_explicit(&watch.sleepers, memory_order_seq_cst))
		return true;
	atomic_store_explicit(&watch.away, false, memory_order_relaxed);
	return false;
}

/* What it sleeps on; -1 is not looked at. */
static void fill(struct pollfd p[FDS])
{
	const struct rdv_wire *wire = join_sockets();
	short in = stay_away() ? 0 : POLLIN;

	for (int i = 0; i < KEEPER_FDS; i++) {
		short events = in | (tx_waits(i) ? POLLOUT : 0);

		p[i] = (struct pollfd){.fd = events && wire ? wire->fd[i] : -1, .events = events};
	}
	p[KEEPER_FDS] = (struct pollfd){.fd = wire ? wire->hand : -1, .events = POLLIN};
	p[GROUPS] = (struct pollfd){.fd = mcast_fd(), .events = POLLIN};
	p[BESIDE] = (struct pollfd){.fd = in ? beside_fd() : -1, .events = in};
	p[BELL] = (struct pollfd){
		.fd = own_fd_ok(&watch.bell) ? watch.bell.fd : -1, .events = POLLIN};
	p[WEFTD] = (struct pollfd){.fd = rdv_socket()}; /* its end alone */
}

/* The look for a weftd while there is none, which only that thread knows. */
struct seek {
	uint64_t gap; /* 0: there is one, as far as is known */
	uint64_t at;
};

static bool is_due(const struct seek *seek)
{
	return seek->gap && clock_ns() >= seek->at;
}

/* After a look that gave rc.  No socket, and no error: another thread is at it, or none is wanted.
 */
static void seek_later(struct seek *seek, int rc)
{
	const uint64_t most = rc && rc != -EAGAIN ? SEEK_FAILED_NS : SEEK_MAX_NS;

	if (rdv_socket() >= 0) {
		seek->gap = 0;
		return;
	}
	seek->gap = seek->gap ? 2 * seek->gap : SEEK_MIN_NS;
	if (seek->gap > most)
		seek->gap = most;
	seek->at = clock_ns() + seek->gap;
}

/*
 * Until when it may sleep now, as *left; said before the engine goes on.  Where packets come there
 * will be a time to wait for: it is not rung for each.
 */
static struct timespec *plan(
	struct pollfd p[FDS], struct timespec *left, struct seek *seek, bool active)
{
	uint64_t next, now = clock_ns();

	engine_stop();
	next = engine_next();
	if (active && (!next || next > now + TICK_NS))
		next = now + TICK_NS;
	fill(p);
	if (p[WEFTD].fd < 0 && !seek->gap)
		seek_later(seek, 0);
	if (seek->gap && (!next || next > seek->at))
		next = seek->at;
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
static void find_weftd(struct seek *seek)
{
	const struct timespec ms = {.tv_nsec = NSEC_PER_MSEC};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ms, NULL);
	seek_later(seek, rdv_check());
}

static bool looked_lately(void)
{
	return engine_looking() || clock_ns() - engine_looked_ns() < LATELY_NS;
}

/* Why it woke. */
enum woke {
	WOKE_OTHERWISE,
	WOKE_BY_PACKETS,
	WOKE_IN_VAIN,
	WOKE_USELESS,
	WOKE_RELIEVED,
	WOKE_REPLACED,
};

static bool is_replaced(uint32_t number)
{
	return atomic_load_explicit(&watch.number, memory_order_relaxed) != number;
}

/*
 * What it did not wake for may have woken it in the kernel, for each packet that the program read
 * before it had a CPU to look.
 */
static enum woke why_unasked(uint32_t looks)
{
	bool all_time = engine_looks() - looks >= LOOKS_ALL_TIME && looked_lately();

	return all_time ? WOKE_USELESS : WOKE_OTHERWISE;
}

/* Sleeps, and serves. */
static enum woke on_duty(bool active, struct seek *seek, uint32_t number)
{
	struct pollfd p[FDS];
	struct timespec left;
	uint32_t looks = engine_looks();
	int n = ppoll(p, FDS, plan(p, &left, seek, active), NULL);
	enum woke why = why_unasked(looks);

	if (is_replaced(number))
		return WOKE_REPLACED;
	atomic_store_explicit(&watch.away, false, memory_order_relaxed);
	atomic_store_explicit(&watch.until, 0, memory_order_relaxed);
	for (int i = 0; i < BELL && n > 0; i++)
		if (p[i].revents)
			why = WOKE_BY_PACKETS;
	if (why == WOKE_BY_PACKETS && looked_lately())
		why = WOKE_IN_VAIN;
	if (n > 0 && p[BELL].revents)
		hush();
	if ((n > 0 && p[WEFTD].revents) || is_due(seek))
		find_weftd(seek);
	if (atomic_exchange_explicit(&watch.relieved, false, memory_order_relaxed))
		why = WOKE_RELIEVED;
	engine_run(ENGINE_WATCH);
	return why;
}

static bool unserved(void)
{
	const struct rdv_wire *wire = join_sockets();
	struct pollfd p[KEEPER_FDS + 1] = {{.fd = beside_fd(), .events = POLLIN}};

	for (int i = 0; i < KEEPER_FDS; i++)
		p[i + 1] = (struct pollfd){.fd = wire ? wire->fd[i] : -1, .events = POLLIN};
	return poll(p, KEEPER_FDS + 1, 0) > 0;
}

/* False: nobody looked meanwhile. */
static bool sleep_for(long ns)
{
	const struct timespec time = {.tv_nsec = ns};
	uint32_t looks = engine_looks();

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
	return engine_looks() != looks;
}

/* While the program looks itself.  True: it does, but leaves packets lying. */
static bool nap(void)
{
	while (sleep_for(NAP_NS))
		if (unserved() && !sleep_for(4 * LATELY_NS))
			return true;
	return false;
}

/* After how many wake-ups in vain it naps the next time. */
static unsigned patience_after(bool left_lying, unsigned patience)
{
	if (!left_lying)
		return IN_VAIN_MIN;
	return patience < IN_VAIN_MAX ? 2 * patience : IN_VAIN_MAX;
}

static void *run(void *arg)
{
	unsigned in_vain = 0, patience = IN_VAIN_MIN;
	uint32_t number = (uint32_t)(uintptr_t)arg;
	enum woke why = WOKE_OTHERWISE;
	struct seek seek = {0};

	thread_runs_briefly();
	while (!is_replaced(number)) {
		why = on_duty(why != WOKE_OTHERWISE, &seek, number);
		if (why == WOKE_BY_PACKETS)
			in_vain -= in_vain < IN_VAIN_BACK ? in_vain : IN_VAIN_BACK;
		else if (why == WOKE_IN_VAIN)
			in_vain++;
		else if (why == WOKE_USELESS)
			in_vain += IN_VAIN_TICK;
		if (why != WOKE_RELIEVED && in_vain < patience)
			continue;
		patience = patience_after(nap(), patience);
		in_vain = 0;
	}
	return NULL;
}

static int start(void)
{
	uint32_t number = atomic_fetch_add_explicit(&watch.number, 1, memory_order_relaxed) + 1;
	pthread_t thread;
	int rc;

	watch.bell = own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (watch.bell.fd < 0)
		return -errno;
	rc = thread_start(&thread, "weft-watch", THREAD_SMALL, run, (void *)(uintptr_t)number);
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

bool watch_whole(void)
{
	bool whole;

	if (!lock_try(&watch.lock))
		return true;
	whole = !watch.started || own_fd_ok(&watch.bell);
	lock_drop(&watch.lock);
	return whole;
}

void watch_mend(void)
{
	lock_take(&watch.lock);
	if (watch.started && !own_fd_ok(&watch.bell)) {
		watch.started = false;
		start();
	}
	lock_drop(&watch.lock);
	watch_wake();
}

void watch_forked_child(void)
{
	atomic_store_explicit(&watch.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&watch.until, 0, memory_order_relaxed);
	atomic_store_explicit(&watch.sleepers, 0, memory_order_relaxed);
	atomic_store_explicit(&watch.away, false, memory_order_relaxed);
	watch.started = false;
	sleeps = false;
	own_fd_close(&watch.bell);
}
