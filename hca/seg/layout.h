/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment: one sealed, sparse memfd per attached process that holds its HCA objects, so that
 * the owner, a local peer or weftd can execute a work request.  Everything in it is an offset or
 * an index, never a pointer.  weftd creates it, the owner and its peers map all of it.
 *
 * Nothing in a segment is trusted by anyone but its owner: indices are masked, offsets and
 * lengths are checked at use (hca/seg/view.h).  A peer that scribbles over its own segment breaks
 * itself.  A change of this file is a change of SEG_VERSION.
 *
 * Writers are named per group of fields; groups of different writers lie on different lines.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hca/seg/fired.h"
#include "hca/seg/rxq.h"
#include "hca/seg/slot.h"
#include "hca/seg/ticket.h"
#include "pages/agent_slot.h"

#define SEG_MAGIC 0x3147455354464577ull /* as bytes: "wEFTSEG1" */
enum { SEG_VERSION = 12 };

enum {
	SEG_SLOTS = 1024,         /* exec slots: threads that execute at the same time */
	SEG_QPN_BLOCKS = 1 << 16, /* leases of 256 QP numbers */
	SEG_QPN_PER_BLOCK = 256,
	SEG_QPS = 1 << 17, /* QPs per process */
	SEG_CQS = 1 << FIRED_NUMBER_SHIFT,
	SEG_CHANNELS = 1 << 16, /* completion channels */
	SEG_FIRED_LOG = 10,     /* log2 of the events of one whose order is kept */
	SEG_MRS = 1 << 20,
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

	/* anybody: taken around read-modify-write of this process's memory (hca/exec/atomic_op.h)
	 */
	_Alignas(CACHE_LINE) _Atomic uint64_t atomic_token;

	/* anybody: async events that wait for ibv_get_async_event */
	_Alignas(CACHE_LINE) _Atomic uint64_t port_events; /* hca/seg/port_event.h */
	_Atomic uint32_t object_events;                    /* some QP or CQ has one */

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
	CTR_COUNT,
	CTR_ROOM = 64
};

/* A scatter/gather element as the HCA keeps it. */
struct seg_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/* What kind of region an entry is. */
enum seg_mr_flags {
	MR_WINDOW = 1 << 0,    /* a memory window: a part of another region, for rkeys only */
	MR_WINDOW_QP = 1 << 1, /* ... of type 2: belongs to one QP and is invalidated by requests */
	MR_NULL = 1 << 2,      /* reads zeros, swallows what is written; for lkeys only */
	MR_EXPORT =
		1 << 3, /* no region for requests: memory that others may map (hca/mem/export.h) */
	/* Registered for persistent flushes; neither: nothing can make it durable
	 * (hca/exec/persist.h)
	 */
	MR_PMEM = 1 << 4,
	MR_FILE = 1 << 5,
	MR_JOURNALED = 1 << 6, /* what comes into it is noted first (hca/exec/crash_journal.h) */
	MR_OBJECT = 1 << 7,    /* MR_EXPORT: of an object, seg_mr.backing and .offset say which */
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
	_Atomic uint32_t key; /* lkey and rkey: index << 8 | variant; 0 = none */
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
	uint32_t kind;       /* enum backing_kind; a memfd weftd gives by PROTO_BACKING | id */
	int32_t shmid;
	uint32_t pad0;
	uint64_t ipc_ns;
};

/* seg_qp.state: low 4 bits enum ibv_qp_state, then flags, generation above. */
enum {
	QPS_STATE_MASK = 0xf,
	QPS_LIVE = 1 << 4, /* the entry is in use */
	QPS_GEN_SHIFT = 8,
};

/* seg_qp.access: its process keeps a journal of what comes into its persistent memory. */
#define QPA_JOURNALED (1u << 31)

/* Where the slots of such a queue are. */
struct seg_rx_place {
	uint64_t slots_off;  /* of struct seg_rxs; 0 = none */
	uint64_t bounce_off; /* SEG_BOUNCE_BYTES for each slot */
	uint32_t log;        /* log2 of the slots */
};

/*
 * A receive queue with several producers (hca/seg/rxq.h): of a UD QP in the QP's entry, a shared
 * one in an entry of its own.
 */
struct seg_rxq {
	/* the owner, in create and modify */
	_Alignas(CACHE_LINE) struct seg_rx_place place[2];
	uint32_t stride;
	/*
	 * Odd while the slots move to a larger ring: nobody may take one then.  The bit above says
	 * which place is in use.
	 */
	_Atomic uint32_t resizes;
	_Atomic uint32_t limit; /* of IBV_SRQ_LIMIT; an executor sets it to 0 when it fires */

