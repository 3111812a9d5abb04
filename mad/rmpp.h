/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of many segments (RMPP): mad/rmpp_send.h cuts them up and sends them again until they
 * are acknowledged, mad/rmpp_recv.h puts them together.  A window of 64 segments at the receiver
 * moves on with each ACK; what is not acknowledged in time is sent again from the first that is
 * missing.
 */
#pragma once

#include "mad/mad.h"

enum {
	RMPP_WINDOW = 64,          /* segments that a receiver lets come */
	RMPP_SEGMENTS_MAX = 65536, /* a longer message is refused */
	RMPP_RECVS_MAX = 256,      /* messages that come at a time; then who has most gives way */
	RMPP_DONE_MAX = 4096,      /* that came, the oldest are forgotten first */
	RMPP_ACK_MS = 2000,        /* a sender waits so long for an ACK, or its own timeout */
	RMPP_RECV_MS = 40000,      /* a message must be complete */
	RMPP_DONE_MS = 10000,      /* one that is, is acknowledged again for so long */
};

/* A MAD with the RMPP header's active flag, of a class that has it, for an agent that has it. */
void rmpp_receive(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t mad[MAD_SIZE]);
