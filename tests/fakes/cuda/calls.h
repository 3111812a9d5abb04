/* SPDX-License-Identifier: BSD-3-Clause */
/* Each call of the fake driver begins here: who calls, may it, shall it fail? */
#pragma once

#include <stdbool.h>

#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/more.h"

#define EXPORT __attribute__((visibility("default")))
/* Of the function that asks. */
#define CALLER __builtin_return_address(0)

enum call_needs {
	ANYTIME = 0,
	CONTEXT = 1,        /* a current one */
	UNSAFE = 2,         /* not while a stream is captured */
	DEFAULT_STREAM = 4, /* uses it, or waits for it */
	WHOLE_CONTEXT = 8,  /* waits for all that is running */
	EARLY = 16,         /* before cuInit, too */
};

/*
 * Counts the call; 0, or what it must answer at once.  *weft, if not NULL: libibverbs.so.1 made it.
 * function is a constant.
 */
int call_begin(const char *function, const void *caller, unsigned needs, bool *weft);

/* Notes that libibverbs.so.1 asked for bytes that it has lost. */
void call_used_freed(void);

/* cuInit was called in this process. */
void call_initialised(void);
