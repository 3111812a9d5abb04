/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that reads the events of rdma_cm, and looks after deadlines.  No callback runs on it.
 */
#pragma once

#include "base/own_fd.h"
#include "ti/xfer/connection.h"

/*
 * Starts the thread if there is none, and opens the devices.  0 or a negative errno; -EBADF: the
 * program has closed what the thread needs, which sees to deadlines alone from then on.
 */
int cm_start(void);

/* Gives c an id whose events the thread reads.  TI_INSUFFICIENT_RESOURCES: it cannot any more. */
ti_status_t cm_make_id(struct conn *c);

/* conn_expired() is called at that time; not any more. */
void cm_set_deadline(struct deadline *d, uint64_t when);
void cm_clear_deadline(struct deadline *d);

/* What the thread is to read besides: fd's readable() is called there; one such fd. */
void cm_watch(const struct own_fd *fd, void (*readable)(int fd));

/* False: the program has closed that fd. */
bool cm_watches(void);

/* After a fork: there is no thread. */
void cm_forked(void);
