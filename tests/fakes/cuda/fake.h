/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests ask of the fake driver (libcuda.so.1 of tests/fakes/), besides NVIDIA's functions: of
 * the calls that libibverbs.so.1 made, told by the address they return to, in whatever thread.
 */
#pragma once

struct fake_cuda_report {
	unsigned long inits;          /* cuInit */
	unsigned long default_stream; /* the default stream was used, or waited for */
	unsigned long context_syncs;  /* a whole context was waited for, or freed from */
	unsigned long unsafe;         /* calls that a capture forbids where they were made */
	unsigned long freed;          /* bytes asked for that no allocation has, or not that one */
	unsigned long no_context;     /* calls without a current context that need one */
	unsigned long after_fork;     /* calls in a child of the process that initialised it */
	unsigned long by_program;     /* all calls, in threads that the program called from, too */
	unsigned long by_own_threads; /* ... in others */
};

/* So far; the caller's. */
void fake_cuda_report(struct fake_cuda_report *to);

/* Calls of that function so far. */
unsigned long fake_cuda_calls(const char *function);

/* The nth call from now on of that function answers error; 0: none does. */
void fake_cuda_fail(const char *function, unsigned nth, int error);

/* Each call of that function from now on takes so long. */
void fake_cuda_slow(const char *function, unsigned us);

/* All do that come from libibverbs.so.1, of all functions; 0: none does. */
void fake_cuda_fail_all(int error);
