/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of RMPP: windows of segments, sent again from the first that is missing. */
#pragma once

#include "mad/mad.h"
#include "wire/rmpp.h"

/* Prepares s, whose members up to response are set, for that message.  As mad_send_long(). */
int rmpp_send_init(struct mad_send *s, const uint8_t *msg, size_t len);
/* The first segment goes out. */
void rmpp_send_begin(struct mad_send *s);
void rmpp_send_free(struct rmpp_send *r);

/* The timer of s: true if that was ours to handle (s may have ended). */
bool rmpp_timed_out(struct mad_send *s);

/* An ACK has come; false: of no message of the agent's. */
bool rmpp_ack(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const struct rmpp_hdr *rmpp);

/* Ends what the MAD with that header is about, as the other side did; false: nothing on its way. */
bool rmpp_send_end(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr);
