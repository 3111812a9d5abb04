// SPDX-License-Identifier: BSD-3-Clause
/* The requester's side of the agent mover, against a small agent in a thread of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/futex.h"
#include "pages/agent.h"

enum { LEN = 5 * AGENT_HALF_BYTES + 77, OWNER = 0x123456, KEY = 0x4200, PATIENCE_MS = 50 };

static struct agent_area *area;
static struct agent_bell bell;
static _Atomic bool stop, deaf, valid = true, dead, begins_anew;
static enum move_result answer;
static unsigned served, wrong;
static _Atomic unsigned rests;
/* An agent that is at it until its requester has rested so often, or has gone. */
static _Atomic unsigned slow_rests;
static _Atomic bool serving, left;

static void serve(struct agent_half *h, uint8_t *bounce)
{
	uint64_t sum = 0;

	wrong += h->qp != 7;
	for (unsigned i = 0; i < h->n && answer == MOVE_OK; i++) {
		void *mine = (void *)(uintptr_t)h->piece[i].addr;

		wrong += h->piece[i].key != KEY && h->piece[i].key != KEY + 1;
		if (h->op == AGENT_ADD)
			h->before = __atomic_fetch_add(
				(uint64_t *)mine, h->operand[0], __ATOMIC_SEQ_CST);
		else if (h->op == AGENT_GET)
			memcpy(bounce + sum, mine, h->piece[i].len);
		else
			memcpy(mine, bounce + sum, h->piece[i].len);
		sum += h->piece[i].len;
	}
	h->result = answer;
	served++;
}

/* The request is not valid any more from the moment on at which it is served. */
static void linger(void)
{
	unsigned until = atomic_load(&rests) + atomic_load(&slow_rests);

	atomic_store(&serving, true);
	if (!atomic_load(&slow_rests))
		return;
	atomic_store(&valid, false);
	while (atomic_load(&rests) < until && !atomic_load(&left) && !atomic_load(&stop))
		cpu_relax();
}

static void *fake_agent(void *arg)
{
	struct agent_turn turn = {0};
	_Atomic uint32_t *phase;

	while (!atomic_load(&stop)) {
		uint32_t seen = atomic_load(&bell.rings);

		if (!atomic_load(&deaf) && agent_look_at(&area->slot[0], &turn) == AGENT_CLAIMED) {
			linger();
			serve(&area->slot[0].half[turn.half], area->bounce[0][turn.half]);
			atomic_store(&serving, false);
			if (agent_served(&area->slot[0], &turn, &phase))
				futex_wake_shared(phase);
			continue;
		}
		if (agent_may_sleep(&bell, seen))
			futex_wait_shared(&bell.rings, seen, NSEC_PER_MSEC);
		agent_awake(&bell);
	}
	return arg;
}

static struct agent_area *get_area(void *arg)
{
	return arg ? NULL : area;
}

static bool is_gone(void *arg)
{
	(void)arg;
	return atomic_load(&dead);
}

static unsigned excused; /* so often an agent that is deaf counts as slow */

static bool is_slow(void *arg)
{
	(void)arg;
	/* One that is not deaf may have to wait for a CPU. */
	return !atomic_load(&deaf) || (excused && excused--);
}

static void rest(void *arg)
{
	(void)arg;
	rests++;
}

static enum move_result may_go_on(void *arg)
{
	(void)arg;
	if (atomic_load(&valid))
		return MOVE_OK;
	return atomic_load(&begins_anew) ? MOVE_ANEW : MOVE_TAKEN;
}

static int set_up(void **state)
{
	static pthread_t t;

	area = mmap(NULL, sizeof *area, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*state = &t;
	return area == MAP_FAILED || pthread_create(&t, NULL, fake_agent, NULL);
}

static int tear_down(void **state)
{
	atomic_store(&stop, true);
	pthread_join(*(pthread_t *)*state, NULL);
	munmap(area, sizeof *area);
	return 0;
}

static enum move_result run(bool push, void *mine, void *theirs, uint64_t len, void *no_area)
{
	static const uint32_t keys[] = {KEY, KEY + 1};
	struct agent_call c = {.owner = OWNER,
		.qp = 7,
		.op = push ? AGENT_PUT : AGENT_GET,
		.key = keys,
		.bell = &bell,
		.patience_ns = PATIENCE_MS * NSEC_PER_MSEC,
		.area = get_area,
		.gone = is_gone,
		.slow = is_slow,
		.rest = rest,
		.arg = no_area};
	struct sgl local, remote;
	struct move m = {.pid = 1,
		.push = push,
		.local = &local,
		.remote = &remote,
		.may_go_on = may_go_on,
		.agent = &c};
	enum move_result r;

	sgl_reset(&local);
	sgl_reset(&remote);
	sgl_add(&local, (uintptr_t)mine, len / 3);
	sgl_add(&local, (uintptr_t)mine + len / 3, len - len / 3);
	sgl_add(&remote, (uintptr_t)theirs, len / 2);
	sgl_add(&remote, (uintptr_t)theirs + len / 2, len - len / 2);
	r = mover_run(&m);
	if (r == MOVE_OK)
		assert_int_equal(m.moved, len);
	return r;
}

/* The slot is free again, with nothing posted. */
static void check_given_back(void)
{
	uint64_t start = clock_ns();

	while (atomic_load(&area->slot[0].word) & (AGENT_OWNER_MASK | AGENT_ORPHAN))
		if (clock_ns() - start > 5 * NSEC_PER_SEC)
			fail_msg("the slot was not given back");
	assert_int_equal(wrong, 0);
	assert_int_equal(area->slot[0].half[0].phase, AGENT_IDLE);
	assert_int_equal(area->slot[0].half[1].phase, AGENT_IDLE);
}

static void both_ways_in_all_sizes(void **state)
{
	static const uint64_t sizes[] = {1, 2, 3, 8, 4095, AGENT_HALF_BYTES - 1, AGENT_HALF_BYTES,
		AGENT_HALF_BYTES + 1, 2 * AGENT_HALF_BYTES, 3 * AGENT_HALF_BYTES + 1, LEN};
	uint8_t *a = malloc(LEN), *b = malloc(LEN + 1);

	(void)state;
	for (int i = 0; i < LEN; i++)
		a[i] = i * 7 + i / 251;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int push = 0; push < 2; push++) {
			memset(b, 0xee, LEN + 1);
			assert_int_equal(
				run(push, push ? a : b, push ? b : a, sizes[i], NULL), MOVE_OK);
			assert_memory_equal(a, b, sizes[i]);
			assert_int_equal(b[sizes[i]], 0xee);
			check_given_back();
		}
	free(a);
	free(b);
}