	/* the owner, at each post: executors look only when they must */
	_Alignas(CACHE_LINE) _Atomic uint32_t tail;
	_Atomic uint32_t posted; /* counts receives posted */

	/* a parked requester writes, the owner reads at each post */
	_Alignas(CACHE_LINE) _Atomic uint32_t park;

	/* executors */
	_Alignas(CACHE_LINE) _Atomic uint64_t head;
	_Atomic uint32_t taken;     /* counts receives taken */
	_Atomic uint32_t tail_seen; /* a tail that was read earlier */
};

/* seg_qp.type of an entry that is a shared receive queue, beside enum ibv_qp_type. */
enum {
	SEG_TYPE_SRQ = 0x40,
	SEG_TYPE_XRC_SRQ = 0x41,
	SEG_TYPE_TM_SRQ = 0x42, /* matches tags: its srq is the entry of ... */
	SEG_TYPE_TM_LIST =
		0x43, /* the list of tags, whose receives are taken by tag: hca/seg/tm_list.h */
};

/* seg_qp.send_cq, recv_cq: none. */
#define SEG_NONE UINT32_MAX

/* A request of a peer that its responder had to refuse. */
struct seg_fault {
	_Atomic uint32_t gen; /* of the QP, and one more; 0: there is none, or it was told */
	uint8_t status;       /* enum ibv_wc_status */
	uint8_t opcode;       /* enum ibv_wr_opcode */
	uint32_t from_qpn;
	int32_t from_pid;
	uint32_t rkey, need; /* the right that it needs */
	uint64_t raddr, length;
	char comm[16];
};

/* One queue pair, or one shared receive queue. */
struct seg_qp {
	/* the owner, in modify_qp and create_qp; state also by an executor, to ERR */
	_Alignas(CACHE_LINE) _Atomic uint32_t state;
	uint32_t qpn;
	uint32_t dest_qpn;
	uint32_t peer_attach; /* whose QP dest_qpn is; 0 = not found yet */
	uint32_t pd;
	uint32_t access; /* qp_access_flags, and QPA_JOURNALED */
	uint32_t sq_psn, rq_psn;
	uint32_t send_cq, recv_cq;
	_Atomic uint8_t type; /* enum ibv_qp_type, or SEG_TYPE_SRQ */
	uint8_t mtu;          /* enum ibv_mtu */
	uint8_t rnr_timer;    /* min_rnr_timer, 5 bits, encoded */
	uint8_t rnr_retry;
	uint8_t timeout; /* local ACK timeout, encoded; 0 = never */
	uint8_t retry_cnt;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;

	/* the owner, in create_qp: where the rings are */
	_Alignas(CACHE_LINE) uint64_t sq_off;
	uint64_t rq_off;
	uint64_t ring_off; /* payload ring for incoming SENDs, SEG_RING_BYTES */
	uint64_t park_off; /* SEG_PARK_BYTES of a parked SEND's payload */
	uint32_t sq_stride, rq_stride;
	uint8_t sq_log, rq_log; /* log2 of the slots; rq_log 0xff = no receive queue */
	uint8_t sq_sig_all;
	uint8_t stamps;          /* enum seg_stamps */
	uint32_t rq_base;        /* rq_head at the last RESET */
	_Atomic uint32_t events; /* async events waiting, bit = enum ibv_event_type; anybody */

	/* the owner, in create and modify */
	_Alignas(CACHE_LINE) uint64_t xrcd; /* XRC domain of a target QP or an XRC SRQ */
	uint32_t srq;                       /* index of the shared receive queue, 0 = none */
	uint32_t qkey;
	uint32_t no_self_mcast;    /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	_Atomic uint32_t last_wqe; /* IBV_EVENT_QP_LAST_WQE_REACHED was raised; anybody */

	/* the holder of the token: direction from this QP to its peer */
	_Alignas(CACHE_LINE) _Atomic uint64_t token;
	_Atomic uint32_t sq_head;     /* next work request to execute */
	_Atomic uint32_t park_reason; /* enum seg_park */
	_Atomic uint64_t deadline;    /* CLOCK_MONOTONIC ns at which a parked head fails, 0 never */
	_Atomic uint32_t parked_copy; /* sq position + 1 whose payload lies in the park buffer */
	_Atomic uint64_t timer_ns;    /* when weftd was asked to look at this QP, 0 not at all */
	_Atomic uint64_t packets;     /* path MTU packets sent, for the PSN */

