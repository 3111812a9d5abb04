/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of RMPP: messages that come in segments, in whatever order. */
#pragma once

#include "mad/mad.h"
#include "wire/rmpp.h"

/* A segment has come; false: of no message, and none begins with it. */
bool rmpp_segment(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const struct rmpp_hdr *rmpp, const uint8_t *mad);

/* Forgets the message that the MAD with that header is about; false: none is incomplete. */
bool rmpp_recv_end(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr);

/* Ends what comes for that agent. */
void rmpp_forget(struct mad_agent *a);

/* Sees to messages that stay incomplete, and to those that were complete long enough. */
void rmpp_run(struct mad_layer *layer, uint64_t now);
