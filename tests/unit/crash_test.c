// SPDX-License-Identifier: BSD-3-Clause
/* The power-failure simulator: what may be left by which rule, the search, the owner. */
#include "tests/unit/crash_journals.h"

/* ---- rules ---- */

static void a_write_is_pending_word_by_word(void **state)
{
	(void)state;
	region();
	write_words(QP, 0, 1, 3, 5);
	assert_int_equal(pending_at_end(&direct), 3);
	assert_int_equal(images_at_end(&direct), 8);
}

static void a_read_pushes_its_queue_pair(void **state)
{
	(void)state;
	region();
	write_words(QP, 0, 1, 3, 5);
	write_words(QP2, 0, 5, 2, 5);
	push(QP, 1, JOURNAL_READ, 15, 1);
	assert_int_equal(pending_at_end(&direct), 2);
	assert_int_equal(pending_at_end(&ddio), 5);
}

static void a_read_of_another_process_pushes_nothing(void **state)
{
	struct journal_record r = request(QP, 1, 1);

	(void)state;
	region();
	write_words(QP, 0, 1, 3, 5);
	r.pid = OTHER;
	push_as(r, JOURNAL_READ, 0, 1);
	assert_int_equal(pending_at_end(&direct), 3);
}

static void a_flush_pushes_its_range(void **state)
{
	(void)state;
	region();
	write_words(QP, 0, 1, 3, 5);
	push(QP, 1, JOURNAL_FLUSH_PERSISTENT, 2, 1);
	assert_int_equal(pending_at_end(&ddio), 2);
}

/* ... and every word of which it names a byte, if it begins or ends in the middle of one. */
static void a_flush_pushes_the_words_that_it_touches(void **state)
{
	static const struct {
		unsigned from, len, left; /* from BASE on; of words 1, 2 and 3 */
	} cases[] = {{8, 8, 2}, {15, 1, 2}, {12, 4, 2}, {12, 5, 1}, {15, 2, 1}, {9, 15, 1},
		{15, 10, 0}, {23, 2, 1}, {24, 1, 2}, {31, 1, 2}, {0, 8, 3}, {32, 8, 3}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct journal_record r = request(QP, 1, 1);

		if (i)
			begin(state);
		region();
		write_words(QP, 0, 1, 3, 5);
		push_bytes(r, JOURNAL_FLUSH_PERSISTENT, cases[i].from, cases[i].len);
		assert_int_equal(pending_at_end(&ddio), cases[i].left);
		if (i + 1 < sizeof cases / sizeof *cases)
			end(state);
	}
}

/* rpma_flush() of n words, for persistence or not; qpn 0: not known. */
static void asked_on(uint32_t qpn, enum journal_push how, uint64_t wr_id, unsigned n)
{
	add((struct journal_record){.kind = JOURNAL_ASKED,
		    .pid = CLIENT,
		    .qpn = qpn,
		    .push = how,
		    .wr_id = wr_id,
		    .len = 8 * n},
		NULL);
}

static void asked(enum journal_push how, uint64_t wr_id, unsigned n)
{
	asked_on(0, how, wr_id, n);
}

/* How many words are pending at the end. */
static uint64_t left_pending(const struct crash_rules *rules)
{
	struct crash_state s;
	uint64_t n;

	assert_int_equal(crash_state_at(&s, &j, rules,
				 (struct crash_point){.record = journal_count(&j)}, false),
		0);
	n = s.n_pending;
	crash_state_free(&s);
	return n;
}

