// SPDX-License-Identifier: BSD-3-Clause
/*
 * Peer clients that take memory away, in each state of a region, from this thread and from others.
 * A test knows that another thread waits by that thread's going to sleep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "peermem/life.h"
#include "peermem/region.h"
#include "peermem/registry.h"
#include "peermem/wait.h"
#include "tests/lib/check.h"
#include "tests/unit/peermem_fake.h"

enum { ADDR = 0x7000000, LENGTH = 0x2000 };

static void *handle;
static struct peer_region *region;
static unsigned revoked;
static int revoke_answer;
static int answer; /* of the callback */
static sem_t asleep, go;

/* ---- clocks ---- */

/* The real one; tells that somebody sleeps. */
static void tell_and_sleep(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
	sem_post(&asleep);
	futex_wait_shared(word, seen, ns);
}

static const struct peer_time telling = {clock_ns, tell_and_sleep};

static uint64_t fake_now;

static uint64_t read_fake(void)
{
	return fake_now;
}

/* Time passes by sleeping alone. */
static void pass(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
	(void)word;
	(void)seen;
	fake_now += ns;
}

static const struct peer_time fake_time = {read_fake, pass};

/* ---- the stage ---- */

static int count_revoked(struct peer_region *r)
{
	assert_false(peer_region_is_live(r));
	revoked++;
	return revoke_answer;
}

static int make(struct peer_region **r)
{
	const struct peer_request q = {.addr = ADDR, .length = LENGTH, .revoke = count_revoked};
	struct peer_trace trace;

	return peer_region_make(&q, r, &trace);
}

static struct peer_region *live(void)
{
	struct peer_region *r;

	assert_int_equal(make(&r), 0);
	assert_int_equal(peer_region_live(r), 0);
	fake_calls();
	return r;
}

static int begin(void **state)
{
	(void)state;
	fake_reset();
	revoked = 0;
	revoke_answer = 0;
	answer = -1;
	peer_time_use(&telling);
	sem_init(&asleep, 0, 0);
	sem_init(&go, 0, 0);
	return peer_generation_use('W');
}

static int end(void **state)
{
	(void)state;
	ib_unregister_peer_memory_client(handle);
	handle = NULL;
	return 0;
}

static int take_client(const struct peer_client *c, void *arg)
{
	*(const struct peer_client **)arg = c;
	return 0;
}

/* Of the client that registered last. */
static uint64_t stat_of_last(enum peer_stat which)
{
	const struct peer_client *c = NULL;

	peer_registry_each(take_client, &c);
	return peer_counted(&c->stats, which);
}

static void invalidate_here(void)
{
	answer = fake_E.invalidate(handle, fake.context);
}

static void *invalidate_there(void *arg)
{
	uint64_t context = *(uint64_t *)arg;

	answer = fake_E.invalidate(handle, context);
	return NULL;
}

static pthread_t other;
static uint64_t other_context;

static void start_other(void)
{
	other_context = fake.context;
	assert_int_equal(pthread_create(&other, NULL, invalidate_there, &other_context), 0);
}

/* Starts a callback in another thread, and waits until it sleeps. */
static void start_waiting_other(void)
{
	start_other();
	sem_wait(&asleep);
}

static void join_other(void)
{
	pthread_join(other, NULL);
}

/* ---- while it is being registered ---- */

static const enum fake_call steps[] = {FAKE_GET_PAGES, FAKE_DMA_MAP, FAKE_GET_PAGE_SIZE};
static const char *const undone[] = {"agpr", "agmupr", "agmsupr"};

static void same_thread_while_registering(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	for (int i = 0; i < 3; i++) {
		fake.inside[steps[i]] = invalidate_here;
		assert_int_equal(make(&region), -EINVAL);
		assert_int_equal(answer, -EDEADLK);
		assert_string_equal(fake_calls(), undone[i]);
	}
	assert_int_equal(revoked, 0);
	assert_int_equal(stat_of_last(PEER_DEADLOCKS), 3);
	assert_int_equal(stat_of_last(PEER_FREE_CALLBACKS), 3);
}

