/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs and receive queues in the segment, and their requests. A change of this file is a
 * change of SEG_VERSION. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "hca/seg/seg_path.h"

/* A scatter/gather element as the HCA keeps it. */
struct seg_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
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
struct seg_rxq_place {
	uint64_t slots_off;  /* of struct seg_rxq_slot; 0 = none */
	uint64_t bounce_off; /* SEG_BOUNCE_BYTES for each slot */
	uint32_t log;        /* log2 of the slots */
};

/*
 * A receive queue with several producers (hca/seg/rxq.h): of a UD QP in the QP's entry, a shared
 * one in an entry of its own.
 */
struct seg_rxq {
	/* the owner, in create and modify */
	_Alignas(CACHE_LINE) struct seg_rxq_place place[2];
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
	SEG_TYPE_TM_SRQ = 0x42,  /* matches tags: its srq is the entry of ... */
	SEG_TYPE_TM_LIST = 0x43, /* ... this: receives by tag (hca/seg/tm_list.h) */
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
	uint32_t no_self_mcast;  /* IBV_QP_CREATE_BLOCK_SELF_MCAST_LB */
	_Atomic uint32_t events; /* async events waiting, bit = enum ibv_event_type; anybody */

	/* the owner, in create and modify */
	_Alignas(CACHE_LINE) uint64_t xrcd; /* XRC domain of a target QP or an XRC SRQ */
	uint32_t srq;                       /* index of the shared receive queue, 0 = none */
	uint32_t qkey;
	_Atomic uint32_t last_wqe; /* IBV_EVENT_QP_LAST_WQE_REACHED was raised; anybody */
	struct seg_path path;      /* of a connected QP, from RTR on */

	/* the holder of the token: direction from this QP to its peer */
	_Alignas(CACHE_LINE) _Atomic uint64_t token;
	_Atomic uint32_t sq_head;     /* next work request to complete */
	_Atomic uint32_t park_reason; /* enum seg_park */
	_Atomic uint64_t deadline;    /* CLOCK_MONOTONIC ns at which a parked head fails, 0 never */
	_Atomic uint32_t parked_copy; /* sq position + 1 whose payload lies in the park buffer */
	_Atomic uint32_t alone;       /* the responder's agent cannot run it */
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
	 * (hca/queue/explain.h); written once, so it may share a line */
	struct seg_fault fault;

	struct seg_rxq rxq;
};

/*
 * Which slots of a QP end in 8 bytes for the time of their completion (CLOCK_MONOTONIC ns),
 * because the CQ wants it.
 */
enum seg_stamps { STAMP_SEND = 1, STAMP_RECV = 2 };

/* Why the head of a send queue waits. */
enum seg_park {
	PARK_NONE,
	PARK_RNR,
	PARK_NO_PEER,
	PARK_OWNER, /* for the responder's agent, who was asked to run it */
};

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
			union {
				uint64_t compare_add;
				uint64_t range_len; /* of a FLUSH, of what a window is bound to */
			};
			union {
				uint64_t swap;
				uint64_t flush; /* types and level: hca/seg/opcode.h */
				uint64_t bind;  /* bind_pack() */
				uint64_t run;   /* LOCAL_INV: hca/exec/op_local.c */
			};
			uint32_t rkey;
		} __attribute__((packed, aligned(4)));
		struct seg_av av; /* UD */
	};
	uint16_t num_sge;
	uint16_t inline_len;

	/* the holder of the token: the completion */
	_Atomic uint32_t done;   /* position + 1 once completed */
	uint8_t status;          /* enum ibv_wc_status */
	union {                  /* the owner */
		uint8_t tclass;  /* UD */
		uint8_t srqn[3]; /* XRC: the number of the SRQ, big endian */
	};
	union {
		uint32_t polled; /* the owner: how far completions had been polled */
		uint32_t byte_len;
	};
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
			uint32_t qp; /* index of the QP that received; SEG_NONE: not ours */
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
enum { RXQ_NEAR_BYTES = 3 * CACHE_LINE };

/*
 * A receive in a queue with several producers.  A short message moves three lines between two
 * CPUs: what was posted, the completion with the state, and the payload.  CPUs fetch lines in
 * pairs, so the first two are one, and slots begin with a pair.
 */
struct seg_rxq_slot {
	/* a list of tags: the owner */
	_Alignas(CACHE_LINE) uint64_t tag;
	uint64_t mask;
	_Atomic uint32_t since; /* version of the list in which it came to be matched */
	_Atomic uint32_t apart; /* not yet: unexpected messages come first */
	/* who took it: what the message says; when it completed, if the CQ wants to know */
	uint64_t got_tag, stamp_ns;

	_Alignas(CACHE_LINE) uint8_t near[RXQ_NEAR_BYTES];

	struct seg_rqe rqe;
};

_Static_assert(offsetof(struct seg_rxq_slot, rqe) % (2 * CACHE_LINE) == 0, "a pair of lines");
_Static_assert(sizeof(struct seg_wqe) == CACHE_LINE, "SGEs start on a line");
_Static_assert(sizeof(struct seg_rqe) == 2 * CACHE_LINE, "two lines");
