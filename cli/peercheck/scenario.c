// SPDX-License-Identifier: BSD-3-Clause
#include "cli/peercheck/scenario.h"

#include <stdio.h>
#include <string.h>

#include "cli/peercheck/crash.h"
#include "cli/peercheck/life.h"
#include "cli/peercheck/plain.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/take.h"
#include "cli/peercheck/threads.h"
#include "cli/peercheck/watch.h"

enum { PROBE_SIZE = 4 * 65536, MOST_CALLS = 64 };

static unsigned points(const struct record *probe, unsigned *first)
{
	*first = 1;
	return probe->points;
}

/* Inside acquire the core lets nobody else ask. */
static unsigned claimed_points(const struct record *probe, unsigned *first)
{
	*first = probe->claimed + 1;
	return probe->points;
}

static unsigned calls(const struct record *probe, unsigned *first)
{
	*first = 1;
	return probe->failing;
}

static const struct scenario_kind kinds[] = {
	{FAMILY_LOAD, "", "it begins, and ends", plain_load, NULL, true},
	{FAMILY_ACQUIRE, "ranges", "ranges of its own, and of others", plain_ranges, NULL, true},
	{FAMILY_REGION, "whole", "an allocation", plain_whole, NULL, true},
	{FAMILY_REGION, "part", "a part of an allocation, of odd length", plain_part, NULL, false},
	{FAMILY_REGION, "small", "a page; 8 bytes at the end", plain_small, NULL, false},
	{FAMILY_REGION, "reading", "a region that is only read", plain_reading, NULL, true},
	{FAMILY_REGION, "two", "regions that overlap, and a third", plain_two, NULL, false},
	{FAMILY_REGION, "again", "one region after the other", plain_again, NULL, false},
	{FAMILY_NTH, "", "the nth call that can fail fails", plain_nth, calls, false},
	{FAMILY_KEEP, "", "memory is freed under a region that stays", plain_keep, NULL, true},
	{FAMILY_TAKE, "live", "the memory of a live region goes", take_live, NULL, true},
	{FAMILY_TAKE, "again", "... of later regions", take_again, NULL, false},
	{FAMILY_TAKE, "two", "... of two regions at once", take_two, NULL, false},
	{FAMILY_TAKE, "part", "... of one region of two", take_part, NULL, false},
	{FAMILY_POINT, "other", "memory goes in another thread at point n", take_other, points,
		false},
	{FAMILY_POINT, "late", "... and the core hears of it after release", take_late, points,
		false},
	{FAMILY_THREADS, "between", "another region lives and ends at point n", threads_between,
		claimed_points, false},
	{FAMILY_STORM, "", "three threads register, free and deregister", threads_many, NULL,
		false},
};

unsigned scenario_kinds(void)
{
	return sizeof kinds / sizeof *kinds;
}

const struct scenario_kind *scenario_kind(unsigned i)
{
	return &kinds[i];
}

/* ---- the probe ---- */

static void note_point(const char *name, bool after)
{
	struct record *r = record_mine();

	if (r->points == RECORD_POINTS)
		return;
	snprintf(r->point[r->points++], sizeof *r->point, "%s %.38s", after ? "after" : "before",
		name);
	if (after && strcmp(name, "acquire") == 0 && !r->claimed)
		r->claimed = r->points;
}

static void count_calls(uint64_t at)
{
	struct record *rec = record_mine();
	struct peer_region *r;
	bool failed = true;

	for (unsigned n = 1; failed && n <= MOST_CALLS; n++) {
		rec->failing = n; /* it may be the end of this process */
		subject.device->fail_nth(n);
		life_begin(at, PROBE_SIZE, &r);
		failed = subject.kshim ? subject.kshim->failed() : !r;
		subject.device->fail_nth(0);
		life_end(r);
		rec->failing = failed ? n : n - 1;
	}
}

void scenario_probe(unsigned number)
{
	static const struct watch_plan plan = {.point = note_point};
	const uint64_t at = life_alloc(PROBE_SIZE);
	struct peer_region *r;

	(void)number;
	watch_plan(&plan);
	life_begin(at, PROBE_SIZE, &r);
	life_end(r);
	watch_plan(NULL);
	count_calls(at);
}

/* ---- running ---- */

static void run(const struct scenario *s)
{
	const int rc = subject_init();

	if (rc || (!watch_clients() && s->kind->family != FAMILY_LOAD)) {
		if (rc)
			record_broken(1, "nothing", "its init_module answered %d", rc);
		else
			record_skip("it registers no client");
		return;
	}
	s->kind->run(s->number);
	watch_judge();
}

void scenario_run(const struct scenario *s)
{
	crash_begin();
	run(s);
	atomic_store_explicit(&record_mine()->finished, true, memory_order_release);
}