static void between_make_and_live(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	assert_int_equal(make(&region), 0);
	invalidate_here();
	assert_int_equal(answer, -EDEADLK);
	assert_int_equal(peer_region_live(region), -EINVAL);
	assert_string_equal(fake_calls(), "agmsupr");
}

static void marked_by_later_generations(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	for (const char *row = "BC"; *row; row++) {
		assert_int_equal(peer_generation_use(*row), 0);
		fake.inside[FAKE_DMA_MAP] = invalidate_here;
		assert_int_equal(make(&region), -EINVAL);
		assert_int_equal(answer, 0);
		assert_string_equal(fake_calls(), "agsmupr");
	}
	assert_int_equal(peer_generation_use('A'), 0);
	fake.inside[FAKE_GET_PAGES] = invalidate_here;
	assert_int_equal(make(&region), -EINVAL);
	assert_int_equal(answer, 0);
	fake.inside[FAKE_DMA_MAP] = invalidate_here;
	assert_int_equal(make(&region), -EINVAL);
	assert_int_equal(answer, -EDEADLK);
}

static void other_thread_waits_for_live(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	for (int i = 0; i < 3; i++) {
		fake.inside[steps[i]] = start_waiting_other;
		assert_int_equal(make(&region), 0);
		assert_string_equal(fake_calls(), "agms");
		assert_int_equal(revoked, i);
		assert_int_equal(peer_region_live(region), 0);
		join_other();
		assert_int_equal(answer, 0);
		assert_int_equal(revoked, i + 1);
		assert_string_equal(fake_calls(), "up");
		assert_int_equal(peer_region_drop(region), 0);
		assert_string_equal(fake_calls(), "r");
	}
}

static void other_thread_waits_for_undone(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	fake.inside[FAKE_GET_PAGES] = start_waiting_other;
	fake.answer[FAKE_DMA_MAP] = -EIO;
	assert_int_equal(make(&region), -EIO);
	join_other();
	assert_int_equal(answer, 0);
	assert_int_equal(revoked, 0);
	assert_string_equal(fake_calls(), "agmpr");
}

static void start_and_join(void)
{
	start_other();
	join_other();
}

/* get_pages does not return before the callback does, which waits for get_pages. */
static void registration_that_waits_for_its_callback(void **state)
{
	(void)state;
	peer_time_use(&fake_time);
	handle = fake_E.open("fake", 0);
	fake.inside[FAKE_GET_PAGES] = start_and_join;
	assert_int_equal(make(&region), -EINVAL);
	assert_int_equal(answer, -ETIMEDOUT);
	assert_string_equal(fake_calls(), "agpr");
	assert_int_equal(stat_of_last(PEER_DEADLOCKS), 1);
}

/* ---- live and dead ---- */

static const struct taken {
	char row;
	unsigned flags;
	const char *inside, *dropped; /* calls in the callback, and at deregistration */
} taken[] = {
	{'W', 0, "up", "r"},
	{'W', FAKE_UNMAPS, "", "r"},
	{'W', FAKE_NO_RELEASE, "up", ""},
	{'A', 0, "upr", ""},
	{'B', 0, "upr", ""},
	{'C', 0, "upr", ""},
	{'D', 0, "up", "r"},
	{'D', FAKE_UNMAPS, "up", "r"},
	{'E', 0, "up", "r"},
	{'E', FAKE_UNMAPS, "", "r"},
};

static void live_and_dead(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
		assert_int_equal(peer_generation_use(taken[i].row), 0);
		handle = fake_E.open("fake", taken[i].flags);
		revoked = 0;
		region = live();
		for (int again = 0; again < 2; again++) {
			invalidate_here();
			assert_int_equal(answer, 0);
			assert_int_equal(revoked, 1);
			assert_string_equal(fake_calls(), again ? "" : taken[i].inside);
			assert_false(peer_region_is_live(region));
		}
		assert_int_equal(stat_of_last(PEER_DEALLOC_MRS), 1);
		assert_int_equal(peer_region_drop(region), 0);
		assert_string_equal(fake_calls(), taken[i].dropped);
		assert_int_equal(stat_of_last(PEER_DEALLOC_MRS), 1);
		assert_int_equal(stat_of_last(PEER_DEREG_BYTES), stat_of_last(PEER_REG_BYTES));
		ib_unregister_peer_memory_client(handle);
	}
	handle = NULL;
}

