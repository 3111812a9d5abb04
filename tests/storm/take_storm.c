// SPDX-License-Identifier: BSD-3-Clause
/*
 * take_storm [TAKES [SEED]]: a peer client takes memory away under load, at every point of a
 * region's life, while its owner and the processes that use it are stopped and killed.  Whatever
 * happens, callbacks return, nobody touches the memory afterwards, requests end as documented, and
 * nothing is left.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "take_storm.h"
#include "tests/lib/check.h"

enum { DEFAULT_TAKES = 3000, STUCK_MS = 30000, OWNER = TAKE_USERS, PROCESSES, KILL_ONE_IN = 40 };

static struct take_world *w;
static pid_t pid[PROCESSES];
static uint64_t seed = 88172645463325252;
static unsigned stops, kills;

static void start(unsigned i)
{
	const uint64_t own = take_random(&seed) | 1;
	const pid_t parent = getpid();

	pid[i] = fork();
	if (pid[i] < 0)
		die("fork");
	if (pid[i])
		return;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	if (i == OWNER)
		take_owner(w, own >> 8);
	else
		take_user(w, i, own);
	exit(check_failures() != 0);
}

static void reap(unsigned i, bool killed)
{
	int status;

	if (waitpid(pid[i], &status, 0) != pid[i])
		die("waitpid");
	if (!killed || !WIFSIGNALED(status))
		check_child(status);
	pid[i] = 0;
}

static void nap_us(uint64_t us)
{
	const struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&t, NULL);
}

/* Has one ended by itself? */
static void look(void)
{
	siginfo_t info;

	for (unsigned i = 0; i < PROCESSES; i++) {
		info.si_pid = 0;
		if (!waitid(P_PID, (id_t)pid[i], &info, WEXITED | WNOHANG | WNOWAIT) &&
			info.si_pid) {
			reap(i, false);
			die("process %u ended by itself", i);
		}
	}
}

static void disturb(void)
{
	const unsigned i = take_random(&seed) % PROCESSES;

	if (take_random(&seed) % KILL_ONE_IN == 0) {
		kill(pid[i], SIGKILL);
		reap(i, true);
		kills++;
		start(i);
		return;
	}
	kill(pid[i], SIGSTOP);
	nap_us(take_random(&seed) % 2000);
	kill(pid[i], SIGCONT);
	stops++;
}

static void storm(uint64_t takes)
{
	uint64_t seen = 0;
	double since = now_ms();

	while (atomic_load(&w->takes) < takes) {
		nap_us(take_random(&seed) % 8000);
		disturb();
		look();
		if (atomic_load(&w->takes) != seen) {
			seen = atomic_load(&w->takes);
			since = now_ms();
		}
		if (now_ms() - since > STUCK_MS)
			die("nothing goes on after %llu", (unsigned long long)seen);
	}
}

static void report(void)
{
	uint64_t done = 0, failed = 0;

	for (unsigned i = 0; i < TAKE_USERS; i++) {
		done += atomic_load(&w->user[i].done);
		failed += atomic_load(&w->user[i].failed);
	}
	printf("%llu times taken away, %llu while in use; by kind",
		(unsigned long long)atomic_load(&w->takes),
		(unsigned long long)atomic_load(&w->used));
	for (unsigned k = 0; k < TAKE_KINDS; k++) {
		printf(" %llu", (unsigned long long)atomic_load(&w->kinds[k]));
		CHECK(atomic_load(&w->kinds[k]) > 0);
	}
	printf("; at most %llu us; %llu requests done, %llu failed; %u stops, %u kills\n",
		(unsigned long long)atomic_load(&w->longest_us), (unsigned long long)done,
		(unsigned long long)failed, stops, kills);
	CHECK(atomic_load(&w->used) > 0);
	CHECK(done > 0);
	CHECK(failed > 0);
}

int main(int argc, char **argv)
{
	const uint64_t takes = argc > 1 ? strtoull(argv[1], NULL, 0) : DEFAULT_TAKES;

	if (argc > 2)
		seed = strtoull(argv[2], NULL, 0) | 1;
	w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		die("mmap");
	for (unsigned i = 0; i < PROCESSES; i++)
		start(i);
	storm(takes);
	atomic_store(&w->stop, 1);
	for (unsigned i = 0; i < PROCESSES; i++)
		reap(i, false);
	report();
	return check_result();
}
