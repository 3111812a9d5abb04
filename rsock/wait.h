/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that sleep for an rsocket, and what wakes them. */
#pragma once

#include "rsock/rsock.h"

/*
 * Under the lock, which it drops to sleep: waits until rs_ready() has one of `events`, POLLIN or
 * POLLOUT.  -EAGAIN at the deadline (ns of clock_ns(), 0: none); -EINTR.
 */
int rs_wait(struct rsocket *s, short events, uint64_t deadline);

/* The same until done(s), which `events` may bring about. */
int rs_wait_for(
	struct rsocket *s, bool (*done)(struct rsocket *s), short events, uint64_t deadline);

/* Asks for an event at the next completion; call rs_progress() after it and look once more. */
void rs_arm(struct rsocket *s, short events);

/* Takes events of the completion channel. */
void rs_take_events(struct rsocket *s);

/* Acknowledges what was counted there and destroys the CQs; no QP uses them any more. */
void rs_free_cqs(struct rsocket *s);

/* poll(2) conditions of s at this moment, among POLLIN, POLLOUT, POLLERR, POLLHUP. */
short rs_ready(struct rsocket *s);

/* Takes completions; with cm, or if that was long ago, rdma_cm events as well. */
void rs_progress(struct rsocket *s, bool cm);