static void all_generations_call_alike(void **state)
{
	static const struct fake_generation *const all[] = {
		&fake_A, &fake_B, &fake_C, &fake_D, &fake_E};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		handle = all[i]->open("fake", 0);
		region = live();
		assert_int_equal(all[i]->invalidate(handle, fake.context), 0);
		assert_string_equal(fake_calls(), "up");
		assert_int_equal(peer_region_drop(region), 0);
		ib_unregister_peer_memory_client(handle);
	}
	handle = NULL;
}

static void second_caller_waits_for_the_first(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	fake.inside[FAKE_DMA_UNMAP] = start_waiting_other;
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	join_other();
	assert_int_equal(answer, 0);
	assert_int_equal(revoked, 1);
	assert_string_equal(fake_calls(), "up");
	assert_int_equal(peer_region_drop(region), 0);
}

/* ---- operations ---- */

static void operations_end_first(void **state)
{
	struct peer_guest op;

	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	assert_true(peer_region_enter(region, &op, "copy_to"));
	start_waiting_other();
	assert_string_equal(fake_calls(), "");
	assert_int_equal(revoked, 1);
	assert_false(peer_region_is_live(region));
	peer_region_leave(region, &op);
	join_other();
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "up");
	assert_false(peer_region_enter(region, &op, "copy_to"));
	assert_int_equal(peer_region_drop(region), 0);
}

static void own_operation_is_not_waited_for(void **state)
{
	struct peer_guest op;

	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	assert_true(peer_region_enter(region, &op, "copy_to"));
	invalidate_here();
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "up");
	assert_int_equal(peer_region_drop(region), -EDEADLK);
	peer_region_leave(region, &op);
	assert_int_equal(peer_region_drop(region), 0);
}

static void *drop_there(void *arg)
{
	answer = peer_region_drop(arg);
	return NULL;
}

/* A deregistration waits for an operation whose client takes the memory away. */
static void operation_that_invalidates_while_it_is_waited_for(void **state)
{
	struct peer_guest op;

	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	assert_true(peer_region_enter(region, &op, "copy_to"));
	assert_int_equal(pthread_create(&other, NULL, drop_there, region), 0);
	sem_wait(&asleep);
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	assert_string_equal(fake_calls(), "up");
	peer_region_leave(region, &op);
	join_other();
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "r");
}

/* The same of one that unmaps by itself: who deregisters has promised to call it. */
static void operation_of_a_client_that_unmaps(void **state)
{
	struct peer_guest op;

	(void)state;
	handle = fake_E.open("fake", FAKE_UNMAPS);
	region = live();
	assert_true(peer_region_enter(region, &op, "copy_to"));
	assert_int_equal(pthread_create(&other, NULL, drop_there, region), 0);
	sem_wait(&asleep);
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	assert_string_equal(fake_calls(), "");
	peer_region_leave(region, &op);
	join_other();
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "upr");
}

/* ---- during deregistration ---- */

static void start_waiting_drop(void)
{
	assert_int_equal(pthread_create(&other, NULL, drop_there, region), 0);
	sem_wait(&asleep);
	assert_string_equal(fake_calls(), "up");
}

static void released_after_the_callback(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	fake.inside[FAKE_PUT_PAGES] = start_waiting_drop;
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	join_other();
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "r");
}

static void dereg_from_the_same_thread(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	for (int i = 0; i < 2; i++) {
		region = live();
		fake.inside[i ? FAKE_PUT_PAGES : FAKE_DMA_UNMAP] = invalidate_here;
		assert_int_equal(peer_region_drop(region), 0);
		assert_int_equal(answer, 0);
		assert_string_equal(fake_calls(), "upr");
	}
	assert_int_equal(revoked, 0);
}

static void dereg_is_waited_for(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	fake.inside[FAKE_DMA_UNMAP] = start_waiting_other;
	assert_int_equal(peer_region_drop(region), 0);
	join_other();
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "upr");
}

static void dereg_is_not_waited_for_by_who_unmaps(void **state)
{
	(void)state;
	handle = fake_E.open("fake", FAKE_UNMAPS);
	region = live();
	fake.inside[FAKE_DMA_UNMAP] = start_and_join;
	assert_int_equal(peer_region_drop(region), 0);
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "upr");
}

