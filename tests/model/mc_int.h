/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two halves of the explorer share: mc_run.c runs threads, mc_explore.c searches. */
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include "mc.h"

enum {
	MC_STACK = 128 << 10,
	MC_STACK_SLACK = 512, /* saved below the frame that switches away */
	MC_BUFFER = 8,        /* stores that one thread can have outstanding */
};

enum mc_status { MC_READY, MC_DONE, MC_STOPPED, MC_DEAD };

struct mc_op {
	enum mc_op_kind kind;
	void *p;
	size_t size;
	uint64_t a, b; /* operand; CAS: expected, desired */
	uint64_t result;
	const char *what;
	bool ok;
	bool release;
};

struct mc_buffered {
	void *p;
	size_t size;
	uint64_t v;
	bool release;
	const char *what;
};

/* Everything here is saved and restored with the state. */
struct mc_thr {
	enum mc_status status;
	struct mc_op op;  /* what it does when it is scheduled next */
	uint64_t history; /* hash of all results it has seen */
	int steps;
	void *loop; /* see mc_loop_at() */
	uint64_t loop_local;
	int n_buf;
	int n_sure; /* of these, stores before an operation that already took place */
	struct mc_buffered buf[MC_BUFFER];
	uintptr_t low; /* lowest live stack byte */
	jmp_buf ctx;
};

struct mc_world {
	const struct mc_model *m;
	struct mc_region region[MC_MAX_REGIONS]; /* the first is mc_model.state */
	int n_regions;
	struct mc_region ignored[MC_MAX_ODD];
	int n_ignored;
	void *weak[MC_MAX_ODD];
	int n_weak;
	struct mc_thr thr[MC_MAX_THREADS];
	int stopped, dead;   /* process or -1 */
	const char *failure; /* not NULL: violated */
};

extern struct mc_world mc_world;

static inline uint64_t mc_mix(uint64_t h, uint64_t v)
{
	__uint128_t x = (__uint128_t)(h ^ v ^ 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;

	return (uint64_t)x ^ (uint64_t)(x >> 64);
}

/* Starts all threads and lets each run up to its first operation. */
void mc_run_start(void);
/* The saved part of thread i's stack. */
void *mc_run_stack(int i, size_t *size);
/* True if thread i's next operation can take place now. */
bool mc_run_enabled(int i);
/* Carries it out (choice: for MC_OP_CHOOSE) and runs the thread up to the one after. */
void mc_run_step(int i, uint64_t choice);
/* True if entry k of thread i's store buffer may reach memory next. */
bool mc_run_may_flush(int i, int k);
void mc_run_flush(int i, int k);
/* Ends thread i for good; the first keep entries of its store buffer reach memory. */
void mc_run_end(int i, int keep, enum mc_status status);
