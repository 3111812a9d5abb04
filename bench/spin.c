// SPDX-License-Identifier: BSD-3-Clause
/*
 * spin [CPU_A CPU_B]: prints the round trip of a cache line between two processes that spin, in
 * nanoseconds: the least, over SAMPLES, of the mean of ROUNDS.  It says how far apart the two
 * CPUs are right now.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "bench/pin.h"

enum { SAMPLES = 9, ROUNDS = 20000 };

struct court {
	_Alignas(CACHE_LINE) _Atomic uint32_t ping;
	_Alignas(CACHE_LINE) _Atomic uint32_t pong;
};

static void await(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		;
}

static void answer(struct court *c, int cpu)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(cpu);
	for (uint32_t i = 1; i <= (SAMPLES + 1) * ROUNDS; i++) {
		await(&c->ping, i);
		atomic_store_explicit(&c->pong, i, memory_order_release);
	}
	_exit(0);
}

static uint64_t sample(struct court *c, uint32_t first)
{
	uint64_t begin = clock_ns();

	for (uint32_t i = first; i < first + ROUNDS; i++) {
		atomic_store_explicit(&c->ping, i, memory_order_release);
		await(&c->pong, i);
	}
	return clock_ns() - begin;
}

int main(int argc, char **argv)
{
	int cpu_a = argc > 2 ? atoi(argv[1]) : 0, cpu_b = argc > 2 ? atoi(argv[2]) : 1;
	struct court *c =
		mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t best = UINT64_MAX;

	if (c == MAP_FAILED)
		return 1;
	pin(cpu_b);
	pin(cpu_a);
	if (fork() == 0)
		answer(c, cpu_b);
	for (uint32_t s = 0; s <= SAMPLES; s++) { /* the first warms up */
		uint64_t ns = sample(c, 1 + s * ROUNDS);

		if (s && ns < best)
			best = ns;
	}
	printf("%.1f\n", (double)best / ROUNDS);
	return 0;
}
