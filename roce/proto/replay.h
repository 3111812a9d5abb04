/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a responder remembers of READs, atomics, FLUSH and ATOMIC WRITE, so that each is carried out
 * once though its request may come twice (volume 1, 9.7.4.4), and the responses that it has to
 * send.
 */
#pragma once

#include "wire/roce.h"

/* A request whose response is to be sent, or was. */
struct response {
	uint8_t act;
	uint32_t psn; /* of its first packet */
	uint32_t packets;
	uint32_t sent; /* of those */
	uint32_t msn;  /* when it was carried out */
	uint64_t va, length;
	uint32_t rkey;
	uint64_t old; /* an atomic's */
	bool again;   /* it was asked for again */
};

struct response_ring {
	struct response *ring;
	uint32_t room, first, count;
};

struct replay {
	struct response_ring done;  /* the last ones carried out: as many as may be under way */
	struct response_ring queue; /* to be sent, in order; twice as many */
	uint32_t unsent;            /* of the queue: those that were not asked for again */
};

/* -ENOMEM. */
int replay_start(struct replay *, uint32_t max_reads);

void replay_end(struct replay *);

/* Is there room in the queue for one more? */
bool replay_has_room(const struct replay *);

/* Are as many under way as may be?  What was asked for again does not count. */
bool replay_is_full(const struct replay *);

/* Remembers what was carried out, in place of the oldest, and queues its response. */
void replay_add(struct replay *, const struct response *);

/* Queues the response of a request that came again, or a part of it; false: it is not known. */
bool replay_again(struct replay *, const struct roce_packet *, uint32_t mtu);

/* The response that is sent next, or NULL. */
struct response *replay_next(struct replay *);

/* It has been sent. */
void replay_sent(struct replay *);
