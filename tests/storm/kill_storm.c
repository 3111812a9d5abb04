// SPDX-License-Identifier: BSD-3-Clause
/*
 * A storm of kill -9: in each run a few processes talk to each other, and at some instant one of
 * them, or weftd, is killed.  The others finish, keep their data, and connect anew.
 *
 * usage: kill_storm BUILD [RUNS [SEED [FIRST]]]
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_side.h"
#include "storm_run.h"
#include "world.h"

enum {
	DEFAULT_RUNS = 1000,
	BATCH = 50, /* runs between two looks at what weftd holds */
	SETUP_US = 15000,
	TRAFFIC_US = 5000,
	RUN_MS = 40000,
	SLOW_MS = 4000, /* somebody waited for a time-out, or for a CPU */
	MAX_SLOW_PERCENT = 2,
	EXIT_KILLED = 40,
};

enum target { KILL_PROCESS, KILL_WEFTD, KILL_BOTH };

static uint64_t rnd;
static unsigned killed_processes, killed_daemons, slow;

static uint64_t next_random(void)
{
	rnd ^= rnd << 13;
	rnd ^= rnd >> 7;
	rnd ^= rnd << 17;
	return rnd;
}

/* The child of a process that has the device open does the work; the parent keeps it open. */
static int live_in_child(struct storm_run *r, unsigned me, bool polls)
{
	struct side before = {.polls = polls};
	int status;
	pid_t pid;

	if (side_open(&before)) {
		snprintf(r->slot[me].text, STORM_TEXT, "the parent cannot open the device");
		return 1;
	}
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		atomic_store(&r->slot[me].pid, getpid());
		_exit(storm_live(r, me, polls));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGKILL ? EXIT_KILLED : 1;
	return WEXITSTATUS(status) | (side_close(&before) ? 1 : 0);
}

static pid_t start_process(struct storm_run *r, unsigned me)
{
	bool polls = next_random() & 1;
	bool forked = next_random() % 4 == 0;
	pid_t driver = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != driver)
		_exit(1);
	if (forked)
		_exit(live_in_child(r, me, polls));
	atomic_store(&r->slot[me].pid, getpid());
	_exit(storm_live(r, me, polls));
}

static struct storm_run *new_run(unsigned n)
{
	struct storm_run *r =
		mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (r == MAP_FAILED)
		exit(99);
	r->n = n;
	r->seed = next_random();
	atomic_store(&r->dead, -1);
	return r;
}

/* Sleeps until the instant of death: in the middle of traffic, or of connecting. */
static void wait_for_instant(struct storm_run *r)
{
	bool early = next_random() % 4 == 0;
	uint64_t end = now_ns() + RUN_MS * 1000000ull;

	for (unsigned i = 0; !early && i < r->n; i++)
		while (atomic_load(&r->slot[i].state) < STORM_CONNECTED && now_ns() < end)
			nap_us(100);
	nap_us(next_random() % (early ? SETUP_US : TRAFFIC_US));
}

static void kill_weftd(void)
{
	struct counts c;

	if (!world_counts(&c))
		return;
	kill(c.pid, SIGKILL);
	killed_daemons++;
}

