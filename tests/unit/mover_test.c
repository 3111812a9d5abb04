// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "pages/cut.h"
#include "pages/mover.h"

enum { LEN = 3 * MOVE_STEP + 77, PAGE = 4096 };

/* A child that sleeps, with a copy of our memory at the same addresses. */
struct fixture {
	pid_t child;
	uint8_t *shared; /* its results become visible here: MAP_SHARED */
	uint8_t *mine;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->shared = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	f->mine = malloc(LEN);
	for (int i = 0; i < LEN; i++)
		f->mine[i] = i * 7 + i / 251;
	f->child = fork();
	if (!f->child) {
		pause();
		_exit(0);
	}
	*state = f;
	return f->child < 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	kill(f->child, SIGKILL);
	waitpid(f->child, NULL, 0);
	munmap(f->shared, LEN);
	free(f->mine);
	free(f);
	return 0;
}

static void lists(struct sgl *local, struct sgl *remote, void *mine, void *theirs, uint64_t len)
{
	sgl_reset(local);
	sgl_reset(remote);
	sgl_add(local, (uintptr_t)mine, len / 3);
	sgl_add(local, (uintptr_t)mine + len / 3, len - len / 3);
	sgl_add(remote, (uintptr_t)theirs, len / 2);
	sgl_add(remote, (uintptr_t)theirs + len / 2, len - len / 2);
}

static void pushes_and_pulls(void **state)
{
	static const uint64_t sizes[] = {1, 7, 63, 64, 65, PAGE, MOVE_STEP, MOVE_STEP + 1, LEN};
	struct fixture *f = *state;
	struct sgl local, remote;
	struct move m = {.pid = f->child, .push = true, .local = &local, .remote = &remote};
	uint8_t *back = malloc(LEN);

	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memset(f->shared, 0, LEN);
		lists(&local, &remote, f->mine, f->shared, sizes[i]);
		m.push = true;
		assert_int_equal(mover_run(&m), MOVE_OK);
		assert_int_equal(m.moved, sizes[i]);
		assert_memory_equal(f->shared, f->mine, sizes[i]);
		if (sizes[i] < LEN)
			assert_int_equal(f->shared[sizes[i]], 0);
		lists(&local, &remote, back, f->shared, sizes[i]);
		m.push = false;
		assert_int_equal(mover_run(&m), MOVE_OK);
		assert_memory_equal(back, f->mine, sizes[i]);
	}
	free(back);
}

static void copies_within_the_process(void **state)
{
	struct fixture *f = *state;
	struct sgl local, remote;
	struct move m = {.push = true, .local = &local, .remote = &remote};

	lists(&local, &remote, f->mine, f->shared, LEN);
	assert_int_equal(mover_run(&m), MOVE_OK);
	assert_memory_equal(f->shared, f->mine, LEN);
	lists(&local, &remote, f->mine, f->shared, 0);
	assert_int_equal(mover_run(&m), MOVE_OK);
}

static void copies_one_piece_in_one_step(void **state)
{
	struct fixture *f = *state;
	struct sgl local, remote;
	struct move m = {.push = true, .local = &local, .remote = &remote};

	memset(f->shared, 0, LEN);
	sgl_reset(&local);
	sgl_reset(&remote);
	sgl_add(&local, (uintptr_t)f->mine, PAGE);
	sgl_add(&remote, (uintptr_t)f->shared, PAGE);
	assert_int_equal(mover_run(&m), MOVE_OK);
	assert_int_equal(m.moved, PAGE);
	assert_int_equal(local.left, 0);
	assert_int_equal(remote.left, 0);
	assert_memory_equal(f->shared, f->mine, PAGE);
	assert_int_equal(f->shared[PAGE], 0);
	assert_int_equal(mover_run(&m), MOVE_OK);
	assert_int_equal(m.moved, 0);
}

static void blames_the_right_side(void **state)
{
	struct fixture *f = *state;
	uint8_t *hole = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sgl local, remote;
	struct move m = {.pid = f->child, .push = true, .local = &local, .remote = &remote};

	lists(&local, &remote, hole, f->shared, 64);
	assert_int_equal(mover_run(&m), MOVE_FAULT_LOCAL);
	lists(&local, &remote, f->mine, (void *)8, 64);
	assert_int_equal(mover_run(&m), MOVE_FAULT_REMOTE);
	m.push = false;
	lists(&local, &remote, f->mine, (void *)8, 64);
	assert_int_equal(mover_run(&m), MOVE_FAULT_REMOTE);
	mprotect(hole, PAGE, PROT_READ);
	lists(&local, &remote, hole, f->shared, 64);
	assert_int_equal(mover_run(&m), MOVE_FAULT_LOCAL);
	munmap(hole, PAGE);
}

