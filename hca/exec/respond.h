/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's half of a request: what an end of this machine does with one that came to it,
 * and what it answers.  Nothing here touches a requester.  Where both ends are on this machine,
 * op_*.c compose this with the requester's half (work.h, fail.h); where a message comes otherwise,
 * whoever brings it (hca/run/far.h) hands it over in pieces.
 */
#pragma once

#include "hca/exec/work.h"

/* ---- a request that is at fault, or a receive that is ---- */

/* Who asks, as far as it is known, for the responder's log. */
struct asker {
	uint32_t qpn;
	int32_t pid;      /* 0: it is not of this machine */
	const char *comm; /* 16 bytes, or NULL */
	uint8_t opcode;   /* enum ibv_wr_opcode */
};

/*
 * w's responder refuses the request: its QP goes to ERR with that event, and its owner will be told
 * who asked for what.
 */
void respond_refuse(struct work *w, const struct asker *who, enum ibv_wc_status status,
	enum ibv_event_type event);

/*
 * w's receive, which was found, cannot take the message of QP from_qpn: it completes with that
 * status, and its QP goes to ERR.
 */
void respond_receive_failed(struct work *w, uint32_t from_qpn, enum ibv_wc_status status);

/* ---- messages in pieces ---- */

enum answer {
	ANSWER_OK,
	ANSWER_RNR,   /* no receive is posted */
	ANSWER_BUSY,  /* somebody else completes receives, or a region changes over: soon again */
	ANSWER_LATER, /* only a thread with exec.is_worker set can: hca/exec/owned.h */
	ANSWER_NOT_READY, /* the QP takes no requests: it was not, or is no more, in RTR or RTS */
	ANSWER_NAK,       /* refused, for good */
};

/* All but ANSWER_OK and ANSWER_NAK have changed nothing: the same may be asked again. */
struct verdict {
	enum answer answer;
	enum ibv_wc_status status; /* ANSWER_NAK: with which the request ends at its requester */
};

/* The code by which packets name that status in a NAK (InfiniBand: AETH, table of NAK codes). */
static inline uint8_t respond_nak_code(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_ACCESS_ERR ? 2 : status == IBV_WC_REM_OP_ERR ? 3 : 1;
}

/* Memory of this process that was found present just now. */
struct there {
	uint64_t from, to;
};

/* A request as its headers tell of it. */
struct request {
	enum ibv_wr_opcode opcode;
	uint32_t from_qpn;
	uint32_t psn; /* of its first packet */
	/* the range that it names; of a SEND the length is known when it has come */
	uint32_t rkey;
	uint64_t raddr, length;
	uint64_t compare_add, swap; /* atomics */
	uint64_t word;              /* ATOMIC WRITE, as it lies in memory */
	uint64_t flush;             /* FLUSH: flush_operand() */
	bool again; /* READ: it was answered before; refusing it is no error of the queue pair */
};

/* What its last piece says. */
struct last_piece {
	uint32_t imm; /* big endian, or the key that is to be invalidated */
	bool solicited;
};

/*
 * A SEND or RDMA WRITE on its way into an end of this process.  Between two calls no token is held,
 * and no receive is consumed before respond_end().
 */
struct respond {
	const struct end *e;
	struct request rq;
	uint64_t came;      /* the end of what was placed */
	struct there there; /* of a WRITE; no more is believed after respond_look_anew() */
	uint32_t rq_pos;    /* SEND: the receive that it goes into */
	bool taken;         /* ... which no other message gets: it is of a shared queue, */
	struct rxq_ref rxq; /* this one */
};

/*
 * The next three are called in this order for one message of e at a time, by any thread whose exec
 * slot is free; x is that thread's.  They do not block.
 *
 * Begins rq, which is all that *r is made of.  The range of a WRITE is checked here, whole; a SEND
 * finds its receive.  ANSWER_NAK with IBV_WC_REM_OP_ERR: e receives by tags, or is of XRC, which
 * are for this machine alone; with IBV_WC_REM_INV_REQ_ERR: it is another operation.
 */
struct verdict respond_begin(
	struct respond *r, struct exec *x, const struct end *e, const struct request *rq);

/*
 * Places n of its bytes at offset, if the receive or the range has room for them.  After
 * ANSWER_NAK the QP is in ERR, and the receive, if one was found, has completed.
 */
struct verdict respond_place(
	struct respond *r, struct exec *x, uint64_t offset, const void *bytes, uint32_t n);

/*
 * What was found present may be gone by now: to be called between pieces that are not placed one
 * right after the other.
 */
static inline void respond_look_anew(struct respond *r)
{
	r->there = (struct there){0};
}

/* All of it is there: completes the receive that it takes, if any. */
struct verdict respond_end(struct respond *r, struct exec *x, const struct last_piece *last);

/*
 * The message will not go on: gives its receive back, if it has one of a shared queue.  To be
 * called before the QP is no more, and also where the rest does not come for long: who changes the
 * size of the queue waits for it.
 */
void respond_drop(struct respond *r, struct exec *x);

/* ---- requests that come in one piece ---- */

/* RDMA READ: n bytes at offset of what it names, to plain memory.  The same may be read again. */
struct verdict respond_read(struct exec *x, const struct end *e, const struct request *rq,
	uint64_t offset, void *to, uint32_t n);

/*
 * An atomic, whose answer is *before; an ATOMIC WRITE or FLUSH.  ANSWER_OK: it was carried out,
 * and is not to be asked a second time.
 */
struct verdict respond_at_once(
	struct exec *x, const struct end *e, const struct request *rq, uint64_t *before);
