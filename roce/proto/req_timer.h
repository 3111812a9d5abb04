/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a requester does when nothing answers.  First it asks: the oldest packet once more, with a
 * wish for an acknowledgement, again and again at twice the interval; a receiver may just have lost
 * its CPU.  All is sent again, and a retry counted, when the queue pair's own timeout is over
 * (volume 1, 9.7.6.1.3, which allows up to four times that; who asks for a time expects it).
 */
#pragma once

#include "roce/proto/requester.h"

enum { RNR_RETRY_FOR_EVER = 7 };

/*
 * Does what is due by now: for who has read all that had come by then, or a retry may be counted
 * though the answer is there.  rc_req_run() follows.
 */
void rc_req_expire(struct rc_requester *, uint64_t now);

/* Something was answered: patience begins anew. */
void req_progress(struct rc_requester *, uint64_t now);

/* When rc_req_expire() has something to do even if nothing comes, ns; 0: never. */
uint64_t rc_req_deadline(const struct rc_requester *);

/* The time that an RNR NAK's code (0 to 31) asks for, ns (volume 1, table 45). */
uint64_t rc_rnr_time(unsigned code);
