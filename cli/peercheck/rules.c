// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define LOAD    (1U << FAMILY_LOAD)
#define ACQUIRE (1U << FAMILY_ACQUIRE)
#define REGION  (1U << FAMILY_REGION)
#define NTH     (1U << FAMILY_NTH)
#define KEEP    (1U << FAMILY_KEEP)
#define TAKE    (1U << FAMILY_TAKE)
#define POINT   (1U << FAMILY_POINT)
#define THREADS (1U << FAMILY_THREADS | 1U << FAMILY_STORM)

static const struct rule {
	const char *text;
	unsigned families;
} rules[RULES + 1] = {
	[1] = {"registers a terminated unique name and version, and five functions; its structure "
	       "stays as it is",
		LOAD},
	[2] = {"init and exit balance; nothing is called after exit", LOAD},
	[3] = {"acquire: 1 for ranges of its own, else 0", ACQUIRE},
	[4] = {"acquire that said 0 leaves nothing behind", ACQUIRE},
	[5] = {"get_pages, dma_map: 0 or -errno, also for reading; a failure leaves nothing pinned",
		REGION | NTH},
	[6] = {"takes the table as its generation passes it to get_pages", REGION},
	[7] = {"nmap entries: reachable, not empty, of whole pages, not overlapping, of the device",
		REGION},
	[8] = {"the entries cover the range from its page on", REGION},
	[9] = {"byte i of the region is byte i of the allocation", REGION},
	[10] = {"page size: a power of two, at least 4096, constant", REGION},
	[11] = {"takes back the very table, and freed it not before dma_unmap", REGION},
	[12] = {"dma_unmap: 0; afterwards nothing is pinned, allocated, or held of the module",
		REGION},
	[13] = {"after a failed step only the steps before it are undone", NTH},
	[14] = {"every nth failure is an error, not a crash", NTH},
	[15] = {"invalidates with its own handle and its own live contexts", TAKE},
	[16] = {"each live region once when the device takes its memory", TAKE},
	[17] = {"unmaps by itself after the callback with INVALIDATE_UNMAPS, else not", TAKE},
	[18] = {"holds no lock over the callback that its functions take", TAKE | POINT},
	[19] = {"survives invalidation at every point and timing", TAKE | POINT},
	[20] = {"without callback: memory stays until put_pages", KEEP},
	[21] = {"threads that register, free and deregister", THREADS},
	[22] = {"no use of freed or foreign memory, no undefined behaviour, no leak, no process "
		"made",
		LOAD | ACQUIRE | REGION},
};

/* In a plain life a crash is a use of memory that is not there, whatever came before it. */
static const unsigned char broken[FAMILIES][SEEN_KINDS] = {
	/*                   crash hang stale memory pinned objects modules */
	[FAMILY_LOAD] = {22, 2, 2, 22, 2, 22, 2},
	[FAMILY_ACQUIRE] = {22, 3, 4, 22, 4, 4, 4},
	[FAMILY_REGION] = {22, 5, 12, 22, 12, 12, 12},
	[FAMILY_NTH] = {14, 14, 13, 13, 5, 5, 5},
	[FAMILY_KEEP] = {20, 20, 20, 20, 20, 20, 20},
	[FAMILY_TAKE] = {19, 19, 17, 19, 17, 19, 19},
	[FAMILY_POINT] = {19, 19, 19, 19, 19, 19, 19},
	[FAMILY_THREADS] = {21, 21, 21, 21, 21, 21, 21},
	[FAMILY_STORM] = {21, 21, 21, 21, 21, 21, 21},
};

const char *rule_text(unsigned rule)
{
	return rules[rule].text;
}

unsigned rule_families(unsigned rule)
{
	return rules[rule].families;
}

unsigned rule_broken(enum family family, enum seen what, const char *in)
{
	static const char *const undo[] = {"dma_unmap", "put_pages", "release"};

	for (size_t i = 0; family == FAMILY_NTH && in && i < sizeof undo / sizeof *undo; i++)
		if (what == SEEN_CRASH && strcmp(in, undo[i]) == 0)
			return 13;
	if (family == FAMILY_NTH && what >= SEEN_PINNED && in && strcmp(in, "acquire") == 0)
		return 4;
	return broken[family][what];
}

unsigned rule_in_family(enum family family, unsigned rule)
{
	const bool of_life = rule >= 3 && rule <= 12;

	if (family >= FAMILY_THREADS && of_life)
		return 21;
	return family == FAMILY_POINT && of_life ? 19 : rule;
}

unsigned family_stage(enum family family)
{
	if (family <= FAMILY_REGION)
		return 0;
	if (family <= FAMILY_TAKE)
		return 1;
	return family == FAMILY_STORM ? 3 : 2;
}

bool family_is_race(enum family family)
{
	return family >= FAMILY_POINT;
}

const char *family_name(enum family family)
{
	static const char *const names[] = {
		"load", "acquire", "region", "nth", "keep", "take", "point", "threads", "storm"};

	return names[family];
}
