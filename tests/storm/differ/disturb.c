// SPDX-License-Identifier: BSD-3-Clause
#include "disturb.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "end.h"
#include "tests/lib/pattern.h"

enum {
	BURST = 200,
	CHURN = 20,
	HELD = 3, /* regions at a time */
	REGISTRARS = 2,
	LANDER = REGISTRARS,
	FORKER,
	THREADS,
	TARGETS = 2 * BOARD_LINKS + 1, /* one for each link and side, and the common words */
	PAUSE_US = 1500,
	LOOK_US = 200,
	GLANCE = 40,
	FORK_PAUSE_US = 200000,
	FORK_ONCE_IN = 16, /* while regions are held */
	TRIES = 2 * TARGETS,
	CALL_CPU_NS = 1000000000, /* a call takes microseconds of CPU */
	LOOK_CALLS_US = 10000,
};

/* The memory of one end, or what all have in common. */
struct target {
	pthread_rwlock_t lock; /* held for writing while it changes */
	bool used;
	_Atomic bool gone;   /* who disturbs it is waited for */
	_Atomic bool runs;   /* requests read or write it just now */
	_Atomic bool polled; /* its end takes completions just now */
	enum memory_kind kind;
	uint8_t *at;
	size_t len;
	struct ibv_pd *pd;
};

static struct {
	struct target target[TARGETS];
	pthread_t thread[THREADS];
	struct rnd rnd[THREADS];
	_Atomic uint64_t began[THREADS]; /* a call: its thread's CPU time then; 0: none */
	_Atomic bool over;
} disturb;

static _Thread_local unsigned self; /* place in these lists */

static void add(struct target *t, const struct memory *m, struct ibv_pd *pd)
{
	pthread_rwlock_wrlock(&t->lock);
	t->used = true;
	atomic_store(&t->gone, false);
	t->kind = m->kind;
	t->at = m->at;
	t->len = m->len;
	t->pd = pd;
	pthread_rwlock_unlock(&t->lock);
}

void disturb_add(struct end *e)
{
	if (e->mem.at)
		add(&disturb.target[2 * e->link + e->side], &e->mem, e->pd);
}

void disturb_add_common(const struct memory *m, struct ibv_pd *pd)
{
	add(&disturb.target[TARGETS - 1], m, pd);
}

void disturb_remove(struct end *e)
{
	struct target *t = &disturb.target[2 * e->link + e->side];

	atomic_store(&t->gone, true);
	pthread_rwlock_wrlock(&t->lock);
	t->used = false;
	pthread_rwlock_unlock(&t->lock);
}

void disturb_runs(const struct end *e, bool runs)
{
	atomic_store(&disturb.target[2 * e->link + e->side].runs, runs);
}

void disturb_polls(const struct end *e, bool polls)
{
	atomic_store(&disturb.target[2 * e->link + e->side].polled, polls);
}

/* ---- forks ---- */

/* A child's memory is its own: what it finds is whole, and what it writes stays with it. */
static const char *use_copy(const struct target *t)
{
	if (!pattern_all(t->at, GUARD, GUARD_BYTE) ||
		!pattern_all(t->at + t->len - GUARD, GUARD, GUARD_BYTE))
		return "whole";
	memset(t->at, 0x5a, t->len);
	usleep(100);
	return pattern_all(t->at, t->len, 0x5a) ? NULL : "its own";
}

static void child(bool uses)
{
	for (unsigned i = 0; uses && i < TARGETS; i++) {
		const struct target *t = &disturb.target[i];
		const char *lacks = t->used && memory_is_private(t->kind) ? use_copy(t) : NULL;

		if (lacks)
			board_fail("a forked child: its copy of the %s memory of link %u, end %u "
				   "is not %s",
				memory_name(t->kind), i / 2, i % 2, lacks);
	}
	_exit(0);
}

/* So that the child finds the list as it is; what is being made or freed is not in it. */
static void lock_all(bool lock)
{
	for (unsigned i = 0; i < TARGETS; i++)
		if (lock)
			pthread_rwlock_rdlock(&disturb.target[i].lock);
		else
			pthread_rwlock_unlock(&disturb.target[i].lock);
}

