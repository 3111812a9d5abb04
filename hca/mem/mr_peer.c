// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mr_peer.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/mem/mr_kinds.h"
#include "hca/proc/proc.h"
#include "hca/proc/quiesce.h"
#include "hca/proc/tables.h"
#include "include/weft/verbs_ext.h"
#include "pages/mapped.h"
#include "peermem/bytes.h"

enum { AWAITED = 10 /* seconds */ };

/* What clients get as the device: zeros, for those that look into it. */
static _Alignas(64) uint8_t device[4096];

/* ---- its client takes it away ---- */

/*
 * Nobody finds it any more.  Whoever has found it meets the region's state, at its bytes: nothing
 * is waited for.  What came for its receives and was not polled yet is lost with it.
 */
static void end_use(struct hca_mr *mr)
{
	uint32_t key = mr->key;

	atomic_compare_exchange_strong_explicit(&proc_seg()->mr[mr->index].key, &key, 0,
		memory_order_seq_cst, memory_order_relaxed);
	table_hold_mr(mr);
}

static int taken_away(struct peer_region *region)
{
	struct hca_mr *mr = region->request.of;

	lock_take(&mr->lock);
	if (mr->of == region) { /* else it became another, and nobody used this one */
		mr->dead = true;
		end_use(mr);
	}
	lock_drop(&mr->lock);
	return 0;
}

/* ---- registering ---- */

/* Is it memory like the program's own, for as long as the region lives? */
static bool is_direct(const struct peer_region *region)
{
	return region->pieces.count == 1 && !region->pieces.piece[0].window &&
	       !region->client->invalidates;
}

/* The bytes of the registered range that lie at addresses of this process: are they there? */
static int check_addresses(const struct peer_region *region, bool writable)
{
	const uint64_t from = region->request.addr & (region->page_size - 1);
	const uint64_t to = from + region->request.length;
	int rc = 0;

	for (unsigned i = 0; i < region->pieces.count && !rc; i++) {
		const struct peer_piece *p = &region->pieces.piece[i];
		uint64_t lo = p->begin > from ? p->begin : from;
		uint64_t hi = p->begin + p->length < to ? p->begin + p->length : to;

		if (!p->window && lo < hi)
			rc = mapped_check(p->address + (lo - p->begin), hi - lo, writable);
	}
	return rc;
}

/* Can a claimed range be registered?  0 or -errno, which is in t. */
static int check(const struct mr_region *r, const struct peer_region *region, struct peer_trace *t)
{
	int rc;

	if (r->access & IBV_ACCESS_ON_DEMAND) {
		peer_trace_fail(t, "the access flags",
			"a client's memory cannot be registered on demand", -EINVAL);
		return -EINVAL;
	}
	rc = check_addresses(region, r->access & IBV_ACCESS_LOCAL_WRITE);
	if (rc)
		peer_trace_fail(t, "the addresses of its table",
			"they are not memory of this process with such rights", rc);
	return rc;
}

static int accept_claim(struct mr_region *r, struct peer_region *region, struct peer_trace *t)
{
	const int rc = check(r, region, t);

	if (rc) {
		peer_trace_say(t, r->addr, r->length);
		peer_region_abandon(region);
		return rc;
	}
	r->kind = &mr_peer_owned;
	r->of = region;
	if (is_direct(region)) {
		r->kind = &mr_peer_direct;
		r->addr = region->pieces.piece[0].address + (r->addr & (region->page_size - 1));
	}
	return 1;
}

int mr_peer_claim(struct mr_region *r, struct peer_trace *t)
{
	const unsigned writes =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	const struct peer_request q = {
		.call = r->call,
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
	if (rc) {
		lock_take(&mr->lock);
		mr->of = NULL;
		lock_drop(&mr->lock);
	}
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

/* ---- the bytes of an owned one ---- */

static int read_bytes(struct hca_mr *mr, uint64_t off, void *to, uint64_t n)
{
	return peer_bytes_read(mr->of, off, to, n);
}

static int write_bytes(struct hca_mr *mr, uint64_t off, const void *from, uint64_t n)
{
	return peer_bytes_write(mr->of, off, from, n);
}

static int update_word(
	struct hca_mr *mr, uint64_t off, bool add, uint64_t a, uint64_t b, uint64_t *old)
{
	return peer_bytes_update(mr->of, off, add, a, b, old);
}

static int settle(struct hca_mr *mr)
{
	return peer_bytes_flush(mr->of);
}

static bool anywhere(struct hca_mr *mr)
{
	const struct peer_region *region = mr->of;

	return region && region->pieces.anywhere;
}

const struct mr_io mr_peer_io = {.read = read_bytes,
	.write = write_bytes,
	.update = update_word,
	.settle = settle,
	.anywhere = anywhere};

/* ---- the end ---- */

int mr_peer_await(struct hca_mr *mr)
{
	/* Threads of ours may be in functions about other regions, too, where nobody looks. */
	for (int i = 0; i < AWAITED; i++) {
		int rc = mr->of ? peer_region_await_ops(mr->of) : 0;

		if (rc || quiesce_own_within(NSEC_PER_SEC))
			return rc;
	}
	return -ETIMEDOUT;
}

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
