// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer writes, reads and updates memory that it maps: every byte arrives and no other changes,
 * whatever the size and alignment; afterwards the memory is private again, as if nothing had
 * happened to it.
 */
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
	return check_result();
}
