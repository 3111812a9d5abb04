/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of many segments, both ways, for mad/mad.c (InfiniBand Architecture, volume 1, 13.6).
 * A sender has a window of segments that the receiver moves on with each ACK; what is not
 * acknowledged in time is sent again from the first that is missing.
 */
#pragma once

#include "mad/mad.h"

enum {
	RMPP_WINDOW = 64,          /* segments that a receiver lets come */
	RMPP_SEGMENTS_MAX = 65536, /* a longer message is refused */
	RMPP_RECVS_MAX = 256,      /* messages that come at a time */
	RMPP_ACK_MS = 2000,        /* a sender waits so long for an ACK, or its own timeout */
	RMPP_RECV_MS = 40000,      /* a message must be complete */
	RMPP_DONE_MS = 10000,      /* one that is, is acknowledged again for so long */
};

/* Prepares s, whose members up to response are set, for that message.  As mad_send_long(). */
int rmpp_send_init(struct mad_send *s, const uint8_t *msg, size_t len);
/* The first segment goes out. */
void rmpp_send_begin(struct mad_send *s);
void rmpp_send_free(struct rmpp_send *r);

/* The timer of s: true if that was ours to handle (s may have ended). */
bool rmpp_timed_out(struct mad_send *s);

/* A MAD has come; false: it is none of a message of segments, or of an agent without RMPP. */
bool rmpp_receive(struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t mad[MAD_SIZE]);

/* Ends what comes for that agent. */
void rmpp_forget(struct mad_agent *a);

/* Sees to messages that stay incomplete. */
void rmpp_run(struct mad_port *port, uint64_t now);