/* ---- contexts ---- */

static void unknown_and_stale(void **state)
{
	void *second;
	uint64_t context;

	(void)state;
	handle = fake_E.open("fake", 0);
	second = fake_E.open("second", 0);
	region = live();
	context = fake.context;
	assert_int_not_equal(context, 0);
	assert_int_equal(fake_E.invalidate(handle, 0), 0);
	assert_int_equal(fake_E.invalidate(handle, context + 1), 0);
	assert_int_equal(fake_E.invalidate(handle, context + (1ull << 32)), 0);
	assert_int_equal(fake_E.invalidate(second, context), 0);
	assert_int_equal(fake_E.invalidate(NULL, context), 0);
	assert_int_equal(fake_E.invalidate(&context, context), 0);
	assert_int_equal(revoked, 0);
	assert_int_equal(stat_of_last(PEER_STALE), 1);
	assert_int_equal(stat_of_last(PEER_FREE_CALLBACKS), 1);
	assert_int_equal(peer_region_drop(region), 0);
	assert_int_equal(fake_E.invalidate(handle, context), 0);
	region = live();
	assert_int_not_equal(fake.context, context);
	assert_int_equal(fake_E.invalidate(handle, context), 0);
	assert_true(peer_region_is_live(region));
	assert_int_equal(peer_region_drop(region), 0);
	ib_unregister_peer_memory_client(second);
	assert_int_equal(stat_of_last(PEER_STALE), 5);
}

static void without_callback_there_is_no_context(void **state)
{
	(void)state;
	handle = fake_E.open("fake", FAKE_NULL_CALLBACK);
	region = live();
	assert_int_equal(fake.context, 0);
	assert_int_equal(fake_E.invalidate(handle, 0), 0); /* of an earlier registration */
	assert_true(peer_region_is_live(region));
	assert_int_equal(peer_region_drop(region), 0);
	assert_int_equal(peer_generation_use('E'), 0);
	region = live();
	assert_int_equal(fake.context, UINT32_MAX);
	assert_int_equal(peer_region_drop(region), 0);
}

/* ---- calls within calls ---- */

static uint64_t first_context;

static void invalidate_first(void)
{
	answer = fake_E.invalidate(handle, first_context);
}

static void another_region_from_get_pages(void **state)
{
	struct peer_region *second;

	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	first_context = fake.context;
	fake.inside[FAKE_GET_PAGES] = invalidate_first;
	fake.inside[FAKE_PUT_PAGES] = invalidate_first; /* and within that once more */
	assert_int_equal(make(&second), 0);
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "agupms");
	assert_int_equal(peer_region_live(second), 0);
	assert_false(peer_region_is_live(region));
	assert_true(peer_region_is_live(second));
	assert_int_equal(peer_region_drop(region), 0);
	assert_int_equal(peer_region_drop(second), 0);
}

static void another_region_from_acquire(void **state)
{
	struct peer_region *second;

	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	first_context = fake.context;
	fake.inside[FAKE_ACQUIRE] = invalidate_first;
	second = live();
	assert_int_equal(answer, 0);
	assert_false(peer_region_is_live(region));
	assert_int_equal(peer_region_drop(region), 0);
	assert_int_equal(peer_region_drop(second), 0);
}

static void unregister_and_drop_here(void)
{
	answer = peer_region_drop(region);
	ib_unregister_peer_memory_client(handle);
}

static void dropped_or_unregistered_inside_the_callback(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	fake.inside[FAKE_PUT_PAGES] = unregister_and_drop_here;
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	assert_int_equal(answer, -EDEADLK);
	assert_string_equal(fake_calls(), "up");
	fake.inside[FAKE_RELEASE] = unregister_and_drop_here;
	assert_int_equal(peer_region_drop(region), 0);
	assert_int_equal(peer_region_drop(live()), 0); /* it is there still */
}

/* ---- a client goes ---- */