/* Until the last thread is gone a dying process can still be written to. */
static void kill_and_wait(pid_t pid)
{
	struct pollfd p = {.fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

	kill(pid, SIGKILL);
	if (p.fd < 0)
		return;
	poll(&p, 1, RUN_MS);
	close(p.fd);
}

static void kill_somebody(struct storm_run *r, enum target target)
{
	int victim = next_random() % r->n;
	pid_t pid;

	if (target != KILL_PROCESS)
		kill_weftd();
	if (target == KILL_WEFTD)
		return;
	pid = atomic_load(&r->slot[victim].pid);
	if (!pid)
		return; /* not born yet */
	kill_and_wait(pid);
	killed_processes++;
	atomic_store(&r->dead, victim);
}

static const char *const state_names[] = {
	"born", "published", "connected", "stopped", "quiet", "pair", "paired", "done"};

/* Waits for process i: true if it ended as it had to. */
static bool ended_well(struct storm_run *r, unsigned i, pid_t pid, uint64_t deadline)
{
	bool victim = atomic_load(&r->dead) == (int)i;
	int status;
	pid_t got;

	while ((got = waitpid(pid, &status, WNOHANG)) == 0 && now_ns() < deadline)
		nap_us(200);
	if (got == 0) {
		kill(pid, SIGKILL);
		kill(atomic_load(&r->slot[i].pid), SIGKILL);
		waitpid(pid, NULL, 0);
		return check(false, "process %u of %u hangs in state %s", i, r->n,
			state_names[atomic_load(&r->slot[i].state)]);
	}
	if (victim)
		return check(WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_KILLED,
			"the killed process %u ended with %#x: %s", i, status, r->slot[i].text);
	return check(WIFEXITED(status) && !WEXITSTATUS(status), "process %u of %u, state %s: %s", i,
		r->n, state_names[atomic_load(&r->slot[i].state)],
		WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : r->slot[i].text);
}

/* A second one, started by somebody who was killed, finds the first and leaves. */
static bool only_one_weftd(void)
{
	uint64_t end = now_ns() + RUN_MS * 1000000ull;
	unsigned n;

	while ((n = world_daemons()) > 1 && now_ns() < end)
		nap_us(1000);
	return check(n <= 1, "%u weftd run", n);
}

static bool one_run(unsigned number)
{
	enum target target = number % 8 == 7   ? KILL_BOTH
			     : number % 4 == 3 ? KILL_WEFTD
					       : KILL_PROCESS;
	struct storm_run *r = new_run(2 + next_random() % (STORM_MAX - 1));
	pid_t pid[STORM_MAX];
	uint64_t deadline;
	uint64_t start = now_ns();
	bool ok = true;

	r->kills_weftd = target != KILL_PROCESS;
	for (unsigned i = 0; i < r->n; i++)
		pid[i] = start_process(r, i);
	wait_for_instant(r);
	kill_somebody(r, target);
	nap_us(next_random() % 3000);
	atomic_store(&r->stop, 1);
	deadline = now_ns() + RUN_MS * 1000000ull;
	for (unsigned i = 0; i < r->n; i++)
		ok &= ended_well(r, i, pid[i], deadline);
	if (target != KILL_PROCESS)
		ok &= only_one_weftd();
	if (now_ns() - start > SLOW_MS * 1000000ull) {
		printf("run %u took %u ms (target %d)\n", number,
			(unsigned)((now_ns() - start) / 1000000), target);
		slow++;
	}
	munmap(r, sizeof *r);
	world_reap();
	return ok;
}

static bool look_at_weftd(void)
{
	world_up();
	world_reap();
	return world_empty(EMPTY_MS) &&
	       check(world_daemons() == 1, "%u weftd run, not one", world_daemons());
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 2 ? atoi(argv[2]) : DEFAULT_RUNS;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : now_ns();
	unsigned first = argc > 4 ? atoi(argv[4]) : 0;
	uint64_t start = now_ns(), said = start;
	unsigned failed = 0;

	if (argc < 2)
		return 2;
	world_begin(argv[1]);
	world_up();
	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = first; i < runs && failed < 3; i++) {
		rnd = (seed + i) * 0x9e3779b97f4a7c15ull | 1;
		if (!one_run(i)) {
			printf("run %u failed (seed %llu)\n", i, (unsigned long long)seed);
			failed++;
		}
		if ((i + 1) % BATCH == 0 || i + 1 == runs)
			failed += !look_at_weftd();
		if (now_ns() - said > 5000000000ull) {
			said = now_ns();
			printf("  %u of %u runs, %u s\n", i + 1, runs,
				(unsigned)((said - start) / 1000000000));
		}
	}
	printf("%u runs, %u processes and %u weftd killed, %u slow, %u s\n", runs, killed_processes,
		killed_daemons, slow, (unsigned)((now_ns() - start) / 1000000000));
	check(slow <= 1 + runs * MAX_SLOW_PERCENT / 100, "%u of %u runs were slow", slow, runs);
	return world_end();
}
