/* SPDX-License-Identifier: BSD-3-Clause */
/* The fake driver's contexts, and each thread's stack of them. */
#pragma once

#include <stdbool.h>

enum { FAKE_DEVICES = 2 };

struct CUctx_st {
	int device;
	bool alive;
	unsigned retained; /* a primary one's */
};

/* That of this thread; NULL: none, or it was destroyed. */
struct CUctx_st *context_current(void);
