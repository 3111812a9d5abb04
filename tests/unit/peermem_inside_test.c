// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two threads inside copy functions of one region, both of which find its memory gone; and one that
 * stays inside until who deregisters has given up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>

#include "base/futex.h"
#include "peermem/bytes.h"
#include "peermem/region.h"
#include "peermem/registry.h"
#include "peermem/wait.h"
#include "peermem/window.h"
#include "tests/unit/peermem_fake.h"

enum { MANY = 4 << 20 }; /* copied by several calls */

static void *handle;
static struct peer_region *region;
static unsigned revoked;
static int answer; /* of the other thread's callback */
static sem_t asleep, go;

static void tell_and_sleep(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
	sem_post(&asleep);
	futex_wait_shared(word, seen, ns);
}

static const struct peer_time telling = {clock_ns, tell_and_sleep};

static int count_revoked(struct peer_region *r)
{
	(void)r;
	revoked++;
	return 0;
}

static void *invalidate_inside(void *arg)
{
	struct peer_guest op;

	(void)arg;
	assert_true(peer_region_enter(region, &op, "copy_to"));
	answer = fake_E.invalidate(handle, fake.context);
	peer_region_leave(region, &op);
	return NULL;
}

static void make_region(uint64_t length)
{
	const struct peer_request q = {
		.addr = 0x7000000, .length = length, .revoke = count_revoked};
	struct peer_trace trace;

	peer_time_use(&telling);
	sem_init(&asleep, 0, 0);
	sem_init(&go, 0, 0);
	revoked = 0;
	assert_int_equal(peer_generation_use('W'), 0);
	handle = fake_E.open("fake", 0);
	assert_int_equal(peer_region_make(&q, &region, &trace), 0);
	assert_int_equal(peer_region_live(region), 0);
	fake_calls();
}

static void make_live(void)
{
	fake_reset();
	make_region(0x2000);
}

/* Each would wait for the other's operation. */
static void two_operations_that_both_invalidate(void **state)
{
	struct peer_guest op;
	pthread_t other;

	(void)state;
	make_live();
	assert_true(peer_region_enter(region, &op, "copy_from"));
	assert_int_equal(pthread_create(&other, NULL, invalidate_inside, NULL), 0);
	sem_wait(&asleep);
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	pthread_join(other, NULL);
	assert_int_equal(answer, 0);
	assert_int_equal(revoked, 1);
	assert_string_equal(fake_calls(), "up");
	assert_int_equal(peer_region_drop(region), -EDEADLK);
	peer_region_leave(region, &op);
	assert_int_equal(peer_region_drop(region), 0);
	assert_string_equal(fake_calls(), "r");
	ib_unregister_peer_memory_client(handle);
}

/* ---- time that passes by sleeping alone ---- */

static uint64_t fake_now;

static uint64_t read_fake(void)
{
	return fake_now;
}

static void pass(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
	(void)word;
	(void)seen;
	fake_now += ns;
}

static const struct peer_time passing = {read_fake, pass};

static void *stay_inside(void *arg)
{
	struct peer_guest op;

	(void)arg;
	assert_true(peer_region_enter(region, &op, "copy_to"));
	sem_post(&asleep);
	sem_wait(&go);
	peer_region_leave(region, &op);
	return NULL;
}

/* It leaves it to the callback to give the pages back. */
static void callback_after_a_dereg_that_gave_up(void **state)
{
	pthread_t other;

	(void)state;
	make_live();
	assert_int_equal(pthread_create(&other, NULL, stay_inside, NULL), 0);
	sem_wait(&asleep);
	peer_time_use(&passing);
	assert_int_equal(peer_region_await_ops(region), -ETIMEDOUT);
	assert_int_equal(fake_now, PEER_GIVE_UP_NS);
	assert_int_equal(peer_region_drop(region), -ETIMEDOUT);
	sem_post(&go);
	pthread_join(other, NULL);
	assert_int_equal(peer_region_await_ops(region), 0);
	assert_string_equal(fake_calls(), "");
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	assert_string_equal(fake_calls(), "up");
	assert_int_equal(peer_region_drop(region), 0);
	assert_string_equal(fake_calls(), "r");
	ib_unregister_peer_memory_client(handle);
}

/* ---- what the log says a thread is in ---- */

static const char *was_in[3];
static unsigned calls;

static void note(void)
{
	if (calls < 3)
		was_in[calls++] = region->guests->in;
}

static int note_to(void *priv, uint64_t off, const void *src, size_t n)
{
	(void)priv, (void)off, (void)src, (void)n;
	note();
	return 0;
}

static int note_from(void *priv, uint64_t off, void *dst, size_t n)
{
	(void)priv, (void)off;
	memset(dst, 0, n);
	note();
	return 0;
}

static int note_flush(void *priv)
{
	(void)priv;
	note();
	return 0;
}

/* A region of n bytes, all in one window, whose address is returned. */
static uint64_t make_in_window(const struct weft_dma_ops *ops, uint64_t n)
{
	uint64_t bus = 0;

	fake_reset();
	calls = 0;
	assert_int_equal(weft_dma_window_add(&bus, n, 0, ops, NULL), 0);
	fake.entries = 1;
	fake.entry[0].address = bus;
	fake.entry[0].length = (unsigned)n;
	make_region(n);
	return bus;
}

static void end_in_window(uint64_t bus)
{
	assert_int_equal(peer_region_drop(region), 0);
	ib_unregister_peer_memory_client(handle);
	assert_int_equal(weft_dma_window_del(bus), 0);
}

/* Without a function for atomics they are copies, and named so. */
static void an_atomic_by_copies(void **state)
{
	static const struct weft_dma_ops ops = {sizeof ops, note_to, note_from, note_flush, NULL};
	static const char *const want[] = {"copy_from", "copy_to", "flush"};
	const uint64_t bus = make_in_window(&ops, 0x4000);
	uint64_t old;

	(void)state;
	assert_int_equal(peer_bytes_update(region, 0, true, 1, 0, &old), 0);
	assert_int_equal(calls, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(was_in[i], want[i]);
	end_in_window(bus);
}

/* ---- how much longer a thread stays inside ---- */

static int wait_until_gone(void *priv, uint64_t off, void *dst, size_t n)
{
	(void)priv, (void)off, (void)dst, (void)n;
	calls++;
	sem_post(&asleep);
	while (!peer_region_is_gone(region))
		sched_yield();
	return 0;
}

static void *read_all(void *arg)
{
	static uint8_t to[MANY];

	(void)arg;
	answer = peer_bytes_read(region, 0, to, MANY);
	return NULL;
}

/* Who takes the memory away waits for the call that runs, and for none that would follow. */
static void one_call_more(void **state)
{
	static const struct weft_dma_ops ops = {
		sizeof ops, note_to, wait_until_gone, note_flush, NULL};
	const uint64_t bus = make_in_window(&ops, MANY);
	pthread_t other;

	(void)state;
	peer_time_use(NULL);
	assert_int_equal(pthread_create(&other, NULL, read_all, NULL), 0);
	sem_wait(&asleep);
	assert_int_equal(fake_E.invalidate(handle, fake.context), 0);
	assert_int_equal(calls, 1);
	pthread_join(other, NULL);
	assert_int_equal(calls, 1);
	assert_int_equal(answer, -ENOENT);
	end_in_window(bus);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_operations_that_both_invalidate),
		cmocka_unit_test(callback_after_a_dereg_that_gave_up),
		cmocka_unit_test(an_atomic_by_copies),
		cmocka_unit_test(one_call_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
