/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said about segments: ACK, STOP, ABORT. */
#pragma once

#include "mad/mad.h"
#include "wire/rmpp.h"

/*
 * Answers a segment of a class with RMPP (or what claims to be one): its headers, with that RMPP
 * header but for RRespTime, which stays.  turn: it came from the other side, so it goes against its
 * direction.
 */
void rmpp_answer(struct mad_agent *a, const struct mad_addr *to, const uint8_t *mad,
	const struct rmpp_hdr *rmpp, bool turn);

/* The same with an ABORT, or a STOP where resources are short. */
void rmpp_abort(struct mad_agent *a, const struct mad_addr *to, const uint8_t *mad,
	enum rmpp_status status, bool turn);
