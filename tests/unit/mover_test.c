// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

static bool never(void *arg)
{
	++*(int *)arg;
	return false;
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
		.still_valid = never,
		.arg = &asked};

	lists(&local, &remote, f->mine, f->shared, LEN);
	assert_int_equal(mover_run(&m), MOVE_STOPPED);
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
		cmocka_unit_test_setup_teardown(pushes_and_pulls, set_up, tear_down),
		cmocka_unit_test_setup_teardown(blames_the_right_side, set_up, tear_down),
		cmocka_unit_test_setup_teardown(stops_between_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tells_of_the_dead, set_up, tear_down),
	};
	const struct CMUnitTest within[] = {tests[0]};

	if (kernel_copies())
		return cmocka_run_group_tests(tests, NULL, NULL);
	if (cmocka_run_group_tests(within, NULL, NULL))
		return 1;
	puts("process_vm_readv is not implemented here; only copies within the process ran");
	return 77;
}
