/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event channels in weftd: a queue of events each, and the way from there into the datagram
 * socket of the process.  weftd has no fd of it but sends by name (daemon/tables/channel_names.h).
 * At most CM_WINDOW events lie in a socket unread, the others wait here.
 *
 * A channel is named by its process's attach id and a number.  Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/cm_proto.h"
#include "rdv/paths.h"

struct event_channel;
struct queued;

enum { CHANNEL_BUCKETS = 1 << 12 };

struct channels {
	const struct rdv_paths *paths;
	/* e was dropped: nobody will ever see it. */
	void (*drop)(void *arg, uint32_t owner, const struct cm_event *e);
	void *arg;

	int sender;
	struct event_channel *bucket[CHANNEL_BUCKETS];
	struct queued *by_id[CHANNEL_BUCKETS]; /* what is queued about one id */
	uint32_t n;
	bool stuck; /* a channel waits for room that no acknowledgement will tell of */
	bool lost;  /* a channel has lost its name, and channels_lost() was not asked who */
	uint64_t sent, dropped;
	uint32_t unclaimed; /* names of an earlier weftd whose processes have not come to us */
	uint64_t sweep_ns;  /* not before */
};

/* paths, drop and arg are filled in.  0 or a negative errno. */
int channels_start(struct channels *c);

/*
 * Adds a channel and names its socket, which stays the caller's.  -EEXIST it is known;
 * -ENOENT its name was removed; -EINVAL no such socket; -ENOMEM; what bind(2) and mkdir(2) answer.
 */
int channels_add(struct channels *c, uint32_t owner, uint32_t id, int fd);

/* Takes one away with its name and what is queued.  -ENOENT. */
int channels_del(struct channels *c, uint32_t owner, uint32_t id);

/* The same of all that a process has. */
void channels_gone(struct channels *c, uint32_t owner);

/* Queues a copy of e, len bytes, and sends what can be sent. */
void channels_put(
	struct channels *c, uint32_t owner, uint32_t id, const struct cm_event *e, size_t len);

/* n events of it were taken. */
void channels_taken(struct channels *c, uint32_t owner, uint32_t id, uint32_t n);

/* Sends its socket a single byte.  -ENOENT: no such channel, or its name is gone. */
int channels_wake(struct channels *c, uint32_t owner, uint32_t id);

/* What is queued about an id, requests to it included, goes to channel `to`, in order. */
void channels_move(struct channels *c, uint32_t owner, uint32_t handle, uint32_t to);

/* What is queued about an id is dropped. */
void channels_purge(struct channels *c, uint32_t owner, uint32_t handle);

/*
 * A process, once, with a channel that gets no more events as its name is gone; 0 there is none.
 */
uint32_t channels_lost(struct channels *c);

/* Tries again what was stuck. */
void channels_pump_stuck(struct channels *c);
