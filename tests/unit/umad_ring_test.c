// SPDX-License-Identifier: BSD-3-Clause
/*
 * mad/ring.h, bell.h and tids.h by one thread: laps, what does not fit, positions that somebody
 * has scribbled over, the byte in the socket, transactions in flight.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mad/umad_page.h"

enum { LOG_SIZE = 2, SIZE = 1 << LOG_SIZE };

static struct {
	struct ring_ends ends;
	struct ring_slot guard_before, slot[SIZE], guard_after;
	uint64_t tail, head;
} w;

static const struct ring_ref ring = {.ends = &w.ends, .slots = w.slot, .log_size = LOG_SIZE};

static void begin(void)
{
	memset(&w, 0, sizeof w);
	memset(&w.guard_before, 0xa5, sizeof w.guard_before);
	memset(&w.guard_after, 0xa5, sizeof w.guard_after);
}

static void guards_are_whole(void)
{
	static struct ring_slot whole;

	memset(&whole, 0xa5, sizeof whole);
	assert_memory_equal(&w.guard_before, &whole, sizeof whole);
	assert_memory_equal(&w.guard_after, &whole, sizeof whole);
}

static struct umad_record record(uint32_t n)
{
	struct umad_record r = {.hdr = {.id = n}, .length = UMAD_MAD_BYTES};

	memset(r.mad, (int)n, sizeof r.mad);
	return r;
}

static enum ring_result push(uint32_t n)
{
	const struct umad_record r = record(n);

	return ring_push(&ring, &w.tail, &r);
}

static bool fits(void *arg, const struct umad_record *rec)
{
	(void)rec;
	return *(bool *)arg;
}

static enum ring_result take(bool fit, uint32_t n)
{
	struct umad_record want = record(n), got = {0};
	enum ring_result result = ring_take(&ring, fits, &fit, &got);

	if (result == RING_OK || result == RING_UNFIT)
		assert_memory_equal(&got, &want, sizeof got);
	return result;
}

static void laps_and_full(void **state)
{
	uint32_t pushed = 0, taken = 0;

	(void)state;
	begin();
	assert_int_equal(take(true, 0), RING_EMPTY);
	for (unsigned lap = 0; lap < 5; lap++) {
		while (push(pushed) == RING_OK)
			pushed++;
		assert_int_equal(push(pushed), RING_FULL);
		assert_int_equal(pushed - taken, SIZE);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(take(true, taken++), RING_OK);
	}
	while (taken < pushed)
		assert_int_equal(take(true, taken++), RING_OK);
	assert_true(ring_is_empty(&ring));
	guards_are_whole();
}

static void what_does_not_fit_stays(void **state)
{
	(void)state;
	begin();
	push(7);
	push(8);
	assert_int_equal(take(false, 7), RING_UNFIT);
	assert_int_equal(take(false, 7), RING_UNFIT);
	assert_int_equal(take(true, 7), RING_OK);
	assert_int_equal(take(false, 8), RING_UNFIT);
}

static void the_slower_loses(void **state)
{
	struct umad_record rec;
	uint64_t pos;

	(void)state;
	begin();
	push(1);
	assert_int_equal(ring_copy(&ring, &pos, &rec), RING_OK);
	assert_int_equal(take(true, 1), RING_OK);
	assert_false(ring_still(&ring, pos));
	assert_false(ring_swap(&ring, pos));
}

/* Others may write anything, at any time. */
static void scribbled_positions(void **state)
{
	static const uint64_t odd[] = {
		1, SIZE, SIZE + 1, 1ull << 32, 1ull << 63, ~0ull, ~0ull - SIZE};
	struct umad_record rec;

	(void)state;
	for (unsigned i = 0; i < sizeof odd / sizeof odd[0]; i++)
		for (unsigned k = 0; k < sizeof odd / sizeof odd[0]; k++) {
			uint64_t head = 0, tail = 0;

			begin();
			w.ends.head = odd[i];
			w.ends.tail = odd[k];
			for (unsigned n = 0; n <= SIZE; n++)
				ring_pop(&ring, &head, &rec);
			assert_true(head <= SIZE);
			w.ends.head = odd[i];
			for (unsigned n = 0; n <= 2 * SIZE; n++)
				ring_push(&ring, &tail, &(struct umad_record){0});
			/* No more than a head can have made room for. */
			assert_true(tail <= odd[i] + SIZE || tail <= 2 * SIZE);
			w.ends.tail = odd[k];
			for (unsigned n = 0; n <= SIZE; n++)
				ring_take(&ring, fits, &(bool){true}, &rec);
			guards_are_whole();
		}
}

