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

/* Nobody rings, so no byte is ever asked for. */
static const struct bell_consumer unrung = {.ring = {&w.ends, w.slot, LOG_SIZE}, .who = 5};

static enum ring_result take_any(bool fit, struct umad_record *got)
{
	uint64_t claim;

	return bell_take(&unrung, fits, &fit, got, &claim);
}

static enum ring_result take(bool fit, uint32_t n)
{
	struct umad_record want = record(n), got = {0};
	enum ring_result result = take_any(fit, &got);

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

/* Takes a record while another consumer looks at it. */
static bool is_taken(void *arg, const struct umad_record *rec)
{
	(void)rec;
	if (*(bool *)arg)
		assert_int_equal(take(true, 1), RING_OK);
	*(bool *)arg = false;
	return true;
}

static void the_slower_loses(void **state)
{
	struct umad_record want = record(2), got;
	bool once = true;
	uint64_t claim;

	(void)state;
	begin();
	push(1);
	push(2);
	assert_int_equal(bell_take(&unrung, is_taken, &once, &got, &claim), RING_OK);
	assert_memory_equal(&got, &want, sizeof got);
	assert_true(ring_is_empty(&ring));
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
			assert_true(tail <= (uint32_t)odd[i] + SIZE || tail <= 2 * SIZE);
			w.ends.tail = odd[k];
			for (unsigned n = 0; n <= SIZE; n++)
				take_any(true, &rec);
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

enum { OURS = 5, BYTES = 8 };

static struct {
	_Atomic uint32_t settled;
	uint8_t byte[BYTES];
	unsigned bytes, asked;
	bool rings_in_between, reads_in_between;
	struct bell_producer producer;
	uint32_t overrode;
} b;

static uint32_t ring_bell(void)
{
	return bell_ring(&b.producer, w.tail);
}

static uint64_t word(void)
{
	return w.ends.head;
}

static bool byte_lies(void *arg, uint8_t number)
{
	(void)arg;
	b.asked++;
	return memchr(b.byte, number, b.bytes);
}

static bool take_byte(void *arg)
{
	(void)arg;
	if (!b.bytes)
		return false;
	memmove(b.byte, b.byte + 1, --b.bytes);
	if (b.rings_in_between) {
		b.rings_in_between = false;
		push(9);
		b.overrode = ring_bell();
	}
	return true;
}

static bool bytes(void *arg)
{
	(void)arg;
	return b.bytes;
}

static const struct bell_consumer consumer = {.ring = {&w.ends, w.slot, LOG_SIZE},
	.who = OURS,
	.settled = &b.settled,
	.lies = byte_lies,
	.take = take_byte};

/* As a read does it. */
static enum ring_result read_one(void)
{
	struct umad_record rec;
	uint64_t claim;
	enum ring_result result = bell_take(&consumer, fits, &(bool){true}, &rec, &claim);

	if (result == RING_EMPTY)
		claim = bell_claim(&consumer);
	if (claim)
		bell_end(&consumer, claim);
	return result;
}

/* A consumer tries to read while the byte is on its way, once before it is there and once after. */
static void send_byte(void *arg, uint8_t number)
{
	(void)arg;
	if (b.reads_in_between) {
		assert_int_equal(read_one(), RING_COMING);
		assert_false(bell_is_readable(&consumer));
	}
	b.byte[b.bytes++] = number;
	if (b.reads_in_between) {
		assert_true(bell_is_readable(&consumer));
		assert_int_equal(read_one(), RING_OK);
	}
}

static void begin_bell(void)
{
	begin();
	memset(&b, 0, sizeof b);
	b.producer = (struct bell_producer){.ring = ring, .send = send_byte};
}

static void a_byte_while_something_is_there(void **state)
{
	(void)state;
	begin_bell();
	for (unsigned lap = 0; lap < 3; lap++) {
		assert_int_equal(read_one(), RING_EMPTY);
		for (unsigned i = 0; i < 3; i++) {
			push(i);
			assert_int_equal(ring_bell(), 0);
			assert_int_equal(b.bytes, 1);
		}
		for (unsigned i = 0; i < 3; i++) {
			assert_true(bell_is_ready(&ring));
			assert_int_equal(b.bytes, 1);
			assert_int_equal(read_one(), RING_OK);
		}
		assert_int_equal(b.bytes, 0);
		assert_false(bell_is_ready(&ring));
	}
	assert_int_equal(b.settled, 0);
	assert_int_equal(b.asked, 0);
}

/* What is read before weftd rings needs no byte. */
static void read_before_it_is_rung(void **state)
{
	(void)state;
	begin_bell();
	push(1);
	push(2);
	assert_true(bell_is_readable(&consumer));
	assert_int_equal(read_one(), RING_OK);
	assert_int_equal(read_one(), RING_OK);
	ring_bell();
	assert_int_equal(b.bytes, 0);
	push(3);
	ring_bell();
	assert_int_equal(b.bytes, 1);
	assert_int_equal(read_one(), RING_OK);
	assert_int_equal(b.bytes, 0);
}

static void read_while_the_byte_comes(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 300; n++) {
		if (!n)
			begin_bell();
		b.reads_in_between = true;
		push(n);
		ring_bell();
		assert_int_equal(b.bytes, 0);
		assert_int_equal(bell_state(word()), BELL_SILENT);
	}
}

static void rung_while_claimed(void **state)
{
	(void)state;
	begin_bell();
	push(1);
	ring_bell();
	b.rings_in_between = true;
	assert_int_equal(read_one(), RING_OK);
	assert_int_equal(b.overrode, OURS);
	assert_int_equal(b.settled, 1);
	assert_int_equal(b.bytes, 1);
	assert_int_equal(bell_state(word()), BELL_RUNG);
	assert_int_equal(read_one(), RING_OK);
	assert_int_equal(b.bytes, 0);
}

/* After an exorcism of so many. */
static uint32_t left_of(uint32_t ghosts)
{
	bell_exorcise(&b.producer, bytes, &ghosts);
	return ghosts;
}

/* taken: before it died it had taken its byte. */
static void ghost_of_a_dead_claimer(void **state)
{
	struct bell_consumer dead = consumer;
	struct umad_record rec;
	uint64_t claim;

	(void)state;
	dead.who = 9;
	for (unsigned taken = 0; taken < 2; taken++) {
		begin_bell();
		push(1);
		ring_bell();
		assert_int_equal(bell_take(&dead, fits, &(bool){true}, &rec, &claim), RING_OK);
		assert_int_not_equal(claim, 0);
		if (taken)
			take_byte(NULL);
		assert_int_equal(left_of(1), 1);
		assert_false(bell_bury(&b.producer, 8));
		assert_true(bell_bury(&b.producer, 9));
		assert_int_equal(left_of(0), 0);
		assert_int_equal(bell_state(word()), BELL_SILENT);
		assert_int_equal(left_of(1), 0);
		assert_int_equal(read_one(), RING_EMPTY);
		assert_int_equal(b.bytes, 0);
		assert_int_equal(bell_state(word()), BELL_SILENT);
	}
}

/* Each of them is found, however many there are. */
static void ghosts_of_many(void **state)
{
	uint32_t ghosts = 5; /* two had taken their bytes */

	(void)state;
	begin_bell();
	for (unsigned i = 0; i < 3; i++)
		b.byte[b.bytes++] = (uint8_t)i;
	while ((ghosts = left_of(ghosts)))
		assert_int_equal(read_one(), RING_EMPTY);
	assert_int_equal(b.bytes, 0);
}

static void scribbled_bell(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1 << 6; i++) {
		begin_bell();
		push(1);
		w.ends.head = (i >> 3 & 3) | i << 32 | (i >> 5 ? ~0ull << 35 : 0);
		ring_bell();
		read_one();
		bell_bury(&b.producer, UINT16_MAX);
		left_of(1);
		push(2);
		ring_bell();
		guards_are_whole();
	}
}

static void one_knock_until_it_is_heard(void **state)
{
	_Atomic uint32_t knocked = 0;

	(void)state;
	assert_true(ring_knock(&knocked));
	assert_false(ring_knock(&knocked));
	ring_heard(&knocked);
	assert_true(ring_knock(&knocked));
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
		cmocka_unit_test(a_byte_while_something_is_there),
		cmocka_unit_test(read_before_it_is_rung),
		cmocka_unit_test(read_while_the_byte_comes),
		cmocka_unit_test(rung_while_claimed),
		cmocka_unit_test(ghost_of_a_dead_claimer),
		cmocka_unit_test(ghosts_of_many),
		cmocka_unit_test(scribbled_bell),
		cmocka_unit_test(one_knock_until_it_is_heard),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(a_full_bucket),
		cmocka_unit_test(what_the_dead_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
