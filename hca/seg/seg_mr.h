/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions, windows and shared objects in the segment. A change of this file is a change of
 * SEG_VERSION. */
#pragma once

#include <stdint.h>

#include "base/atomic.h"

enum share_mode { SHARE_UNSET, SHARE_NEVER, SHARE_AUTO, SHARE_ALWAYS };

/* Why a region was not mapped, or not any more; counted. */
enum share_reason {
	SHARE_MAPPED,      /* it was */
	SHARE_NO_REMOTE,   /* no remote right: nobody would come */
	SHARE_UNALIGNED,   /* atomics whose addresses are not those of 8-byte words in memory */
	SHARE_TOO_LARGE,   /* larger than auto takes at once */
	SHARE_BUDGET,      /* the process has enough mapped */
	SHARE_AREAS,       /* it would split the address space into too many areas */
	SHARE_SLOW,        /* to read the attributes of its areas takes too long */
	SHARE_UNUSED,      /* earlier conversions were hardly used */
	SHARE_NO_ARENA,    /* no arena, or no window of it */
	SHARE_NOT_PRIVATE, /* a hole, or shared memory of a kind that cannot be told */
	SHARE_RIGHTS,      /* not readable and writable, or executable */
	SHARE_FILE,        /* of a file, private or shared, on whatever file system */
	SHARE_MEMFD,       /* ... that can become shorter, or that peers cannot write */
	SHARE_SYSV,        /* ... that we ourselves may not look at, or that has huge pages */
	SHARE_SHARED_ANON, /* mmap(MAP_SHARED | MAP_ANONYMOUS) */
	SHARE_STACK,       /* a stack, or the thread's own data */
	SHARE_HUGETLB,
	SHARE_ATTRIBUTES,    /* what mapping would lose: wipe on fork, a key, a seal ... */
	SHARE_USERFAULTFD,   /* another userfaultfd watches it */
	SHARE_THREADS,       /* other threads run and cannot be held off */
	SHARE_PINNED,        /* the kernel holds pages of the process: io_uring buffers */
	SHARE_EDGE,          /* not whole pages, and system calls of others could fail there */
	SHARE_MIXED_ATOMICS, /* another region serves atomics on these bytes without mapping */
	SHARE_ARENA_IN_USE,  /* memory that was moved away still lies at that place */
	SHARE_QUARANTINE,    /* somebody still maps what an export was that has been revoked */
	SHARE_PEER_STOPPED,  /* a stopped peer is in the middle of using the memory */
	SHARE_KERNEL,        /* the kernel refused: limits, memory, a sealed mapping */
	SHARE_LEFT_BEHIND,   /* deregistered, and could not be taken back */
	SHARE_JOURNALED,     /* its writes go into a journal (hca/exec/crash_journal.h) */
	SHARE_NO_FD,         /* a memfd of which no descriptor was found, or could be passed on */
	SHARE_ON_DEMAND,     /* it follows the addresses, wherever they lead */
	SHARE_REASONS
};

/* What kind of region an entry is. */
enum seg_mr_flags {
	MR_WINDOW = 1 << 0,    /* a memory window: a part of another region, for rkeys only */
	MR_WINDOW_QP = 1 << 1, /* ... of type 2: belongs to one QP and is invalidated by requests */
	MR_NULL = 1 << 2,      /* reads zeros, swallows what is written; for lkeys only */
	MR_EXPORT = 1 << 3,    /* no region: memory that others may map (hca/mem/export.h) */
	/* Registered for persistent flushes (hca/exec/persist.h); neither: nothing makes it so. */
	MR_PMEM = 1 << 4,
	MR_FILE = 1 << 5,
	MR_JOURNALED = 1 << 6, /* what comes into it is noted first (hca/exec/crash_journal.h) */
	MR_OBJECT = 1 << 7,    /* MR_EXPORT: of an object, seg_mr.backing and .offset say which */
	MR_OWNED = 1 << 8,     /* only functions of its owner reach it: addr leads nowhere */
};

/* seg_mr.share: how a peer reaches a region's memory. */
enum mr_share {
	MR_COPY,   /* by a system call that copies, or by the owner's agent */
	MR_MAPPED, /* in the arena, at the offset that is its address + shift */
	MR_BUSY,   /* it is changing over: come back soon */
	MR_BACKED, /* in an object that the program shares by itself: seg_mr.backing, .offset */
};

enum { MR_OPS_ENOUGH = 64 };

/*
 * One memory region or window.  Of a region the owner writes all but ops; of a window, whoever
 * executes the request that binds or invalidates it.  key comes last when it appears and goes
 * first.
 */
struct seg_mr {
	_Atomic uint32_t key; /* lkey and rkey; 0 = none */
	uint32_t access;      /* enum ibv_access_flags */
	uint32_t pd;
	uint32_t flags; /* enum seg_mr_flags */
	uint64_t iova;  /* the address that work requests use */
	uint64_t length;
	uint64_t addr; /* where it is in the owner's memory */
	union {
		uint64_t sink;   /* MR_NULL: where writes go */
		uint64_t offset; /* MR_BACKED, MR_OBJECT: of addr in the backing */
		uint64_t shift;  /* MR_MAPPED: 0 unless it is a second mapping */
	};
	union {
		struct {                        /* of a region */
			_Atomic uint32_t share; /* enum mr_share */
			/* whoever executes, up to MR_OPS_ENOUGH: one-sided operations while mapped
			 */
			_Atomic uint32_t ops;
		};
		struct {                /* of a window */
			uint32_t under; /* key of the region that it is a part of */
			uint32_t qpn;   /* MR_WINDOW_QP: whose it is while it is bound */
		};
	};
	union {
		struct {
			uint32_t inv_qpn, inv_pos; /* of a window: who invalidated it last */
		};
		uint32_t backing; /* MR_BACKED, MR_OBJECT: id in struct seg_backing */
	};
};

/* An object by which a process shares memory of its own (pages/backing.h). */
struct seg_backing {
	_Atomic uint32_t id; /* n * SEG_BACKINGS + its index, never used again; 0: none */
	uint32_t kind;       /* enum backing_kind; a memfd weftd gives by its id */
	int32_t shmid;
	uint32_t pad0;
	uint64_t ipc_ns;
};

/*
 * A key: 4 bits that are drawn, the index of its entry, and a variant, which no key of that entry
 * had lately.  Indices begin at a drawn one (hca/proc/tables.c), so nobody guesses a key.
 */
enum { KEY_VARIANT_BITS = 8, KEY_INDEX_BITS = 20 };

static inline uint32_t key_index(uint32_t key)
{
	return key >> KEY_VARIANT_BITS & ((1u << KEY_INDEX_BITS) - 1);
}

_Static_assert(sizeof(struct seg_mr) == CACHE_LINE, "one region, one line");
