/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking processes: eventfds in semaphore mode, one per completion channel and one for async
 * events.  An eventfd holds any number of events, never blocks its writer and raises no SIGPIPE
 * when the reader is gone; which CQ an event is about stands in the segment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* exec.fire of this process: directly if we have the fd, else, and false, through weftd. */
bool wake_fire(uint32_t attach, uint32_t channel, void *arg);

/* exec.timer of this process: a message to weftd. */
bool wake_timer(uint32_t attach, uint32_t qp_index, uint64_t when, void *arg);

/* Adds one event to an eventfd; keeps errno. */
bool wake_write(int fd);

/* Our own channels: id to fd.  wake_own_add returns -ENOMEM when there are too many. */
int wake_own_add(int fd, uint32_t *id);
void wake_own_del(uint32_t id);
