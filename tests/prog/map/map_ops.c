// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer writes, reads and updates memory that it maps: every byte arrives and no other changes,
 * whatever the size and alignment; afterwards the memory is private again, as if nothing had
 * happened to it.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum { SIZE = 4 << 20, PAGE = 4096, ADDS = 2000, ROUNDS = 40 };

static const struct {
	size_t off, len;
} pieces[] = {
	{0, 1},
	{1, 7},
	{4090, 13},
	{64, 64},
	{4096, 4096},
	{8191, 5000},
	{12345, 65536},
	{1 << 20, 262144},
	{(1 << 20) + 3, 262144 + 13},
	{777, 3 << 20},
};

enum { PIECES = sizeof pieces / sizeof *pieces };

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = SIZE;
	return o;
}

static void do_one(struct vp_end *e, const struct vp_addr *to, enum ibv_wr_opcode op, int i)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(e, i, op, IBV_SEND_SIGNALED, pieces[i].off, pieces[i].len, to,
			 pieces[i].off),
		0);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, i);
}

static void add(struct vp_end *e, const struct vp_addr *to, size_t off, uint64_t n)
{
	struct ibv_sge sge = vp_sge(e, 0, 8);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					 .send_flags = IBV_SEND_SIGNALED,
					 .sg_list = &sge,
					 .num_sge = 1};
	struct ibv_wc wc;

	wr.wr.atomic.remote_addr = to->addr + off;
	wr.wr.atomic.rkey = to->rkey;
	wr.wr.atomic.compare_add = n;
	CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, 0);
}

/* Both make a control call, by which a new weftd learns of them. */
static void publish(struct vp_end *e, int fd)
{
	vp_sync(fd);
	CHECK_EQ(ibv_destroy_comp_channel(ibv_create_comp_channel(e->ctx)), 0);
	vp_sync(fd);
}

static void poster(int fd, void *arg)
{
	struct vp_opts o = options();
	struct vp_addr mine, to;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	mine = vp_addr(&e);
	to = vp_swap(fd, &mine);
	publish(&e, fd);
	vp_connect(&e, &to);
	vp_sync(fd);
	for (int i = 0; i < PIECES; i++) {
		pattern_fill(e.buf + pieces[i].off, pieces[i].len, i);
		do_one(&e, &to, IBV_WR_RDMA_WRITE, i);
		vp_sync(fd); /* it looks */
		vp_sync(fd);
		memset(e.buf, 0, SIZE);
		do_one(&e, &to, IBV_WR_RDMA_READ, i);
		check_case("read %d", i);
		CHECK(pattern_filled(e.buf + pieces[i].off, pieces[i].len, 100 + i));
		CHECK(pattern_all(e.buf, pieces[i].off, 0));
		CHECK(pattern_all(e.buf + pieces[i].off + pieces[i].len,
			SIZE - pieces[i].off - pieces[i].len, 0));
		vp_sync(fd);
		vp_sync(fd); /* it clears */
	}
	check_case("adds from a peer");
	for (int i = 0; i < ADDS; i++)
		add(&e, &to, PAGE, 1);
	check_case("mapped, not copied");
	CHECK_EQ(status_of(getpid(), "counters", "cma_ops"), 0);
	CHECK_RANGE(status_of(getpid(), "counters", "map_bytes"), SIZE, INT64_MAX);
	CHECK_EQ(status_of(getpid(), "counters", "map_atomics"), ADDS);
	vp_sync(fd);
	vp_free(&e);
}

enum { AREAS_OF_OTHERS = 2 };

/* What the manual says of memory while it is mapped. */
static void is_shared(uint8_t *p)
{
	uint8_t *twice;

	check_case("while it is mapped");
	memset(p, 6, PAGE);
	CHECK(madvise(p, PAGE, MADV_FREE) && errno == EINVAL);
	CHECK(madvise(p, PAGE, MADV_WIPEONFORK) && errno == EINVAL);
	CHECK_EQ(madvise(p, PAGE, MADV_DONTNEED), 0);
	CHECK(pattern_all(p, PAGE, 6));
	twice = mremap(p, 0, PAGE, MREMAP_MAYMOVE);
	CHECK(twice != MAP_FAILED && pattern_all(twice, PAGE, 6));
	CHECK_EQ(madvise(p, PAGE, MADV_REMOVE), 0);
	CHECK(pattern_all(p, PAGE, 0) && pattern_all(twice, PAGE, 0));
	munmap(twice, PAGE);
}