static void a_read_pushes_the_range_that_was_asked(void **state)
{
	const struct crash_rules plain = {0}, ranges = {.ranges = true},
				 both = {.ranges = true, .ddio = true};

	(void)state;
	region();
	write_words(QP, 0, 0, 8, 1);
	push(QP, 1, JOURNAL_READ, 0, 1); /* not by rpma_flush() */
	assert_int_equal(left_pending(&plain), 0);
	assert_int_equal(left_pending(&ranges), 8);
	asked(JOURNAL_FLUSH_VISIBLE, 0, 8);
	push(QP, 2, JOURNAL_READ, 0, 1);
	assert_int_equal(left_pending(&ranges), 8);
	asked(JOURNAL_FLUSH_PERSISTENT, 7, 8); /* another request's */
	push(QP, 3, JOURNAL_READ, 0, 1);
	assert_int_equal(left_pending(&ranges), 8);
	asked(JOURNAL_FLUSH_PERSISTENT, 0, 3);
	push(QP, 4, JOURNAL_READ, 2, 1);
	assert_int_equal(left_pending(&ranges), 5);
	assert_int_equal(left_pending(&both), 8);
	asked(JOURNAL_FLUSH_PERSISTENT, 0, 3);
	asked(JOURNAL_FLUSH_PERSISTENT, 0, 2);
	push(QP, 5, JOURNAL_READ, 5, 1);
	push(QP, 6, JOURNAL_READ, 0, 1);
	assert_int_equal(left_pending(&ranges), 0);
}

/* The range that was asked begins and ends where it does, not at words. */
static void what_was_asked_may_begin_in_a_word(void **state)
{
	const struct crash_rules ranges = {.ranges = true};

	(void)state;
	region();
	write_words(QP, 0, 0, 8, 1);
	asked(JOURNAL_FLUSH_PERSISTENT, 0, 2);
	push_bytes(request(QP, 1, 1), JOURNAL_READ, 12, 8); /* 12 to 28 */
	assert_int_equal(left_pending(&ranges), 5);
}

/* READs are carried out some time after the calls, and those of queue pairs in any order. */
static void a_read_is_of_a_call_for_its_queue_pair(void **state)
{
	const struct crash_rules ranges = {.ranges = true};

	(void)state;
	region();
	write_words(QP, 0, 0, 8, 1);
	asked_on(QP, JOURNAL_FLUSH_PERSISTENT, 0, 3);
	asked_on(QP + 1, JOURNAL_FLUSH_PERSISTENT, 0, 8);
	asked_on(QP, JOURNAL_FLUSH_PERSISTENT, 0, 1);
	push(QP + 1, 1, JOURNAL_READ, 0, 1);
	assert_int_equal(left_pending(&ranges), 8);
	push(QP, 1, JOURNAL_READ, 0, 1);
	assert_int_equal(left_pending(&ranges), 5);
	push(QP, 2, JOURNAL_READ, 7, 1);
	assert_int_equal(left_pending(&ranges), 4);
}

static void a_flush_for_visibility_pushes_nothing(void **state)
{
	(void)state;
	region();
	write_words(QP, 0, 1, 3, 5);
	push(QP, 1, JOURNAL_FLUSH_VISIBLE, 0, WORDS);
	assert_int_equal(pending_at_end(&direct), 3);
}

/* Of one word the order holds: old, first, second; and not first if second is durable. */
static void values_of_a_word_keep_their_order(void **state)
{
	(void)state;
	region();
	write_words(QP, 0, 1, 1, 5);
	write_words(QP2, 0, 1, 1, 6);
	assert_int_equal(images_at_end(&direct), 3);
	push(QP2, 1, JOURNAL_READ, 0, 1);
	assert_int_equal(images_at_end(&direct), 1);
}

static void what_is_durable_stays_under_later_writes(void **state)
{
	struct crash_state s;
	uint64_t image[WORDS];
	uint8_t none[WORDS] = {0};

	(void)state;
	region();
	write_words(QP, 0, 1, 1, 5);
	push(QP, 1, JOURNAL_READ, 0, 1);
	write_words(QP, 2, 1, 1, 6);
	s = at_end(&direct);
	assert_int_equal(s.n_pending, 1);
	crash_image(&s, none, 0, image);
	assert_int_equal(image[1], 5);
	crash_state_free(&s);
}

static void parts_of_words_are_merged(void **state)
{
	struct journal_record r = request(QP, 0, 0);
	struct crash_state s;
	uint64_t image[WORDS];
	uint8_t all[WORDS] = {1, 1, 1};

	(void)state;
	region();
	r.addr = BASE + 6;
	r.len = 4;
	add(r, "\x11\x22\x33\x44");
	s = at_end(&direct);
	assert_int_equal(s.n_pending, 2);
	crash_image(&s, all, 0, image);
	assert_memory_equal((char *)image + 6, "\x11\x22\x33\x44", 4);
	assert_int_equal(((char *)image)[5], 0);
	crash_state_free(&s);
}

