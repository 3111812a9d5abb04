/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credit of a connection, of two kinds: bytes of the receiver's ring, and messages, each of which
 * takes one of its receives.  All are running totals since the connection began, so that news may
 * be lost, late or said twice.  How they are said is up to the face.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct credit {
	uint64_t bytes, msgs;
};

/* Of what we send. */
struct credit_out {
	struct credit sent;
	struct credit taken; /* by the peer, the most that it has said */
	struct credit room;  /* that the peer has in all */
};

/* Of what comes. */
struct credit_in {
	struct credit came;
	struct credit taken; /* bytes by the program; messages whose receives are posted again */
	struct credit told;  /* taken, as the peer was told */
};

/* How many bytes, how many messages may be sent. */
static inline uint64_t credit_bytes(const struct credit_out *c)
{
	return c->room.bytes - (c->sent.bytes - c->taken.bytes);
}

static inline uint64_t credit_msgs(const struct credit_out *c)
{
	return c->room.msgs - (c->sent.msgs - c->taken.msgs);
}

/*
 * Takes in what the peer says to have taken; what is older than what is known changes nothing.
 * False: it cannot be, as so much was not sent.
 */
static inline bool credit_hear(struct credit_out *c, struct credit said)
{
	if (said.bytes > c->sent.bytes || said.msgs > c->sent.msgs)
		return false;
	if (said.bytes > c->taken.bytes)
		c->taken.bytes = said.bytes;
	if (said.msgs > c->taken.msgs)
		c->taken.msgs = said.msgs;
	return true;
}

/* Is that less than the peer has said before?  In messages, which keep their order, it cannot be.
 */
static inline bool credit_recedes(const struct credit_out *c, struct credit said)
{
	return said.bytes < c->taken.bytes || said.msgs < c->taken.msgs;
}

/* A total of which 32 bits were said, and that is not far from `near`. */
static inline uint64_t credit_whole(uint64_t near, uint32_t said)
{
	return near + (uint64_t)(int64_t)(int32_t)(said - (uint32_t)near);
}

/* What was taken and not told yet. */
static inline struct credit credit_untold(const struct credit_in *c)
{
	return (struct credit){c->taken.bytes - c->told.bytes, c->taken.msgs - c->told.msgs};
}