static enum move_result never(void *arg)
{
	++*(int *)arg;
	return MOVE_TAKEN;
}

static void stops_between_steps(void **state)
{
	struct fixture *f = *state;
	struct sgl local, remote;
	int asked = 0;
	struct move m = {.pid = f->child,
		.push = true,
		.local = &local,
		.remote = &remote,
		.may_go_on = never,
		.arg = &asked};

	lists(&local, &remote, f->mine, f->shared, LEN);
	assert_int_equal(mover_run(&m), MOVE_TAKEN);
	assert_int_equal(m.moved, MOVE_STEP);
	assert_int_equal(asked, 1);
	lists(&local, &remote, f->mine, f->shared, MOVE_STEP); /* nothing follows: not asked */
	assert_int_equal(mover_run(&m), MOVE_OK);
	assert_int_equal(asked, 1);
}

static void tells_of_the_dead(void **state)
{
	struct fixture *f = *state;
	struct sgl local, remote;
	struct move m = {.push = true, .local = &local, .remote = &remote};
	pid_t dead = fork();

	if (!dead)
		_exit(0);
	waitpid(dead, NULL, 0);
	m.pid = dead;
	lists(&local, &remote, f->mine, f->shared, 64);
	assert_int_equal(mover_run(&m), MOVE_GONE);
}

/* The pieces of a copy, as text: "13+2+1". */
static const char *pieces(uint64_t end, uint64_t len, bool short_strings)
{
	static char text[64];
	struct cuts c = cuts_before(end, len, short_strings);
	uint64_t at = 0;
	int n = 0;

	for (unsigned i = 0; i < c.n; i++) {
		n += snprintf(text + n, sizeof text - n, "%d+", (int)(c.at[i] - at));
		at = c.at[i];
	}
	snprintf(text + n, sizeof text - n, "%d", (int)(len - at));
	return text;
}

static void cuts_the_last_bytes_off(void **state)
{
	(void)state;
	for (unsigned word = 1; word <= 8; word *= 2)
		assert_null(strchr(pieces(64, word, true), '+'));
	assert_string_equal(pieces(64, 16, true), "8+7+1");
	assert_string_equal(pieces(64, 12, true), "4+7+1");
	assert_string_equal(pieces(65, 16, true), "15+1");
	assert_string_equal(pieces(66, 16, true), "14+1+1");
	assert_string_equal(pieces(67, 8, true), "5+2+1");
	assert_string_equal(pieces(66, 2, true), "2");
	assert_string_equal(pieces(65, 2, true), "1+1");
	assert_string_equal(pieces(63, 3, true), "2+1");
	assert_string_equal(pieces(64, 16, false), "8+8");
	assert_string_equal(pieces(67, 100, false), "97+3");
	assert_string_equal(pieces(63, 3, false), "3");
	assert_string_equal(pieces(4096, 8, false), "8");
}

enum { ROUNDS = 40000, DUEL_MS = 60, PLACE = 64, ANSWER = 0xee };

/* Two processes that write into each other's sight, both mapping it. */
struct duel {
	_Atomic unsigned ready, written, read; /* rounds */
	_Atomic unsigned last;                 /* the reader ends after this one */
	unsigned torn, early, lost;            /* what it saw */
	_Alignas(PAGE) volatile uint8_t place[PAGE];
};

static void await(_Atomic unsigned *word, unsigned value)
{
	for (unsigned n = 1; atomic_load_explicit(word, memory_order_acquire) != value; n++)
		if (n % 256 == 0)
			sched_yield();
}

static uint64_t word_at(const volatile uint8_t *p, unsigned len)
{
	switch (len) {
	case 2:
		return *(const volatile uint16_t *)p;
	case 4:
		return *(const volatile uint32_t *)p;
	case 8:
		return *(const volatile uint64_t *)p;
	default:
		return *p;
	}
}