static void the_owner_persists_what_it_sees(void **state)
{
	const uint64_t seen[] = {5, 5, 9};

	(void)state;
	region();
	write_words(QP, 0, 1, 2, 5);
	write_words(QP2, 0, 8, 1, 5);
	persist(1, 3, seen); /* the 9 is its own */
	assert_int_equal(pending_at_end(&ddio), 1);
}

/* While it is at it, its own stores may be there or not. */
static void persisting_takes_its_time(void **state)
{
	const uint64_t seen[] = {0, 9};
	struct crash_state s;

	(void)state;
	region();
	persist(1, 2, seen);
	assert_int_equal(
		crash_state_at(&s, &j, &ddio, (struct crash_point){1, .during = true}, false), 0);
	assert_int_equal(s.n_pending, 1);
	assert_int_equal(s.pending[0].word, 2);
	crash_state_free(&s);
	assert_int_equal(pending_at_end(&ddio), 0);
}

/* ---- what may be overtaken ---- */

/* A write, a push, and a last request that was posted when `seen` were known to be over. */
static uint64_t overtaken(
	enum journal_push how, enum ibv_wr_opcode opcode, bool fenced, uint32_t seen)
{
	struct journal_record r = request(QP, 2, seen);

	region();
	write_words(QP, 0, 1, 3, 5);
	push_as(request(QP, 1, 0), how, 1, 3);
	r.opcode = opcode;
	r.fenced = fenced;
	write_as(r, 8, 1, 1);
	return pending_at_end(&direct);
}

static void a_write_overtakes_a_read(void **state)
{
	(void)state;
	assert_int_equal(overtaken(JOURNAL_READ, IBV_WR_RDMA_WRITE, false, 0), 4);
}

static void a_fence_holds_it_back(void **state)
{
	(void)state;
	assert_int_equal(overtaken(JOURNAL_READ, IBV_WR_RDMA_WRITE, true, 0), 1);
}

static void so_does_a_completion(void **state)
{
	(void)state;
	assert_int_equal(overtaken(JOURNAL_READ, IBV_WR_RDMA_WRITE, false, 2), 1);
}

static void an_atomic_stays_behind_a_flush(void **state)
{
	(void)state;
	assert_int_equal(overtaken(JOURNAL_FLUSH_PERSISTENT, IBV_WR_ATOMIC_WRITE, false, 0), 1);
}

static void a_write_does_not(void **state)
{
	(void)state;
	assert_int_equal(overtaken(JOURNAL_FLUSH_PERSISTENT, IBV_WR_RDMA_WRITE, false, 0), 4);
}

static void an_atomic_overtakes_a_read(void **state)
{
	(void)state;
	assert_int_equal(overtaken(JOURNAL_READ, IBV_WR_ATOMIC_WRITE, false, 0), 4);
}

/* A fenced request in between waited for the READ, and the last one goes after it. */
static void a_fence_in_between_counts(void **state)
{
	struct journal_record fenced = request(QP, 2, 0), last = request(QP, 3, 0);

	(void)state;
	region();
	write_words(QP, 0, 1, 3, 5);
	push_as(request(QP, 1, 0), JOURNAL_READ, 1, 3);
	fenced.fenced = true;
	write_as(fenced, 8, 1, 1);
	write_as(last, 9, 1, 1);
	assert_int_equal(pending_at_end(&direct), 2);
}

/* ---- regions ---- */

static void regions_that_overlap_are_one(void **state)
{
	uint64_t bytes[WORDS];
	struct crash_state s;

	(void)state;
	region();
	write_words(QP, 0, 8, 2, 5);
	memset(bytes, 0, sizeof bytes);
	bytes[0] = bytes[1] = 5; /* what is there, seen from word 8 on */
	bytes[2] = 9;            /* the owner's own */
	add((struct journal_record){.kind = JOURNAL_REGION, .addr = BASE + 64, .len = sizeof bytes},
		bytes);
	s = at_end(&direct);
	assert_int_equal(s.regions[0].addr, BASE);
	assert_int_equal(s.regions[0].words, 8 + WORDS);
	assert_int_equal(s.n_pending, 3);
	assert_int_equal(s.pending[2].word, 10);
	push(QP, 1, JOURNAL_READ, 0, 1);
	crash_state_free(&s);
	assert_int_equal(pending_at_end(&direct), 1);
}

