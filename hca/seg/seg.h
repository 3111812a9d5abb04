/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment: one sealed, sparse memfd per attached process that holds its HCA objects, so that
 * the owner, a local peer or weftd can execute a work request.  Everything in it is an offset or
 * an index, never a pointer.  weftd creates it, the owner and its peers map all of it.
 *
 * Nothing in a segment is trusted by anyone but its owner: indices are masked, offsets and
 * lengths are checked at use (hca/seg/view.h).  A peer that scribbles over its own segment breaks
 * itself.  A change of this file or of seg_mr.h, seg_peer.h, seg_qp.h, seg_cq.h, seg_fault.h is a
 * change of SEG_VERSION.
 *
 * Writers are named per group of fields; groups of different writers lie on different lines.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hca/seg/fired.h"
#include "hca/seg/qpn.h"
#include "hca/seg/rxq.h"
#include "hca/seg/seg_cq.h"
#include "hca/seg/seg_fault.h"
#include "hca/seg/seg_mr.h"
#include "hca/seg/seg_peer.h"
#include "hca/seg/seg_qp.h"
#include "hca/seg/slot.h"
#include "pages/agent_slot.h"

#define SEG_MAGIC 0x3147455354464577ull /* as bytes: "wEFTSEG1" */
enum { SEG_VERSION = 19 };

enum {
	SEG_SLOTS = 1024,         /* exec slots: threads that execute at the same time */
	SEG_QPN_BLOCKS = 1 << 16, /* of SEG_QPN_PER_BLOCK QP numbers (hca/seg/qpn.h) */
	SEG_QPS = 1 << 17,        /* QPs per process */
	SEG_CQS = 1 << FIRED_NUMBER_SHIFT,
	SEG_CHANNELS = 1 << 16, /* completion channels */
	SEG_FIRED_LOG = 10,     /* log2 of the events of one whose order is kept */
	SEG_MRS = 1 << KEY_INDEX_BITS,
	SEG_PARK_BYTES = 8192,   /* a parked SEND up to this size is copied out */
	SEG_RING_BYTES = 16384,  /* receive payload ring of a QP */
	SEG_RING_MSG_MAX = 4096, /* larger SENDs go by a mover */
	SEG_GRH_BYTES = 40,      /* before the payload of a datagram */
	SEG_BOUNCE_BYTES = SEG_RING_MSG_MAX + CACHE_LINE, /* per slot of a shared receive queue */
	SEG_GUESTS = 1 << 14,
	SEG_MEMBERS = 1 << 13,
	SEG_IMPORTS = 1 << 12, /* mappings of one process's exports by others */
	SEG_BACKINGS = 256,    /* objects by which a process shares memory of itself */
};

#define SEG_SIZE (16ull << 30)

/* Which process can reach whose memory by process_vm_*: what each can and allows. */
enum reach_flags {
	REACH_CALLS = 1 << 0,       /* process_vm_readv and _writev are not filtered */
	REACH_PRIVILEGED = 1 << 1,  /* has CAP_SYS_PTRACE: reaches what does not allow it, too */
	REACH_ALLOWS = 1 << 2,      /* dumpable, and Yama asks for no consent */
	REACH_NEVER_AGENT = 1 << 3, /* WEFT_MOVER=cma: a refusal is an error */
};

/* Head of the segment, one page. */
struct seg_header {
	/* weftd, before anybody else maps it */
	uint64_t magic;
	uint32_t version;
	uint32_t attach; /* attach id of the owner, 24 bits, unique in the fabric */
	uint64_t size;
	int32_t pid; /* of the owner, in weftd's pid namespace */
	uint32_t pad0;
	uint64_t start_time; /* of the owner, clock ticks since boot (/proc/PID/stat field 22) */
	char comm[16];       /* its name, for messages; perhaps without a NUL */

	/* weftd; read by every peer on every operation */
	_Alignas(CACHE_LINE) _Atomic uint32_t dead; /* 1 once the owner is gone */

	/* anybody: taken around read-modify-write of this process's memory (hca/exec/word.h)
	 */
	_Alignas(CACHE_LINE) _Atomic uint64_t atomic_token;

