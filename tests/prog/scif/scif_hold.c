// SPDX-License-Identifier: BSD-3-Clause
/*
 * Windows hold their pages: what their owner does to its mapping of them, and to the addresses,
 * changes nothing for copies, signals and mappings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/scif_ends.h"

enum { PAGE = 4096, LEN = 16 * PAGE, OFF = 0x100000, OTHER = 0x800000, WAIT_MS = 10000 };
enum { READ = SCIF_PROT_READ, WRITE = SCIF_PROT_WRITE, BOTH = READ | WRITE };

/* ---- memory of several kinds ---- */

static uint8_t *private_memory(void)
{
	return scif_pages(LEN);
}

static uint8_t *shared_memory(void)
{
	return mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Two areas, the second of another file, at its third page. */
static uint8_t *files(void)
{
	uint8_t *p = shared_memory();
	int fd = memfd_create("scif_hold", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, LEN))
		die("memfd");
	mmap(p + LEN / 2, LEN / 2, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 2 * PAGE);
	close(fd);
	return p;
}

static const struct kind {
	const char *name;
	uint8_t *(*make)(void);
	bool mappable; /* by the peer */
} kinds[] = {{"private", private_memory, true}, {"shared", shared_memory, false},
	{"files", files, false}};

static bool holds(const struct kind *k)
{
	return !k->mappable || scif_can_map();
}

/* ---- what the owner does to its mapping ---- */

static void unmap(uint8_t *p)
{
	CHECK_EQ(munmap(p, LEN), 0);
}

static void map_over(uint8_t *p)
{
	CHECK(mmap(p, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		      0) == p);
	memset(p, 0xee, LEN);
}

static void protect(uint8_t *p)
{
	CHECK_EQ(mprotect(p, LEN, PROT_NONE), 0);
}