/* ---- the search ---- */

/* A commit in word 0 needs words 1 to 4. */
static int commit_needs_data(
	void *arg, const struct crash_state *s, struct crash_point at, const uint8_t *keep)
{
	uint64_t image[WORDS];

	(void)at;
	++*(unsigned *)arg;
	crash_image(s, keep, 0, image);
	for (int i = 1; image[0] && i <= 4; i++)
		if (image[i] != 5)
			return 1;
	return 0;
}

static int search(struct crash_search *q, unsigned *calls, uint8_t **keep, struct crash_state *s)
{
	q->check = commit_needs_data;
	q->arg = calls;
	*s = at_end(&direct);
	return crash_search_point(q, s, (struct crash_point){journal_count(&j) - 1}, keep);
}

static void the_search_finds_the_least(void **state)
{
	struct crash_search q = {.images = 64};
	unsigned calls = 0, n_lost = 0;
	struct crash_state s;
	uint8_t *keep, lost[WORDS];

	(void)state;
	region();
	write_words(QP, 0, 8, 4, 7); /* has nothing to do with it */
	write_words(QP, 1, 1, 4, 5);
	write_words(QP, 2, 0, 1, 1);
	assert_int_equal(search(&q, &calls, &keep, &s), 1);
	crash_find_lost(&s, keep, lost);
	for (uint64_t i = 0; i < s.n_pending; i++) {
		if (!lost[i])
			continue;
		n_lost++;
		assert_in_range(s.pending[i].word, 1, 4);
	}
	assert_int_equal(n_lost, 1);
	for (uint64_t i = 0; i < s.n_pending; i++) {
		if (s.pending[i].word >= 8)
			assert_int_equal(keep[i], CRASH_EITHER);
		if (s.pending[i].word == 0)
			assert_int_equal(keep[i], CRASH_KEPT);
	}
	free(keep);
	crash_state_free(&s);
	crash_search_end(&q);
}

/* One write stays hidden under another, which alone is needed. */
static void what_is_hidden_need_not_be_kept(void **state)
{
	struct crash_search q = {.images = 64};
	unsigned calls = 0, kept = 0;
	struct crash_state s;
	uint8_t *keep;

	(void)state;
	region();
	write_words(QP, 0, 1, 4, 5);
	write_words(QP, 1, 0, 1, 1);
	write_words(QP, 2, 0, 1, 2);
	for (unsigned w = 8; w < WORDS; w++)
		write_words(QP, w, w, 1, 7);
	assert_int_equal(search(&q, &calls, &keep, &s), 1);
	for (uint64_t i = 0; i < s.n_pending; i++) {
		kept += keep[i] == CRASH_KEPT && s.pending[i].word == 0;
		if (s.pending[i].word >= 8)
			assert_int_equal(keep[i], CRASH_EITHER);
	}
	assert_int_equal(kept, 1);
	free(keep);
	crash_state_free(&s);
	crash_search_end(&q);
}

static void all_images_once(void **state)
{
	struct crash_search q = {.exhaustive = true};
	unsigned calls = 0;
	struct crash_state s;
	uint8_t *keep;

	(void)state;
	region();
	write_words(QP, 0, 1, 4, 5);
	write_words(QP, 1, 1, 1, 6); /* another value, or the same: 3 * 8 images */
	assert_int_equal(search(&q, &calls, &keep, &s), 0);
	assert_int_equal(calls, 24);
	assert_false(q.sampled);
	/* What was found good is not looked at again. */
	assert_int_equal(
		crash_search_point(&q, &s, (struct crash_point){journal_count(&j) - 1}, &keep), 0);
	assert_int_equal(calls, 24);
	crash_state_free(&s);
	crash_search_end(&q);
}