static void unregister_with_live_regions(void **state)
{
	struct peer_region *dead, *second;

	(void)state;
	peer_time_use(&fake_time);
	handle = fake_E.open("fake", FAKE_UNMAPS);
	dead = live();
	invalidate_here();
	region = live();
	second = live();
	fake_now = 0;
	ib_unregister_peer_memory_client(handle);
	assert_int_equal(fake_now, PEER_TELL_NS);
	assert_string_equal(fake_calls(), "uprupr"
					  "r");
	assert_int_equal(revoked, 3);
	assert_false(peer_region_is_live(region));
	assert_int_equal(peer_region_drop(region), 0);
	assert_int_equal(peer_region_drop(second), 0);
	assert_int_equal(peer_region_drop(dead), 0);
	assert_string_equal(fake_calls(), "");
}

static void *unregister_there(void *arg)
{
	ib_unregister_peer_memory_client(arg);
	return NULL;
}

static void unregister_waits_for_its_regions(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	assert_int_equal(pthread_create(&other, NULL, unregister_there, handle), 0);
	sem_wait(&asleep);
	assert_int_equal(peer_region_drop(region), 0);
	join_other();
	assert_string_equal(fake_calls(), "upr");
	assert_int_equal(revoked, 0);
}

static _Atomic unsigned sleeps;

/* The first sleep takes its time at once, the others are real. */
static void pass_once(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
	if (sleeps++ == 0)
		fake_now += ns;
	else
		tell_and_sleep(word, seen, ns);
}

static void unregister_meanwhile(void)
{
	static const struct peer_time once = {read_fake, pass_once};

	sleeps = 0;
	peer_time_use(&once);
	assert_int_equal(pthread_create(&other, NULL, unregister_there, handle), 0);
	sem_wait(&asleep);
}

static void unregister_during_registration(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	fake.inside[FAKE_DMA_MAP] = unregister_meanwhile;
	assert_int_equal(make(&region), -EINVAL);
	join_other();
	assert_string_equal(fake_calls(), "agmupr");
	assert_int_equal(revoked, 0);
}

static void unregister_during_release(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	fake.inside[FAKE_RELEASE] = unregister_meanwhile;
	assert_int_equal(peer_region_drop(region), 0);
	join_other();
	assert_string_equal(fake_calls(), "upr");
}

/* ---- somebody comes when all seems to be over ---- */

static pid_t dropper;
static _Atomic bool went_on;

static void hold(void)
{
	sem_post(&asleep);
	sem_wait(&go);
	went_on = true;
}

static void *drop_and_tell(void *arg)
{
	dropper = gettid();
	answer = peer_region_drop(arg);
	sem_post(&asleep);
	return NULL;
}

/*
 * With the registry's lock, which is what the dropper needs next: enters as the client does that
 * takes the memory of all its regions away.
 */
static int enter_late(const struct peer_client *c, void *late)
{
	(void)c;
	sem_post(&go);
	while (!went_on)
		sched_yield();
	await_sleep(dropper);
	lock_take(&region->lock);
	peer_guest_add(&region->guests, late, PEER_CALLBACK, "late");
	lock_drop(&region->lock);
	return 1;
}

static void late_guest_is_waited_for(void **state)
{
	struct peer_guest late;

	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	went_on = false;
	fake.inside[FAKE_RELEASE] = hold;
	assert_int_equal(pthread_create(&other, NULL, drop_and_tell, region), 0);
	sem_wait(&asleep);
	assert_int_equal(peer_registry_each(enter_late, &late), 1);
	sem_wait(&asleep); /* the dropper sleeps, or has returned */
	assert_int_equal(answer, -1);
	lock_take(&region->lock);
	peer_guest_remove(&region->guests, &late);
	peer_changed(region);
	lock_drop(&region->lock);
	join_other();
	assert_int_equal(answer, 0);
	assert_string_equal(fake_calls(), "upr");
}

/* ---- who waits too long ---- */

static char log_file[] = "/tmp/peermem_take_test.XXXXXX";

static const char *log_text(void)
{
	static char text[65536];
	int fd = open(log_file, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof text - 1);

	close(fd);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_int_equal(truncate(log_file, 0), 0);
	return text;
}

static void *op_there(void *arg)
{
	struct peer_guest op;

	assert_true(peer_region_enter(arg, &op, "copy_to"));
	sem_post(&asleep);
	sem_wait(&go);
	peer_region_leave(arg, &op);
	return NULL;
}

