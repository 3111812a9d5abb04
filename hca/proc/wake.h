/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking processes: eventfds in semaphore mode, one per completion channel and one for async
 * events.  An eventfd holds any number of events, never blocks its writer and raises no SIGPIPE
 * when the reader is gone; which CQ an event is about stands in the segment.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fired_note;

/* exec.fire of this process: directly if we have the fd, else, and false, through weftd. */
bool wake_fire(uint32_t attach, uint32_t channel, struct fired_note *note, void *arg);

/* exec.timer of this process: a message to weftd. */
bool wake_timer(uint32_t attach, uint32_t qp_index, uint64_t when, void *arg);

/* Enters the note, which may be NULL, and adds one event to an eventfd; keeps errno. */
bool wake_write(int fd, struct fired_note *note);

/*
 * Takes one event from it without waiting, whatever its flags say: another thread may have taken
 * the one that poll() saw.  0, -EAGAIN or another error of read(2).
 */
int wake_take(int fd);

/* Our own channels: id to fd.  wake_own_add returns -ENOMEM when there are too many. */
int wake_own_add(int fd, uint32_t *id);
void wake_own_del(uint32_t id);
