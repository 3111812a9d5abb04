// SPDX-License-Identifier: BSD-3-Clause
/* SCIF windows, copies and fences, in one process and between two. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_ends.h"

enum { PAGE = 4096, LEN = 16 * PAGE, BIG = 3 << 20, WAIT_MS = 10000 };
enum { READ = SCIF_PROT_READ, WRITE = SCIF_PROT_WRITE, BOTH = READ | WRITE };

static void copies(void)
{
	static const int flags[] = {SCIF_RMA_SYNC, SCIF_RMA_SYNC | SCIF_RMA_ORDERED,
		SCIF_RMA_SYNC | SCIF_RMA_USECPU, SCIF_RMA_SYNC | SCIF_RMA_USECACHE};
	struct scif_pair p = scif_make_pair();
	uint8_t *a = scif_pages(LEN), *b = scif_pages(LEN), *m = scif_pages(LEN);
	off_t ao = scif_register(p.a, a, LEN, 0, BOTH, 0);
	off_t bo = scif_register(p.b, b, LEN, 0x80000, BOTH, SCIF_MAP_FIXED);

	CHECK_EQ(bo, 0x80000);
	CHECK(ao > 0 && ao % PAGE == 0);
	for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		check_case("flags %d", flags[i]);
		pattern_fill(a, LEN, i);
		CHECK_EQ(scif_writeto(p.a, ao, LEN, bo, flags[i]), 0);
		CHECK_EQ(pattern_match(b, LEN, i), LEN);
		pattern_fill(b, LEN, i + 50);
		CHECK_EQ(scif_readfrom(p.a, ao, LEN, bo, flags[i]), 0);
		CHECK_EQ(pattern_match(a, LEN, i + 50), LEN);
		pattern_fill(m, LEN, i + 60);
		CHECK_EQ(scif_vwriteto(p.a, m + 3, LEN - 13, bo + 5, flags[i]), 0);
		CHECK_EQ(memcmp(b + 5, m + 3, LEN - 13), 0);
		pattern_fill(b, LEN, i + 70);
		CHECK_EQ(scif_vreadfrom(p.a, m + 1, LEN - 11, bo + 10, flags[i]), 0);
		CHECK_EQ(memcmp(b + 10, m + 1, LEN - 11), 0);
	}
	scif_end_pair(&p);
}

/* Memory of the caller's that is not there, or not for this, is an error, much of it or little. */
static void bad_memory(void)
{
	enum { MUCH = 2 * LEN };
	struct scif_pair p = scif_make_pair();
	uint8_t *b = scif_pages(MUCH), *m = scif_pages(MUCH);
	size_t lens[] = {100, MUCH};

	CHECK_EQ(scif_register(p.b, b, MUCH, 0x80000, BOTH, SCIF_MAP_FIXED), 0x80000);
	for (int i = 0; i < 2; i++) {
		check_case("read-only, %zu bytes", lens[i]);
		memset(m, 1, MUCH);
		CHECK_EQ(mprotect(m + MUCH - PAGE, PAGE, PROT_READ), 0);
		CHECK_EQ(
			scif_vwriteto(p.a, m + MUCH - lens[i], lens[i], 0x80000, SCIF_RMA_SYNC), 0);
		CHECK_EQ(scif_vreadfrom(p.a, m + MUCH - lens[i], lens[i], 0x80000, SCIF_RMA_SYNC),
			-1);
		CHECK_EQ(errno, EFAULT);
		CHECK_EQ(mprotect(m + MUCH - PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
		CHECK_EQ(scif_vreadfrom(p.a, m + MUCH - lens[i], lens[i], 0x80000, SCIF_RMA_SYNC),
			0);
	}
	for (int i = 0; i < 2; i++) {
		check_case("unmapped, %zu bytes", lens[i]);
		munmap(m + MUCH - PAGE, PAGE);
		CHECK_EQ(scif_vwriteto(p.a, m + MUCH - lens[i], lens[i], 0x80000, SCIF_RMA_SYNC),
			-1);
		CHECK_EQ(errno, EFAULT);
	}
	scif_end_pair(&p);
}

static void places(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *m = scif_pages(LEN);
	off_t hint = 0x4000000000000000, x, y;

	check_case("places");
	for (int i = 0; i < 4; i++) { /* equal calls, equal places */
		x = scif_register(p.a, m, (i + 1) * PAGE, i % 2 ? hint : 0, BOTH, 0);
		y = scif_register(p.b, m, (i + 1) * PAGE, i % 2 ? hint : 0, BOTH, 0);
		CHECK_EQ(x, y);
		CHECK(x > 0);
	}
	CHECK_EQ(scif_register(p.a, m, PAGE, 0x123000, BOTH, 0), 0x123000);
	CHECK_EQ(scif_register(p.a, m, PAGE, 0x123000, BOTH, SCIF_MAP_FIXED), -1);
	CHECK_EQ(errno, EADDRINUSE);
	CHECK_EQ(scif_register(p.a, m, 2 * PAGE, 0x122000, BOTH, SCIF_MAP_FIXED), -1);
	CHECK_EQ(errno, EADDRINUSE);
	CHECK_EQ(scif_register(p.a, m, PAGE, 0x122000, BOTH, SCIF_MAP_FIXED), 0x122000);
	check_case("again and again");
	for (int i = 0; i < 100; i++) {
		CHECK_EQ(scif_unregister(p.a, 0x122000, 2 * PAGE), 0);
		CHECK_EQ(scif_register(p.a, m, 2 * PAGE, 0x122000, BOTH, SCIF_MAP_FIXED), 0x122000);
	}
	scif_end_pair(&p);
}

static void ranges(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = scif_pages(LEN), *b = scif_pages(LEN);

	check_case("ranges");
	/* three windows that adjoin, the last but one read-only, a hole, one more */
	CHECK_EQ(scif_register(p.b, b, PAGE, 0x10000, BOTH, SCIF_MAP_FIXED), 0x10000);
	CHECK_EQ(
		scif_register(p.b, b + 2 * PAGE, 2 * PAGE, 0x11000, BOTH, SCIF_MAP_FIXED), 0x11000);
	CHECK_EQ(scif_register(p.b, b + 4 * PAGE, PAGE, 0x13000, READ, SCIF_MAP_FIXED), 0x13000);
	CHECK_EQ(scif_register(p.b, b + 8 * PAGE, PAGE, 0x15000, WRITE, SCIF_MAP_FIXED), 0x15000);
	CHECK_EQ(scif_register(p.a, a, LEN, 0x40000, BOTH, SCIF_MAP_FIXED), 0x40000);
	pattern_fill(a, LEN, 1);
	CHECK_EQ(scif_writeto(p.a, 0x40000, 3 * PAGE, 0x10000, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(b, a, PAGE), 0);
	CHECK_EQ(memcmp(b + 2 * PAGE, a + PAGE, 2 * PAGE), 0);
	CHECK_EQ(b[PAGE], 0);
	CHECK_EQ(scif_writeto(p.a, 0x40000, 3 * PAGE + 1, 0x10000, SCIF_RMA_SYNC), -1);
	CHECK_EQ(errno, EACCES);
	CHECK_EQ(scif_readfrom(p.a, 0x40000, 4 * PAGE, 0x10000, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_readfrom(p.a, 0x40000, 4 * PAGE + 1, 0x10000, SCIF_RMA_SYNC), -1);
	CHECK_EQ(errno, ENXIO);
	CHECK_EQ(scif_readfrom(p.a, 0x40000, 8, 0x15000, SCIF_RMA_SYNC), -1);
	CHECK_EQ(errno, EACCES);
	CHECK_EQ(scif_writeto(p.a, 0x40000, LEN + 1, 0x10000, 0), -1);
	CHECK_EQ(errno, ENXIO);
	CHECK_EQ(scif_writeto(p.a, -4096, 8, 0x10000, 0), -1);
	CHECK_EQ(errno, ENXIO);
	CHECK_EQ(scif_writeto(p.a, 0x40000, 8, -8, 0), -1);
	CHECK_EQ(errno, ENXIO);
	check_case("unregister");
	CHECK_EQ(scif_unregister(p.b, 0x11000, PAGE), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(scif_unregister(p.b, 0x14000, PAGE), -1);
	CHECK_EQ(errno, ENXIO);
	CHECK_EQ(scif_unregister(p.b, -PAGE, PAGE), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(scif_readfrom(p.a, 0x40000, 4 * PAGE, 0x10000, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_unregister(p.b, 0x10000, 6 * PAGE), 0); /* with the hole */
	CHECK_EQ(scif_readfrom(p.a, 0x40000, PAGE, 0x10000, SCIF_RMA_SYNC), -1);
	CHECK_EQ(errno, ENXIO);
	scif_end_pair(&p);
}

static void fences(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = scif_pages(BIG), *b = scif_pages(BIG);
	off_t ao = scif_register(p.a, a, BIG, 0, BOTH, 0);
	off_t bo = scif_register(p.b, b, BIG, 0, BOTH, 0);
	volatile uint64_t *aw = (uint64_t *)a, *bw = (uint64_t *)b;
	double until = now_ms() + WAIT_MS;
	int mark, peers;

	check_case("fences");
	pattern_fill(a, BIG, 3);
	CHECK_EQ(scif_fence_wait(p.a, 12345), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(scif_writeto(p.a, ao, BIG, bo, 0), 0);
	CHECK_EQ(scif_fence_mark(p.a, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_mark(p.b, SCIF_FENCE_INIT_PEER, &peers), 0);
	CHECK_EQ(scif_fence_wait(p.b, peers), 0);
	CHECK_EQ(pattern_match(b, BIG, 3), BIG);
	CHECK_EQ(scif_fence_wait(p.a, mark), 0);
	CHECK_EQ(scif_fence_wait(p.b, mark), -1); /* not a mark of that endpoint */
	CHECK_EQ(errno, EINVAL);
	check_case("signals");
	CHECK_EQ(scif_vwriteto(p.a, a + 64, PAGE, bo + PAGE, 0), 0);
	CHECK_EQ(scif_fence_signal(p.a, ao + 8, 111, bo + 16, 222,
			 SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE),
		0);
	while ((aw[1] != 111 || bw[2] != 222) && now_ms() < until)
		usleep(100);
	CHECK_EQ(aw[1], 111);
	CHECK_EQ(bw[2], 222);
	/* of the peer's copies, as we see both sides */
	CHECK_EQ(scif_readfrom(p.b, bo + 2 * PAGE, PAGE, ao + 2 * PAGE, 0), 0);
	CHECK_EQ(scif_fence_signal(p.a, ao + 24, 333, bo + 32, 444,
			 SCIF_FENCE_INIT_PEER | SCIF_SIGNAL_LOCAL | SCIF_SIGNAL_REMOTE),
		0);
	while ((aw[3] != 333 || bw[4] != 444) && now_ms() < until)
		usleep(100);
	CHECK_EQ(aw[3], 333);
	CHECK_EQ(bw[4], 444);
	check_case("4-byte alignment");
	CHECK_EQ(scif_fence_signal(p.a, ao + 44, 0x5555555566666666, 0, 0,
			 SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL),
		0);
	CHECK_EQ(scif_fence_signal(p.a, 0, 0, bo + 52, 0x7777777788888888,
			 SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE),
		0);
	CHECK_EQ(scif_fence_mark(p.a, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_wait(p.a, mark), 0);
	while ((*(volatile uint32_t *)(b + 52) != 0x88888888 ||
		       *(volatile uint32_t *)(b + 56) != 0x77777777) &&
		now_ms() < until)
		usleep(100);
	CHECK_EQ(*(uint32_t *)(a + 44), 0x66666666);
	CHECK_EQ(*(uint32_t *)(a + 48), 0x55555555);
	CHECK_EQ(*(uint32_t *)(b + 52), 0x88888888);
	scif_end_pair(&p);
}

static void pinned(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = scif_pages(LEN), word[8] = "pinned!";
	scif_pinned_pages_t h;
	off_t o;

	check_case("pinned pages");
	CHECK_EQ(scif_pin_pages(a + 1, PAGE, BOTH, 0, &h), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(scif_pin_pages(a, LEN, BOTH, 0, &h), 0);
	o = scif_register_pinned_pages(p.a, h, 0, 0);
	CHECK(o > 0);
	CHECK_EQ(scif_unpin_pages(h), 0);
	CHECK_EQ(scif_unpin_pages(h), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(scif_register_pinned_pages(p.a, h, 0, 0), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(scif_vwriteto(p.b, word, 8, o, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(a, word, 8), 0);
	CHECK_EQ(scif_unregister(p.a, o, LEN), 0);
	scif_end_pair(&p);
}

/* Of a window whose memory was one before. */
static void lend_pages(struct scif_pair *p, off_t o)
{
	struct scif_range *r;

	if (!scif_can_map_again()) {
		CHECK_EQ(scif_get_pages(p->b, o + PAGE, 2 * PAGE, &r), -1);
		CHECK_EQ(errno, EOPNOTSUPP);
		return;
	}
	if (!CHECK_EQ(scif_get_pages(p->b, o + PAGE, 2 * PAGE, &r), 0))
		die("no pages");
	CHECK_EQ(r->nr_pages, 2);
	CHECK_EQ(r->prot_flags, BOTH);
	CHECK_EQ(r->phys_addr[1], (uintptr_t)r->va[1]);
	CHECK_EQ(memcmp(r->va[0], "rma", 4), 0);
	CHECK_EQ(scif_put_pages(r), 0);
	CHECK_EQ(scif_put_pages(r), -1);
	CHECK_EQ(errno, EINVAL);
}

/* The owner hears later that the last page is unmapped: its offset is free then. */
static off_t register_once_free(scif_epd_t e, void *a, off_t o)
{
	off_t got;

	do
		got = scif_register(e, a, 4 * PAGE, o, BOTH, SCIF_MAP_FIXED);
	while (got < 0 && errno == EADDRINUSE && !usleep(100));
	return got;
}

static void mapped(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = scif_pages(LEN), *m, *n;
	off_t o = 0x70000;

	check_case("mapped");
	pattern_fill(a, LEN, 9);
	CHECK_EQ(scif_register(p.a, a, 4 * PAGE, o, BOTH, SCIF_MAP_FIXED), o);
	CHECK_EQ(scif_register(p.a, a + 4 * PAGE, 12 * PAGE, o + 4 * PAGE, BOTH, SCIF_MAP_FIXED),
		o + 4 * PAGE);
	m = scif_mmap(NULL, LEN, SCIF_PROT_READ | SCIF_PROT_WRITE, 0, p.b, o); /* both windows */
	if (!scif_can_map()) {
		CHECK(m == SCIF_MMAP_FAILED && errno == EOPNOTSUPP);
		scif_end_pair(&p);
		return;
	}
	if (!CHECK(m != SCIF_MMAP_FAILED))
		return;
	CHECK_EQ(pattern_match(m, LEN, 9), LEN);
	m[5] = 77;
	a[LEN - 1] = 78;
	CHECK_EQ(a[5], 77);
	CHECK_EQ(m[LEN - 1], 78);
	CHECK_EQ(scif_vwriteto(p.b, "rma", 4, o + PAGE, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(m + PAGE, "rma", 4), 0);
	check_case("mapped: over other memory");
	n = scif_pages(2 * PAGE);
	CHECK(scif_mmap(n, PAGE, BOTH, SCIF_MAP_FIXED, p.b, o + PAGE) == n);
	CHECK_EQ(memcmp(n, "rma", 4), 0);
	CHECK_EQ(n[PAGE], 0);
	CHECK_EQ(scif_munmap(n, PAGE), 0);
	check_case("mapped: references");
	CHECK_EQ(scif_unregister(p.a, o, 4 * PAGE), 0);
	CHECK_EQ(scif_vwriteto(p.b, "rma", 4, o + PAGE, SCIF_RMA_SYNC), -1);
	CHECK_EQ(errno, ENXIO);
	CHECK_EQ(scif_register(p.a, a, 4 * PAGE, o, BOTH, SCIF_MAP_FIXED), -1);
	CHECK_EQ(errno, EADDRINUSE);
	m[6] = 79;
	CHECK_EQ(a[6], 79);
	CHECK_EQ(scif_munmap(m + PAGE, PAGE), 0); /* a hole */
	CHECK_EQ(scif_register(p.a, a, 4 * PAGE, o, BOTH, SCIF_MAP_FIXED), -1);
	CHECK_EQ(scif_munmap(m, 4 * PAGE), 0);
	CHECK_EQ(register_once_free(p.a, a, o), o);
	check_case("pages");
	lend_pages(&p, o);
	check_case("mapped: after the end");
	scif_end_pair(&p);
	m[LEN - 2] = 80;
	CHECK_EQ(a[LEN - 2], 80);
	CHECK_EQ(scif_munmap(m, LEN), 0);
}

/* A window counts as mapped until the last page of it is gone, wherever the holes came first. */
static void unmapped_by_pages(void)
{
	static const uint8_t orders[][4] = {
		{1, 0, 2, 3}, {1, 3, 2, 0}, {2, 3, 0, 1}, {0, 1, 2, 3}, {3, 2, 1, 0}, {0, 3, 1, 2}};
	struct scif_pair p = scif_make_pair();
	const off_t o = 0x70000;

	for (size_t i = 0; scif_can_map() && i < sizeof(orders) / sizeof(*orders); i++) {
		uint8_t *a = scif_pages(4 * PAGE), *m;

		check_case("unmapped: page %d, %d, %d", orders[i][0], orders[i][1], orders[i][2]);
		CHECK_EQ(scif_register(p.a, a, 4 * PAGE, o, BOTH, SCIF_MAP_FIXED), o);
		m = scif_mmap(NULL, 4 * PAGE, BOTH, 0, p.b, o);
		if (!CHECK(m != SCIF_MMAP_FAILED))
			break;
		CHECK_EQ(scif_unregister(p.a, o, 4 * PAGE), 0);
		for (int k = 0; k < 4; k++) {
			CHECK_EQ(scif_register(p.a, a, 4 * PAGE, o, BOTH, SCIF_MAP_FIXED), -1);
			CHECK_EQ(errno, EADDRINUSE);
			m[orders[i][k] * PAGE] = 1 + k;
			CHECK_EQ(a[orders[i][k] * PAGE], 1 + k);
			CHECK_EQ(scif_munmap(m + orders[i][k] * PAGE, PAGE), 0);
		}
		CHECK_EQ(register_once_free(p.a, a, o), o);
		CHECK_EQ(scif_unregister(p.a, o, 4 * PAGE), 0);
	}
	scif_end_pair(&p);
}

static void serve_mapped(scif_epd_t e, uint8_t *m)
{
	check_case("mapped by another process");
	CHECK_EQ(scif_register(e, m, LEN, 0x1000, BOTH, SCIF_MAP_FIXED), 0x1000);
	m[1] = 0;
	CHECK_EQ(scif_send(e, "g", 1, SCIF_SEND_BLOCK), 1);
	while (!*(volatile uint8_t *)(m + 1))
		usleep(100);
	CHECK_EQ(m[1], 200);
	m[2] = 201;
}

static void use_mapped(scif_epd_t e, struct scif_child *c)
{
	volatile uint8_t *map;
	char go;

	CHECK_EQ(scif_recv(e, &go, 1, SCIF_RECV_BLOCK), 1);
	map = scif_mmap(NULL, LEN, BOTH, 0, e, 0x1000);
	if (!CHECK(map != SCIF_MMAP_FAILED))
		return;
	map[1] = 200;
	while (map[2] != 201)
		usleep(100);
	CHECK_EQ(scif_raw_poll(e, 0, WAIT_MS) & POLLHUP, POLLHUP);
	CHECK_EQ(scif_close(e), 0);
	map[3] = 202;
	CHECK_EQ(map[1], 200);
	scif_tell(c->to, 0);
	scif_join(c);
	CHECK_EQ(map[3], 202); /* nor does its death take it away */
	CHECK_EQ(scif_munmap((void *)map, LEN), 0);
}

/* Two processes: the offset goes in a message, and is used at once. */
static void server(int in, int out)
{
	struct scif_portID peer;
	uint8_t *m = scif_pages(BIG);
	scif_epd_t l, e;
	uint16_t port;
	char done;

	l = scif_listener(1, &port);
	scif_tell(out, port);
	CHECK_EQ(scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC), 0);
	for (unsigned i = 0; i < 20; i++) {
		off_t o = scif_register(e, m, BIG, 0, BOTH, 0);

		pattern_fill(m, PAGE, i);
		CHECK_EQ(scif_send(e, &o, sizeof(o), SCIF_SEND_BLOCK), sizeof(o));
		CHECK_EQ(scif_recv(e, &done, 1, SCIF_RECV_BLOCK), 1);
		CHECK_EQ(pattern_match(m, BIG, i + 100), BIG);
		CHECK_EQ(scif_unregister(e, o, BIG), 0);
	}
	if (scif_can_map())
		serve_mapped(e, scif_pages(LEN));
	scif_close(e);
	scif_hear(in); /* lives on: it has the pages */
	scif_close(l);
}

static void two_processes(void)
{
	struct scif_child c = scif_fork(server);
	scif_epd_t e = scif_dial(0, scif_hear(c.from));
	uint8_t *m = scif_pages(BIG);
	off_t o;

	check_case("two processes");
	for (unsigned i = 0; i < 20; i++) {
		CHECK_EQ(scif_recv(e, &o, sizeof(o), SCIF_RECV_BLOCK), sizeof(o));
		CHECK_EQ(scif_vreadfrom(e, m, PAGE, o, SCIF_RMA_SYNC), 0);
		CHECK_EQ(pattern_match(m, PAGE, i), PAGE);
		pattern_fill(m, BIG, i + 100);
		CHECK_EQ(scif_vwriteto(e, m, BIG, o,
				 i % 2 ? SCIF_RMA_SYNC : SCIF_RMA_SYNC | SCIF_RMA_ORDERED),
			0);
		CHECK_EQ(scif_send(e, "d", 1, SCIF_SEND_BLOCK), 1);
	}
	if (scif_can_map()) {
		use_mapped(e, &c);
		return;
	}
	CHECK_EQ(scif_raw_poll(e, 0, WAIT_MS) & POLLHUP, POLLHUP);
	CHECK_EQ(scif_close(e), 0);
	scif_tell(c.to, 0);
	scif_join(&c);
}

/* A page that is mapped as often as somebody likes. */
static void lender(int in, int out)
{
	uint8_t *m = scif_pages(PAGE);
	struct scif_portID peer;
	uint16_t port;
	scif_epd_t l = scif_listener(1, &port), e;

	scif_tell(out, port);
	CHECK_EQ(scif_accept(l, &peer, &e, SCIF_ACCEPT_SYNC), 0);
	CHECK_EQ(scif_register(e, m, PAGE, PAGE, BOTH, SCIF_MAP_FIXED), PAGE);
	scif_tell(out, 0);
	scif_hear(in);
	scif_close(e);
	scif_close(l);
}

/* One more mapping than there can be fails, and takes nothing away. */
static void map_too_often(scif_epd_t e)
{
	enum { MOST = 4096 };
	static void *at[MOST + 1];
	uint8_t *ours = scif_pages(PAGE);
	int n;

	for (n = 0; n <= MOST; n++) {
		errno = 0;
		at[n] = scif_mmap(NULL, PAGE, BOTH, 0, e, PAGE);
		if (at[n] == SCIF_MMAP_FAILED)
			break;
	}
	CHECK_EQ(n, MOST);
	CHECK_EQ(errno, ENOMEM);
	ours[1] = 2;
	CHECK(scif_mmap(ours, PAGE, BOTH, SCIF_MAP_FIXED, e, PAGE) == SCIF_MMAP_FAILED);
	CHECK_EQ(errno, ENOMEM);
	CHECK_EQ(ours[1], 2);
	for (int i = 0; i < n; i++)
		CHECK_EQ(scif_munmap(at[i], PAGE), 0);
	CHECK(scif_mmap(ours, PAGE, BOTH, SCIF_MAP_FIXED, e, PAGE) == ours);
	CHECK_EQ(ours[1], 0);
	CHECK_EQ(scif_munmap(ours, PAGE), 0);
}

static void too_many_mappings(struct scif_child *c)
{
	scif_epd_t e = scif_dial(0, scif_hear(c->from));

	check_case("too many mappings");
	scif_hear(c->from);
	if (scif_can_map())
		map_too_often(e);
	scif_close(e);
	scif_tell(c->to, 0);
	scif_join(c);
}

int main(void)
{
	/* First: TSan lets a child of several threads start none. */
	struct scif_child lends = scif_fork(lender);

	two_processes();
	copies();
	bad_memory();
	places();
	ranges();
	fences();
	pinned();
	mapped();
	unmapped_by_pages();
	too_many_mappings(&lends);
	return check_result();
}