static void broken_is_said(void **state)
{
	struct umad_record rec;

	(void)state;
	begin();
	w.ends.tail = SIZE + 1;
	assert_int_equal(ring_pop(&ring, &w.head, &rec), RING_BROKEN);
	assert_int_equal(take(true, 0), RING_BROKEN);
	begin();
	w.ends.head = 1;
	assert_int_equal(push(0), RING_BROKEN);
	begin();
	assert_int_equal(ring_pop(&ring, &w.head, &rec), RING_EMPTY);
}

static void room_is_told_at_half(void **state)
{
	_Atomic uint32_t held = 0;

	(void)state;
	begin();
	for (uint32_t i = 0; i < SIZE; i++)
		assert_int_equal(push(i), RING_OK);
	assert_false(ring_tells(&ring, &held));
	assert_false(ring_hold(&ring, &held, w.tail));
	assert_false(ring_tells(&ring, &held));
	take(true, 0);
	assert_false(ring_tells(&ring, &held)); /* 3 of 4 */
	assert_true(ring_hold(&ring, &held, w.tail));
	take(true, 1);
	assert_true(ring_tells(&ring, &held));
	take(true, 2);
	take(true, 3);
	assert_true(ring_tells(&ring, &held));
	ring_release(&held);
	assert_false(ring_tells(&ring, &held));
}

/* ---- the bell ---- */

static struct {
	_Atomic uint64_t bell;
	_Atomic uint32_t settled;
	unsigned bytes;
	bool more, rings_in_between;
	struct bell_producer producer;
	uint32_t overrode;
} b;

static void send_byte(void *arg)
{
	(void)arg;
	b.bytes++;
}

static bool more(void *arg)
{
	(void)arg;
	if (b.rings_in_between)
		b.overrode = bell_ring(&b.producer);
	return b.more;
}

static bool take_byte(void *arg)
{
	(void)arg;
	return b.bytes && b.bytes--;
}

static bool bytes(void *arg)
{
	(void)arg;
	return b.bytes;
}

static const struct bell_consumer consumer = {
	.who = 5, .settled = &b.settled, .more = more, .take = take_byte};

static void begin_bell(void)
{
	memset(&b, 0, sizeof b);
	b.producer = (struct bell_producer){.bell = &b.bell, .send = send_byte};
}

static void one_byte_per_ringing(void **state)
{
	(void)state;
	begin_bell();
	bell_quiet(&b.bell, &consumer);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(bell_ring(&b.producer), 0);
	assert_int_equal(b.bytes, 1);
	b.more = true;
	bell_quiet(&b.bell, &consumer);
	assert_int_equal(b.bytes, 1);
	b.more = false;
	bell_quiet(&b.bell, &consumer);
	assert_int_equal(b.bytes, 0);
	bell_quiet(&b.bell, &consumer);
	bell_ring(&b.producer);
	assert_int_equal(b.bytes, 1);
	assert_int_equal(b.settled, 0);
}

static void rung_while_claimed(void **state)
{
	(void)state;
	for (unsigned found = 0; found < 2; found++) {
		begin_bell();
		bell_ring(&b.producer);
		b.rings_in_between = true;
		b.more = found;
		bell_quiet(&b.bell, &consumer);
		assert_int_equal(b.overrode, consumer.who);
		assert_int_equal(b.settled, 1);
		assert_int_equal(b.bytes, 1);
		assert_int_equal(bell_state(b.bell), BELL_RUNG);
	}
}