	/* the owner: the producer side of the send queue */
	_Alignas(CACHE_LINE) _Atomic uint32_t sq_tail;

	/* the holder of rq_token, who alone completes this QP's receives */
	_Alignas(CACHE_LINE) _Atomic uint64_t rq_token;
	_Atomic uint32_t rq_head;        /* next receive to consume */
	_Atomic uint32_t ring_tail;      /* bytes produced into the payload ring */
	_Atomic uint32_t ring_head_seen; /* a ring_head that was read earlier */

	/* a parked requester writes, the owner reads at each post_recv */
	_Alignas(CACHE_LINE) _Atomic uint32_t park;

	/* the owner, at poll_cq: bytes of the payload ring given back */
	_Alignas(CACHE_LINE) _Atomic uint32_t ring_head;

	/* who moved this QP to ERR, whose owner is at fault, for the owner's log
	 * (hca/queue/explain.h) */
	_Alignas(CACHE_LINE) struct seg_fault fault;

	struct seg_rxq rx;
};

/*
 * Which slots of a QP end in 8 bytes for the time of their completion (CLOCK_MONOTONIC ns),
 * because the CQ wants it.
 */
enum seg_stamps { STAMP_SEND = 1, STAMP_RECV = 2 };

/* Why the head of a send queue waits. */
enum seg_park { PARK_NONE, PARK_RNR, PARK_NO_PEER };

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
	/* anybody: completions that wait for their event, and when it is due at the latest */
	_Atomic uint32_t held;
	_Atomic uint64_t due; /* CLOCK_MONOTONIC ns, 0 never */
};

/* A completion channel: which CQs fired (hca/seg/fired.h).  Its slots lie in seg.fired. */
struct seg_channel {
	struct ticket_ring ring;
	/* anybody, and the owner takes it back: an entry did not fit */
	_Alignas(CACHE_LINE) _Atomic uint32_t overflow;
};

/* In what weftd is asked to look at: a CQ, not a QP. */
#define SEG_TIMER_CQ (1u << 31)

/* seg_wqe.flags beside enum ibv_send_flags in the low byte. */
enum { WQE_INLINE = 1 << 8, WQE_SIGNALED = 1 << 9 };

/* Where a datagram goes: the address handle's attributes, copied when it is posted. */
struct seg_av {
	uint8_t dgid[16];
	uint32_t qpn; /* and the sgid_index in the top 8 bits */
	uint32_t qkey;
	uint32_t flow; /* flow label, hop limit << 20, SL << 28 */
};

enum { AV_SGID_SHIFT = 24, AV_HOP_SHIFT = 20, AV_SL_SHIFT = 28 };

/* A send work request in its slot; SGEs or inline bytes follow. */
struct seg_wqe {
	/* the owner, before sq_tail moves past it */
	uint64_t wr_id;
	uint16_t opcode; /* enum ibv_wr_opcode */
	uint16_t flags;
	uint32_t imm; /* big endian, as the program gave it */
	union {
		struct {
			uint64_t raddr;
			uint64_t compare_add, swap;
			uint32_t rkey;
		} __attribute__((packed, aligned(4)));
		struct seg_av av; /* UD */
	};
	uint16_t num_sge;
	uint16_t inline_len;

	/* the holder of the token: the completion */
	_Atomic uint32_t done; /* position + 1 once completed */
	uint8_t status;        /* enum ibv_wc_status */
	uint8_t aux[3];        /* the owner: UD traffic class; XRC the SRQ's number */
	uint32_t byte_len;     /* before that, the owner: how far completions had been polled */
	uint32_t vendor_err;
	struct seg_sge sge[];
};

enum {
	RQ_SGE_NEAR = 3,    /* SGEs in the first line of a receive slot */
	RQ_INLINE_MAX = 36, /* payload in its second line */
};

/* Where the payload of a completed receive is. */
enum seg_rq_where { RQ_DIRECT, RQ_IN_SLOT, RQ_IN_RING, RQ_IN_BOUNCE, RQ_IN_NEAR };

/*
 * A posted receive; further SGEs follow the second line.  In a queue with several producers done,
 * posted and payload are not used.
 */
struct seg_rqe {
	/* the owner */
	_Alignas(CACHE_LINE) _Atomic uint32_t posted; /* position + 1 */
	uint16_t num_sge;
	uint16_t pad0;
	uint64_t wr_id;
	struct seg_sge near[RQ_SGE_NEAR];

