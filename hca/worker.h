/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker: one thread of this process, started when there is work that a posting thread must
 * not do itself: a message of 8 MiB or more, help for a peer beyond the budget, atomics that
 * somebody else holds up.  Most processes never start it.
 */
#pragma once

struct hca_qp;

enum { WORKER_LARGE = 8 << 20, WORK_OUT = 1, WORK_IN = 2 };

/* Queues a direction (WORK_OUT, WORK_IN) of qp; starts the thread if need be. */
void worker_add(struct hca_qp *qp, unsigned direction);

/* Takes qp off the list and waits until the worker is done with it. */
void worker_forget(struct hca_qp *qp);

void worker_forked_child(void);
