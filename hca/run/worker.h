/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers: threads of this process, started when there is work that a posting thread must not do
 * itself.  One is common to all QPs: for a message of 8 MiB or more, help for a peer beyond the
 * budget, atomics that somebody else holds up.  A lane is a worker for the QPs of one peer process
 * that only its agent can serve: it sleeps for that agent, and if the peer is stopped nobody else
 * waits.  Most processes never start any.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct hca_qp;

struct worker {
	pthread_mutex_t lock;
	pthread_cond_t more, done;
	struct hca_qp *first;
	struct hca_qp *running;
	unsigned n;    /* that are queued */
	unsigned busy; /* served in a row, and each to be tried again later */
	bool started, stop;
	pthread_t thread;
};

/* Makes a lane; its thread starts with the first work. */
void worker_init(struct worker *w);

/* Ends its thread, and waits for that; no QP uses it any more. */
void worker_end(struct worker *w);

enum { WORKER_LARGE = 8 << 20, WORK_OUT = 1, WORK_IN = 2 };

/* Queues a direction (WORK_OUT, WORK_IN) of qp with its worker; starts the thread if need be. */
void worker_add(struct hca_qp *qp, unsigned direction);

/* Takes qp off the lists and waits until no worker runs it. */
void worker_forget(struct hca_qp *qp);

void worker_forked_child(void);
