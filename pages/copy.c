// SPDX-License-Identifier: BSD-3-Clause
/*
 * A copy has three parts: a head that aligns the destination, a body of whole aligned blocks,
 * and a tail in ascending words behind a release fence.  Only the body differs between CPUs.
 */
#include "pages/copy.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atomic.h"
#include "base/tsan.h"
#include "pages/cpu.h"

enum { BLOCK = 64, WORD = 8, TAIL_MIN = 64 };

/* Loads of any alignment; the stores beside them are aligned. */
#define LOAD_ANY(type, p)                                                                          \
	({                                                                                         \
		type v_;                                                                           \
		memcpy(&v_, p, sizeof v_);                                                         \
		v_;                                                                                \
	})

/* The same instruction, but ThreadSanitizer is to know that aligned words may change meanwhile. */
#ifdef WEFT_TSAN
#define LOAD(type, p)                                                                              \
	((uintptr_t)(p) % sizeof(type) ? LOAD_ANY(type, p)                                         \
				       : __atomic_load_n((const type *)(p), __ATOMIC_RELAXED))
#else
#define LOAD LOAD_ANY
#endif

/* One store, not to be split or merged; in order behind all stores before it. */
#define STORE(type, p, v) __atomic_store_n((type *)(p), v, __ATOMIC_RELEASE)

/* Copies ascending, every aligned word of the destination by one store.  For short ranges. */
static void by_words(char *to, const char *from, uint64_t len)
{
	while (len) {
		uintptr_t at = (uintptr_t)to;
		uint64_t step;

		if (len >= 8 && at % 8 == 0) {
			for (step = 0; len - step >= 8; step += 8)
				STORE(uint64_t, to + step, LOAD(uint64_t, from + step));
		} else if (len >= 4 && at % 4 == 0) {
			STORE(uint32_t, to, LOAD(uint32_t, from));
			step = 4;
		} else if (len >= 2 && at % 2 == 0) {
			STORE(uint16_t, to, LOAD(uint16_t, from));
			step = 2;
		} else {
			STORE(uint8_t, to, *from);
			step = 1;
		}
		to += step;
		from += step;
		len -= step;
	}
}

#if defined(__x86_64__)

#include <immintrin.h>

enum { STRING_MIN = 2048, PAGE = 4096, AHEAD = 256 };

/*
 * Stores of an SSE or AVX register to an aligned address write each aligned word whole, and
 * reach memory in program order; those of one string instruction may overtake each other, but
 * not those of later instructions.  Streaming stores are ordered by the fence alone.
 */
static void body_sse(char *to, const char *from, uint64_t len)
{
	for (; len; len -= BLOCK, to += BLOCK, from += BLOCK) {
		const __m128i *s = (const __m128i *)from;
		__m128i *d = (__m128i *)to;
		__m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
		__m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);

		_mm_store_si128(d, a);
		_mm_store_si128(d + 1, b);
		_mm_store_si128(d + 2, c);
		_mm_store_si128(d + 3, e);
	}
}

__attribute__((target("avx"))) static void body_avx(char *to, const char *from, uint64_t len)
{
	for (; len; len -= BLOCK, to += BLOCK, from += BLOCK) {
		__m256i a = _mm256_loadu_si256((const __m256i *)from);
		__m256i b = _mm256_loadu_si256((const __m256i *)from + 1);

		_mm256_store_si256((__m256i *)to, a);
		_mm256_store_si256((__m256i *)to + 1, b);
	}
}

static void body_string(char *to, const char *from, uint64_t len)
{
	uint64_t words = len / WORD;

	__asm__ __volatile__("rep movsq" : "+D"(to), "+S"(from), "+c"(words)::"memory");
}

static void copy_body(char *to, const char *from, uint64_t len)
{
	/* The string instruction is the fastest, but slow unless both sides are aligned. */
	if (len >= STRING_MIN && !((uintptr_t)from % WORD) && cpu_can(CPU_FAST_STRINGS))
		body_string(to, from, len);
	else if (cpu_can(CPU_AVX))
		body_avx(to, from, len);
	else
		body_sse(to, from, len);
}

/* One block of two pages, line by line from each in turn: two streams hide more latency. */
static void stream_two_pages(char *to, const char *from)
{
	for (unsigned line = 0; line < PAGE; line += BLOCK)
		for (unsigned page = 0; page < 2 * PAGE; page += PAGE) {
			const __m128i *s = (const __m128i *)(from + page + line);
			__m128i *d = (__m128i *)(to + page + line);
			__m128i a, b, c, e;

			__builtin_prefetch((const char *)s + AHEAD);
			a = _mm_loadu_si128(s);
			b = _mm_loadu_si128(s + 1);
			c = _mm_loadu_si128(s + 2);
			e = _mm_loadu_si128(s + 3);
			_mm_stream_si128(d, a);
			_mm_stream_si128(d + 1, b);
			_mm_stream_si128(d + 2, c);
			_mm_stream_si128(d + 3, e);
		}
}

static void stream_body(char *to, const char *from, uint64_t len)
{
	for (; len >= 2 * PAGE; len -= 2 * PAGE, to += 2 * PAGE, from += 2 * PAGE)
		stream_two_pages(to, from);
	_mm_sfence();
	copy_body(to, from, len);
}

#else

/* Whole words by the compiler's own vectors where it can keep them whole: one at a time. */
static void copy_body(char *to, const char *from, uint64_t len)
{
	for (; len; len -= WORD, to += WORD, from += WORD)
		__atomic_store_n((uint64_t *)to, LOAD(uint64_t, from), __ATOMIC_RELAXED);
}

static void stream_body(char *to, const char *from, uint64_t len)
{
	copy_body(to, from, len);
}

#endif

static bool overlap(const char *to, const char *from, uint64_t len)
{
	return (uintptr_t)to - (uintptr_t)from < len || (uintptr_t)from - (uintptr_t)to < len;
}

/* Head and tail around the body; at least BLOCK + TAIL_MIN bytes, no overlap. */
static void copy_long(char *to, const char *from, uint64_t len,
	void (*body)(char *to, const char *from, uint64_t len))
{
	uint64_t head = -(uintptr_t)to % BLOCK;
	uint64_t middle = (len - head - 1) / BLOCK * BLOCK; /* never all: the tail is last */

	by_words(to, from, head);
	body(to + head, from + head, middle);
	atomic_thread_fence(memory_order_release);
	by_words(to + head + middle, from + head + middle, len - head - middle);
}

static void copy(char *to, const char *from, uint64_t len,
	void (*body)(char *to, const char *from, uint64_t len))
{
	if (overlap(to, from, len))
		memmove(to, from, len);
	else if (len < BLOCK + TAIL_MIN)
		by_words(to, from, len);
	else
		copy_long(to, from, len, body);
}

void copy_ordered(void *to, const void *from, uint64_t len)
{
	copy(to, from, len, copy_body);
}

void copy_stream(void *to, const void *from, uint64_t len)
{
	copy(to, from, len, stream_body);
}
