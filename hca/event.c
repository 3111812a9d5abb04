// SPDX-License-Identifier: BSD-3-Clause
/* Async events: bits at the objects, one eventfd that counts them. */
#include <errno.h>
#include <unistd.h>

#include "hca/hca.h"
#include "hca/objects.h"
#include "hca/port_event.h"
#include "hca/proc.h"
#include "hca/tables.h"

int hca_async_fd(void)
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

static bool take_qp_event(struct seg *seg, enum ibv_event_type *type, void **cookie)
{
	int index, t;

	while ((index = find_bit64(seg->qp_event_map, SEG_QPS / 64)) >= 0) {
		struct hca_qp *qp = table_qp(index);

		t = take_from(seg->qp_event_map, index, &seg->qp[index].events);
		if (t >= 0 && qp) {
			*type = t;
			*cookie = qp->cookie;
			return true;
		}
	}
	return false;
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

int hca_async_get(enum ibv_event_type *type, void **cookie)
{
	struct seg *seg = proc_seg();
	uint64_t one;
	int t;

	for (;;) {
		if (read(hca_async_fd(), &one, sizeof one) < 0)
			return -errno;
		*cookie = NULL;
		t = port_event_take(&seg->hdr.port_events);
		if (t >= 0) {
			*type = t;
			return 0;
		}
		if (take_qp_event(seg, type, cookie) || take_cq_event(seg, type, cookie))
			return 0;
	}
}
