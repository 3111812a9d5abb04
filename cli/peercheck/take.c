// SPDX-License-Identifier: BSD-3-Clause
/* The device takes memory away: of live regions, and at each point of a region's life. */
#include "cli/peercheck/take.h"

#include <stdlib.h>

#include "cli/peercheck/life.h"
#include "cli/peercheck/pair.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/watch.h"
#include "peermem/region.h"

enum { SIZE = 4 * 65536 };

static bool cannot(void)
{
	if (!record_mine()->may_take)
		record_skip("the client has no callback");
	return !record_mine()->may_take;
}

/* Regions that were live when the device took their memory. */
static void judge_told(unsigned regions)
{
	for (const struct watched_region *r = watch_regions(); r && regions; r = r->next, regions--)
		if (!r->told)
			record_broken(16, "not told",
				"the device took the memory of the region with context %llu, which "
				"was not invalidated",
				(unsigned long long)r->core);
}

static void take(uint64_t at, unsigned regions)
{
	unsigned call =
		record_begin("%s: free(%#llx)", subject.device->name, (unsigned long long)at);
	int rc = subject.device->free(at);

	record_end(call, " = %d", rc);
	judge_told(regions);
}

void take_live(unsigned number)
{
	const uint64_t at = cannot() ? 0 : life_alloc(SIZE);
	const struct holdings before = life_holdings();
	struct peer_region *r;

	(void)number;
	r = at ? life_must(at, SIZE) : NULL;
	if (!r)
		return;
	take(at, 1);
	if (!peer_region_is_gone(r))
		record_broken(16, "not told", "the region lives on");
	if (life_holdings().pinned > before.pinned)
		record_seen(SEEN_PINNED, NULL,
			"after the callback, %ld pins or mappings of the device are left",
			life_holdings().pinned - before.pinned);
	life_end(r);
	life_judge(&before, NULL, "after release");
}

void take_again(unsigned number)
{
	const uint64_t first = cannot() ? 0 : life_alloc(SIZE);

	(void)number;
	if (!first)
		return;
	life_end(life_must(first, SIZE));
	take_live(0);
	take_live(0);
	subject.device->free(first);
}

void take_two(unsigned number)
{
	const uint64_t at = cannot() ? 0 : life_alloc(SIZE);
	const struct holdings before = life_holdings();
	struct peer_region *a, *b;

	(void)number;
	if (!at)
		return;
	a = life_must(at, SIZE);
	b = life_must(at + 65536, 4096);
	if (a && b)
		take(at, 2);
	life_end(b);
	life_end(a);
	life_judge(&before, NULL, "after release");
}

/* Of two allocations only the one that goes is told of. */
void take_part(unsigned number)
{
	const uint64_t at = cannot() ? 0 : life_alloc(SIZE), stays = at ? life_alloc(SIZE) : 0;
	const struct holdings before = life_holdings();
	struct peer_region *a, *b;

	(void)number;
	if (!at)
		return;
	b = life_must(stays, SIZE);
	a = life_must(at, SIZE);
	if (a && b) {
		take(at, 1);
		if (peer_region_is_gone(b))
			record_broken(15, "another", "a region whose memory stays was invalidated");
	}
	life_end(a);
	life_end(b);
	life_judge(&before, NULL, "after release");
}

/* ---- at a point ---- */

static void free_it(void *arg)
{
	const uint64_t *at = arg;
	unsigned call =
		record_begin("%s: free(%#llx)", subject.device->name, (unsigned long long)*at);
	int rc = subject.device->free(*at);

	record_end(call, " = %d", rc);
}

static void at_point(unsigned number, bool hold)
{
	uint64_t at = cannot() ? 0 : life_alloc(SIZE);
	const struct holdings before = life_holdings();
	const struct pair p = {.at = number, .second = free_it, .arg = &at, .hold = hold};
	struct peer_region *r;

	if (!at)
		return;
	pair_begin(&p);
	life_begin(at, SIZE, &r);
	pair_settle();
	life_end(r);
	pair_join();
	life_judge(&before, NULL, "after release");
}

void take_other(unsigned number)
{
	at_point(number, false);
}

void take_late(unsigned number)
{
	at_point(number, true);
}