	/* anybody: async events that wait for ibv_get_async_event */
	_Alignas(CACHE_LINE) _Atomic uint64_t port_events; /* hca/seg/port_event.h */
	/* weftd, and the owner takes it back: they may be more than the async fd counts, or fewer
	 */
	_Atomic uint32_t async_doubt;

	/* the owner, at attach: who can reach whose memory how (hca/proc/reach.h) */
	_Alignas(CACHE_LINE) _Atomic uint32_t reach; /* enum reach_flags */
	/* the owner: where its agent's area is (struct agent_area), 0 while it never had one */
	_Atomic uint64_t agent_off;
	/* anybody: a peer was refused and needs the agent; what the agent sleeps on */
	_Alignas(CACHE_LINE) _Atomic uint32_t agent_wanted;
	struct agent_bell agent_bell;

	/* the owner: counts for weft status, and how far the tables are in use */
	_Alignas(CACHE_LINE) _Atomic uint32_t slots_used;
	_Atomic uint32_t qps_used; /* QP indices below this were used at least once */
	_Atomic uint32_t cqs_used;
	_Atomic uint32_t n_pd, n_mr, n_cq, n_qp, n_channel;
	_Atomic uint64_t mr_bytes;
	_Atomic uint32_t members_used; /* entries of member[] below this were used */

	/* the owner: which of its memory peers reach by mapping it, and why the rest not */
	_Atomic uint32_t share_mode; /* enum share_mode */
	_Atomic uint32_t n_mapped;   /* regions */
	_Atomic uint64_t mapped_bytes, conversions;
	_Atomic uint32_t n_backings;    /* objects of the program's that they map */
	_Atomic uint64_t backed_bytes;  /* of regions in these, each for itself */
	_Atomic uint32_t n_quarantined; /* regions that went while a stopped peer was using one */
	_Atomic uint64_t quarantined_bytes;         /* of their places in the arena */
	_Atomic uint32_t n_exports;                 /* that can be mapped, or are */
	_Atomic uint64_t not_mapped[SHARE_REASONS]; /* by enum share_reason */

	/* the owner: regions for persistent flushes, by enum durability */
	_Atomic uint32_t n_durable[3];

	/* a guest: entries of guest[] below this were used */
	_Alignas(CACHE_LINE) _Atomic uint32_t guests_used;
	_Atomic uint32_t imports_used; /* an importer: of import[] */

	/*
	 * The owner, at attach: in which journal writes into its persistent memory are to be noted
	 * (struct journal.id); 0 = none (hca/exec/crash_journal.h)
	 */
	_Alignas(CACHE_LINE) _Atomic uint64_t journal_id;
};

/*
 * What a queue or a process belongs to beside its peers: multicast groups and XRC domains.  In a
 * process's segment its own, in weftd's hub those of all, from which senders read.
 */
enum seg_member_kind { MEMBER_NONE, MEMBER_MCAST, MEMBER_XRCD };

struct seg_member {
	_Atomic uint32_t id; /* kind << 28 | QP number (MCAST) or attach id (XRCD); 0 = free */
	uint8_t key[16];     /* MGID; device and inode */
};

