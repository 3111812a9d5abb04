// SPDX-License-Identifier: BSD-3-Clause
/* The power-failure simulator: the file, full, cut, damaged or nonsense. */
#include <fcntl.h>
#include <sys/mman.h>

#include "crash/keep.h"
#include "tests/unit/crash_journals.h"

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

/* Stretches that are erased, or hold other bytes, as where a disk or a program went wrong. */
static void no_changed_stretch_is_believed(void **state)
{
	enum { ROUNDS = 3000, STRETCH = 700 };
	uint8_t *file = (uint8_t *)j.head, was[STRETCH];
	struct journal_damage d;
	uint64_t want, used;

	(void)state;
	furnish();
	want = learned(&j);
	used = journal_count(&j) * sizeof(struct journal_record);
	for (unsigned n = 0; n < ROUNDS; n++) {
		uint64_t part = next_seed() % 3, len = 1 + next_seed() % STRETCH;
		uint64_t from = part == 0   ? next_seed() % sizeof *j.head
				: part == 1 ? JOURNAL_HEAD_BYTES + next_seed() % used
					    : j.data_off + next_seed() % 512;
		bool erase = next_seed() % 2;

		if (part == 1 && next_seed() % 4 == 0) { /* one record, all of it */
			from -= (from - JOURNAL_HEAD_BYTES) % sizeof(struct journal_record);
			len = sizeof(struct journal_record);
		}
		memcpy(was, file + from, len);
		for (uint64_t i = 0; i < len; i++)
			file[from + i] = erase ? 0 : next_seed();
		if (!noticed(want))
			fail_msg("round %u: bytes %llu to %llu, %s", n, (unsigned long long)from,
				(unsigned long long)(from + len), erase ? "erased" : "changed");
		memcpy(file + from, was, len);
	}
	assert_int_equal(journal_verify(&j, &d), 0);
}

/* One that was claimed when its process died is passed over, whether it was counted or not. */
static void a_claim_of_the_dead_is_passed_over(void **state)
{
	struct journal_record *next;
	struct journal_damage d;
	uint64_t n;

	(void)state;
	furnish();
	n = journal_count(&j);
	next = (struct journal_record *)((char *)j.head + JOURNAL_HEAD_BYTES) + n;
	atomic_store(&next->state, JOURNAL_CLAIMED);
	assert_int_equal(journal_verify(&j, &d), 0);
	assert_int_equal(journal_mark(&j, "behind it"), 0);
	assert_int_equal(journal_count(&j), n + 2);
	assert_null(journal_at(&j, n));
	assert_int_equal(journal_at(&j, n + 1)->kind, JOURNAL_MARK);
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

/* ---- live ---- */

static struct journal_live live_of(const char *file)
{
	struct journal_head head;
	uint64_t size;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	assert_int_equal(journal_read_head(fd, &head, &size), 0);
	close(fd);
	return head.live;
}

static void say_live(struct journal_live live)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(
		pwrite(fd, &live, sizeof live, offsetof(struct journal_head, live)), sizeof live);
	close(fd);
}

/* Who writes a live journal is not touched by what becomes of the file, and it is saved whole. */
static void a_live_journal_survives_its_file(void **state)
{
	struct journal writer, reader;
	struct journal_damage d;
	struct journal_keep k;

	(void)state;
	assert_int_equal(journal_join(&writer, path), -ENOLINK);
	region();
	assert_int_equal(journal_keep(&k, path), 0);
	assert_int_equal(journal_join(&writer, path), 0);
	assert_int_equal(journal_open(&reader, path, false), 0);
	assert_int_equal(writer.id, j.id);
	assert_int_equal(journal_mark(&writer, "before"), 0);
	assert_int_equal(journal_count(&reader), 2);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(journal_mark(&writer, "behind"), 0);
	assert_int_equal(journal_keep_end(&k), -EBUSY);
	journal_close(&writer);
	assert_int_equal(journal_keep_end(&k), 0);
	assert_int_equal(journal_count(&reader), 3);
	journal_close(&reader);
	assert_int_equal(journal_open(&reader, path, false), 0);
	assert_int_equal(journal_count(&reader), 3);
	assert_int_equal(journal_verify(&reader, &d), 0);
	journal_close(&reader);
}

