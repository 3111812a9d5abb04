// SPDX-License-Identifier: BSD-3-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "pages/copy.h"

enum { GUARD = 96, ROOM = 70000, PAGE = 4096, ROUNDS = 3000 };

typedef void copy_fn(void *to, const void *from, uint64_t len);

static copy_fn *const kernels[] = {copy_ordered, copy_stream};

static uint8_t pattern(uint64_t i)
{
	return i * 31 + i / 255 + 1;
}

/* Every byte arrives, and not one beside them changes. */
static void check_one(copy_fn *copy, unsigned to_off, unsigned from_off, uint64_t len)
{
	static uint8_t from[ROOM], to[ROOM];
	uint8_t *t = to + GUARD + to_off;

	for (uint64_t i = 0; i < len; i++)
		from[GUARD + from_off + i] = pattern(i);
	memset(t - GUARD, 0xee, len + 2 * GUARD);
	copy(t, from + GUARD + from_off, len);
	for (uint64_t i = 0; i < len; i++)
		if (t[i] != pattern(i))
			fail_msg("byte %lu of %lu (to %u from %u)", (long)i, (long)len, to_off,
				from_off);
	for (unsigned i = 0; i < GUARD; i++)
		if (t[-1 - (int)i] != 0xee || t[len + i] != 0xee)
			fail_msg("beside %lu bytes (to %u from %u)", (long)len, to_off, from_off);
}

static void sizes_and_alignments(void **state)
{
	static const uint64_t sizes[] = {255, 256, 2047, 2048, 2111, 2175, 2176, 4096, 8191, 8192,
		8255, 8256, 8319, 16384, 16385, 65536, 65543};

	(void)state;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned t = 0; t < 64; t += t < 17 ? 1 : 7)
			for (unsigned f = 0; f < 64; f += f < 9 ? 1 : 11) {
				for (uint64_t len = 0; len < 200; len++)
					check_one(kernels[k], t, f, len);
				for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
					check_one(kernels[k], t, f, sizes[i]);
			}
}

static void overlaps_like_memmove(void **state)
{
	uint8_t a[600], b[600];

	(void)state;
	for (int shift = -150; shift <= 150; shift++) {
		for (unsigned i = 0; i < sizeof a; i++)
			a[i] = b[i] = pattern(i);
		copy_ordered(a + 200 + shift, a + 200, 190);
		memmove(b + 200 + shift, b + 200, 190);
		assert_memory_equal(a, b, sizeof a);
	}
}

/* 2 GiB and a few bytes: lengths are not cut to 31 bits.  Zero pages cost no memory. */
static void two_gib(void **state)
{
	const uint64_t len = (2ull << 30) + 24, at[] = {0, 1 << 20, 1ull << 31, (1ull << 31) + 16};
	uint8_t *from = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *to;

	(void)state;
	if (from == MAP_FAILED || sizeof(void *) < 8 || getenv("WEFT_TEST_SMALL"))
		skip();
	madvise(from, len, MADV_NOHUGEPAGE);
	/* The target is the same 64 MiB again and again. */
	to = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(to != MAP_FAILED);
	int fd = memfd_create("copy", MFD_CLOEXEC);
	const uint64_t piece = 64 << 20;

	assert_int_equal(ftruncate(fd, piece), 0);
	for (uint64_t o = 0; o < len; o += piece)
		assert_true(mmap(to + o, len - o < piece ? len - o : piece, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	for (unsigned i = 0; i < 4; i++)
		from[at[i]] = 0x40 + i;
	copy_stream(to, from, len);
	/* The last piece was written last, over the beginning of the file. */
	assert_int_equal(to[0], 0x42);
	assert_int_equal(to[16], 0x43);
	munmap(to, len);
	munmap(from, len);
	close(fd);
}

/* A reader that watches the last word while it is written again and again. */
struct watch {
	uint64_t *to;
	uint64_t words;
	_Atomic bool stop;
	uint64_t seen, early, torn;
};

static void *watcher(void *arg)
{
	struct watch *w = arg;
	uint64_t n = w->words;

	while (!atomic_load_explicit(&w->stop, memory_order_relaxed)) {
		uint64_t tail = __atomic_load_n(&w->to[n - 1], __ATOMIC_ACQUIRE);

		/* What is there may be newer than the tail, but never older, and always whole. */
		for (uint64_t i = 0; i < n; i += 1 + n / 64) {
			uint64_t v = __atomic_load_n(&w->to[i], __ATOMIC_RELAXED);

			if ((uint32_t)v < (uint32_t)tail)
				w->early++;
			if (v >> 32 != (uint32_t)v)
				w->torn++;
		}
		w->seen++;
	}
	return NULL;
}

/* from_off 0 or 4: then no word of the source lies as the destination's does. */
static void watch(copy_fn *copy, uint64_t words, unsigned from_off)
{
	struct watch w = {.words = words};
	uint8_t *from = aligned_alloc(PAGE, (words * 8 + 2 * PAGE - 1) / PAGE * PAGE);
	pthread_t t;

	w.to = aligned_alloc(PAGE, (words * 8 + PAGE - 1) / PAGE * PAGE);
	memset(w.to, 0, words * 8);
	assert_int_equal(pthread_create(&t, NULL, watcher, &w), 0);
	for (uint64_t r = 1; r <= ROUNDS || w.seen < 3; r++) {
		for (uint64_t i = 0; i < words; i++)
			memcpy(from + from_off + 8 * i, &(uint64_t){r << 32 | r}, 8);
		copy(w.to, from + from_off, words * 8);
		if (r % 64 == 0)
			sched_yield();
	}
	atomic_store_explicit(&w.stop, true, memory_order_relaxed);
	pthread_join(t, NULL);
	assert_int_equal(w.early, 0);
	assert_int_equal(w.torn, 0);
	free(from);
	free(w.to);
}

static void tail_never_before_body(void **state)
{
	static const uint64_t words[] = {2, 9, 40, 400, 2500};

	(void)state;
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
			for (unsigned off = 0; off <= 4; off += 4)
				watch(kernels[k], words[i], off);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_alignments),
		cmocka_unit_test(overlaps_like_memmove),
		cmocka_unit_test(tail_never_before_body),
		cmocka_unit_test(two_gib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