/* What a segment counts, per exec slot (single writer each); seg_counter() sums up. */
enum seg_counter {
	CTR_SEND_INLINE, /* SENDs carried in the receive slot */
	CTR_SEND_RING,   /* ... in the payload ring */
	CTR_SEND_MOVER,  /* ... by a mover */
	CTR_CMA_OPS,     /* process_vm calls */
	CTR_CMA_BYTES,
	CTR_SELF_BYTES, /* copied within the process */
	CTR_MAP_BYTES,  /* copied through a peer's arena */
	CTR_MAP_ATOMICS,
	CTR_MAP_BUSY, /* requests that met a region that was changing over */
	CTR_ATOMICS,
	CTR_RNR_PARKS,  /* SENDs that found no receive */
	CTR_PEER_PARKS, /* requests that found no peer */
	CTR_HELPED,     /* work requests executed for a peer */
	CTR_WORKER,     /* ... by the worker thread */
	CTR_EVENTS,     /* completion events written */
	CTR_ERR_LOC_PROT,
	CTR_ERR_LOC_LEN,
	CTR_ERR_REM_ACCESS,
	CTR_ERR_REM_INV_REQ,
	CTR_ERR_REM_OP,
	CTR_ERR_RNR,
	CTR_ERR_RETRY,
	CTR_FLUSHED,
	CTR_CQ_OVERRUN,
	CTR_CMA_REFUSED,  /* EPERM from process_vm */
	CTR_WAIT_STOPPED, /* invalidations that had to wait for a stopped peer */
	CTR_PASS_STOPPED, /* ... and those that did not wait for one */
	CTR_DROP_NO_QP,   /* datagrams and UC messages dropped: no such QP, or not ready */
	CTR_DROP_QKEY,    /* ... a wrong Q_Key */
	CTR_DROP_NO_RECV, /* ... no receive posted */
	CTR_DROP_ACCESS,  /* ... UC: the responder found the request at fault */
	CTR_AGENT_OPS,    /* requests to peers' agents */
	CTR_AGENT_BYTES,
	CTR_AGENT_LATE,       /* ... given up: the agent did not answer in time */
	CTR_AGENT_SERVED,     /* requests that our own agent served */
	CTR_AGENT_DENIED,     /* ... and those that it refused */
	CTR_PERSIST,          /* persistent flushes of files and persistent memory */
	CTR_PERSIST_VOLATILE, /* ... of memory that nothing can make durable */
	CTR_HANDED_OVER,      /* requests left to the agent of the process whose memory it is */
	CTR_AGENT_RUNS,       /* queues of peers that our own agent ran for that */
	CTR_WIRE_SENT,        /* RoCE packets */
	CTR_WIRE_SENT_BYTES,
	CTR_WIRE_CAME,
	CTR_WIRE_CAME_BYTES,
	CTR_WIRE_RESENT,   /* packets that were sent again */
	CTR_WIRE_PROBES,   /* ... to ask whether it is heard */
	CTR_WIRE_TIMEOUTS, /* of queue pairs, when nothing was heard */
	CTR_WIRE_NAKS,     /* that came: something before was lost */
	CTR_WIRE_RNR_NAKS, /* that came: no receive was posted */
	CTR_WIRE_CNPS_SENT,
	CTR_WIRE_CNPS_CAME,
	CTR_WIRE_DUPLICATES,      /* requests that came again */
	CTR_WIRE_OUT_OF_SEQUENCE, /* ... that came although one before was missing */
	CTR_WIRE_FULL,            /* times that the kernel had no room for packets */
	CTR_WIRE_NOT_SENT,        /* packets that it refused */
	CTR_WIRE_TOO_LONG,        /* ... for their length */
	CTR_WIRE_HANDED_OVER,     /* packets of another process that came here */
	CTR_WIRE_DROP_FULL,       /* packets for which the socket had no room */
	CTR_WIRE_DROP_LENGTH,     /* too short, or not of a length that there is */
	CTR_WIRE_DROP_VERSION,
	CTR_WIRE_DROP_OPCODE,
	CTR_WIRE_DROP_ICRC,
	CTR_WIRE_DROP_PKEY,
	CTR_WIRE_DROP_NO_QP,
	CTR_WIRE_DROP_TYPE,    /* of another transport than its queue pair */
	CTR_WIRE_DROP_STATE,   /* of the queue pair: it takes no requests */
	CTR_WIRE_DROP_ADDRESS, /* not from where its queue pair's path leads */
	CTR_WIRE_DROP_BUSY,    /* the queue was just being flushed */
	CTR_WIRE_DROP_KEPT,    /* behind one that waited for a receive */
	CTR_PEER_REFUSED,      /* clients, DMA windows and files of WEFT_PEER_CLIENTS */
	CTR_WIRE_RNR_SENT,     /* NAKs of ours: no receive was posted */
	CTR_WIRE_MCAST_SENT,   /* packets to groups */
	CTR_WIRE_MCAST_CAME,
	CTR_WIRE_DROP_USER,  /* of another user, where only those of our own may come */
	CTR_WIRE_DROP_PORT,  /* not from the port of its queue pair's peer, which is Weft */
	CTR_WIRE_OTHER_PORT, /* from another one than before: adapters change theirs */
	CTR_WIRE_DROP_AHEAD, /* requests that came ahead, and in whose place others came */
	CTR_PEER_BREACHES,   /* connections that a face ended: its peer broke the protocol */
	CTR_COUNT,
	CTR_ROOM = 128
};

