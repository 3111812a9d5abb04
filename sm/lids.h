/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which port has which LID: pairs of a port's GUID and its LID (LMC 0), that outlive the subnet as
 * the text NAME.lids.  Its lines are those of opensm's guid2lid: GUID, first LID, last LID.
 */
#pragma once

#include <stdio.h>

#include "fabric/tables.h"
#include "topo/build.h"

enum { LIDS_BUCKETS = 1 << 15 };

/* As zeroed: there are none. */
struct lids {
	uint64_t guid[TABLES_LIDS];   /* by LID; 0: free */
	uint16_t next[TABLES_LIDS];   /* the next LID whose GUID has the same hash; 0: none */
	uint16_t first[LIDS_BUCKETS]; /* by hash */
	uint16_t least;               /* no free LID is below it */
};

/* The LID of a port; 0: none. */
uint16_t lids_of(const struct lids *l, uint64_t guid);

/*
 * From now on the port has that LID, and no other.  -EINVAL: not a GUID, or no unicast LID;
 * -EEXIST: it is another port's.
 */
int lids_claim(struct lids *l, uint64_t guid, uint16_t lid);

/* As lids_claim, but a port that has that LID loses it. */
int lids_take(struct lids *l, uint64_t guid, uint16_t lid);

/* The LID of a port; one that has none gets the least that is free.  0: not a GUID, or none is. */
uint16_t lids_give(struct lids *l, uint64_t guid);

/*
 * Adds the pairs that a text has, the last LID of each line ignored; blank lines and those that
 * begin with # say nothing.  -EINVAL: a line is wrong, or contradicts one before; -EIO: reading
 * failed; with name, the line and the reason in error.  What the lines before said has been added.
 */
int lids_read(struct lids *l, FILE *in, const char *name, char error[TOPO_ERROR]);

/* Writes all pairs in order of LIDs.  -EIO: out says that an error has happened. */
int lids_write(const struct lids *l, FILE *out);