	/* the holder of rq_token: the completion */
	_Alignas(CACHE_LINE) _Atomic uint32_t done; /* position + 1 */
	uint8_t status;                             /* enum ibv_wc_status */
	uint8_t opcode;                             /* enum ibv_wc_opcode */
	uint8_t wc_flags;
	uint8_t where; /* enum seg_rq_where */
	uint32_t byte_len;
	uint32_t imm;
	uint32_t src_qp;
	uint32_t vendor_err;
	union {
		struct { /* of a queue with one producer */
			uint8_t payload[RQ_INLINE_MAX];
			uint32_t ring_pos; /* where RQ_IN_RING: value of ring_tail before it */
		};
		struct {                        /* with several: who took it */
			_Atomic uint64_t state; /* hca/seg/rxq.h */
			uint32_t qp; /* index of the QP that received, SEG_NONE: of another process
				      */
			uint32_t qpn;
			uint32_t cq;
			uint8_t sl;
			uint8_t phase; /* a rendezvous: completions to come after this one */
			uint32_t priv; /* a list of tags: opaque data of the message */
		};
	};

	struct seg_sge far[];
};

/*
 * Of a receive in a queue with several producers: what fits here needs no buffer of its own, which
 * would be a new page with each message until a large queue has gone round.
 */
enum { RX_NEAR_BYTES = 3 * CACHE_LINE };

/*
 * A receive in a queue with several producers.  A short message moves three lines between two
 * CPUs: what was posted, the completion with the state, and the payload.  CPUs fetch lines in
 * pairs, so the first two are one, and slots begin with a pair.
 */
struct seg_rxs {
	/* a list of tags: the owner */
	_Alignas(CACHE_LINE) uint64_t tag;
	uint64_t mask;
	_Atomic uint32_t since; /* version of the list in which it came to be matched */
	_Atomic uint32_t apart; /* not yet: unexpected messages come first */
	/* who took it: what the message says; when it completed, if the CQ wants to know */
	uint64_t got_tag, stamp_ns;

	_Alignas(CACHE_LINE) uint8_t near[RX_NEAR_BYTES];

	struct seg_rqe rqe;
};

/* The fixed parts of a segment, in this order; the heap fills the rest. */
struct seg {
	struct seg_header hdr;
	_Alignas(4096) struct exec_slot slots[SEG_SLOTS];
	_Alignas(4096) _Atomic uint64_t counters[SEG_SLOTS][CTR_ROOM];
	/* block of 256 QP numbers -> first QP index + 1 in this process, 0 = not leased here */
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
	_Alignas(4096) struct seg_mr mr[SEG_MRS];
	_Alignas(4096) struct seg_qp qp[SEG_QPS];
	_Alignas(4096) struct seg_cq cq[SEG_CQS];
	_Alignas(4096) struct seg_channel channel[SEG_CHANNELS];
	_Alignas(4096) _Atomic uint64_t fired[SEG_CHANNELS][1 << SEG_FIRED_LOG];
	_Alignas(4096) uint8_t heap[];
};

/* A key is the index of its entry and a variant of 8 bits. */
enum { KEY_VARIANT_BITS = 8 };

/* The entry that a key is about, whether it has that key or not. */
static inline struct seg_mr *seg_mr_of(struct seg *seg, uint32_t key)
{
	return &seg->mr[key >> KEY_VARIANT_BITS & (SEG_MRS - 1)];
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
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n && i < SEG_SLOTS; i++)
		sum += atomic_load_explicit(&seg->counters[i][which], memory_order_relaxed);
	return sum;
}

_Static_assert(CTR_COUNT <= CTR_ROOM, "one row per slot");
_Static_assert(sizeof(struct seg_header) <= 4096, "one page");
_Static_assert(sizeof(struct exec_slot) == CACHE_LINE, "one slot, one line");
_Static_assert(sizeof(struct seg_mr) == CACHE_LINE, "one region, one line");
_Static_assert(offsetof(struct seg_rxs, rqe) % (2 * CACHE_LINE) == 0, "a pair of lines");
_Static_assert(offsetof(struct seg_cq, ring) == CACHE_LINE, "one line beside the rings");
_Static_assert(sizeof(struct seg_wqe) == CACHE_LINE, "SGEs start on a line");
_Static_assert(sizeof(struct seg_rqe) == 2 * CACHE_LINE, "two lines");
