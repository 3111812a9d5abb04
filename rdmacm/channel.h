/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels. */
#pragma once

#include "rdmacm/rdmacm.h"

/*
 * Known to weftd from now on.  May block for a call to it: its errors; -ENOSPC, -EROFS and the
 * like: the runtime directory takes no name for it (logged).
 */
int channel_create(struct event_channel **out);

void channel_destroy(struct event_channel *ch);

/* Tells a new weftd of it, by a function like weft_cm_call() or, with an fd, weft_cm_call_fd(). */
typedef int (*channel_send)(void *conn, uint32_t op, const void *call, size_t len, int fd);

int channel_publish(struct event_channel *ch, channel_send send, void *conn);

/* An event of our own making; ENOMEM. */
int channel_put(struct event_channel *ch, const struct cm_event *e, size_t len);

/* Takes the next event, blocking by the fd's flag: -EAGAIN, -EINTR; -ENOENT: its name is gone. */
int channel_take(struct event_channel *ch, struct cm_event *e);

/*
 * Calls pick for each event that waits; those for which it returns true are taken out and go to
 * `to`, if that is not NULL.
 */
void channel_sift(struct event_channel *ch, struct event_channel *to,
	bool (*pick)(const struct cm_event *e, const void *arg), const void *arg);
