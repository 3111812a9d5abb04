/* SPDX-License-Identifier: BSD-3-Clause */
/* What acknowledgements and responses mean to a requester (volume 1, 9.7.5.1 and 9.7.5.2). */
#pragma once

#include "roce/proto/requester.h"

/* An acknowledgement or response; what fits nothing that is under way is counted and ignored. */
void rc_req_answer(struct rc_requester *, const struct roce_packet *, uint64_t now);

/* The path marked packets as congested: a CNP came. */
void rc_req_congested(struct rc_requester *);

/* That entry ends in error once all before it have ended; nothing new is sent. */
void req_fail(struct rc_requester *, uint32_t entry, enum ibv_wc_status status);

/* Ends the entries that are answered, in order, and moves the window. */
void req_settle(struct rc_requester *, uint64_t now);
