// SPDX-License-Identifier: BSD-3-Clause
/* Async events: bits at the objects, one eventfd that counts them. */
#include "hca/queue/event.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/at_open.h"
#include "base/lock.h"
#include "hca/api/hca.h"
#include "hca/exec/complete.h"
#include "hca/obj/cq.h"
#include "hca/obj/qp.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/proc/wake.h"
#include "hca/queue/explain.h"
#include "hca/seg/port_event.h"

AT_OPEN int hca_async_fd(void)
{
	return proc_at()->async_fd;
}

/* Takes the lowest bit out of *bits: its number, or -1 if there is none. */
static int take_bit32(_Atomic uint32_t *bits)
{
	uint32_t v = atomic_load_explicit(bits, memory_order_acquire);

	while (v)
		if (atomic_compare_exchange_weak_explicit(
			    bits, &v, v & (v - 1), memory_order_acq_rel, memory_order_acquire))
			return __builtin_ctz(v);
	return -1;
}

static int find_bit64(_Atomic uint64_t *map, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++) {
		uint64_t v = atomic_load_explicit(&map[i], memory_order_acquire);

		if (v)
			return i * 64 + __builtin_ctzll(v);
	}
	return -1;
}

/* Clears an object's mark in the map, and sets it again if an event came in between. */
static int take_from(_Atomic uint64_t *map, uint32_t index, _Atomic uint32_t *bits)
{
	uint64_t mark = 1ull << index % 64;
	int type = take_bit32(bits);

	atomic_fetch_and_explicit(&map[index / 64], ~mark, memory_order_seq_cst);
	if (atomic_load_explicit(bits, memory_order_seq_cst))
		atomic_fetch_or_explicit(&map[index / 64], mark, memory_order_seq_cst);
	return type;
}

/* The cookie of the QP or SRQ at that index, NULL if there is none (any more). */
static void *cookie_of(uint32_t index)
{
	struct hca_srq *srq = table_srq(index);
	struct hca_qp *qp = srq ? NULL : table_qp(index);

	return srq ? srq->cookie : qp ? qp->cookie : NULL;
}

static bool take_qp_event(struct seg *seg, enum ibv_event_type *type, void **cookie)
{
	int index, t;

	while ((index = find_bit64(seg->qp_event_map, SEG_QPS / 64)) >= 0) {
		*cookie = cookie_of(index);
		t = take_from(seg->qp_event_map, index, &seg->qp[index].events);
		if (t == IBV_EVENT_QP_ACCESS_ERR || t == IBV_EVENT_QP_REQ_ERR)
			explain_event(index);
		if (t >= 0 && *cookie) {
			*type = t;
			return true;
		}
	}
	return false;
}

/* One count for each, so that nobody wakes up for nothing and then sleeps in read(2). */
static void forget(_Atomic uint64_t *map, uint32_t index, _Atomic uint32_t *bits)
{
	int saved = errno;

	while (take_from(map, index, bits) >= 0)
		(void)wake_take(hca_async_fd());
	errno = saved;
}

void qp_forget_events(uint32_t index)
{
	struct seg *seg = proc_seg();

	forget(seg->qp_event_map, index, &seg->qp[index].events);
}

void cq_forget_events(uint32_t index)
{
	struct seg *seg = proc_seg();

	forget(seg->cq_event_map, index, &seg->cq[index].events);
}

static bool take_cq_event(struct seg *seg, enum ibv_event_type *type, void **cookie)
{
	int index, t;

	while ((index = find_bit64(seg->cq_event_map, SEG_CQS / 64)) >= 0) {
		struct hca_cq *cq = table_cq(index);

		t = take_from(seg->cq_event_map, index, &seg->cq[index].events);
		if (t >= 0 && cq) {
			*type = t;
			*cookie = cq->cookie;
			return true;
		}
	}
	return false;
}

static bool take_any(struct seg *seg, enum ibv_event_type *type, void **cookie)
{
	int t = port_event_take(&seg->hdr.port_events);

	*cookie = NULL;
	if (t < 0)
		return take_qp_event(seg, type, cookie) || take_cq_event(seg, type, cookie);
	*type = t;
	return true;
}

/* After a death, until no event waits: lets the fd be readable if one does, and only then. */
static void recount(struct seg *seg)
{
	struct pollfd p = {.fd = hca_async_fd(), .events = POLLIN};

	if (has_async_event(seg)) {
		if (poll(&p, 1, 0) == 0)
			wake_write(p.fd, NULL);
		return;
	}
	atomic_store_explicit(&seg->hdr.async_doubt, 0, memory_order_seq_cst);
	while (!wake_take(p.fd))
		;
	/* One that was raised meanwhile: its count may have gone with those. */
	if (!has_async_event(seg))
		return;
	atomic_store_explicit(&seg->hdr.async_doubt, 1, memory_order_seq_cst);
	wake_write(p.fd, NULL);
}

int hca_async_get(enum ibv_event_type *type, void **cookie)
{
	static struct lock recounting;
	struct seg *seg = proc_seg();
	uint64_t one;
	bool got;

	if (!proc_epoch())
		return -EINVAL; /* a child that has not opened the device: the fd is its parent's */
	for (;;) {
		if (read(hca_async_fd(), &one, sizeof one) < 0)
			return -errno;
		got = take_any(seg, type, cookie);
		if (atomic_load_explicit(&seg->hdr.async_doubt, memory_order_acquire) &&
			lock_try(&recounting)) {
			recount(seg);
			lock_drop(&recounting);
		}
		if (got)
			return 0;
	}
}
