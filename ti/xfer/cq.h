/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues of programs: queues in software, fed by the CQs of the adapters that their
 * connections have.  A queue's lock is also the lock of what its connections completed.
 */
#pragma once

#include "ti/dev/pd.h"
#include "ti/xfer/elements.h"

enum { CQ_MAX_ENTRIES = 65536 };

struct cq {
	struct member m;
	struct pd *pd;
	uint32_t max;
	_Atomic uint32_t users; /* connections that accept() bound; more: as of a PD */

	struct lock lock;
	struct elements done; /* for poll_cq() */
	uint32_t count;       /* in done, and in the connections' lists that wait for a callback */
	bool armed;
	uint64_t depth;     /* what its connections may have posted; more than max: watched */
	struct conn *conns; /* bound to it, linked by their next_of[] */
};

/* The queue with a reference, if it is one of ti's; else NULL. */
static inline struct cq *cq_get(struct service *ti, ti_cq_handle_t h_cq)
{
	return member_get(ti, h_cq, HANDLE_CQ);
}

/*
 * What is left to do for who closed the handle; what is in it is the program's again, who cannot
 * poll for it any more.
 */
void cq_end(struct cq *cq);

/*
 * One more connection that it cannot be destroyed under, with a reference.  The caller has one,
 * too.  False: it was destroyed.
 */
bool cq_use(struct cq *cq);

/* One less; the reference stays. */
void cq_unuse(struct cq *cq);

/* True if more may be posted than it holds: then overruns are watched for.  Under the lock. */
static inline bool cq_watched(const struct cq *cq)
{
	return cq->depth > cq->max;
}

ti_status_t op_create_cq(
	ti_handle_t h_ti, ti_pd_handle_t h_pd, uint32_t max_cq_entries, ti_cq_handle_t *ph_cq);
ti_status_t op_poll_cq(ti_cq_handle_t h_cq, ti_data_element_t **p_list);
ti_status_t op_rearm_cq(ti_cq_handle_t h_cq);
ti_status_t op_destroy_cq(ti_cq_handle_t h_cq);
