/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that registers and deregisters memory of its own, which copies out what has come. */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>

struct region_churn {
	struct ibv_pd *pd;
	pthread_t thread;
	atomic_bool stop;
};

/* Starts it, for regions of pd.  *c is the caller's, and stays where it is until the end. */
void region_churn_begin(struct region_churn *c, struct ibv_pd *pd);
/* Waits for its end. */
void region_churn_end(struct region_churn *c);