/* Private again: anonymous memory does all this. */
static void is_private(uint8_t *p, size_t len, unsigned areas_before)
{
	uint8_t *q;

	check_case("after dereg");
	/* A sanitizer's allocator may have mapped something meanwhile. */
	CHECK_RANGE(areas(), areas_before, areas_before + AREAS_OF_OTHERS);
	CHECK_EQ(madvise(p, PAGE, MADV_DONTNEED), 0);
	CHECK(pattern_all(p, PAGE, 0));
	CHECK_EQ(madvise(p, len, MADV_FREE), 0);
	CHECK(madvise(p, PAGE, MADV_REMOVE) && errno == EINVAL);
	CHECK(mremap(p, 0, PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EINVAL);
	memset(p, 9, len);
	q = mremap(p, len, 2 * len, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && pattern_all(q, len, 9) && pattern_all(q + len, len, 0));
	munmap(q, 2 * len);
}

static void owner(bool restart)
{
	struct vp_child c = vp_fork(poster, NULL);
	struct vp_opts o = options();
	unsigned areas_before;
	struct vp_addr mine, to;
	struct vp_end e;
	uint64_t sum;

	vp_make(&e, vp_open(), &o);
	check_case("it is mapped");
	CHECK_EQ(share_count("regions"), 1);
	CHECK_EQ(share_count("bytes"), SIZE);
	mine = vp_addr(&e);
	to = vp_swap(c.fd, &mine);
	if (restart)
		weftd_down(); /* the next control call of each process tells a new one what it has
			       */
	publish(&e, c.fd);
	vp_connect(&e, &to);
	vp_sync(c.fd);
	for (int i = 0; i < PIECES; i++) {
		uint8_t *at = e.buf + pieces[i].off;

		vp_sync(c.fd);
		check_case("write %d", i);
		CHECK(pattern_filled(at, pieces[i].len, i));
		CHECK(pattern_all(e.buf, pieces[i].off, 0));
		CHECK(pattern_all(at + pieces[i].len, SIZE - pieces[i].off - pieces[i].len, 0));
		pattern_fill(at, pieces[i].len, 100 + i);
		vp_sync(c.fd);
		vp_sync(c.fd);
		memset(e.buf, 0, SIZE);
		vp_sync(c.fd);
	}
	vp_sync(c.fd);
	memcpy(&sum, e.buf + PAGE, sizeof sum);
	CHECK_EQ(sum, ADDS);
	CHECK_EQ(ibv_destroy_qp(e.qp), 0);
	pattern_fill(e.buf, SIZE, 5);
	CHECK_EQ(ibv_dereg_mr(e.mr), 0);
	CHECK(pattern_filled(e.buf, SIZE, 5));
	CHECK_EQ(share_count("regions"), 0);
	CHECK_EQ(share_count("bytes"), 0);
	areas_before = areas();
	e.mr = ibv_reg_mr(e.pd, e.buf, SIZE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	CHECK(e.mr && share_count("regions") == 1 && pattern_filled(e.buf, SIZE, 5));
	is_shared(e.buf);
	pattern_fill(e.buf, SIZE, 5);
	CHECK_EQ(ibv_dereg_mr(e.mr), 0);
	CHECK(pattern_filled(e.buf, SIZE, 5));
	is_private(e.buf, SIZE, areas_before);
	vp_join(&c);
}

/* Memory of malloc, whose pages are its neighbours' too, while it goes on working. */
static void heap(struct ibv_pd *pd)
{
	uint8_t *block[64], *other[64];
	struct ibv_mr *mr[64];

	check_case("the heap");
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 64; i++) {
			size_t len = 16 + 977 * i % 20000;

			block[i] = malloc(len);
			other[i] = malloc(100);
			memset(block[i], i, len);
			memset(other[i], ~i, 100);
			mr[i] = ibv_reg_mr(pd, block[i], len,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
			if (!mr[i])
				die("reg_mr");
			free(other[i]);
			other[i] = malloc(3000);
			memset(other[i], ~i, 3000);
		}
		for (int k = 0; k < 64; k++) {
			int i = round & 1 ? k : 63 - k;

			CHECK(pattern_all(block[i], 16 + 977 * i % 20000, i));
			CHECK(pattern_all(other[i], 3000, ~i));
			if (ibv_dereg_mr(mr[i]))
				die("dereg_mr");
			CHECK(pattern_all(block[i], 16 + 977 * i % 20000, i));
			free(block[i]);
			free(other[i]);
		}
	}
	CHECK_EQ(share_count("bytes"), 0);
	CHECK_EQ(share_count("left_behind"), 0);
}

/* What the program does to memory that is still registered must not be undone by dereg. */
static void moved_or_gone(struct ibv_pd *pd)
{
	const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	size_t len = 64 * PAGE;
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, p, len, rights);
	uint8_t *q;

	check_case("moved while registered");
	pattern_fill(p, len, 1);
	q = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mremap(p, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	CHECK(mmap(p, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		      0) == p);
	pattern_fill(p, len, 2);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK(pattern_filled(q, len, 1) && pattern_filled(p, len, 2));
	mr = ibv_reg_mr(pd, p, len, rights);
	pattern_fill(p, len, 3);
	CHECK(pattern_filled(q, len, 1));
	CHECK_EQ(madvise(q, len, MADV_DONTNEED), 0);
	CHECK(pattern_all(q, len, 0));
	check_case("gone while registered");
	munmap(p, len);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK(mmap(p, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		      0) == p);
	mr = ibv_reg_mr(pd, p, len, rights);
	CHECK(pattern_all(p, len, 0));
	CHECK_EQ(share_count("regions"), 1);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(p, len);
	munmap(q, len);
}

/* ---- what was said of memory ---- */

/* Has every area of [p, p + len) that flag in /proc/self/smaps? */
static bool all_have(const uint8_t *p, size_t len, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long lo = 0, hi = 0, start = (uintptr_t)p, end = start + len;
	bool within = false;
	size_t found = 0;
	char line[512];

	while (f && fgets(line, sizeof line, f)) {
		if (islower(line[0]) || isdigit(line[0])) { /* the head of an area */
			CHECK_EQ(sscanf(line, "%lx-%lx ", &lo, &hi), 2);
			within = lo < end && hi > start;
			lo = lo > start ? lo : start;
			hi = hi < end ? hi : end;
		} else if (within && !strncmp(line, "VmFlags:", 8) && strstr(line, flag)) {
			found += hi - lo;
		}
	}
	if (f)
		fclose(f);
	return found == len;
}

static struct ibv_mr *reg_mapped(struct ibv_pd *pd, uint8_t *p, size_t len)
{
	int64_t before = share_count("bytes");
	struct ibv_mr *mr =
		ibv_reg_mr(pd, p, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	if (!mr)
		die("reg_mr");
	CHECK_EQ(share_count("bytes"), before + (int64_t)len);
	return mr;
}

enum { ADVICE_LOCK = -1, TRIES = 5 };

static const struct advice {
	const char *name;
	int advice;
	const char *flag;
	int beside; /* 0, or advice that makes this one worth looking for */
} advices[] = {
	{"DONTFORK", MADV_DONTFORK, " dc"},
	{"DONTDUMP", MADV_DONTDUMP, " dd"},
	{"mlock", ADVICE_LOCK, " lo"},
	{"HUGEPAGE beside DONTDUMP", MADV_HUGEPAGE, " hg", MADV_DONTDUMP},
	{"NOHUGEPAGE beside DONTFORK", MADV_NOHUGEPAGE, " nh", MADV_DONTFORK},
};

/* True if /proc tells of it: not of what a kernel lacks, an emulator hides, or a sanitizer. */
static bool say(const struct advice *a, uint8_t *p, size_t len)
{
	int rc = a->advice == ADVICE_LOCK ? mlock(p, len) : madvise(p, len, a->advice);

	if (!rc && a->beside)
		rc = madvise(p, len, a->beside);
	return !rc && all_have(p, len, a->flag);
}

static uint8_t *fresh(size_t len)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* Said before: of an area, of which all is registered or a part. */
static void said_before(
	struct ibv_pd *pd, const struct advice *a, size_t pages, size_t from, size_t n)
{
	uint8_t *p = fresh(pages * PAGE);
	struct ibv_mr *mr;

	check_case("%s, %zu of %zu pages registered", a->name, n, pages);
	if (say(a, p, pages * PAGE)) {
		mr = reg_mapped(pd, p + from * PAGE, n * PAGE);
		CHECK(all_have(p, pages * PAGE, a->flag));
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		CHECK(all_have(p, pages * PAGE, a->flag));
	}
	munmap(p, pages * PAGE);
}

/*
 * Said while it is registered; tells whether it is there afterwards.  In a process of its own:
 * there is time for few looks, and for none where this one got no CPU for too long.
 */
static void said_meanwhile(int fd, void *arg)
{
	const struct advice *a = arg;
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	size_t len = 64 * PAGE;
	uint8_t *p = fresh(len);
	struct ibv_mr *mr = reg_mapped(pd, p, len);
	bool told = say(a, p, len);

	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_tell(fd, !told || all_have(p, len, a->flag));
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* One of two regions goes, and takes its pages alone back. */
static void in_two_steps(struct ibv_pd *pd, const struct advice *a, bool first)
{
	uint8_t *p = fresh(4 * PAGE);
	struct ibv_mr *all, *half;

	check_case("%s, of two regions the %s goes before", a->name, first ? "large" : "small");
	if (say(a, p, 4 * PAGE)) {
		all = reg_mapped(pd, p, 4 * PAGE);
		half = ibv_reg_mr(pd, p + 2 * PAGE, 2 * PAGE,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		CHECK_EQ(ibv_dereg_mr(first ? all : half), 0);
		CHECK(all_have(p, 4 * PAGE, a->flag));
		CHECK_EQ(ibv_dereg_mr(first ? half : all), 0);
		CHECK(all_have(p, 4 * PAGE, a->flag));
	}
	munmap(p, 4 * PAGE);
}

static void advice_stays(struct ibv_pd *pd)
{
	for (unsigned i = 0; i < sizeof advices / sizeof *advices; i++) {
		said_before(pd, &advices[i], 64, 0, 64);
		said_before(pd, &advices[i], 64, 31, 2);
		said_before(pd, &advices[i], 2, 0, 2);
		said_before(pd, &advices[i], 2, 0, 1);
		in_two_steps(pd, &advices[i], true);
		in_two_steps(pd, &advices[i], false);
	}
}

static void by_auto(int fd, void *arg)
{
	(void)fd;
	setenv("WEFT_SHARE", "auto", 1);
	owner(*(bool *)arg);
}

/* Auto would give up on regions that nobody uses. */
static void by_always(int fd, void *arg)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	(void)fd;
	(void)arg;
	setenv("WEFT_SHARE", "always", 1);
	ctx = vp_open();
	pd = ibv_alloc_pd(ctx);
	heap(pd);
	moved_or_gone(pd);
	advice_stays(pd);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	struct vp_child c;

	for (int i = 0; i < 2; i++) {
		bool restart = i;

		c = vp_fork(by_auto, &restart);
		vp_join(&c);
	}
	c = vp_fork(by_always, NULL);
	vp_join(&c);
	setenv("WEFT_SHARE", "always", 1);
	for (unsigned i = 0; i < sizeof advices / sizeof *advices; i++) {
		struct advice a = advices[i];
		bool stays = false;

		check_case("%s while it is registered", a.name);
		for (int tries = 0; !stays && tries < TRIES; tries++) {
			c = vp_fork(said_meanwhile, &a);
			stays = vp_hear(c.fd);
			vp_join(&c);
		}
		CHECK(stays);
	}
	return check_result();
}