/* A file of which all but the head was cut off still leads to the journal. */
static void a_head_is_enough(void **state)
{
	struct journal writer;
	struct journal_keep k;

	(void)state;
	assert_int_equal(journal_keep(&k, path), 0);
	assert_int_equal(journal_keep(&k, path), -EBUSY);
	assert_int_equal(truncate(path, sizeof(struct journal_head)), 0);
	assert_int_equal(journal_join(&writer, path), 0);
	assert_int_equal(writer.size, JOURNAL_SIZE_MIN);
	journal_close(&writer);
	assert_int_equal(truncate(path, JOURNAL_SIZE_MIN), 0);
}

static int memory_named(const char *name, int seals, const struct journal_live *live, uint64_t size)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, j.head, sizeof *j.head, 0), sizeof *j.head);
	assert_int_equal(
		pwrite(fd, live, sizeof *live, offsetof(struct journal_head, live)), sizeof *live);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* What a head names is believed only if it is this very journal, in memory that cannot be cut. */
static void no_stranger_is_mapped(void **state)
{
	const struct {
		const char *name;
		int seals;
		uint64_t id, size;
		int rc;
	} cases[] = {
		{"weft-journal", JOURNAL_SEALS, 7, JOURNAL_SIZE_MIN, 0},
		{"weft-journal", JOURNAL_SEALS | F_SEAL_SEAL, 7, JOURNAL_SIZE_MIN, 0},
		{"weft-segment", JOURNAL_SEALS, 7, JOURNAL_SIZE_MIN, -EOWNERDEAD},
		{"weft-journal", F_SEAL_GROW, 7, JOURNAL_SIZE_MIN, -EOWNERDEAD},
		{"weft-journal", F_SEAL_SHRINK, 7, JOURNAL_SIZE_MIN, -EOWNERDEAD},
		{"weft-journal", JOURNAL_SEALS, 8, JOURNAL_SIZE_MIN, -EOWNERDEAD},
		{"weft-journal", JOURNAL_SEALS, 7, 2 * JOURNAL_SIZE_MIN, -EOWNERDEAD},
		{"weft-journal", JOURNAL_SEALS, 7, 4096, -EOWNERDEAD},
	};
	struct journal other;

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct journal_live live = {.pid = getpid(), .id = cases[i].id};

		/* Each is at a number that is free now. */
		live.fd = dup(STDERR_FILENO);
		close((int)live.fd);
		assert_int_equal(
			memory_named(cases[i].name, cases[i].seals, &live, cases[i].size), live.fd);
		live.id = 7;
		say_live(live);
		assert_int_equal(journal_join(&other, path), cases[i].rc);
		assert_int_equal(journal_open(&other, path, false), cases[i].rc);
		journal_close(&other);
		close((int)live.fd);
		assert_int_equal(journal_open(&other, path, false), -EOWNERDEAD);
	}
	say_live((struct journal_live){.pid = 0x7fffffff, .id = 7});
	assert_int_equal(journal_open(&other, path, false), -EOWNERDEAD);
	say_live((struct journal_live){0});
	assert_int_equal(journal_open(&other, path, false), 0);
	journal_close(&other);
}

/* Whose keeper died without saving is neither read nor written; nor if that were kept anew. */
static void one_that_was_not_saved_is_refused(void **state)
{
	struct journal other;
	struct journal_keep k;

	(void)state;
	assert_int_equal(journal_keep(&k, path), 0);
	assert_int_equal(live_of(path).pid, getpid());
	journal_keep_close(&k);
	assert_int_equal(journal_open(&other, path, false), -EOWNERDEAD);
	assert_int_equal(journal_join(&other, path), -EOWNERDEAD);
	assert_int_equal(journal_keep(&k, path), -EBUSY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RULE(a_full_journal_ends),
		RULE(damaged_files_are_refused),
		RULE(no_changed_byte_is_believed),
		RULE(no_changed_stretch_is_believed),
		RULE(a_claim_of_the_dead_is_passed_over),
		RULE(damage_has_a_place),
		RULE(nonsense_is_passed_over),
		RULE(a_live_journal_survives_its_file),
		RULE(a_head_is_enough),
		RULE(no_stranger_is_mapped),
		RULE(one_that_was_not_saved_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