/* The fixed parts of a segment, in this order; the heap fills the rest. */
struct seg {
	struct seg_header hdr;
	_Alignas(4096) struct exec_slot slots[SEG_SLOTS];
	_Alignas(4096) _Atomic uint64_t counters[SEG_SLOTS][CTR_ROOM];
	/* block of QP numbers -> which QP indices in this process (hca/seg/qpn.h) */
	_Alignas(4096) _Atomic uint32_t qpn_block[SEG_QPN_BLOCKS];
	/* QP index -> has async events waiting, so that nobody scans all QPs */
	_Alignas(4096) _Atomic uint64_t qp_event_map[SEG_QPS / 64];
	_Alignas(4096) _Atomic uint64_t cq_event_map[SEG_CQS / 64];
	/* processes that may touch this one without being its peers: QP number << 24 | attach id */
	_Alignas(4096) _Atomic uint64_t guest[SEG_GUESTS];
	_Alignas(4096) struct seg_member member[SEG_MEMBERS];
	/* who maps exports of this process: key of the export << 24 | attach id */
	_Alignas(4096) _Atomic uint64_t import[SEG_IMPORTS];
	_Alignas(4096) struct seg_backing backing[SEG_BACKINGS];
	_Alignas(4096) struct seg_faults faults;
	_Alignas(4096) struct seg_peer peer[SEG_PEERS];
	_Alignas(4096) struct seg_mr mr[SEG_MRS];
	_Alignas(4096) struct seg_qp qp[SEG_QPS];
	_Alignas(4096) struct seg_cq cq[SEG_CQS];
	_Alignas(4096) struct seg_channel channel[SEG_CHANNELS];
	_Alignas(4096) _Atomic uint64_t fired[SEG_CHANNELS][1 << SEG_FIRED_LOG];
	_Alignas(4096) uint8_t heap[];
};

/* The entry that a key is about, whether it has that key or not. */
static inline struct seg_mr *seg_mr_of(struct seg *seg, uint32_t key)
{
	return &seg->mr[key_index(key)];
}

/* Entries of member[] from this one on were never used, whatever the segment says. */
static inline uint32_t seg_members_used(const struct seg *seg)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.members_used, memory_order_acquire);

	return n < SEG_MEMBERS ? n : SEG_MEMBERS;
}

/* Where the order of a channel's events stands, whatever id says. */
static inline struct fired_ref seg_fired(struct seg *seg, uint32_t id)
{
	struct seg_channel *c = &seg->channel[id % SEG_CHANNELS];

	return (struct fired_ref){.ring = &c->ring,
		.slots = seg->fired[id % SEG_CHANNELS],
		.log_size = SEG_FIRED_LOG,
		.overflow = &c->overflow};
}

/* The process's total of one counter. */
static inline uint64_t seg_counter(const struct seg *seg, enum seg_counter which)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.slots_used, memory_order_relaxed);
	/* Row 0 also has what the process counts before a thread of it executes. */
	uint64_t sum = atomic_load_explicit(&seg->counters[0][which], memory_order_relaxed);

	for (uint32_t i = 1; i < n && i < SEG_SLOTS; i++)
		sum += atomic_load_explicit(&seg->counters[i][which], memory_order_relaxed);
	return sum;
}

_Static_assert(SEG_QPS / SEG_QPN_PER_BLOCK < 1 << QPN_WORD_INDEX_BITS, "a block's word");
_Static_assert(CTR_COUNT <= CTR_ROOM, "one row per slot");
_Static_assert(sizeof(struct seg_header) <= 4096, "one page");
_Static_assert(sizeof(struct exec_slot) == CACHE_LINE, "one slot, one line");