static void fork_once(bool uses)
{
	int status;
	pid_t pid;

	lock_all(true);
	pid = fork();
	if (!pid)
		child(uses);
	lock_all(false);
	if (pid < 0)
		board_fail("fork: %m");
	if (waitpid(pid, &status, 0) != pid)
		board_fail("waitpid: %m");
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		board_fail("a forked child died of signal %d", WTERMSIG(status));
	atomic_fetch_add(&board->forks, 1);
}

/* ---- regions come and go ---- */

static bool is_over(const struct target *t)
{
	return atomic_load(&disturb.over) || atomic_load(&t->gone);
}

static struct ibv_mr *register_part(const struct target *t, struct rnd *r, unsigned rights)
{
	uint32_t from = rnd_below(r, t->len), len = rnd_range(r, 1, t->len - from);
	unsigned access = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr;

	if (rnd_once_in(r, 3)) {
		from = 0;
		len = t->len;
	}
	access |= rights;
	access |= rights != RIGHTS && rnd_once_in(r, 6) ? IBV_ACCESS_ON_DEMAND : 0;
	mr = ibv_reg_mr(t->pd, t->at + from, len, access);
	if (!mr)
		board_fail("a disturber's ibv_reg_mr of %u bytes of %s memory: %m", len,
			memory_name(t->kind));
	return mr;
}

static void register_anew(const struct target *t, struct ibv_mr *mr, struct rnd *r)
{
	uint32_t from = rnd_below(r, t->len), len = rnd_range(r, 1, t->len - from);
	unsigned access = IBV_ACCESS_LOCAL_WRITE | (rnd_next(r) & RIGHTS);
	int how = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS;
	int rc = ibv_rereg_mr(mr, how, NULL, t->at + from, len, access);

	if (rc)
		board_fail("a disturber's ibv_rereg_mr: %d, %m", rc);
}

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) ? 0 : t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void deregister(struct ibv_mr *mr)
{
	atomic_store(&disturb.began[self], cpu_ns(CLOCK_THREAD_CPUTIME_ID));
	if (ibv_dereg_mr(mr))
		board_fail("a disturber's ibv_dereg_mr: %m");
	atomic_store(&disturb.began[self], 0);
}

/* A call may wait, but not go round and round: who polls waits for it. */
static void look_at_calls(void)
{
	clockid_t clock;

	for (unsigned i = 0; i < FORKER; i++) {
		uint64_t began = atomic_load(&disturb.began[i]);

		if (began && !pthread_getcpuclockid(disturb.thread[i], &clock) &&
			cpu_ns(clock) > began + CALL_CPU_NS)
			board_fail("an ibv_dereg_mr has taken a second of CPU");
	}
}

static void pause_a_little(struct rnd *r, unsigned most)
{
	if (!rnd_once_in(r, 4))
		usleep(rnd_below(r, most));
}

static void come_and_go(const struct target *t, struct rnd *r)
{
	struct ibv_mr *mr[HELD];
	unsigned n = rnd_range(r, 1, HELD);

	for (unsigned i = 0; i < n; i++) {
		mr[i] = register_part(t, r, rnd_next(r) & RIGHTS);
		pause_a_little(r, PAUSE_US / 4);
	}
	if (rnd_once_in(r, 4))
		register_anew(t, mr[0], r);
	pause_a_little(r, PAUSE_US);
	if (!(board->without & DISTURB_FORKS) && rnd_once_in(r, FORK_ONCE_IN))
		fork_once(true);
	for (unsigned i = 0; i < n; i++)
		deregister(mr[i]);
}

/* Many in a row, as each that goes brings the receives of its PD to their places. */
static void burst(const struct target *t, unsigned n, bool polled)
{
	static uint8_t bytes[REGISTRARS * GUARD];

	while (n-- && !is_over(t) && (!polled || atomic_load(&t->polled))) {
		struct ibv_mr *mr = ibv_reg_mr(t->pd, bytes, sizeof bytes, IBV_ACCESS_LOCAL_WRITE);

		if (!mr)
			board_fail("a disturber's region of %zu bytes: %m", sizeof bytes);
		deregister(mr);
	}
}

