// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/peercheck/entries.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/watch.h"
#include "peermem/generation.h"
#include "peermem/region.h"

/* What dma_map gets: zeros, of which a client may take a part for its PCI device. */
static _Alignas(64) uint8_t hca[4096];

static int end_use(struct peer_region *r)
{
	(void)r;
	return 0; /* nobody uses it but this process, and that is waited for */
}

static int begin(uint64_t addr, uint64_t length, bool writable, struct peer_region **out)
{
	const struct peer_request q = {.addr = addr,
		.length = length,
		.writable = writable,
		.device = (struct device *)(void *)hca,
		.revoke = end_use};
	struct peer_trace t;
	int rc = peer_region_make(&q, out, &t);

	if (!rc && *out)
		rc = peer_region_live(*out);
	if (rc)
		*out = NULL;
	return rc;
}

int life_begin(uint64_t addr, uint64_t length, struct peer_region **out)
{
	return begin(addr, length, true, out);
}

void life_end(struct peer_region *r)
{
	if (r)
		peer_region_drop(r);
}

struct holdings life_holdings(void)
{
	return (struct holdings){.pinned = subject.device->pinned(),
		.objects = subject.kshim ? subject.kshim->objects() : 0,
		.modules = subject.kshim ? subject.kshim->modules() : 0};
}

bool life_judge(const struct holdings *before, const char *in, const char *when)
{
	const struct holdings now = life_holdings();

	if (now.pinned > before->pinned)
		record_seen(SEEN_PINNED, in, "%s, %ld pins or mappings of the device are left",
			when, now.pinned - before->pinned);
	else if (now.objects > before->objects)
		record_seen(SEEN_OBJECTS, in, "%s, %ld objects of memory are left", when,
			now.objects - before->objects);
	else if (now.modules > before->modules)
		record_seen(SEEN_MODULES, in, "%s, %ld references to the module are left", when,
			now.modules - before->modules);
	return now.pinned <= before->pinned && now.objects <= before->objects &&
	       now.modules <= before->modules;
}

uint64_t life_alloc(uint64_t n)
{
	uint64_t addr = 0;
	int rc = subject.device->alloc(n, &addr);

	if (rc) {
		record_skip("the device has no memory: %s", strerror(-rc));
		atomic_store(&record_mine()->finished, true);
		exit(0);
	}
	record_note("%s: %#llx+%llu allocated", subject.device->name, (unsigned long long)addr,
		(unsigned long long)n);
	entries_mark(addr, n);
	return addr;
}

/* A step of a registration that nothing stands in the way of. */
static void judge_refusal(int rc)
{
	const struct watched_region *r = watch_regions();

	if (!r)
		record_broken(3, "acquire", "acquire does not claim memory of its device");
	else if (!peer_generation()->table_at_pin && rc < 0 && !r->table)
		record_broken(6, "refused", "get_pages without a table fails: %s", strerror(-rc));
	else
		record_broken(5, "refused", "memory of its device cannot be registered: %s",
			strerror(-rc));
}

struct peer_region *life_must(uint64_t addr, uint64_t length)
{
	struct peer_region *r;
	int rc = life_begin(addr, length, &r);

	if (!r)
		judge_refusal(rc);
	return r;
}

struct peer_region *life_must_for_reading(uint64_t addr, uint64_t length)
{
	struct peer_region *r;
	int rc = begin(addr, length, false, &r);

	if (!r)
		record_broken(5, "refused for reading",
			"memory that can be written cannot be registered for reading: %s",
			rc ? strerror(-rc) : "acquire does not claim it");
	return r;
}
