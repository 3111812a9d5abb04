// SPDX-License-Identifier: BSD-3-Clause
/* issm files: one at a time, the others wait; and the bit that they set. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rdv/paths.h"
#include "tests/prog/umad/help.h"
#include "umad/issm.h"

/* Of weft0's file cap_mask. */
static bool bit_is_set(void)
{
	char path[2 * PATH_MAX];
	struct rdv_paths p;
	unsigned mask;
	FILE *f;

	T_OK(rdv_paths_open(&p, NULL));
	snprintf(path, sizeof path, "%s/%s.tree/sys/class/infiniband/weft0/ports/1/cap_mask", p.dir,
		p.name);
	rdv_paths_close(&p);
	f = fopen(path, "re");
	T_CHECK(f);
	T_EQUAL(fscanf(f, "%x", &mask), 1);
	fclose(f);
	return mask & 2;
}

static int open_issm(int flags)
{
	return umad_issm_open("weft0", 1, flags);
}

/* Tells what it got, then keeps it until it is told to go. */
static void keep(int in, int out, void *arg)
{
	int got;

	T_SYS(close(*(int *)arg)); /* the parent's */
	t_signal(out);
	got = open_issm(0);
	t_tell(out, &got, sizeof got);
	t_await(in);
}

static void one_at_a_time(void)
{
	int first = open_issm(O_NONBLOCK), got;
	struct t_child second;

	T_CHECK(first >= 0);
	T_CHECK(bit_is_set());
	T_EQUAL(open_issm(O_NONBLOCK), -EAGAIN);
	t_fork(&second, keep, &first);
	t_await(second.from);
	await_issm(2);
	T_SYS(close(first));
	t_hear(second.from, &got, sizeof got);
	T_CHECK(got >= 0);
	T_CHECK(bit_is_set());
	T_EQUAL(open_issm(O_NONBLOCK), -EAGAIN);
	t_kill(&second);
	await_issm(0);
	T_CHECK(!bit_is_set());
	first = open_issm(0);
	T_CHECK(first >= 0);
	T_SYS(close(first));
	await_issm(0);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void interrupted(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	int first = open_issm(0);
	unsigned before;

	T_CHECK(first >= 0);
	T_SYS(sigaction(SIGALRM, &act, NULL));
	before = t_fds();
	ualarm(50000, 50000);
	T_EQUAL(open_issm(0), -EINTR);
	ualarm(0, 0);
	t_same_fds(before);
	await_issm(1);
	T_EQUAL(open_issm(O_NONBLOCK), -EAGAIN);
	T_EQUAL(umad_issm_open("weft0", 3, 0), -ENODEV);
}

const struct test_case issm_cases[] = {
	{"one_at_a_time", one_at_a_time},
	{"interrupted", interrupted},
	{0},
};
