/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a work request names, at both of its ends, and the way there. */
#pragma once

#include "hca/exec/way.h"

/*
 * The requester's bytes of a SEND or WRITE; held starts anew.  False: an lkey does not cover
 * them.
 */
bool range_source(struct work *w, struct payload *p, struct held *held);

/*
 * The same where they are one piece of our own memory, which is not to be carried by a mover;
 * w->length is not 0.  NULL: not that simple, or refused: range_source() says.
 */
static inline const void *range_source_plain(const struct work *w)
{
	if (w->inline_data)
		return w->inline_data;
	if (w->num_sge != 1 || w->req->view.pid)
		return NULL;
	return resolve_plain(&w->req->view, w->req->pd, w->sge, w->length, 0);
}

/* The requester's buffer of a READ or an atomic; held starts anew.  False: an lkey forbids it. */
bool range_sink(struct work *w, struct payload *p, struct held *held);

/*
 * The responder's len bytes of an RDMA operation: the rkey and the QP must both allow it, with
 * every right of need.
 */
bool range_remote(
	struct work *w, uint64_t len, unsigned need, struct payload *p, struct held *held);

/*
 * With which status an adapter refuses what range_remote() or flush_range() did with these rights:
 * a queue pair without them takes no such request, whatever it names.
 */
static inline enum ibv_wc_status range_refusal(const struct work *w, unsigned need)
{
	return (w->resp->qp->access & need) != need ? IBV_WC_REM_INV_REQ_ERR
						    : IBV_WC_REM_ACCESS_ERR;
}

/* Copies a SEND's payload to the park buffer, so that the responder needs no access to ours. */
void range_park_copy(struct work *w);
