// SPDX-License-Identifier: BSD-3-Clause
/* Several threads with regions of their own. */
#include "cli/peercheck/threads.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"
#include "cli/peercheck/crash.h"
#include "cli/peercheck/entries.h"
#include "cli/peercheck/life.h"
#include "cli/peercheck/pair.h"
#include "cli/peercheck/record.h"
#include "cli/peercheck/subject.h"
#include "cli/peercheck/watch.h"

enum { SIZE = 2 * 65536, THREADS = 3, ROUNDS = 12 };

static void live(uint64_t at)
{
	struct peer_region *r = life_must(at, SIZE);

	if (r)
		entries_judge_bytes(r, at, SIZE, at, SIZE);
	life_end(r);
}

/* ---- a whole life between two points of another's ---- */

static void other_life(void *arg)
{
	live(*(uint64_t *)arg);
}

void threads_between(unsigned number)
{
	const uint64_t at = life_alloc(SIZE);
	uint64_t other = life_alloc(SIZE);
	const struct holdings before = life_holdings();
	const struct pair p = {.at = number, .second = other_life, .arg = &other};

	pair_begin(&p);
	live(at);
	pair_join();
	life_judge(&before, NULL, "after release");
}

/* ---- many, as they come ---- */

static void *churn(void *arg)
{
	const bool takes = record_mine()->may_take;

	crash_of_thread();
	for (unsigned i = 0; i < ROUNDS; i++) {
		const uint64_t at = life_alloc(SIZE);
		struct peer_region *r;

		life_begin(at, SIZE, &r);
		if (takes && i % 2)
			subject.device->free(at);
		life_end(r);
		if (!takes || i % 2 == 0)
			subject.device->free(at);
	}
	return arg;
}

void threads_many(unsigned number)
{
	static const struct watch_plan plan = {.late_is_fine = true};
	const struct holdings before = life_holdings();
	pthread_t thread[THREADS];

	(void)number;
	watch_plan(&plan);
	for (unsigned i = 0; i < THREADS; i++)
		if (thread_start(&thread[i], NULL, THREAD_CALLBACKS, churn, NULL))
			abort();
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	life_judge(&before, NULL, "after release");
}