static void move(uint8_t *p)
{
	void *to = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mremap(p, LEN / 2, LEN / 2, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
		die("mremap");
	CHECK_EQ(munmap(p + LEN / 2, LEN / 2), 0);
}

static const struct {
	const char *name;
	void (*change)(uint8_t *p);
} changes[] = {
	{"unmapped", unmap}, {"mapped over", map_over}, {"no rights", protect}, {"moved", move}};

/* Copies of both sides in both directions: a's window is at OFF, b's at OTHER. */
static void copies_work(const struct scif_pair *p, uint8_t *b)
{
	uint8_t *m = scif_pages(LEN);

	CHECK_EQ(scif_vreadfrom(p->b, m, LEN, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(m, LEN, 1), LEN);
	pattern_fill(b, LEN, 2);
	CHECK_EQ(scif_writeto(p->b, OTHER, LEN, OFF, SCIF_RMA_SYNC), 0);
	memset(b, 0, LEN);
	CHECK_EQ(scif_readfrom(p->b, OTHER, LEN, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(b, LEN, 2), LEN);
	/* and from the side whose window it is */
	pattern_fill(b, LEN, 3);
	CHECK_EQ(scif_readfrom(p->a, OFF, LEN, OTHER, SCIF_RMA_SYNC), 0);
	memset(b, 0, LEN);
	CHECK_EQ(scif_writeto(p->a, OFF, LEN, OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(b, LEN, 3), LEN);
	munmap(m, LEN);
}

static void signals_work(const struct scif_pair *p)
{
	double until = now_ms() + WAIT_MS;
	uint64_t got[2] = {0};
	int mark;

	CHECK_EQ(scif_fence_signal(
			 p->a, OFF + 8, 111, 0, 0, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_LOCAL),
		0);
	CHECK_EQ(scif_fence_signal(
			 p->b, 0, 0, OFF + 20, 222, SCIF_FENCE_INIT_SELF | SCIF_SIGNAL_REMOTE),
		0);
	CHECK_EQ(scif_fence_mark(p->b, SCIF_FENCE_INIT_SELF, &mark), 0);
	CHECK_EQ(scif_fence_wait(p->b, mark), 0);
	while ((got[0] != 111 || got[1] != 222) && now_ms() < until) {
		CHECK_EQ(scif_vreadfrom(p->b, &got[0], 8, OFF + 8, SCIF_RMA_SYNC), 0);
		CHECK_EQ(scif_vreadfrom(p->b, &got[1], 8, OFF + 20, SCIF_RMA_SYNC), 0);
	}
	CHECK_EQ(got[0], 111);
	CHECK_EQ(got[1], 222);
}

static void mappings_work(const struct scif_pair *p)
{
	uint8_t *m = scif_mmap(NULL, LEN, BOTH, 0, p->b, OFF);

	if (!CHECK(m != SCIF_MMAP_FAILED))
		return;
	pattern_fill(m, LEN, 4);
	CHECK_EQ(scif_readfrom(p->b, OTHER, 8, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_munmap(m, LEN), 0);
}

static void one(const struct kind *k, unsigned change)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = k->make(), *b = scif_pages(LEN), *twin;

	check_case("%s, %s", k->name, changes[change].name);
	pattern_fill(a, LEN, 1);
	CHECK_EQ(scif_register(p.a, a, LEN, OFF, BOTH, SCIF_MAP_FIXED), OFF);
	CHECK_EQ(scif_register(p.b, b, LEN, OTHER, BOTH, SCIF_MAP_FIXED), OTHER);
	changes[change].change(a);
	copies_work(&p, b);
	signals_work(&p);
	if (k->mappable)
		mappings_work(&p);
	/* the addresses are free for others, whose windows are their own */
	twin = mmap(a, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	CHECK(twin == a);
	pattern_fill(twin, LEN, 7);
	CHECK_EQ(scif_register(p.a, twin, LEN, 2 * OTHER, BOTH, SCIF_MAP_FIXED), 2 * OTHER);
	CHECK_EQ(scif_vwriteto(p.b, "window", 6, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(twin, LEN, 7), LEN);
	CHECK_EQ(scif_readfrom(p.b, OTHER, LEN, 2 * OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(b, LEN, 7), LEN);
	CHECK_EQ(scif_unregister(p.a, OFF, LEN), 0);
	CHECK_EQ(pattern_match(twin, LEN, 7), LEN);
	CHECK_EQ(scif_unregister(p.a, 2 * OTHER, LEN), 0);
	scif_end_pair(&p);
	CHECK_EQ(pattern_match(twin, LEN, 7), LEN);
	munmap(twin, LEN);
	munmap(b, LEN);
}

/* scif_mmap() over memory that is a window itself leaves that window its pages. */
static void own_window(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = scif_pages(LEN), *b = scif_pages(LEN), *m = scif_pages(LEN);

	check_case("mapped over a window");
	pattern_fill(a, LEN, 1);
	CHECK_EQ(scif_register(p.a, a, LEN, OFF, BOTH, SCIF_MAP_FIXED), OFF);
	pattern_fill(b, LEN, 2);
	CHECK_EQ(scif_register(p.b, b, LEN, OTHER, BOTH, SCIF_MAP_FIXED), OTHER);
	CHECK(scif_mmap(a, LEN, BOTH, SCIF_MAP_FIXED, p.a, OTHER) == a);
	CHECK_EQ(pattern_match(a, LEN, 2), LEN);
	CHECK_EQ(scif_vreadfrom(p.b, m, LEN, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(m, LEN, 1), LEN);
	CHECK_EQ(scif_munmap(a, LEN), 0);
	CHECK_EQ(scif_vreadfrom(p.b, m, LEN, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(m, LEN, 1), LEN);
	scif_end_pair(&p);
}

/* From scif_pin_pages() on, until the last window, too. */
static void pinned(const struct kind *k)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = k->make(), *m = scif_pages(LEN);
	scif_pinned_pages_t h;

	check_case("pinned, %s", k->name);
	pattern_fill(a, LEN, 1);
	CHECK_EQ(scif_pin_pages(a, LEN, BOTH, 0, &h), 0);
	map_over(a);
	CHECK_EQ(scif_register_pinned_pages(p.a, h, OFF, SCIF_MAP_FIXED), OFF);
	CHECK_EQ(scif_register_pinned_pages(p.a, h, OTHER, SCIF_MAP_FIXED), OTHER);
	CHECK_EQ(scif_unpin_pages(h), 0);
	CHECK_EQ(scif_vwriteto(p.b, "pages", 5, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_unregister(p.a, OFF, LEN), 0);
	CHECK_EQ(scif_vreadfrom(p.b, m, LEN, OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(memcmp(m, "pages", 5), 0);
	pattern_fill(m, 5, 1);
	CHECK_EQ(pattern_match(m, LEN, 1), LEN);
	CHECK_EQ(a[0], 0xee);
	scif_end_pair(&p);
}

/* Windows of fresh memory, one after the other, are all held, and can all be mapped. */
static void many(void)
{
	enum { WINDOWS = 100, FAR = 0x4000000 };
	struct scif_pair p = scif_make_pair();
	uint8_t *a[WINDOWS], *m, word;

	check_case("many");
	for (int i = 0; i < WINDOWS; i++) {
		a[i] = scif_pages(LEN);
		pattern_fill(a[i], LEN, i);
		CHECK_EQ(scif_register(p.a, a[i], LEN, FAR + i * LEN, BOTH, SCIF_MAP_FIXED),
			FAR + i * LEN);
	}
	for (int i = 0; i < WINDOWS; i += 2)
		munmap(a[i], LEN);
	for (int i = 0; i < WINDOWS; i++) {
		CHECK_EQ(scif_vreadfrom(p.b, &word, 1, FAR + i * LEN + 7, SCIF_RMA_SYNC), 0);
		CHECK_EQ(word, pattern_byte(i, 7));
	}
	m = scif_mmap(NULL, WINDOWS * LEN, BOTH, 0, p.b, FAR);
	if (CHECK(m != SCIF_MMAP_FAILED))
		CHECK_EQ(pattern_match(m + (WINDOWS - 1) * LEN, LEN, WINDOWS - 1), LEN);
	scif_end_pair(&p);
}

/* What its peer does in another process. */
static void peer(int in, int out)
{
	scif_epd_t e = scif_dial(0, scif_hear(in));
	uint8_t *m = scif_pages(LEN);
	char c;

	CHECK_EQ(scif_recv(e, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(scif_vreadfrom(e, m, LEN, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(m, LEN, 1), LEN);
	pattern_fill(m, LEN, 2);
	CHECK_EQ(scif_vwriteto(e, m, LEN, OFF, SCIF_RMA_SYNC), 0);
	memset(m, 0, LEN);
	CHECK_EQ(scif_vreadfrom(e, m, LEN, OFF, SCIF_RMA_SYNC), 0);
	CHECK_EQ(pattern_match(m, LEN, 2), LEN);
	scif_tell(out, 1);
	CHECK_EQ(scif_recv(e, &c, 1, SCIF_RECV_BLOCK), 1);
	CHECK_EQ(scif_close(e), 0);
}

static void other_process(const struct kind *k, bool forks)
{
	struct scif_child c = scif_fork(peer);
	uint8_t *a = k->make(), *m = scif_pages(LEN);
	struct scif_portID from;
	scif_epd_t l, e;
	uint16_t port;
	int status;

	check_case("another process, %s%s", k->name, forks ? ", and a fork" : "");
	pattern_fill(a, LEN, 1);
	l = scif_listener(1, &port);
	scif_tell(c.to, port);
	CHECK_EQ(scif_accept(l, &from, &e, SCIF_ACCEPT_SYNC), 0);
	CHECK_EQ(scif_register(e, a, LEN, OFF, BOTH, SCIF_MAP_FIXED), OFF);
	munmap(a, LEN);
	if (forks) { /* which takes mapped memory back for a moment */
		if (!fork())
			_exit(0);
		wait(&status);
	}
	CHECK_EQ(scif_send(e, "g", 1, SCIF_SEND_BLOCK), 1);
	CHECK_EQ(scif_hear(c.from), 1);
	/* the pages are there for us, too */
	CHECK_EQ(scif_register(e, m, LEN, OTHER, BOTH, SCIF_MAP_FIXED), OTHER);
	CHECK_EQ(scif_send(e, "e", 1, SCIF_SEND_BLOCK), 1);
	scif_join(&c);
	CHECK_EQ(scif_close(e), 0);
	CHECK_EQ(scif_close(l), 0);
}

/* Pages that nothing holds: whose they are is told of the hole, and the connection lives on. */
static void not_held(void)
{
	struct scif_pair p = scif_make_pair();
	uint8_t *a = scif_pages(2 * PAGE), *b = scif_pages(2 * PAGE), word[8];

	check_case("not held");
	CHECK_EQ(mprotect(a, 2 * PAGE, PROT_READ), 0); /* such cannot be shared */
	CHECK_EQ(scif_register(p.a, a, 2 * PAGE, OFF, READ, SCIF_MAP_FIXED), OFF);
	CHECK_EQ(scif_register(p.b, b, 2 * PAGE, OTHER, BOTH, SCIF_MAP_FIXED), OTHER);
	CHECK_EQ(munmap(a + PAGE, PAGE), 0);
	CHECK_EQ(scif_writeto(p.a, OFF, PAGE, OTHER, SCIF_RMA_SYNC), 0);
	CHECK_EQ(scif_writeto(p.a, OFF + 8, PAGE, OTHER, SCIF_RMA_SYNC), -1);
	CHECK_EQ(errno, ENXIO);
	CHECK_EQ(scif_send(p.a, "on", 2, SCIF_SEND_BLOCK), 2);
	CHECK_EQ(scif_recv(p.b, word, 2, SCIF_RECV_BLOCK), 2);
	scif_end_pair(&p);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!holds(&kinds[i]))
			continue;
		for (unsigned c = 0; c < sizeof(changes) / sizeof(*changes); c++)
			one(&kinds[i], c);
		pinned(&kinds[i]);
		other_process(&kinds[i], false);
		other_process(&kinds[i], true);
	}
	if (scif_can_map()) {
		own_window();
		many();
	}
	not_held();
	return check_result();
}
