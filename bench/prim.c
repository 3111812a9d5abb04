// SPDX-License-Identifier: BSD-3-Clause
/*
 * prim HOW SIZE: prints how long one copy of SIZE bytes takes, in microseconds: by memcpy or one of
 * Weft's kernels within the process (memcpy, copy, stream), or by process_vm_writev or
 * process_vm_readv between it and a sleeping process on another CPU (cma, cma_read); memcpy_walk
 * and cma_walk take steps of 64 KiB.  The median of SAMPLES; every page was touched before.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/median.h"
#include "pages/copy.h"

enum {
	SAMPLES = 21,
	SAMPLE_NS = 5 * NSEC_PER_MSEC,
	MAX_REPEAT = 1 << 24,
	PAGE = 4096,
	STEP = 64 << 10
};

struct copy {
	char *from, *to; /* the same addresses in the other process */
	size_t size;
	pid_t peer;
};

typedef int copy_fn(struct copy *c);

static int by_memcpy(struct copy *c)
{
	memcpy(c->to, c->from, c->size);
	__asm__ __volatile__("" ::"r"(c->to) : "memory");
	return 0;
}

/* The whole in steps, each by fn. */
static int in_steps(struct copy *c, copy_fn *fn)
{
	for (size_t at = 0; at < c->size; at += STEP) {
		size_t left = c->size - at;
		struct copy step = {c->from + at, c->to + at, left < STEP ? left : STEP, c->peer};

		if (fn(&step) != 0)
			return -1;
	}
	return 0;
}

static int by_memcpy_walk(struct copy *c)
{
	return in_steps(c, by_memcpy);
}

static int by_copy(struct copy *c)
{
	copy_ordered(c->to, c->from, c->size);
	return 0;
}

static int by_stream(struct copy *c)
{
	copy_stream(c->to, c->from, c->size);
	return 0;
}

static int by_cma(struct copy *c)
{
	struct iovec here = {c->from, c->size}, there = {c->to, c->size};

	return process_vm_writev(c->peer, &here, 1, &there, 1, 0) == (ssize_t)c->size ? 0 : -1;
}

static int by_cma_walk(struct copy *c)
{
	return in_steps(c, by_cma);
}

static int by_cma_read(struct copy *c)
{
	struct iovec here = {c->to, c->size}, there = {c->from, c->size};

	return process_vm_readv(c->peer, &here, 1, &there, 1, 0) == (ssize_t)c->size ? 0 : -1;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

static char *touched(size_t size)
{
	char *p = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);

	if (p)
		memset(p, 1, size);
	return p;
}

/* A process with the same buffers, written to so that it has pages of its own. */
static pid_t start_peer(struct copy *c)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pin(1);
		memset(c->from, 2, c->size);
		memset(c->to, 2, c->size);
		(void)!write(ready[1], "", 1);
		for (;;)
			pause();
	}
	(void)!read(ready[0], &byte, 1);
	return pid;
}

static double time_copies(struct copy *c, copy_fn *fn, int repeat)
{
	uint64_t begin = clock_ns();

	for (int i = 0; i < repeat; i++)
		if (fn(c) != 0)
			return -1;
	return clock_ns() - begin;
}

static int measure(struct copy *c, copy_fn *fn)
{
	double samples[SAMPLES];
	int repeat = 1;

	while (repeat < MAX_REPEAT) {
		double ns = time_copies(c, fn, repeat);

		if (ns < 0) {
			perror("prim");
			return 1;
		}
		if (ns >= SAMPLE_NS)
			break;
		repeat *= 2;
	}
	for (int i = 0; i < SAMPLES; i++)
		samples[i] = time_copies(c, fn, repeat) / repeat;
	printf("%.4f\n", median(samples, SAMPLES) / NSEC_PER_USEC);
	return 0;
}

static const struct way {
	const char *name;
	copy_fn *fn;
	bool crosses; /* from one process to another */
} ways[] = {
	{"memcpy", by_memcpy, false},
	{"memcpy_walk", by_memcpy_walk, false},
	{"copy", by_copy, false},
	{"stream", by_stream, false},
	{"cma", by_cma, true},
	{"cma_walk", by_cma_walk, true},
	{"cma_read", by_cma_read, true},
};

static const struct way *find_way(const char *name)
{
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	return NULL;
}

int main(int argc, char **argv)
{
	struct copy c = {.size = argc == 3 ? strtoull(argv[2], NULL, 0) : 0};
	const struct way *way = argc == 3 ? find_way(argv[1]) : NULL;
	int status;

	if (!way || !c.size) {
		fprintf(stderr,
			"usage: prim memcpy|memcpy_walk|copy|stream|cma|cma_walk|cma_read SIZE\n");
		return 2;
	}
	pin(0);
	c.from = touched(c.size);
	c.to = touched(c.size);
	c.peer = c.from && c.to && way->crosses ? start_peer(&c) : 0;
	if (!c.from || !c.to || c.peer < 0)
		return 1;
	status = measure(&c, way->fn);
	if (c.peer > 0)
		kill(c.peer, SIGKILL);
	return status;
}
