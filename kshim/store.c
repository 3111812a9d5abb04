// SPDX-License-Identifier: BSD-3-Clause
#include "kshim/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "include/weft/peer.h"

enum {
	PAGES = 1024, /* 64 MiB, of which only what is used takes memory */
	STEP = 389,   /* from one page to the next one given out: odd, so that all are */
	GONE = 0xdd,  /* what a page holds after its last use */
};

struct allocation {
	struct allocation *next;
	uint64_t addr;
	unsigned pages;
	bool freed;
	unsigned page[];
};

static struct {
	pthread_mutex_t lock;
	char *bytes; /* NULL: not begun */
	uint64_t bus;
	unsigned next_page, bar_left;
	unsigned char users[PAGES]; /* the allocation, and each hold */
	struct allocation *list;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the bus ---- */

extern int weft_dma_window_add(uint64_t *bus, uint64_t len, unsigned flags,
	const struct weft_dma_ops *ops, void *priv) __attribute__((weak));

static int copy_to(void *priv, uint64_t off, const void *src, size_t n)
{
	memcpy((char *)priv + off, src, n);
	return 0;
}

static int copy_from(void *priv, uint64_t off, void *dst, size_t n)
{
	memcpy(dst, (char *)priv + off, n);
	return 0;
}

static const struct weft_dma_ops ops = {
	.size = sizeof ops, .copy_to = copy_to, .copy_from = copy_from};

static unsigned bar_pages(void)
{
	const char *text = secure_getenv("WEFT_KSHIM_BAR_MIB");
	const unsigned long mib = text ? strtoul(text, NULL, 10) : PAGES;

	return mib >= PAGES * (unsigned long)STORE_PAGE >> 20 ? PAGES
							      : mib * (1 << 20) / STORE_PAGE;
}

static int begin(void)
{
	const uint64_t size = (uint64_t)PAGES * STORE_PAGE;
	void *p;

	if (store.bytes)
		return 0;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	store.bus = 0;
	if (!weft_dma_window_add ||
		weft_dma_window_add(&store.bus, size, WEFT_DMA_ANY_THREAD, &ops, p))
		store.bus = (uintptr_t)p;
	store.bytes = p;
	store.bar_left = bar_pages();
	return 0;
}

static uint64_t bus_of(unsigned page)
{
	return store.bus + (uint64_t)page * STORE_PAGE;
}

/* ---- pages ---- */

static void let_go(unsigned page)
{
	if (--store.users[page] == 0)
		memset(store.bytes + (size_t)page * STORE_PAGE, GONE, STORE_PAGE);
}

/* A page that nobody uses; -1: there is none. */
static int take_page(void)
{
	for (unsigned i = 0; i < PAGES; i++) {
		store.next_page = (store.next_page + STEP) % PAGES;
		if (store.users[store.next_page])
			continue;
		store.users[store.next_page] = 1;
		return (int)store.next_page;
	}
	return -1;
}

static struct allocation *find(uint64_t addr, uint64_t n)
{
	struct allocation *a = store.list;

	if (n == 0 || addr + n < addr)
		return NULL;
	while (a && (a->freed || addr < a->addr ||
			    addr + n > a->addr + (uint64_t)a->pages * STORE_PAGE))
		a = a->next;
	return a;
}

static struct allocation *find_first(uint64_t addr)
{
	struct allocation *a = find(addr, 1);

