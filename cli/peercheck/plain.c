// SPDX-License-Identifier: BSD-3-Clause
/* Scenarios of one thread, in which the device takes nothing away. */
#include "cli/peercheck/plain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cli/peercheck/entries.h"
#include "cli/peercheck/life.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/watch.h"
#include "peermem/bytes.h"
#include "peermem/registry.h"

enum { SIZE = 4 * 65536, UNALIGNED = 65536 + 100 };

/* ---- loading ---- */

void plain_load(unsigned number)
{
	(void)number;
	if (watch_clients() == 0)
		record_broken(1, "nothing", "it registers no client");
	subject_exit();
	if (peer_registry_any())
		record_broken(2, "stays", "it is still registered after its end");
	if (subject.kshim && subject.kshim->objects() > 0)
		record_seen(SEEN_OBJECTS, NULL, "%ld objects of memory are left after its end",
			subject.kshim->objects());
	if (subject.kshim && subject.kshim->modules() > 0)
		record_seen(SEEN_MODULES, NULL,
			"%ld references to the module are left after its end",
			subject.kshim->modules());
}

/* ---- whose it is ---- */

/* Asks as ibv_reg_mr would, and undoes it. */
static bool is_claimed(uint64_t addr, uint64_t n)
{
	const struct watched_region *before = watch_regions();
	struct peer_region *r;

	life_begin(addr, n, &r);
	life_end(r);
	return watch_regions() != before;
}

static void must_claim(uint64_t addr, uint64_t n, const char *what)
{
	if (!is_claimed(addr, n))
		record_broken(3, "acquire", "acquire does not claim %s, %#" PRIx64 "+%" PRIu64,
			what, addr, n);
}

static void must_not_claim(uint64_t addr, uint64_t n, const char *what)
{
	const struct holdings before = life_holdings();

	watch_forbid(what);
	if (!is_claimed(addr, n))
		life_judge(&before, "acquire", "after acquire said 0");
	watch_forbid(NULL);
}

static uint64_t of_heap(void)
{
	static char *heap;

	if (!heap)
		heap = malloc(65536);
	return (uintptr_t)heap;
}

static uint64_t hole(void)
{
	char *p = mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 4096;
	munmap(p, 1 << 20);
	return (uintptr_t)p;
}

void plain_ranges(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	char stack[64];

	(void)number;
	must_claim(at, SIZE, "an allocation");
	must_claim(at, 1, "its first byte");
	must_claim(at + SIZE - 1, 1, "its last byte");
	must_claim(at + 65536 - 8, 16, "bytes of two pages");
	must_not_claim(of_heap(), 4096, "memory of the heap");
	must_not_claim((uintptr_t)stack, sizeof stack, "memory of the stack");
	must_not_claim((uintptr_t)plain_ranges, 16, "code");
	must_not_claim(hole(), 4096, "addresses that are not mapped");
	must_not_claim(0, 4096, "NULL");
	must_not_claim(UINT64_MAX - 8191, 4096, "the last addresses that there are");
	must_not_claim(at - 1, 2, "a byte before an allocation");
	must_not_claim(at, SIZE + 1, "a byte behind an allocation");
	must_not_claim(at + SIZE, 4096, "what is behind an allocation");
}

/* ---- lives ---- */

static void judge_life(uint64_t start, uint64_t addr, uint64_t n)
{
	struct peer_region *r = life_must(addr, n);

	if (r)
		entries_judge_bytes(r, addr, n, start, SIZE);
	life_end(r);
}

void plain_whole(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	const struct holdings before = life_holdings();

	(void)number;
	judge_life(at, at, SIZE);
	life_judge(&before, NULL, "after release");
	if (watch_regions() && subject.device->free(at))
		record_broken(12, "free", "the device cannot free its memory afterwards");
	if (watch_regions() && watch_regions()->told)
		record_broken(12, "told", "the region was invalidated after release");
}

void plain_part(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	const struct holdings before = life_holdings();

	(void)number;
	judge_life(at, at + UNALIGNED, 70000);
	life_judge(&before, NULL, "after release");
}

void plain_small(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	const struct holdings before = life_holdings();

	(void)number;
	judge_life(at, at + 65536, 4096);
	judge_life(at, at + SIZE - 8, 8);
	life_judge(&before, NULL, "after release");
}

/* Nobody writes: MLNX_OFED first asked for that with force, later always for writing. */
void plain_reading(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	const struct holdings before = life_holdings();
	struct peer_region *r;

	(void)number;
	if (life_begin(at, SIZE, &r) || !r)
		return; /* nothing works, of which others tell */
	life_end(r);
	r = life_must_for_reading(at, SIZE);
	if (r)
		entries_judge_reading(r, at, SIZE, at, SIZE);
	life_end(r);
	life_judge(&before, NULL, "after release");
}

void plain_two(unsigned number)
{
	const uint64_t at = life_alloc(SIZE), other = life_alloc(SIZE);
	const struct holdings before = life_holdings();
	struct peer_region *a = life_must(at, SIZE), *b = life_must(at + 65536, 65536);
	struct peer_region *c = life_must(other, SIZE);

	(void)number;
	if (a && b && c) {
		entries_judge_bytes(a, at, SIZE, at, SIZE);
		entries_judge_bytes(b, at + 65536, 65536, at, SIZE);
		entries_judge_bytes(c, other, SIZE, other, SIZE);
	}
	life_end(a);
	life_end(c);
	life_end(b);
	life_judge(&before, NULL, "after release");
}

void plain_again(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	const struct holdings before = life_holdings();

	(void)number;
	for (unsigned i = 0; i < 3; i++)
		judge_life(at, at, SIZE);
	life_judge(&before, NULL, "after release");
}

/* ---- failures ---- */

static const char *failed_step(void)
{
	const struct watched_region *r = watch_regions();

	return !r ? "acquire" : r->pinned ? "get_pages or dma_map" : "get_pages";
}

void plain_nth(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	const struct holdings before = life_holdings();
	struct peer_region *r;
	bool failed;

	subject.device->fail_nth(number);
	life_begin(at, SIZE, &r);
	failed = subject.kshim ? subject.kshim->failed() : !r;
	subject.device->fail_nth(0);
	record_note("call %u %s", number, failed ? "failed" : "was not made");
	life_end(r);
	life_judge(&before, failed_step(), "after a failed call");
}

/* ---- without callback ---- */

static void look(struct peer_region *r, uint64_t *words, size_t n)
{
	if (peer_bytes_read(r, 0, words, n))
		record_broken(20, "memory goes", "the HCA cannot read the region any more");
}

void plain_keep(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	const struct holdings before = life_holdings();
	struct peer_region *r;
	uint64_t was[16], is[16];

	(void)number;
	if (record_mine()->may_take) {
		record_skip("the client has a callback");
		return;
	}
	r = life_must(at, SIZE);
	if (!r)
		return;
	look(r, was, sizeof was);
	subject.device->free(at);
	look(r, is, sizeof is);
	if (memcmp(was, is, sizeof is) != 0)
		record_broken(20, "memory goes",
			"the memory was freed while a client without callback had it pinned");
	life_end(r);
	life_judge(&before, NULL, "after release");
}
