// SPDX-License-Identifier: BSD-3-Clause
/* The power-failure simulator: journals, what may be left by which rule, and the search. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "crash/owner.h"
#include "crash/search.h"

enum { OWNER = 100, CLIENT = 200, OTHER = 201, BASE = 0x10000, WORDS = 16, QP = 7, QP2 = 8 };

static struct journal j;
static char path[64];

static int begin(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/weft-crash-test-%d", (int)getpid());
	unlink(path);
	assert_int_equal(journal_create(path, JOURNAL_SIZE_MIN), 0);
	assert_int_equal(journal_open(&j, path, true), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	journal_close(&j);
	unlink(path);
	return 0;
}

/* ---- making journals ---- */

static uint64_t store(const void *bytes, uint64_t len)
{
	uint64_t data = journal_room(&j, len);

	assert_true(data);
	memcpy(journal_data(&j, data), bytes, len);
	return data;
}

static void add(struct journal_record r, const void *bytes)
{
	r.owner = OWNER;
	if (bytes) {
		r.data = store(bytes, r.len);
		r.data_len = r.len;
	}
	assert_non_null(journal_add(&j, &r, JOURNAL_DONE));
}

static void region(void)
{
	uint64_t zeros[WORDS] = {0};

	add((struct journal_record){.kind = JOURNAL_REGION, .addr = BASE, .len = sizeof zeros},
		zeros);
}

/* A request of CLIENT; words of value v from word w on. */
static struct journal_record request(uint32_t qp, uint32_t pos, uint32_t seen)
{
	return (struct journal_record){.kind = JOURNAL_WRITE,
		.opcode = IBV_WR_RDMA_WRITE,
		.pid = CLIENT,
		.qpn = qp,
		.target_qpn = qp,
		.pos = pos,
		.seen = seen};
}

static void write_as(struct journal_record r, unsigned w, unsigned n, uint64_t v)
{
	uint64_t bytes[WORDS];

	for (unsigned i = 0; i < n; i++)
		bytes[i] = v;
	r.addr = BASE + 8 * w;
	r.len = 8 * n;
	add(r, bytes);
}

static void write_words(uint32_t qp, uint32_t pos, unsigned w, unsigned n, uint64_t v)
{
	write_as(request(qp, pos, pos), w, n, v);
}

static void push_as(struct journal_record r, enum journal_push how, unsigned w, unsigned n)
{
	r.kind = JOURNAL_PUSH;
	r.push = how;
	r.opcode = how == JOURNAL_READ ? IBV_WR_RDMA_READ : 14;
	r.addr = BASE + 8 * w;
	r.len = 8 * n;
	add(r, NULL);
}

static void push(uint32_t qp, uint32_t pos, enum journal_push how, unsigned w, unsigned n)
{
	push_as(request(qp, pos, pos), how, w, n);
}

static void persist(unsigned w, unsigned n, const uint64_t *values)
{
	add((struct journal_record){.kind = JOURNAL_PERSIST, .addr = BASE + 8 * w, .len = 8 * n},
		values);
}

/* ---- looking at the end of them ---- */

static const struct crash_rules direct = {.ddio = false}, ddio = {.ddio = true};

static struct crash_state at_end(const struct crash_rules *rules)
{
	uint64_t last = journal_count(&j) - 1;
	struct crash_state s;

	assert_int_equal(crash_state_at(&s, &j, rules, (struct crash_point){.record = last},
				 crash_overtakes(&j, last)),
		0);
	assert_int_equal(s.n_regions, 1);
	return s;
}

static uint64_t pending_at_end(const struct crash_rules *rules)
{
	struct crash_state s = at_end(rules);
	uint64_t n = s.n_pending;

	crash_state_free(&s);
	return n;
}

