/* SPDX-License-Identifier: BSD-3-Clause */
/* A work request under execution: what it is made of, and how it ends well. */
#pragma once

#include "hca/exec/exec.h"
#include "hca/exec/resolve.h"
#include "hca/seg/opcode.h"
#include "pages/mover.h"

enum step {
	STEP_DONE,    /* completed, in success */
	STEP_FAILED,  /* completed in error: the requester is in ERR */
	STEP_RNR,     /* no receive posted */
	STEP_NO_PEER, /* the responder is not there, or not ready */
	STEP_BUSY,  /* atomics of the target are held by somebody else, or a region changes over */
	STEP_LATER, /* only a thread of the requester that may sleep can do it */
	STEP_NOT_OURS, /* only the requester knows where it goes */
};

struct request;
struct way;

/* A work request under execution. */
struct work {
	struct exec *x;
	const struct end *req;  /* NULL: not of this machine, and asked has what it asks */
	const struct end *resp; /* NULL: not found, or not of this machine */
	const struct end *mem;  /* whose memory and receives it reaches: resp, or XRC the SRQ */
	struct end *mem_now;    /* room for a copy of mem, whose shared receives have moved since */
	uint32_t named;         /* the process that our exec slot names as the destination */
	uint32_t pos;
	/* copied from the slot, which may change under us */
	uint16_t flags, num_sge;
	uint32_t imm, rkey;
	uint32_t srqn; /* XRC */
	uint64_t raddr;
	union {
		uint64_t compare_add;
		uint64_t range_len; /* of a FLUSH, of what a window is bound to */
	};
	union {
		uint64_t swap;
		uint64_t flush; /* types and level */
		uint64_t bind;  /* bind_pack() */
		uint64_t run;   /* LOCAL_INV */
	};
	bool fetch_add; /* an atomic: add, else compare and swap; for others: hca/queue/post.c */
	union {
		const struct seg_sge *sge;
		const struct request *asked; /* without req: hca/exec/respond.h */
	};
	const uint8_t *inline_data;
	const struct op *op;
	uint64_t length; /* of the message */
	bool rq_held;    /* we hold resp's rq_token */
	bool shared;     /* rq_pos is of rxq, a queue of mem with several producers, taken by us */
	const struct rxq_ref *rxq;
	uint32_t rq_pos; /* the receive that the request consumes */
	struct seg_rqe *rqe;
	uint64_t moved;
	uint64_t tm_seen;  /* word of the list of tags in which none matched: hca/seg/tm_list.h */
	bool plain;        /* from us to another process's own receive queue: op_send_plain() */
	bool for_worker;   /* what is left to another thread, a worker of this process can do */
	bool for_owner;    /* ... the agent of the responder's process can do */
	bool hand_over;    /* it is to be asked to, once the token is free */
	bool call_owner;   /* ... of the queue, who sleeps perhaps: no agent of his looks */
	enum slot_way way; /* what our exec slot says */
};

/* Bytes to be carried, and how they are reached: hca/exec/way.h. */
struct payload {
	struct sgl l;     /* addresses of this process, if way->here; else of at's */
	unsigned held_at; /* struct held.mr[held_at] and on allow its pieces */
	const struct way *way;
	const struct way *under; /* way_journaled: how, besides */
	const struct end *at;    /* whose memory it is; of no meaning for way_here */
};

/* Reads the request at pos into *w; false if it makes no sense (a peer that scribbled). */
bool work_read(struct work *w, uint32_t pos);

/* A message that nobody will ever acknowledge is lost: counts it, completes it in success. */
enum step work_drop(struct work *w, enum seg_counter why);

/* Completes the request in success. */
enum step work_succeed(struct work *w);
