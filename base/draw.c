// SPDX-License-Identifier: BSD-3-Clause
#include "base/draw.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"

enum { DRAWN = 1024 }; /* bytes */

/* In a page that a forked child finds zero: an open lock, and nothing drawn. */
struct pool {
	struct lock lock;
	uint32_t left;
	uint8_t drawn[DRAWN];
};

static struct pool *_Atomic pool;

static struct pool *new_pool(void)
{
	struct pool *p = mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0),
		    *first = NULL;

	if (p == MAP_FAILED)
		return NULL;
	/* else a child would draw what its parent does */
	if (!madvise(p, sizeof *p, MADV_WIPEONFORK) &&
		atomic_compare_exchange_strong_explicit(
			&pool, &first, p, memory_order_acq_rel, memory_order_acquire))
		return p;
	munmap(p, sizeof *p);
	return first;
}

/* Where the kernel gives none, which it does when it has just started: better than always the same.
 */
static void fill(uint8_t *to, uint32_t n)
{
	static _Atomic uint64_t salt;
	uint64_t seed;

	if (getrandom(to, n, GRND_NONBLOCK) == (ssize_t)n)
		return;
	seed = clock_ns() ^ (uintptr_t)to;
	while (n--)
		to[n] = hash_mix(seed ^ atomic_fetch_add_explicit(&salt, 1, memory_order_relaxed));
}

/* What was drawn does not lie there any more. */
static void take(struct pool *p, uint8_t *to, uint32_t n)
{
	lock_take(&p->lock);
	if (p->left < n) {
		fill(p->drawn, DRAWN);
		p->left = DRAWN;
	}
	p->left -= n;
	memcpy(to, p->drawn + p->left, n);
	memset(p->drawn + p->left, 0, n);
	lock_drop(&p->lock);
}

static inline void draw(void *to, uint32_t n)
{
	struct pool *p = atomic_load_explicit(&pool, memory_order_acquire);
	int saved = errno;

	if (!p)
		p = new_pool();
	if (p)
		take(p, to, n);
	else
		fill(to, n);
	errno = saved;
}

uint32_t draw_u32(void)
{
	uint32_t drawn;

	draw(&drawn, sizeof drawn);
	return drawn;
}

uint8_t draw_u8(void)
{
	uint8_t drawn;

	draw(&drawn, sizeof drawn);
	return drawn;
}

uint32_t draw_below(uint32_t n)
{
	return (uint64_t)draw_u32() * n >> 32;
}
