/* SPDX-License-Identifier: BSD-3-Clause */
/* One work request: the checks of both ends, the bytes, the completions. */
#pragma once

#include "hca/exec.h"
#include "hca/opcode.h"

enum step {
	STEP_DONE,    /* completed, in success */
	STEP_FAILED,  /* completed in error: the requester is in ERR */
	STEP_RNR,     /* no receive posted */
	STEP_NO_PEER, /* the responder is not there, or not ready */
	STEP_BUSY, /* atomics of the target are held by somebody else, or a region changes over */
};

/* A work request under execution. */
struct work {
	struct exec *x;
	const struct end *req, *resp;
	uint32_t pos;
	/* copied from the slot, which may change under us */
	uint16_t flags, num_sge;
	uint32_t imm, rkey;
	uint64_t raddr, compare_add, swap;
	bool fetch_add; /* an atomic: add, else compare and swap */
	const struct seg_sge *sge;
	const uint8_t *inline_data;
	const struct op *op;
	uint64_t length; /* of the message */
	bool rq_held;    /* we hold resp's rq_token */
	uint64_t moved;
	bool busy; /* a move stopped because a region is changing over */
};

/* Reads the request at pos into *w; false if it makes no sense (a peer that scribbled). */
bool work_read(struct work *w, uint32_t pos);

/*
 * Lets those who take memory away go on, if they wait for us: ends a step of the run.  What was
 * checked must be checked again.
 */
void work_step(struct work *w);

/* Executes it.  w->resp is not NULL. */
enum step work_execute(struct work *w);

/* Completes it in error, moves the requester to ERR and flushes it. */
void work_fail(struct work *w, enum ibv_wc_status status);

/* Copies a SEND's payload to the park buffer, so that the responder needs no access to ours. */
void work_park_copy(struct work *w);

/*
 * To be asked before a process is named by its pid: true if it was alive at most 100 ms ago.  In
 * less time no pid comes round again.
 */
bool work_pid_valid(struct work *w, const struct view *v);
