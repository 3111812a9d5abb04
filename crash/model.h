/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What persistent memory may hold if the power fails: the state that a journal leads to.
 *
 * A word is 8 aligned bytes; it is stored whole.  What a peer wrote is *pending* from then on: each
 * word of it may be lost or not, whatever becomes of others, also of earlier ones.  Of one word the
 * order of its values holds: it is what one of the pending writes left, or what was durable before.
 * Pending words become durable by
 *
 * - a READ, of whatever, on the same queue pair, if incoming data goes to memory and not to a cache
 *   (no DDIO);
 * - a FLUSH of type persistent on the same queue pair, for its range; one for visibility never
 * does;
 * - the owner, who makes a range durable (msync, pmem_persist), as it is there at that moment.
 *
 * A request may overtake a READ or FLUSH before it on its queue pair, unless it is fenced, or its
 * program had polled that one's completion before it posted the request; READ, FLUSH and the
 * atomics stay behind a FLUSH.  So at the moment when such a request has just been carried out,
 * what it overtook may not have happened yet.
 *
 * What the owner itself stored is known when it makes it durable: until then it is lost, and while
 * it does so it is pending.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "crash/journal.h"

/* A stretch of one process's persistent memory, in whole words; none overlaps another. */
struct crash_region {
	uint32_t owner;
	uint64_t addr, len; /* the bytes that were registered */
	uint64_t base;      /* address of the first word */
	uint64_t words;
	uint64_t *durable, *visible; /* what survives in any case; what programs see */
	uint64_t *mark;              /* for model.c */
};

/* A word that may be lost. */
struct crash_pending {
	uint32_t region;
	uint64_t word;
	uint64_t value;
	uint64_t record; /* which wrote it; of the kinds REGION and PERSIST: a store of the owner */
};

struct crash_state {
	struct crash_region *regions;
	unsigned n_regions;
	struct crash_pending *pending; /* in the order of the writes */
	uint64_t n_pending, max_pending;
	uint64_t marks; /* so many have been made */
	uint64_t stamp; /* for model.c */
};

struct crash_rules {
	bool ddio; /* data of peers goes to a cache, from which a READ does not push it */
	/*
	 * A READ pushes what rpma_flush() was asked to flush, from the READ's own address on, and
	 * nothing if it is not by rpma_flush() or for visibility: as a FLUSH would.
	 */
	bool ranges;
};

/* When the power fails: after this record, or while the owner was still at it (PERSIST). */
struct crash_point {
	uint64_t record;
	bool during;
};

/*
 * The state at a point, from the start of the journal.  With `late`, what the record at the point
 * may have overtaken has not happened.  0, or -ENOMEM; crash_state_free() either way.
 */
int crash_state_at(struct crash_state *s, const struct journal *j, const struct crash_rules *rules,
	struct crash_point at, bool late);
void crash_state_free(struct crash_state *s);

/* Begins with nothing, for crash_state_step(). */
void crash_state_init(struct crash_state *s);

/*
 * From the point before it to this one.  True in *matters: images are possible that were not
 * before, or there is a further mark.
 * 0 or -ENOMEM.
 */
int crash_state_step(struct crash_state *s, const struct journal *j,
	const struct crash_rules *rules, struct crash_point to, bool *matters);

/*
 * What the owner stored, and made durable only after point *from: the next record of the kind
 * PERSIST behind that has such words.  s is the state at a point; those of them that lie in its
 * regions are added to its pending words, as that record's, and *from is that record then.  0, or
 * -ENOENT: there is none any more; -ENOMEM.
 */
int crash_state_foresee(struct crash_state *s, const struct journal *j,
	const struct crash_rules *rules, struct crash_point *from);

/* The next point; points come in order, from crash_point_first(). */
struct crash_point crash_point_first(const struct journal *j);
struct crash_point crash_point_next(const struct journal *j, struct crash_point p);

/* May the request of record i have overtaken a READ or FLUSH that was pushed before it? */
bool crash_overtakes(const struct journal *j, uint64_t i);

/* The word as it is left if those pending ones are kept for which keep[] is not 0. */
void crash_image(
	const struct crash_state *s, const uint8_t *keep, unsigned region, uint64_t *words);