static uint64_t images_at_end(const struct crash_rules *rules)
{
	struct crash_state s = at_end(rules);
	uint64_t n = crash_images(&s);

	crash_state_free(&s);
	return n;
}

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
	unsigned calls = 0, lost = 0;
	struct crash_state s;
	uint8_t *keep;

	(void)state;
	region();
	write_words(QP, 0, 8, 4, 7); /* has nothing to do with it */
	write_words(QP, 1, 1, 4, 5);
	write_words(QP, 2, 0, 1, 1);
	assert_int_equal(search(&q, &calls, &keep, &s), 1);
	for (uint64_t i = 0; i < s.n_pending; i++) {
		if (!crash_is_lost(&s, keep, i))
			continue;
		lost++;
		assert_in_range(s.pending[i].word, 1, 4);
	}
	assert_int_equal(lost, 1);
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

/* ---- the file ---- */

static void a_full_journal_ends(void **state)
{
	uint64_t data;

	(void)state;
	assert_false(journal_ended(&j));
	data = journal_room(&j, JOURNAL_SIZE_MIN / 2);
	assert_true(data);
	journal_unroom(&j, data, JOURNAL_SIZE_MIN / 2);
	assert_int_equal(journal_room(&j, JOURNAL_SIZE_MIN / 2), data);
	assert_int_equal(journal_room(&j, JOURNAL_SIZE_MIN / 2), 0);
	assert_true(journal_ended(&j));
	assert_int_equal(journal_room(&j, 8), 0);
	assert_int_equal(journal_mark(&j, "late"), -ENOSPC);
	assert_int_equal(journal_count(&j), 0);
}

static void damaged_files_are_refused(void **state)
{
	struct journal other;

	(void)state;
	j.head->data_off ^= 4096;
	assert_int_equal(journal_open(&other, path, true), -EBADMSG);
	j.head->data_off ^= 4096;
	assert_int_equal(truncate(path, JOURNAL_SIZE_MIN + 1), 0);
	assert_int_equal(journal_open(&other, path, false), -EBADMSG);
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(journal_open(&other, path, false), -EBADMSG);
	assert_int_equal(truncate(path, 4), 0);
	assert_int_equal(journal_open(&other, path, false), -EPROTO);
	assert_int_equal(journal_open(&other, "/nonexistent", false), -ENOENT);
	assert_int_equal(journal_create(path, JOURNAL_SIZE_MIN), -EEXIST);
	assert_int_equal(truncate(path, JOURNAL_SIZE_MIN), 0); /* for what maps it */
}

static uint64_t next_seed(void)
{
	static uint64_t seed = 1;

	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return seed >> 33;
}

static void furnish(void)
{
	region();
	write_words(QP, 0, 1, 3, 5);
	push(QP, 1, JOURNAL_READ, 1, 2);
	write_words(QP, 2, 0, 5, 6);
	assert_int_equal(journal_mark(&j, "a mark"), 0);
	journal_settle(
		journal_add(&j, &(struct journal_record){.kind = JOURNAL_WRITE}, JOURNAL_BEGUN),
		JOURNAL_VOID);
	write_words(QP, 3, 6, 1, 7);
}

/* What a reader learns: of a journal that is damaged in that way he must learn the same. */
static uint64_t learned(const struct journal *of)
{
	struct crash_point end = {.record = UINT64_MAX};
	struct crash_state s;
	uint64_t sum;

	assert_int_equal(crash_state_at(&s, of, &direct, end, false), 0);
	sum = s.n_regions + 7 * s.n_pending + 49 * s.marks;
	for (unsigned i = 0; i < s.n_regions; i++)
		for (uint64_t w = 0; w < s.regions[i].words; w++)
			sum = sum * 31 + s.regions[i].durable[w];
	for (uint64_t i = 0; i < s.n_pending; i++)
		sum = sum * 31 + s.pending[i].value + s.pending[i].word * 17;
	crash_state_free(&s);
	return sum;
}

/* Is the journal refused, or all in it as before? */
static bool noticed(uint64_t want)
{
	struct journal_damage d = {0};
	struct journal other;
	bool ok;

	if (journal_open(&other, path, false))
		return true;
	if (journal_verify(&other, &d)) {
		assert_non_null(d.what);
		assert_true(d.at < j.size);
		ok = true;
	} else {
		ok = learned(&other) == want;
	}
	journal_close(&other);
	return ok;
}

