// SPDX-License-Identifier: BSD-3-Clause
/*
 * spin [CPU_A CPU_B]: prints the round trip of a cache line between two processes that spin, in
 * nanoseconds: the median, over SAMPLES, of the mean of ROUNDS.  It says how far apart the two
 * CPUs are right now, on a busy machine, too: a sample is short, and few of them are those in which
 * a process loses its CPU.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "bench/median.h"
#include "bench/pin.h"

enum {
	SAMPLES = 200,
	ROUNDS = 100,
	WARM = 50, /* samples before those */
	LOOKS = 20000,
};

struct court {
	_Alignas(CACHE_LINE) _Atomic uint32_t ping;
	_Alignas(CACHE_LINE) _Atomic uint32_t pong;
};

static void await(_Atomic uint32_t *word, uint32_t value)
{
	const struct timespec nap = {.tv_nsec = 20000};

	for (uint32_t looks = 1; atomic_load_explicit(word, memory_order_acquire) != value; looks++)
		if (looks % LOOKS == 0) /* the other one has no CPU: keep ours for when it has */
			nanosleep(&nap, NULL);
}

static void answer(struct court *c, int cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	for (uint32_t i = 1; i <= (WARM + SAMPLES) * ROUNDS; i++) {
		await(&c->ping, i);
		atomic_store_explicit(&c->pong, i, memory_order_release);
	}
	_exit(0);
}

static double sample_ns(struct court *c, uint32_t first)
{
	uint64_t begin = clock_ns();

	for (uint32_t i = first; i < first + ROUNDS; i++) {
		atomic_store_explicit(&c->ping, i, memory_order_release);
		await(&c->pong, i);
	}
	return (double)(clock_ns() - begin) / ROUNDS;
}

int main(int argc, char **argv)
{
	int cpu_a = argc > 2 ? atoi(argv[1]) : 0, cpu_b = argc > 2 ? atoi(argv[2]) : 1;
	struct court *c =
		mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double ns[WARM + SAMPLES];

	if (c == MAP_FAILED)
		return 1;
	pin(cpu_b);
	pin(cpu_a);
	if (fork() == 0)
		answer(c, cpu_b);
	for (uint32_t s = 0; s < WARM + SAMPLES; s++)
		ns[s] = sample_ns(c, 1 + s * ROUNDS);
	printf("%.1f\n", median(ns + WARM, SAMPLES));
	return 0;
}
