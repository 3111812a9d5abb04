/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and channels in the segment. A change of this file is a change of SEG_VERSION.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "hca/seg/ticket.h"

/* Room in a CQ's ring beyond its limit, for surplus tickets. */
enum { CQ_SURPLUS_MAX = 64 };

/* Where the slots of a CQ's ring are. */
struct seg_ring {
	uint64_t off;
	uint32_t log_size;
	uint32_t limit; /* tickets outstanding at most */
};

/*
 * One completion queue: ring of tickets.  A resize describes a new ring in the unused one of two
 * places and counts `resizes` up; its lowest bit tells which place is in use.  The other place
 * belongs to the owner again once it has waited for every executor (hca/proc/quiesce.h).
 */
struct seg_cq {
	/* the owner, in create_cq and resize_cq */
	_Alignas(CACHE_LINE) struct seg_ring place[2];
	_Atomic uint32_t resizes;
	uint32_t channel;         /* completion channel, 0 = none */
	_Atomic uint32_t live;    /* generation << 1 | 1 while it exists */
	_Atomic uint32_t arm;     /* hca/seg/arm.h */
	_Atomic uint32_t fired;   /* events, counts up over all CQs that have been here */
	_Atomic uint32_t failed;  /* overrun: completions are lost from here on */
	_Atomic uint32_t events;  /* async events waiting, bit = enum ibv_event_type */
	_Atomic uint32_t surplus; /* tickets pushed again after a death, which may be redundant */
	struct ticket_ring ring[2];

	/* the owner, in modify_cq: completions << 16 | us that an event may wait for; 0: not at all
	 */
	_Alignas(CACHE_LINE) _Atomic uint32_t moderation;
	uint32_t ignores_overrun; /* the owner, in create_cq: what does not fit is lost */
	/* anybody: events of fired whose channel was written since */
	_Atomic uint32_t told;
	_Atomic uint32_t given; /* the owner: those that the program has got */
	/* anybody: completions that wait for their event, and when it is due at the latest */
	_Atomic uint32_t held;
	_Atomic uint64_t due; /* CLOCK_MONOTONIC ns, 0 never */
};

/* A completion channel: which CQs fired (hca/seg/fired.h).  Its slots lie in seg.fired. */
struct seg_channel {
	struct ticket_ring ring;
	/* anybody, and the owner takes it back: an entry did not fit */
	_Alignas(CACHE_LINE) _Atomic uint32_t overflow;
	/* the owner asks weftd to look whether a count is missing: CLOCK_MONOTONIC ns, 0 not */
	_Atomic uint64_t doubt_ns;
};

/* In what weftd is asked to look at: a CQ, or a channel, not a QP. */
#define SEG_TIMER_CQ      (1u << 31)
#define SEG_TIMER_CHANNEL (1u << 30)

_Static_assert(offsetof(struct seg_cq, ring) == CACHE_LINE, "one line beside the rings");
