/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions and windows of this process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "hca/obj/mr_kind.h"

struct hca_pd;

/* What a region is made of, as the segment's entry describes it. */
struct mr_region {
	uint64_t addr, length, iova;
	unsigned access;
	const struct mr_kind *kind;
	void *of;         /* what the kind needs to know */
	const char *call; /* by which the program registers it; NULL: ibv_reg_mr */
};

/* A place in the arena that somebody may still touch; of hca/mem/place.h. */
struct place {
	struct place *next;
	const struct place_kind *kind;
	uint64_t lo, hi;
};

struct hca_mr {
	uint32_t epoch;
	uint32_t index;
	uint32_t key; /* 0: a window, which is no region for lkeys, or deregistered */
	_Atomic uint32_t refs;
	struct hca_pd *pd;
	uint64_t addr, length, iova;
	unsigned access;
	const struct mr_kind *kind; /* NULL: a window */
	void *of;                   /* what the kind needs to know */
	bool durable;               /* registered for persistent flushes, and counted */
	uint8_t durability;         /* enum durability: what they can do */
	bool withdrawn;             /* being deregistered: nobody uses it any more */
	bool parted;                /* ... but its entry stays, in quarantine */
	/* mr_peer.c: held while its client takes it away, or it becomes another */
	struct lock lock;
	bool dead; /* its client took it away: its key is not shown again */
	/* share_state.c: the set of regions, by address; under its lock */
	struct hca_mr *left, *right;
	uint32_t prio;
	uint64_t lo, hi, top; /* whole pages, in the arena; top: the highest hi below this node */
	uint64_t shift;       /* of a second mapping: from addresses to the arena; else 0 */
	bool second;          /* over an import of our own arena: its pages stay there */
	bool in_set, mapped, remap;
	uint32_t backing;   /* the object in which peers map it, 0: none (share_backing.c) */
	uint32_t born;      /* the key of an export, which the field above does not have */
	bool exported;      /* an export (export.c), and no region */
	struct place place; /* of an export that is closed, but still mapped by somebody */
};

struct hca_mw {
	struct hca_mr slot; /* what it is in the table of keys; its key is 0 */
	uint32_t born;      /* the key with which it came */
	struct hca_mw *next, **link;
};
