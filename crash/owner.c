// SPDX-License-Identifier: BSD-3-Clause
#include "crash/owner.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PATIENCE_NS (100 * (uint64_t)NSEC_PER_MSEC)

static void add_range(struct crash_owner *o, uint64_t addr, uint64_t len)
{
	if (o->n == o->max) {
		unsigned max = o->max ? 2 * o->max : 8;
		struct crash_range *r = realloc(o->ranges, max * sizeof *r);

		if (!r)
			return;
		o->ranges = r;
		o->max = max;
	}
	for (unsigned i = 0; i < o->n; i++)
		if (addr >= o->ranges[i].addr && addr + len <= o->ranges[i].addr + o->ranges[i].len)
			return;
	o->ranges[o->n++] = (struct crash_range){addr, len};
}

void crash_owner_refresh(struct crash_owner *o)
{
	uint64_t n = journal_count(&o->j);

	/* A region of ours was put there by ourselves, so its record is filled. */
	for (; o->read < n; o->read++) {
		const struct journal_record *r = journal_at(&o->j, o->read);

		if (r && r->kind == JOURNAL_REGION && r->owner == (uint32_t)getpid())
			add_range(o, r->addr, r->len);
	}
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_USEC * 50}, NULL);
}

/* Waits until no record is half done; one whose process stopped or died is passed over. */
static uint64_t wait_calm(struct crash_owner *o, uint64_t deadline)
{
	uint64_t n = journal_count(&o->j);

	while (o->calm < n) {
		if (journal_settled(&o->j, o->calm) || clock_ns() >= deadline)
			o->calm++;
		else
			nap();
	}
	return n;
}

static void persist_part(struct crash_owner *o, uint64_t addr, uint64_t len)
{
	struct journal_record r = {.kind = JOURNAL_PERSIST,
		.addr = addr,
		.len = len,
		.data_len = len,
		.data = journal_room(&o->j, len),
		.owner = getpid()};
	uint64_t deadline = clock_ns() + PATIENCE_NS;

	if (!r.data)
		return;
	journal_sign(&r, r.owner);
	while (!journal_ended(&o->j)) {
		uint64_t as = wait_calm(o, deadline);

		memcpy(journal_data(&o->j, r.data), (const void *)(uintptr_t)addr, len);
		atomic_thread_fence(memory_order_seq_cst);
		if (clock_ns() < deadline ? journal_add_as(&o->j, &r, JOURNAL_DONE, as)
					  : journal_add(&o->j, &r, JOURNAL_DONE))
			return;
	}
}

void crash_owner_persist(struct crash_owner *o, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len < addr ? UINT64_MAX : addr + len;

	crash_owner_refresh(o);
	for (unsigned i = 0; i < o->n; i++) {
		uint64_t lo = o->ranges[i].addr, hi = lo + o->ranges[i].len;

		lo = lo > addr ? lo : addr;
		hi = hi < end ? hi : end;
		if (lo < hi)
			persist_part(o, lo, hi - lo);
	}
}
