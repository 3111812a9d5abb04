/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that were accepted by half: the device's first command accepts and gives a number,
 * the second one turns a newly opened fd into that connection.
 */
#pragma once

#include <stdint.h>

struct scif_ep;

/* Keeps fd, of what listener accepted, until half_take(); its number, -ENOMEM: fd is still the
 * caller's.  The listener's end closes it. */
int64_t half_keep(struct scif_ep *listener, int fd);
/* The fd of that number, which is the caller's then; -ENOENT. */
int half_take(uint64_t number);
/* Closes what a listener accepted, when it is closed itself. */
void half_drop(struct scif_ep *listener);

/* Around fork().  The child has no halves, nor their fds. */
void half_before_fork(void);
void half_parent_forked(void);
void half_child_forked(void);