/* Polls the last word, of `word` bytes, until it changes or the write is over. */
static uint64_t poll_last(
	struct duel *d, const volatile uint8_t *last, unsigned word, unsigned round)
{
	uint64_t old = word_at(last, word), now;
	unsigned n = 0;

	atomic_store_explicit(&d->ready, round, memory_order_release);
	while ((now = word_at(last, word)) == old)
		if (++n % 256 == 0)
			sched_yield();
	return now;
}

/* In the child: sees each write, answers in its place at once, and looks whether that stays. */
static void read_and_answer(struct duel *d, unsigned at, unsigned len, unsigned word)
{
	volatile uint8_t *to = d->place + at;

	for (unsigned round = 1;; round++) {
		uint8_t byte = round % 128;
		uint64_t seen = poll_last(d, to + len - word, word, round);

		d->torn += seen != (0x0101010101010101u * byte & ~0ull >> (64 - 8 * word));
		to[len - 1] = ANSWER;
		for (unsigned i = 0; i < len - 1; i++) {
			d->early += to[i] != byte;
			to[i] = ANSWER;
		}
		await(&d->written, round);
		for (unsigned i = 0; i < len && word == 1; i++)
			d->lost += to[i] != ANSWER;
		for (unsigned i = 0; i < len; i++)
			to[i] = ANSWER;
		atomic_store_explicit(&d->read, round, memory_order_release);
		if (round >= atomic_load_explicit(&d->last, memory_order_relaxed))
			break;
	}
}

static struct duel *duel(unsigned at, unsigned len, unsigned word)
{
	struct duel *d =
		mmap(NULL, sizeof *d, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t from[PAGE];
	struct sgl local, remote;
	struct move m = {.push = true, .local = &local, .remote = &remote};
	uint64_t until = clock_ns() + DUEL_MS * 1000000ull;

	atomic_store_explicit(&d->last, ROUNDS, memory_order_relaxed);
	memset((void *)d->place, ANSWER, PAGE);
	m.pid = fork();
	if (!m.pid) {
		read_and_answer(d, at, len, word);
		_exit(0);
	}
	for (unsigned round = 1; round <= d->last; round++) {
		memset(from, round % 128, len);
		await(&d->ready, round);
		sgl_reset(&local);
		sgl_reset(&remote);
		sgl_add(&local, (uintptr_t)from, len);
		sgl_add(&remote, (uintptr_t)d->place + at, len);
		assert_int_equal(mover_run(&m), MOVE_OK);
		if (clock_ns() > until)
			atomic_store_explicit(&d->last, round, memory_order_relaxed);
		atomic_store_explicit(&d->written, round, memory_order_release);
		await(&d->read, round);
	}
	waitpid(m.pid, NULL, 0);
	return d;
}

/* Whoever sees the last byte sees all, and what he then stores there stays. */
static void last_byte_comes_last_and_once(void **state)
{
	static const unsigned lengths[] = {3, 9, 16, 24, 64, 1000};

	(void)state;
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct duel *d = duel(PLACE, lengths[i], 1);

		assert_int_equal(d->early, 0);
		assert_int_equal(d->lost, 0);
		munmap(d, sizeof *d);
	}
}

static void a_word_is_stored_whole(void **state)
{
	struct duel *d = duel(PLACE, 8, 8);

	(void)state;
	assert_int_equal(d->torn, 0);
	munmap(d, sizeof *d);
}

/* qemu-user, under which the arm64 build runs, does not have the calls. */
static bool kernel_copies(void)
{
	char a, b;
	struct iovec to = {&a, 1}, from = {&b, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != ENOSYS;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies_within_the_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(copies_one_piece_in_one_step, set_up, tear_down),
		cmocka_unit_test(cuts_the_last_bytes_off),
		cmocka_unit_test_setup_teardown(pushes_and_pulls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blames_the_right_side, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stops_between_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tells_of_the_dead, set_up, tear_down),
		cmocka_unit_test(last_byte_comes_last_and_once),
		cmocka_unit_test(a_word_is_stored_whole),
	};
	const struct CMUnitTest within[] = {tests[0], tests[1]};

	if (kernel_copies())
		return cmocka_run_group_tests(tests, NULL, NULL);
	if (cmocka_run_group_tests(within, NULL, NULL))
		return 1;
	puts("process_vm_readv is not implemented here; only copies within the process ran");
	return 77;
}