static void the_correct_order_passes(void **state)
{
	struct crash_search q = {.exhaustive = true};
	unsigned calls = 0;
	struct crash_state s;
	uint8_t *keep;

	(void)state;
	region();
	write_words(QP, 0, 1, 4, 5);
	push(QP, 1, JOURNAL_READ, 0, 1);
	write_words(QP, 2, 0, 1, 1);
	assert_int_equal(search(&q, &calls, &keep, &s), 0);
	assert_int_equal(calls, 2);
	crash_state_free(&s);
	crash_search_end(&q);
}

static void too_many_for_all(void **state)
{
	struct crash_search q = {.exhaustive = true};
	unsigned calls = 0;
	struct crash_state s;
	uint8_t *keep;

	(void)state;
	region();
	write_words(QP, 0, 0, 12, 1);
	write_words(QP, 1, 0, 12, 2);
	write_words(QP, 2, 0, 12, 3); /* 4 to the power of 12 */
	assert_int_equal(search(&q, &calls, &keep, &s), -E2BIG);
	crash_state_free(&s);
	crash_search_end(&q);
}

/* The same value again makes no other image, and so does not count. */
static void the_same_again(void **state)
{
	struct crash_search q = {.images = 8};
	unsigned calls = 0;
	struct crash_state s;
	uint8_t *keep;

	(void)state;
	region();
	write_words(QP, 0, 1, 3, 0); /* what is there */
	write_words(QP, 1, 1, 3, 7);
	write_words(QP, 2, 1, 3, 7);
	assert_int_equal(search(&q, &calls, &keep, &s), 0);
	assert_int_equal(crash_images(&s), 8);
	assert_int_equal(calls, 8);
	assert_false(q.sampled);
	crash_state_free(&s);
	crash_search_end(&q);
}

/* ---- the owner ---- */

/* The owner's side: its bytes and the place of its record belong together. */
static void the_owner_notes_its_regions(void **state)
{
	static uint64_t memory[WORDS] = {[3] = 33};
	struct journal_record r = {.kind = JOURNAL_REGION,
		.owner = getpid(),
		.addr = (uintptr_t)memory,
		.len = sizeof memory,
		.data_len = sizeof memory};
	struct crash_owner o = {.j = j};
	const struct journal_record *got;

	(void)state;
	r.data = store(memory, sizeof memory);
	assert_non_null(journal_add(&j, &r, JOURNAL_DONE));
	crash_owner_persist(&o, (uintptr_t)memory - 8, 40);
	crash_owner_persist(&o, (uintptr_t)memory - 8, 8); /* beside it */
	assert_int_equal(journal_count(&j), 2);
	got = journal_at(&j, 1);
	assert_int_equal(got->kind, JOURNAL_PERSIST);
	assert_int_equal(got->addr, (uintptr_t)memory);
	assert_int_equal(got->len, 32);
	assert_memory_equal(journal_bytes(&j, got), memory, 32);
	free(o.ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_write_is_pending_word_by_word),
		RULE(a_read_pushes_its_queue_pair),
		RULE(a_read_of_another_process_pushes_nothing),
		RULE(a_flush_pushes_its_range),
		RULE(a_flush_pushes_the_words_that_it_touches),
		RULE(a_read_pushes_the_range_that_was_asked),
		RULE(what_was_asked_may_begin_in_a_word),
		RULE(a_read_is_of_a_call_for_its_queue_pair),
		RULE(a_flush_for_visibility_pushes_nothing),
		RULE(values_of_a_word_keep_their_order),
		RULE(what_is_durable_stays_under_later_writes),
		RULE(parts_of_words_are_merged),
		RULE(the_owner_persists_what_it_sees),
		RULE(persisting_takes_its_time),
		RULE(a_write_overtakes_a_read),
		RULE(a_fence_holds_it_back),
		RULE(so_does_a_completion),
		RULE(an_atomic_stays_behind_a_flush),
		RULE(a_write_does_not),
		RULE(an_atomic_overtakes_a_read),
		RULE(a_fence_in_between_counts),
		RULE(regions_that_overlap_are_one),
		RULE(the_search_finds_the_least),
		RULE(what_is_hidden_need_not_be_kept),
		RULE(all_images_once),
		RULE(the_correct_order_passes),
		RULE(too_many_for_all),
		RULE(the_same_again),
		RULE(the_owner_notes_its_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