static void burst_some(const struct target *t, struct rnd *r)
{
	burst(t, rnd_range(r, 1, BURST), false);
}

/* The same with the pages themselves, which move each time where regions are mapped. */
static void churn(const struct target *t, struct rnd *r)
{
	unsigned n = rnd_range(r, 1, CHURN);

	while (n-- && !is_over(t))
		deregister(register_part(t, r, IBV_ACCESS_REMOTE_WRITE | (rnd_next(r) & RIGHTS)));
}

/*
 * A target, locked, mostly one that requests read and write at the moment: what goes on beside them
 * is what may go wrong.  NULL: none was found.
 */
static struct target *take_some(struct rnd *r)
{
	bool runs = !rnd_once_in(r, 4);

	for (unsigned i = 0; i < TRIES; i++) {
		struct target *t = &disturb.target[rnd_below(r, TARGETS)];

		if ((runs && !atomic_load(&t->runs)) || pthread_rwlock_tryrdlock(&t->lock))
			continue;
		if (t->used)
			return t;
		pthread_rwlock_unlock(&t->lock);
	}
	return NULL;
}

static void *registrar(void *arg)
{
	static void (*const ways[])(const struct target *t, struct rnd *r) = {
		come_and_go, burst_some, churn};
	struct rnd *r = arg;

	self = r - disturb.rnd;
	while (!atomic_load(&disturb.over)) {
		struct target *t = board->without & DISTURB_REGIONS ? NULL : take_some(r);

		if (t) {
			ways[rnd_below(r, 3)](t, r);
			pthread_rwlock_unlock(&t->lock);
		}
		usleep(10);
	}
	return NULL;
}

/* The next target from a random one on whose end takes completions, locked; NULL: none. */
static struct target *take_polled(struct rnd *r)
{
	unsigned first = rnd_below(r, TARGETS);

	for (unsigned i = 0; i < TARGETS; i++) {
		struct target *t = &disturb.target[(first + i) % TARGETS];

		if (!atomic_load(&t->polled) || pthread_rwlock_tryrdlock(&t->lock))
			continue;
		if (t->used)
			return t;
		pthread_rwlock_unlock(&t->lock);
	}
	return NULL;
}

/* Where a thread polls, as the two share receives that have come: moments, between long waits. */
static void *lander(void *arg)
{
	struct rnd *r = arg;

	self = r - disturb.rnd;
	while (!atomic_load(&disturb.over)) {
		struct target *t = board->without & DISTURB_REGIONS ? NULL : take_polled(r);

		if (t) {
			burst(t, GLANCE, true);
			pthread_rwlock_unlock(&t->lock);
		}
		usleep(LOOK_US);
	}
	return NULL;
}

static void *forker(void *arg)
{
	struct rnd *r = arg;

	while (!atomic_load(&disturb.over)) {
		usleep(rnd_below(r, FORK_PAUSE_US));
		look_at_calls();
		if (!(board->without & DISTURB_FORKS))
			fork_once(rnd_once_in(r, 2));
	}
	return NULL;
}

void disturb_start(uint64_t seed, unsigned process)
{
	for (unsigned i = 0; i < TARGETS; i++)
		pthread_rwlock_init(&disturb.target[i].lock, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		disturb.rnd[i] = rnd_of(seed, process, i, 0x44495354);
		if (pthread_create(&disturb.thread[i], NULL,
			    i == FORKER   ? forker
			    : i == LANDER ? lander
					  : registrar,
			    &disturb.rnd[i]))
			board_fail("pthread_create: %m");
	}
}

void disturb_stop(void)
{
	atomic_store(&disturb.over, true);
	for (unsigned i = 0; i < THREADS; i++)
		while (pthread_tryjoin_np(disturb.thread[i], NULL) == EBUSY) {
			usleep(LOOK_CALLS_US);
			look_at_calls();
		}
}