/* taken: before it died it had taken its byte. */
static void ghost_of_a_dead_claimer(void **state)
{
	uint64_t claim;

	(void)state;
	for (unsigned taken = 0; taken < 2; taken++) {
		begin_bell();
		bell_ring(&b.producer);
		assert_true(bell_claim(&b.bell, 9, &claim));
		if (taken)
			take_byte(NULL);
		assert_int_equal(bell_bury(&b.producer, 8), 0);
		assert_int_equal(bell_bury(&b.producer, 9), 9);
		assert_false(bell_exorcise(&b.producer, bytes));
		bell_quiet(&b.bell, &consumer);
		assert_int_equal(bell_state(b.bell), BELL_SILENT);
		assert_int_equal(b.bytes, !taken);
		assert_true(bell_exorcise(&b.producer, bytes));
		bell_quiet(&b.bell, &consumer);
		assert_int_equal(b.bytes, 0);
		assert_int_equal(bell_state(b.bell), BELL_SILENT);
	}
}

static void scribbled_bell(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		begin_bell();
		b.bell = (i >> 2 ? ~0ull << 2 : 0) | (i & 3);
		bell_ring(&b.producer);
		bell_quiet(&b.bell, &consumer);
		bell_bury(&b.producer, UINT32_MAX);
		bell_silence(&b.bell);
		assert_true(bell_exorcise(&b.producer, bytes));
	}
}

/* ---- transactions ---- */

static void duplicates(void **state)
{
	struct tids *t = calloc(1, sizeof *t);
	uint64_t a = tids_hash(1, 0x81, false, 0), answer = tids_hash(1, 0x81, true, 4);

	(void)state;
	assert_non_null(t);
	assert_int_equal(tids_enter(t, a, 1), TIDS_ENTERED);
	assert_int_equal(tids_enter(t, a, 1), TIDS_DUPLICATE);
	assert_int_equal(tids_enter(t, a, 2), TIDS_DUPLICATE);
	assert_int_equal(tids_enter(t, answer, 1), TIDS_ENTERED);
	assert_int_equal(tids_enter(t, tids_hash(1, 0x81, true, 5), 1), TIDS_ENTERED);
	assert_int_equal(tids_enter(t, tids_hash(1, 0x01, false, 0), 1), TIDS_ENTERED);
	tids_strike(t, a, 2); /* not that one's */
	assert_int_equal(tids_enter(t, a, 1), TIDS_DUPLICATE);
	tids_strike(t, a, 1);
	tids_strike(t, a, 1);
	assert_int_equal(tids_enter(t, a, 1), TIDS_ENTERED);
	free(t);
}

static void a_full_bucket(void **state)
{
	struct tids *t = calloc(1, sizeof *t);

	(void)state;
	assert_non_null(t);
	for (uint64_t i = 1; i <= TIDS_BUCKET; i++)
		assert_int_equal(tids_enter(t, i, 1), TIDS_ENTERED);
	assert_int_equal(tids_enter(t, TIDS_BUCKET + 1, 1), TIDS_UNLISTED);
	assert_int_equal(tids_enter(t, 1, 1), TIDS_DUPLICATE);
	tids_strike(t, 3, 1);
	assert_int_equal(tids_enter(t, TIDS_BUCKET + 1, 1), TIDS_ENTERED);
	free(t);
}

static bool is_four(void *arg, uint64_t entry)
{
	(void)arg;
	return (entry & TIDS_KEY_MASK) == 4;
}

static void what_the_dead_entered(void **state)
{
	struct tids *t = calloc(1, sizeof *t);

	(void)state;
	assert_non_null(t);
	tids_enter(t, 3, 1);
	tids_enter(t, 4, 1);
	tids_enter(t, 5, 2);
	tids_sweep(t, 1, is_four, NULL);
	assert_int_equal(tids_enter(t, 3, 3), TIDS_ENTERED);
	assert_int_equal(tids_enter(t, 4, 3), TIDS_DUPLICATE);
	assert_int_equal(tids_enter(t, 5, 3), TIDS_DUPLICATE);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(laps_and_full),
		cmocka_unit_test(what_does_not_fit_stays),
		cmocka_unit_test(the_slower_loses),
		cmocka_unit_test(scribbled_positions),
		cmocka_unit_test(broken_is_said),
		cmocka_unit_test(room_is_told_at_half),
		cmocka_unit_test(one_byte_per_ringing),
		cmocka_unit_test(rung_while_claimed),
		cmocka_unit_test(ghost_of_a_dead_claimer),
		cmocka_unit_test(scribbled_bell),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(a_full_bucket),
		cmocka_unit_test(what_the_dead_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
