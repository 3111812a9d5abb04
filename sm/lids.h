/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which port has which LIDs: a port's GUID, its first LID and its LMC, that outlive the subnet as
 * the text NAME.lids.  Its lines are those of opensm's guid2lid: GUID, first LID, last LID.
 */
#pragma once

#include <stdio.h>

#include "fabric/tables.h"
#include "topo/build.h"

enum { LIDS_BUCKETS = 1 << 15, LIDS_LMCS = 8 };

/* As zeroed: there are none. */
struct lids {
	uint64_t guid[TABLES_LIDS];   /* by LID; 0: free */
	uint8_t lmc[TABLES_LIDS];     /* by a port's first LID */
	uint16_t next[TABLES_LIDS];   /* the next first LID whose GUID has the same hash; 0: none */
	uint16_t first[LIDS_BUCKETS]; /* by hash */
	uint16_t least[LIDS_LMCS];    /* by LMC: no free LIDs for it begin below */
};

/* The first LID of a port; 0: none. */
uint16_t lids_of(const struct lids *l, uint64_t guid);

/* The LMC of the port that has that as its first LID. */
uint8_t lids_lmc(const struct lids *l, uint16_t first);

/*
 * From now on the port has the LIDs from that one on, as many as the LMC says, and no others.
 * -EINVAL: not a GUID, or these are no unicast LIDs that go with the LMC; -EEXIST: one of them is
 * another port's.
 */
int lids_claim(struct lids *l, uint64_t guid, uint16_t lid, uint8_t lmc);

/* As lids_claim, but a port that has one of those LIDs loses all that it has. */
int lids_take(struct lids *l, uint64_t guid, uint16_t lid, uint8_t lmc);

/*
 * The first LID of a port; one that has none, or another LMC, gets the least ones that are free.
 * 0: not a GUID, or there are none.
 */
uint16_t lids_give(struct lids *l, uint64_t guid, uint8_t lmc);

/*
 * Adds the ports that a text has; without a last LID the LMC is 0.  Blank lines and those that
 * begin with # say nothing.  -EINVAL: a line is wrong, or contradicts one before; -EIO: reading
 * failed; with name, the line and the reason in error.  What the lines before said has been added.
 */
int lids_read(struct lids *l, FILE *in, const char *name, char error[TOPO_ERROR]);

/* Writes all ports in order of LIDs.  -EIO: out says that an error has happened. */
int lids_write(const struct lids *l, FILE *out);