/* Adds 2. */
static enum move_result add(uint64_t *word, uint64_t *before)
{
	static const uint32_t key = KEY;
	enum move_result r;
	struct agent_call c = {.owner = OWNER,
		.qp = 7,
		.op = AGENT_ADD,
		.key = &key,
		.operand = {2},
		.bell = &bell,
		.patience_ns = UINT64_MAX,
		.area = get_area,
		.gone = is_gone,
		.slow = is_slow,
		.rest = rest};
	struct sgl remote;
	struct move m = {.pid = 1, .remote = &remote, .may_go_on = may_go_on, .agent = &c};

	sgl_reset(&remote);
	sgl_add(&remote, (uintptr_t)word, 8);
	r = mover_run(&m);
	*before = c.before;
	return r;
}

static void atomics(void **state)
{
	uint64_t word = 40, before = 0;

	(void)state;
	assert_int_equal(add(&word, &before), MOVE_OK);
	assert_int_equal(before, 40);
	assert_int_equal(word, 42);
	check_given_back();
}

static void set_slow(unsigned n)
{
	atomic_store(&rests, 0);
	atomic_store(&left, false);
	atomic_store(&valid, true);
	atomic_store(&begins_anew, n > 0);
	atomic_store(&slow_rests, n);
}

/* What is to be asked for again is not given up while the agent is at it. */
static void what_begins_anew(void **state)
{
	enum { THREE = 3 * AGENT_HALF_BYTES };
	uint8_t *a = calloc(1, THREE), *b = calloc(1, THREE);
	uint64_t word = 40, before = 0;
	unsigned n;

	(void)state;
	set_slow(3);
	assert_int_equal(add(&word, &before), MOVE_OK);
	assert_int_equal(before, 40);
	assert_int_equal(word, 42);
	set_slow(3);
	assert_int_equal(run(true, a, b, THREE, NULL), MOVE_ANEW);
	assert_false(atomic_load(&serving));
	atomic_store(&left, true);
	/* What the agent did not begin is taken back, and is not served later. */
	set_slow(0);
	atomic_store(&begins_anew, true);
	atomic_store(&valid, false);
	atomic_store(&deaf, true);
	n = served;
	assert_int_equal(add(&word, &before), MOVE_ANEW);
	atomic_store(&deaf, false);
	set_slow(0);
	check_given_back();
	assert_int_equal(add(&word, &before), MOVE_OK);
	assert_int_equal(served, n + 1);
	assert_int_equal(word, 44);
	free(a);
	free(b);
}

/* What the agent answers ends the transfer, and is believed only if it is an answer. */
static void refusals(void **state)
{
	uint8_t a[100] = {0}, b[100] = {0};

	(void)state;
	answer = MOVE_FAULT_REMOTE;
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_FAULT_REMOTE);
	check_given_back();
	answer = MOVE_ANEW; /* only we say so */
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_REFUSED);
	check_given_back();
	answer = 12345;
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_REFUSED);
	check_given_back();
	answer = MOVE_OK;
}

static void an_agent_that_does_not_answer(void **state)
{
	uint8_t a[100] = {0}, b[100] = {0};
	uint64_t start = clock_ns();
	unsigned before = served;

	(void)state;
	atomic_store(&deaf, true);
	rests = 0;
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_LATE);
	assert_true(clock_ns() - start >= PATIENCE_MS * NSEC_PER_MSEC);
	assert_true(rests > 0);
	check_given_back();
	atomic_store(&valid, false);
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_TAKEN);
	atomic_store(&valid, true);
	atomic_store(&dead, true);
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_GONE);
	atomic_store(&dead, false);
	excused = 2;
	assert_int_equal(run(true, a, b, sizeof a, a), MOVE_LATE); /* it never started */
	assert_int_equal(excused, 2);
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_LATE);
	assert_int_equal(excused, 0);
	/* What was taken back is not served later. */
	atomic_store(&deaf, false);
	check_given_back();
	assert_int_equal(run(true, a, b, sizeof a, NULL), MOVE_OK);
	assert_int_equal(served, before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways_in_all_sizes),
		cmocka_unit_test(atomics),
		cmocka_unit_test(what_begins_anew),
		cmocka_unit_test(refusals),
		cmocka_unit_test(an_agent_that_does_not_answer),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
