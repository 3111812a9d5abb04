// SPDX-License-Identifier: BSD-3-Clause
#include "hca/queue/rxq_order.h"

#include <errno.h>
#include <stdlib.h>

enum { NOT_LANDED = 0, ANY_LEN = 0 };

int rxq_order_init(struct rxq_order *o, uint32_t slots, uint32_t max_sge)
{
	*o = (struct rxq_order){.stride = rq_stride_for(max_sge, false), .mask = slots - 1};
	o->wr = calloc(slots, o->stride);
	return o->wr ? 0 : -ENOMEM;
}

void rxq_order_free(struct rxq_order *o)
{
	free(o->wr);
	o->wr = NULL;
}

static void mark(struct seg_rqe *r, uint32_t landed)
{
	atomic_store_explicit(&r->posted, landed, memory_order_relaxed);
}

static uint32_t marked(const struct seg_rqe *r)
{
	return atomic_load_explicit(&r->posted, memory_order_relaxed);
}

bool rxq_order_fits_list(const struct seg_rqe *r, uint64_t len)
{
	uint64_t room = 0;

	for (unsigned i = 0; i < r->num_sge && room < len; i++)
		room += i < RQ_SGE_NEAR ? r->near[i].length : r->far[i - RQ_SGE_NEAR].length;
	return room >= len;
}

/* The oldest with that mark and room; end: none. */
static uint32_t find(
	const struct rxq_order *o, uint32_t first, uint32_t end, uint32_t landed, uint64_t len)
{
	while (first != end && (marked(rxq_order_at(o, first)) != landed ||
				       !rxq_order_fits(rxq_order_at(o, first), len)))
		first++;
	return first;
}

struct seg_rqe *rxq_order_land(
	struct rxq_order *o, uint32_t first, uint32_t end, uint32_t slot, uint64_t len)
{
	uint32_t from = o->landed && (int32_t)(o->next - first) > 0 ? o->next : first;
	uint32_t n = find(o, from, end, NOT_LANDED, len);

	if (n == end)
		return NULL;
	o->next = n == from ? n + 1 : from;
	mark(rxq_order_at(o, n), slot + 1);
	o->landed++;
	return rxq_order_at(o, n);
}

static void swap(struct rxq_order *o, uint32_t n, uint32_t m)
{
	uint8_t *a = (uint8_t *)rxq_order_at(o, n), *b = (uint8_t *)rxq_order_at(o, m);

	for (uint32_t i = 0; i < o->stride; i++) {
		uint8_t byte = a[i];

		a[i] = b[i];
		b[i] = byte;
	}
}

/* Those before it keep their order. */
static void make_first(struct rxq_order *o, uint32_t first, uint32_t n)
{
	for (; n != first; n--)
		swap(o, n, n - 1);
}

static uint32_t find_choice(
	struct rxq_order *o, uint32_t first, uint32_t end, uint32_t slot, uint64_t len)
{
	uint32_t n = o->landed ? find(o, first, end, slot + 1, ANY_LEN) : end;

	if (n != end) {
		o->landed--;
		return n;
	}
	n = find(o, first, end, NOT_LANDED, len);
	return n != end ? n : find(o, first, end, NOT_LANDED, ANY_LEN);
}

const struct seg_rqe *rxq_order_choose(
	struct rxq_order *o, uint32_t first, uint32_t end, uint32_t slot, uint64_t len)
{
	uint32_t n = find_choice(o, first, end, slot, len);

	if (n == end)
		return NULL;
	make_first(o, first, n);
	return rxq_order_at(o, first);
}
