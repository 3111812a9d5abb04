// SPDX-License-Identifier: BSD-3-Clause
/* The common worker: it sleeps only when all that is queued was busy, and not through new work. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "hca/proc/proc.h"
#include "hca/run/far.h"
#include "hca/run/progress.h"
#include "hca/run/worker.h"

enum { ROUNDS = 1000, LONG_S = 60, SOON_S = 20 };

static const struct far_ops far;
static struct hca_qp held = {.far = &far}, working = {.far = &far};
static _Atomic unsigned held_runs; /* the one is busy each time */
static _Atomic unsigned left;      /* the other has work for so many times, */
static _Atomic unsigned naps_then; /* and so many naps were made until it had none */
static _Atomic unsigned naps;
static _Atomic bool naps_are_long;

/* ---- what the worker is made for ---- */

_Atomic uint32_t progress_parked;

static enum run_end work(struct exec *x, struct hca_qp *qp, unsigned direction)
{
	(void)x;
	(void)direction;
	if (qp == &held) {
		atomic_fetch_add(&held_runs, 1);
		return RUN_BUSY;
	}
	if (!atomic_load(&held_runs))
		return RUN_BUDGET;
	atomic_store(&naps_then, atomic_load(&naps));
	return atomic_fetch_sub(&left, 1) > 1 ? RUN_BUDGET : RUN_IDLE;
}

static const struct far_ops far = {.work = work};

struct exec *exec_self(void)
{
	static _Atomic uint64_t counters[CTR_ROOM];
	static struct exec x = {.counters = counters};

	return &x;
}

struct exec *exec_get(void)
{
	return exec_self();
}

void exec_put(struct exec *x)
{
	(void)x;
}

void progress_slow(void)
{
}

/* ---- its naps ---- */

int __real_pthread_cond_clockwait(
	pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *until);
int __real_nanosleep(const struct timespec *t, struct timespec *rest);

int __wrap_pthread_cond_clockwait(
	pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	struct timespec at = *until;

	if (atomic_load(&naps_are_long))
		at.tv_sec += LONG_S;
	atomic_fetch_add(&naps, 1);
	return __real_pthread_cond_clockwait(c, m, clock, &at);
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
	struct timespec length = *t;

	if (atomic_load(&naps_are_long))
		length.tv_sec += LONG_S;
	atomic_fetch_add(&naps, 1);
	return __real_nanosleep(&length, rest);
}

/* True when *word has become what, or more if `least`. */
static bool comes_to(_Atomic unsigned *word, unsigned what, bool least)
{
	uint64_t end = clock_ns() + SOON_S * NSEC_PER_SEC;

	while (least ? atomic_load(word) < what : atomic_load(word) != what) {
		if (clock_ns() > end)
			return false;
		sched_yield();
	}
	return true;
}

static void no_nap_beside_work(void **state)
{
	(void)state;
	atomic_store(&left, ROUNDS);
	worker_add(&working, WORK_OUT);
	worker_add(&held, WORK_OUT);
	assert_true(comes_to(&left, 0, false));
	assert_int_equal(atomic_load(&naps_then), 0);
	assert_true(comes_to(&naps, 1, true));
}

static void new_work_ends_a_nap(void **state)
{
	unsigned before;

	(void)state;
	atomic_store(&naps_are_long, true);
	before = atomic_load(&naps);
	assert_true(comes_to(&naps, before + 1, true));
	atomic_store(&left, 1);
	worker_add(&working, WORK_OUT);
	assert_true(comes_to(&left, 0, false));
}

static void forgotten_in_a_nap(void **state)
{
	(void)state;
	worker_forget(&held);
	atomic_store(&left, 1);
	worker_add(&working, WORK_OUT);
	assert_true(comes_to(&left, 0, false));
	worker_forget(&working);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_nap_beside_work),
		cmocka_unit_test(new_work_ends_a_nap),
		cmocka_unit_test(forgotten_in_a_nap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
