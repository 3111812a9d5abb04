/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model explorer: runs a few small threads over a small shared state under every
 * interleaving, every order in which store buffers may drain, and at most one stop (SIGSTOP for
 * good) or death of a process at any point.  README.md says how and what it cannot see.
 *
 * Rules for a model:
 * - what threads share lies in one struct (mc_model.state); threads read and write it by C11
 *   atomics with explicit order only.  Plain shared data: memory_order_relaxed.
 * - ghost fields, which the checks use and the modelled code does not have, lie there too; they
 *   are written plainly, take effect at once with the operation before, and never decide what a
 *   thread does next.
 * - a thread keeps nothing in static variables.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

enum { MC_MAX_THREADS = 6, MC_MAX_PROCS = 6 };

/* Memory models, weakest last; each allows what the one before it does. */
enum mc_memory {
	MC_SC,  /* sequentially consistent */
	MC_TSO, /* a FIFO store buffer per thread: x86 */
	MC_PSO, /* relaxed stores overtake each other and release stores */
};

struct mc_thread {
	const char *name;
	void (*run)(int arg);
	int arg;
	int proc;      /* threads of one process stop and die together */
	bool recovery; /* starts once some process is dead; else it never runs */
};

/* Further memory that belongs to the shared state. */
struct mc_region {
	void *p;
	size_t size;
};

enum { MC_MAX_REGIONS = 8, MC_MAX_ODD = 12 };

struct mc_model {
	const char *name;
	void *state;
	size_t size;
	enum mc_memory memory;
	void (*init)(void);  /* before each exploration; state is zeroed */
	void (*every)(void); /* after each transition; may be NULL */
	void (*final)(void); /* when nothing can move any more */
	const struct mc_thread *threads;
	int n_threads;
	unsigned may_stop; /* bit mask of processes that may be stopped */
	unsigned may_die;
	bool may_block;      /* final() itself judges threads that never finished */
	int max_steps;       /* of one thread: more is a livelock */
	uint64_t max_states; /* gives up (no verdict) beyond */
};

struct mc_result {
	bool violated;
	bool gave_up;
	char message[160];
	uint64_t states, transitions, ends;
};

/*
 * Explores the model until the first violation.  trace: prints its steps to stderr.
 */
void mc_explore(const struct mc_model *m, struct mc_result *r, bool trace);

/* ---- for mc_model.init ---- */

/* Adds memory to the shared state; the model zeroes and fills it. */
void mc_add_region(void *p, size_t size);
/* Counters and the like: atomics there do nothing and read 0. */
void mc_ignore(void *p, size_t size);
/* For mutants: a read-modify-write of this word is a load and a buffered store. */
void mc_weaken(void *p);

/* ---- for threads ---- */

/* A scheduling point without an effect. */
void mc_step(const char *what);
/* Sleeps until the word in memory differs from v. */
void mc_wait_change(void *p, size_t size, uint64_t v);
/* 0..n-1, all explored. */
int mc_choose(int n);
/*
 * Promises that local is all that the calling thread still remembers of its past; where is a
 * different number for each call.  Makes states equal that differ by history only.
 */
void mc_forget(uint32_t where, uint64_t local);
/*
 * Promises the same for each acquire load of *p by the calling thread from now on: that is where
 * a loop in the explored code starts anew.  p = NULL ends it.
 */
void mc_loop_at(void *p, uint64_t local);
/* Index of the calling thread in mc_model.threads. */
int mc_self(void);

/* ---- for threads and checks ---- */

/* Ends the exploration: the model is broken. */
void mc_fail(const char *message);
#define mc_check(cond, message)                                                                    \
	do {                                                                                       \
		if (!(cond))                                                                       \
			mc_fail(message);                                                          \
	} while (0)

bool mc_finished(int thread);
/* Which process was stopped or is dead, or -1. */
int mc_stopped(void);
int mc_dead(void);
/* What is being explored. */
const struct mc_model *mc_current_model(void);