	return a && a->addr == addr ? a : NULL;
}

/* ---- allocations ---- */

static int fill(struct allocation *a)
{
	for (; a->pages * (uint64_t)STORE_PAGE < a->addr; a->pages++) {
		int page = take_page();

		if (page < 0)
			return -ENOMEM;
		a->page[a->pages] = (unsigned)page;
	}
	return 0;
}

/* Addresses that begin at a page; those before and behind are nobody's, and stay so. */
static uint64_t reserve(uint64_t n)
{
	char *p = mmap(NULL, n + 3 * STORE_PAGE, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return 0;
	return ((uintptr_t)p + 2 * STORE_PAGE - 1) & ~(uint64_t)(STORE_PAGE - 1);
}

static struct allocation *new_allocation(size_t n)
{
	const size_t pages = (n + STORE_PAGE - 1) / STORE_PAGE;
	struct allocation *a;
	int rc;

	if (begin() || pages == 0 || pages > PAGES)
		return NULL;
	a = calloc(1, sizeof *a + pages * sizeof *a->page);
	if (!a)
		return NULL;
	a->addr = pages * STORE_PAGE; /* as what fill() is to reach */
	rc = fill(a);
	a->addr = rc ? 0 : reserve(pages * STORE_PAGE);
	if (a->addr)
		return a;
	while (a->pages)
		let_go(a->page[--a->pages]);
	free(a);
	return NULL;
}

int store_alloc(size_t n, uint64_t *addr)
{
	struct allocation *a;

	pthread_mutex_lock(&store.lock);
	a = new_allocation(n);
	if (a) {
		a->next = store.list;
		store.list = a;
		*addr = a->addr;
	}
	pthread_mutex_unlock(&store.lock);
	return a ? 0 : -ENOMEM;
}

int store_free(uint64_t addr)
{
	struct allocation *a;

	pthread_mutex_lock(&store.lock);
	a = find_first(addr);
	if (a) {
		a->freed = true;
		for (unsigned i = 0; i < a->pages; i++)
			let_go(a->page[i]);
	}
	pthread_mutex_unlock(&store.lock);
	return a ? 0 : -EINVAL;
}

uint64_t store_size(uint64_t addr)
{
	const struct allocation *a;
	uint64_t size;

	pthread_mutex_lock(&store.lock);
	a = find_first(addr);
	size = a ? (uint64_t)a->pages * STORE_PAGE : 0;
	pthread_mutex_unlock(&store.lock);
	return size;
}

bool store_has(uint64_t addr, uint64_t n)
{
	bool has;

	pthread_mutex_lock(&store.lock);
	has = find(addr, n);
	pthread_mutex_unlock(&store.lock);
	return has;
}

/* ---- bytes ---- */

/* Of an allocation's byte at, the place, and in *n no more than lie there together. */
static char *place(const struct allocation *a, uint64_t at, size_t *n)
{
	const uint64_t off = at % STORE_PAGE;

	if (*n > STORE_PAGE - off)
		*n = STORE_PAGE - off;
	return store.bytes + (size_t)a->page[at / STORE_PAGE] * STORE_PAGE + off;
}

int store_write(uint64_t addr, const void *from, size_t n)
{
	const struct allocation *a;
	size_t part;

	pthread_mutex_lock(&store.lock);
	a = find(addr, n);
	for (size_t done = 0; a && done < n; done += part) {
		part = n - done;
		char *to = place(a, addr + done - a->addr, &part);

		memcpy(to, (const char *)from + done, part);
	}
	pthread_mutex_unlock(&store.lock);
	return a ? 0 : -EFAULT;
}

int store_read(uint64_t addr, void *to, size_t n)
{
	const struct allocation *a;
	size_t part;

	pthread_mutex_lock(&store.lock);
	a = find(addr, n);
	for (size_t done = 0; a && done < n; done += part) {
		part = n - done;
		const char *from = place(a, addr + done - a->addr, &part);

		memcpy((char *)to + done, from, part);
	}
	pthread_mutex_unlock(&store.lock);
	return a ? 0 : -EFAULT;
}

/* ---- pins ---- */

static int hold(uint64_t addr, uint64_t n, uint64_t *bus)
{
	const struct allocation *a = find(addr, n);
	const unsigned pages = (unsigned)(n / STORE_PAGE);

	if (!a)
		return -EINVAL;
	if (pages > store.bar_left)
		return -ENOMEM;
	store.bar_left -= pages;
	for (unsigned i = 0; i < pages; i++) {
		const unsigned page = a->page[(addr - a->addr) / STORE_PAGE + i];

		store.users[page]++;
		bus[i] = bus_of(page);
	}
	return 0;
}

int store_hold(uint64_t addr, uint64_t n, uint64_t *bus)
{
	int rc;

	if (addr % STORE_PAGE || n % STORE_PAGE)
		return -EINVAL;
	pthread_mutex_lock(&store.lock);
	rc = hold(addr, n, bus);
	pthread_mutex_unlock(&store.lock);
	return rc;
}

void store_drop(const uint64_t *bus, unsigned n)
{
	pthread_mutex_lock(&store.lock);
	store.bar_left += n;
	for (unsigned i = 0; i < n; i++)
		let_go((unsigned)((bus[i] - store.bus) / STORE_PAGE));
	pthread_mutex_unlock(&store.lock);
}