static void start_op(void)
{
	assert_int_equal(pthread_create(&other, NULL, op_there, region), 0);
	sem_wait(&asleep);
	peer_time_use(&fake_time);
	fake_now = 0;
	log_text();
}

static void check_report(const char *waits, const char *gave_up)
{
	const char *text = log_text();

	assert_non_null(strstr(text, waits));
	assert_non_null(strstr(text, gave_up));
	assert_int_equal(fake_now, PEER_GIVE_UP_NS);
	fake_now = 0;
}

static void an_operation_that_does_not_end(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	start_op();
	invalidate_here();
	assert_int_equal(answer, -ETIMEDOUT);
	check_report(" in the callback waits for thread ",
		" in the callback gave up waiting for thread ");
	assert_int_equal(stat_of_last(PEER_DEADLOCKS), 1);
	assert_int_equal(peer_region_drop(region), -ETIMEDOUT);
	check_report(" in ibv_dereg_mr waits for thread ", " in copy_to");
	assert_int_equal(stat_of_last(PEER_DEADLOCKS), 2);
	assert_string_equal(fake_calls(), "");
	sem_post(&go);
	join_other();
	assert_int_equal(peer_region_drop(region), 0);
	assert_string_equal(fake_calls(), "upr");
	assert_int_equal(revoked, 1);
}

static void unregister_with_an_operation_that_does_not_end(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	start_op();
	ib_unregister_peer_memory_client(handle);
	assert_non_null(strstr(log_text(), "as it is"));
	assert_int_equal(fake_now, PEER_TELL_NS + PEER_GIVE_UP_NS);
	sem_post(&go);
	join_other();
	assert_int_equal(peer_region_drop(region), 0);
	assert_string_equal(fake_calls(), "");
}

static int open_log(void **state)
{
	char value[64];
	int fd = mkstemp(log_file);

	(void)state;
	snprintf(value, sizeof value, "info:%s", log_file);
	return fd < 0 || close(fd) || setenv("WEFT_LOG", value, 1);
}

static int remove_log(void **state)
{
	(void)state;
	return unlink(log_file);
}

/* Asked again, the client hears no sooner that the memory is free. */
static void somebody_still_uses_it(void **state)
{
	(void)state;
	handle = fake_E.open("fake", 0);
	region = live();
	for (int i = 0; i < 3; i++) {
		revoke_answer = i < 2 ? -ETIMEDOUT : 0;
		invalidate_here();
		assert_int_equal(answer, revoke_answer);
		assert_string_equal(fake_calls(), i < 2 ? "" : "up");
	}
	assert_int_equal(revoked, 3);
	assert_int_equal(peer_region_drop(region), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(same_thread_while_registering),
		TEST(between_make_and_live),
		TEST(marked_by_later_generations),
		TEST(other_thread_waits_for_live),
		TEST(other_thread_waits_for_undone),
		TEST(registration_that_waits_for_its_callback),
		TEST(live_and_dead),
		TEST(somebody_still_uses_it),
		TEST(all_generations_call_alike),
		TEST(second_caller_waits_for_the_first),
		TEST(operations_end_first),
		TEST(own_operation_is_not_waited_for),
		TEST(operation_that_invalidates_while_it_is_waited_for),
		TEST(operation_of_a_client_that_unmaps),
		TEST(released_after_the_callback),
		TEST(dereg_from_the_same_thread),
		TEST(dereg_is_waited_for),
		TEST(dereg_is_not_waited_for_by_who_unmaps),
		TEST(unknown_and_stale),
		TEST(without_callback_there_is_no_context),
		TEST(another_region_from_get_pages),
		TEST(another_region_from_acquire),
		TEST(dropped_or_unregistered_inside_the_callback),
		TEST(unregister_with_live_regions),
		TEST(unregister_waits_for_its_regions),
		TEST(unregister_during_registration),
		TEST(unregister_during_release),
		TEST(late_guest_is_waited_for),
		TEST(an_operation_that_does_not_end),
		TEST(unregister_with_an_operation_that_does_not_end),
	};

	return cmocka_run_group_tests(tests, open_log, remove_log);
}
