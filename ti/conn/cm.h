/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that reads the events of rdma_cm, and looks after deadlines.  No callback runs on it.
 */
#pragma once

#include "ti/xfer/connection.h"

/* Starts the thread if there is none, and opens the devices.  0 or a negative errno. */
int cm_start(void);

/* Gives c an id whose events the thread reads. */
ti_status_t cm_make_id(struct conn *c);

/* conn_expired() is called at that time; not any more. */
void cm_set_deadline(struct deadline *d, uint64_t when);
void cm_clear_deadline(struct deadline *d);

/* What the thread is to read besides: fd's readable() is called there; one such fd. */
void cm_watch(int fd, void (*readable)(int fd));

/* After a fork: there is no thread. */
void cm_forked(void);
