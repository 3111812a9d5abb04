/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for something that another thread completes. */
#pragma once

#include <pthread.h>

struct completion {
	unsigned done;
	pthread_mutex_t m;
	pthread_cond_t c;
};

#define DECLARE_COMPLETION(name)                                                                   \
	struct completion name = {0, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER}

/* As in the kernel: complete() lets one waiter go on, complete_all() all, for ever. */
void init_completion(struct completion *x);
void reinit_completion(struct completion *x);
void complete(struct completion *x);
void complete_all(struct completion *x);
void wait_for_completion(struct completion *x);
