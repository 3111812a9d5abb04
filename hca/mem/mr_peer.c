// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mr_peer.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/mem/mr_kinds.h"
#include "hca/mem/share.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "hca/queue/land.h"
#include "include/weft/verbs_ext.h"
#include "pages/mapped.h"

#define PATIENCE_NS (10 * NSEC_PER_SEC) /* with peers that were stopped while they use it */

/* What clients get as the device: zeros, for those that look into it. */
static _Alignas(64) uint8_t device[4096];

/* ---- its client takes it away ---- */

static bool wait_for_users(const struct hca_mr *mr)
{
	if (quiesce_within(PATIENCE_NS, false))
		return true;
	log_line(LOG_LVL_ERROR,
		"region %#" PRIx64 "+%#" PRIx64
		": its client takes it away, and a stopped process still uses it",
		mr->addr, mr->length);
	return false;
}

/* As a deregistration, but that the entry stays taken. */
static int end_use(struct hca_mr *mr)
{
	uint32_t key = mr->key;

	atomic_compare_exchange_strong_explicit(&proc_seg()->mr[mr->index].key, &key, 0,
		memory_order_seq_cst, memory_order_relaxed);
	if (!wait_for_users(mr)) {
		table_hold_mr(mr);
		return -ETIMEDOUT;
	}
	pd_land_all(mr->pd);
	table_hold_mr(mr);
	if (!wait_for_users(mr)) /* the agent of ours may have found it by a window */
		return -ETIMEDOUT;
	pd_pass_landers(mr->pd);
	share_dereg(mr);
	return 0;
}

static int taken_away(struct peer_region *region)
{
	struct hca_mr *mr = region->request.of;
	int rc = 0;

	lock_take(&mr->lock);
	if (mr->of == region) { /* else it became another, and nobody used this one */
		mr->dead = true;
		rc = end_use(mr);
	}
	lock_drop(&mr->lock);
	return rc;
}

/* ---- registering ---- */

/* Why a claimed range cannot be registered; NULL: it can. */
static const char *check(const struct mr_region *r, const struct peer_region *region, int *err)
{
	*err = -EINVAL;
	if (r->access & IBV_ACCESS_ON_DEMAND)
		return "a client's memory cannot be registered on demand";
	*err = -EOPNOTSUPP;
	if (region->pieces.count != 1)
		return "its memory lies in several pieces, which is not supported yet";
	*err = mapped_check(r->addr, r->length, r->access & IBV_ACCESS_LOCAL_WRITE);
	return *err ? "its addresses are not memory of this process with such rights" : NULL;
}

static int accept_claim(struct mr_region *r, struct peer_region *region, struct peer_trace *t)
{
	const struct mr_region asked = *r;
	const char *why;
	int rc;

	r->addr = region->pieces.piece[0].address + (r->addr & (region->page_size - 1));
	r->kind = region->client->invalidates ? &mr_peer_lent : &mr_peer;
	r->of = region;
	why = check(r, region, &rc);
	if (!why)
		return 1;
	peer_trace_fail(t, "ibv_reg_mr", why, rc);
	peer_trace_say(t, asked.addr, asked.length);
	peer_region_abandon(region);
	*r = asked;
	return rc;
}

int mr_peer_claim(struct mr_region *r, struct peer_trace *t)
{
	const unsigned writes =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const struct peer_request q = {
		.addr = r->addr,
		.length = r->length,
		.writable = r->access & writes,
		.device = (struct device *)(void *)device,
		.revoke = taken_away,
	};
	struct peer_region *region;
	int rc = peer_region_make(&q, &region, t);

	return rc || !region ? rc : accept_claim(r, region, t);
}

int mr_peer_live(struct hca_mr *mr)
{
	struct peer_region *region = mr->of;
	int rc;

	region->request.of = mr;
	rc = peer_region_live(region);
	if (rc)
		mr->of = NULL;
	return rc;
}

void mr_peer_abandon(const struct mr_region *r)
{
	peer_region_abandon(r->of);
}

uint64_t mr_peer_addr(const struct hca_mr *mr)
{
	const struct peer_region *region = mr->of;

	return region->request.addr;
}

bool mr_peer_gone(const struct mr_region *r)
{
	return r->kind->client && peer_region_is_gone(r->of);
}

/* ---- the end ---- */

int mr_peer_drop(struct hca_mr *mr)
{
	return mr->of ? peer_region_drop(mr->of) : 0;
}

void mr_peer_forget(struct hca_mr *mr)
{
	if (mr->of)
		peer_region_forget(mr->of);
	mr->of = NULL;
}

void mr_peer_drop_old(struct hca_mr *mr, const struct mr_region *old)
{
	if (!old->kind->client || old->of == mr->of || !peer_region_drop(old->of))
		return;
	log_line(LOG_LVL_ERROR,
		"ibv_rereg_mr leaves the client's region %#" PRIx64 "+%#" PRIx64 " as it is",
		old->addr, old->length);
	/* Its callbacks may still ask whose it is. */
	atomic_fetch_add_explicit(&mr->refs, 1, memory_order_relaxed);
}
