/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: carries packets of this process's flows in and out.  Whoever posts, polls or waits
 * runs it, and the watcher (roce/watch.h) for the rest of the time; one thread at a time, and
 * nobody waits: who finds it running leaves a word, and it goes round once more.
 */
#pragma once

#include "roce/flow.h"

/* What a thread runs it for. */
enum engine_why {
	ENGINE_CALLS = 1 << 0, /* flows were called */
	ENGINE_LOOK = 1 << 1,  /* packets may have come, times may have passed */
	ENGINE_WATCH = 1 << 2, /* by the watcher */
};

/* Runs it, or has it run by the thread that does so just now. */
void engine_run(unsigned why);

/* The flow is to have a turn (enum flow_call); any thread, then engine_run(). */
void engine_call(struct flow *f, unsigned calls);

/*
 * Stops the engine, and lets it go again: for who adds or deletes flows.  Waits until the thread
 * in it is through with its pass.
 */
void engine_stop(void);
void engine_go(void);

/*
 * With the engine stopped: one pass in this thread, for a worker (ENGINE_CALLS), or for who needs
 * what has come by now (ENGINE_LOOK).
 */
void engine_pass(unsigned why);

/* With the engine stopped: gives the flow its turn now, with all ACKs that are owed. */
void engine_settle(struct flow *f);

/* With the engine stopped: the flow is on no list any more. */
void engine_forget(struct flow *f);

/* How often a thread of the program looked, and when it did last; engine stopped or not. */
uint32_t engine_looks(void);
uint64_t engine_looked_ns(void);

/* Is a thread of the program at it just now?  With many packets that takes a while. */
bool engine_looking(void);

/* With the engine stopped: when it has to be run next, 0: not before something comes. */
uint64_t engine_next(void);

/* A flow, found by the engine itself, is to have a turn in this pass. */
void engine_touch(struct flow *f, unsigned calls);

/* In a forked child. */
void engine_forked_child(void);