static void no_changed_byte_is_believed(void **state)
{
	uint8_t *file = (uint8_t *)j.head;
	struct journal_damage d;
	uint64_t want;
	struct {
		uint64_t from, to;
	} parts[] = {{0, sizeof *j.head}, {JOURNAL_HEAD_BYTES, 0}, {j.data_off, 0}};

	(void)state;
	furnish();
	want = learned(&j);
	assert_int_equal(journal_verify(&j, &d), 0);
	parts[1].to = JOURNAL_HEAD_BYTES + (journal_count(&j) + 2) * sizeof(struct journal_record);
	parts[2].to = atomic_load(&j.head->data);
	for (unsigned i = 0; i < 3; i++) {
		for (uint64_t at = parts[i].from; at < parts[i].to; at++) {
			uint8_t was = file[at];

			file[at] ^= 1 + next_seed() % 255;
			if (!noticed(want))
				fail_msg("byte %llu of the journal", (unsigned long long)at);
			file[at] = was;
		}
	}
	assert_int_equal(journal_verify(&j, &d), 0);
}

/* Where it is damaged is told. */
static void damage_has_a_place(void **state)
{
	struct journal_damage d;
	const struct journal_record *r;

	(void)state;
	furnish();
	r = journal_at(&j, 1);
	journal_data(&j, r->data)[20] ^= 1;
	assert_int_equal(journal_verify(&j, &d), -EBADMSG);
	assert_int_equal(d.at, r->data);
	journal_data(&j, r->data)[20] ^= 1;
	((uint8_t *)r)[90] ^= 1;
	assert_int_equal(journal_verify(&j, &d), -EBADMSG);
	assert_int_equal(d.at, JOURNAL_HEAD_BYTES + sizeof *r);
	((uint8_t *)r)[90] ^= 1;
	atomic_store(&j.head->records, 3);
	assert_int_equal(journal_verify(&j, &d), -EBADMSG);
	assert_int_equal(d.at, JOURNAL_HEAD_BYTES + 3 * sizeof *r);
}

/* Whatever stands in the records of a hostile process. */
static void nonsense_is_passed_over(void **state)
{
	struct journal_record r = {.kind = JOURNAL_WRITE, .owner = OWNER, .addr = BASE};
	uint64_t before;

	(void)state;
	region();
	before = pending_at_end(&direct);
	r.len = r.data_len = 64;
	r.data = j.size - 8; /* bytes beyond the end */
	journal_add(&j, &r, JOURNAL_DONE);
	r.data = 16; /* in the head */
	journal_add(&j, &r, JOURNAL_DONE);
	r.data = j.data_off;
	r.len = UINT64_MAX; /* more than its bytes */
	journal_add(&j, &r, JOURNAL_DONE);
	r.len = 64;
	r.addr = UINT64_MAX - 8;
	journal_add(&j, &r, JOURNAL_DONE);
	r.addr = BASE;
	r.kind = 200;
	journal_add(&j, &r, JOURNAL_DONE);
	r.kind = JOURNAL_WRITE;
	journal_add(&j, &r, JOURNAL_VOID);
	journal_add(&j, &r, JOURNAL_EMPTY);
	atomic_store(&j.head->records, UINT64_MAX / 2);
	assert_int_equal(journal_count(&j), j.records_max);
	assert_int_equal(pending_at_end(&direct), before);
}

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

#define RULE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_write_is_pending_word_by_word),
		RULE(a_read_pushes_its_queue_pair),
		RULE(a_read_of_another_process_pushes_nothing),
		RULE(a_flush_pushes_its_range),
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
		RULE(a_full_journal_ends),
		RULE(damaged_files_are_refused),
		RULE(no_changed_byte_is_believed),
		RULE(damage_has_a_place),
		RULE(nonsense_is_passed_over),
		RULE(the_owner_notes_its_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
