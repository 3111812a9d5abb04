/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests under way whose answers carry data: READs, cut into parts of at most 64 packets,
 * atomics, FLUSH and ATOMIC WRITE.  Responses are taken in any order; which are missing is known.
 *
 * One that came early may be anybody's.  It counts once the gap before it was filled by a response
 * that says that it was asked for again.  Where none was missing what came early is as missing as
 * the rest, and the response itself takes its place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { READ_PACKETS_MAX = 64 };

struct rc_read {
	uint32_t entry;
	uint32_t psn;     /* of its first response */
	uint32_t packets; /* 1 to READ_PACKETS_MAX */
	uint64_t offset;  /* of its first byte in the entry's data */
	uint64_t got;     /* bit i: response psn + i */
	uint64_t asked;   /* when it was asked for last, ns */
	uint32_t chased;  /* what is missing of so many was asked for again then */
	bool again;       /* more than once */
	uint64_t resent;  /* how much had been sent again when it was asked for */
};

struct rc_reads {
	struct rc_read *ring;
	uint32_t room, first, count;
	uint32_t came; /* responses of those that are in it */
};

/* -ENOMEM; no room means that no such request is ever sent. */
int reads_start(struct rc_reads *, uint32_t room);

void reads_end(struct rc_reads *);

/* The i-th oldest. */
struct rc_read *reads_at(struct rc_reads *, uint32_t i);

/* Appends one; the caller has seen that there is room. */
struct rc_read *reads_add(struct rc_reads *);

/* The one that waits for that PSN, or NULL. */
struct rc_read *reads_find(struct rc_reads *, uint32_t psn);

/* Drops those that are complete, from the oldest on. */
void reads_retire(struct rc_reads *);

/* Drops those from that PSN on: they will be sent anew. */
void reads_cut(struct rc_reads *, uint32_t psn);

bool read_complete(const struct rc_read *);

/* The first of its packets from..end-1 that is missing, and how many in a row are; end: none is. */
uint32_t read_missing(const struct rc_read *, uint32_t from, uint32_t end, uint32_t *packets);

/* The first response that is missing; of some that are under way, none complete at their head. */
uint32_t reads_turn(struct rc_reads *);

/* The i-th response of one that waits for it has come. */
void read_came(struct rc_reads *, struct rc_read *, uint32_t i);

/*
 * The response of that PSN came in its turn, though nothing before it was missing: what came early
 * right behind it is missing again.  That is the i-th of the one that is returned; NULL: none is.
 */
struct rc_read *reads_doubt_next(struct rc_reads *, uint32_t psn, uint32_t *i);

/*
 * How many responses of PSNs from that one on have come, of requests that are not complete or
 * stand behind such; none before it is missing.
 */
uint32_t reads_came_from(struct rc_reads *, uint32_t psn);

/* The first PSN that is missing, and how many in a row are; not for a complete one. */
uint32_t read_hole(const struct rc_read *, uint32_t *packets);
