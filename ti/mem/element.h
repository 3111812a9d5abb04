/* SPDX-License-Identifier: BSD-3-Clause */
/* Data elements as the library has them: what otd points to. */
#pragma once

#include "ti/core/ti.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

enum {
	ELEMENT_BUFS = 32 /* at most; what an adapter has for a request may be less */
};

enum element_state {
	ELEMENT_FREE, /* in its pool */
	ELEMENT_OUT,  /* the program's */
	ELEMENT_POSTED
};

/* Which callback is told. */
enum xfer { XFER_SEND, XFER_RECV, XFER_RDMA, XFERS };

struct conn;
struct pool;

struct element {
	ti_data_element_t e; /* first: otd points to e itself */
	struct pool *pool;
	_Atomic uint32_t state; /* enum element_state */
	bool has_remote;
	ti_rdma_desc_t remote; /* of ti_rdma_set_remote() */

	/* While it is posted. */
	struct conn *conn;
	struct element *lead; /* the element of an RDMA pool before it, which completes with it */
	struct element *sq_next; /* of what waits for room in the send queue */
	enum xfer xfer;
	bool wakes; /* its completion calls back */
	enum ibv_wr_opcode opcode;
	unsigned send_flags;
	uint32_t bytes;     /* of all its buffers */
	uint32_t piece;     /* of these at most in a request */
	uint32_t pieces;    /* requests that did not complete yet */
	uint32_t to_post;   /* of these, those that are not posted yet */
	bool refused;       /* the adapter did not take one of those */
	ti_status_t result; /* of those that completed */
	/* where the next piece begins */
	uint32_t buf, buf_done;
	uint64_t remote_done;
	struct atomic32 *atomic32; /* an atomic on 4 bytes; NULL: not one */
};

/* The element behind what a program passed, NULL: it is not one of a pool. */
static inline struct element *element_of(ti_data_element_t *e)
{
	return e && e->otd == e ? (struct element *)e : NULL;
}

/* Is it the program's, to change as it likes? */
static inline bool element_is_out(const struct element *el)
{
	return atomic_load_explicit(&el->state, memory_order_acquire) == ELEMENT_OUT;
}

/* From the program to the library; false: it is not the program's. */
static inline bool element_claim(struct element *el)
{
	uint32_t out = ELEMENT_OUT;

	return atomic_compare_exchange_strong_explicit(
		&el->state, &out, ELEMENT_POSTED, memory_order_acquire, memory_order_relaxed);
}

static inline void element_unclaim(struct element *el)
{
	atomic_store_explicit(&el->state, ELEMENT_OUT, memory_order_release);
}
