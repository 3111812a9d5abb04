// SPDX-License-Identifier: BSD-3-Clause
/* ibv_reg_mr(3): what it refuses, what it costs, how keys live; and objects that are in use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	PAGE = 4096,
	LW = IBV_ACCESS_LOCAL_WRITE,
	RW = IBV_ACCESS_REMOTE_WRITE,
	RR = IBV_ACCESS_REMOTE_READ,
	RA = IBV_ACCESS_REMOTE_ATOMIC,
	MANY = 100000,
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;

static uint8_t *map(size_t len, int prot)
{
	void *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap of %zu", len);
	return p;
}

static void try(const char *what, void *p, size_t len, int access, int want)
{
	struct ibv_mr *mr;

	check_case("%s, access %#x", what, access);
	errno = 0;
	mr = ibv_reg_mr(pd, p, len, access);
	if (!want) {
		if (!CHECK(mr))
			return;
		CHECK(mr->addr == p && mr->length == len && mr->pd == pd && mr->context == ctx);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		return;
	}
	CHECK(!mr);
	CHECK_EQ(errno, want);
	if (mr)
		ibv_dereg_mr(mr);
}

static void refusals(void)
{
	uint8_t *rw = map(16 * PAGE, PROT_READ | PROT_WRITE);
	uint8_t *ro = map(4 * PAGE, PROT_READ);
	uint8_t *none = map(4 * PAGE, PROT_NONE);
	uint8_t *hole = map(4 * PAGE, PROT_READ | PROT_WRITE);
	uint8_t *mixed = map(4 * PAGE, PROT_READ | PROT_WRITE);

	munmap(hole + PAGE, PAGE);
	mprotect(mixed + 2 * PAGE, PAGE, PROT_READ);
	try("ordinary", rw, 16 * PAGE, LW | RW | RR | RA, 0);
	try("one byte", rw + 5, 1, LW, 0);
	try("no rights", rw, PAGE, 0, 0);
	try("read only rights", rw, PAGE, RR, 0);
	try("empty", rw, 0, LW, EINVAL);
	try("wraps", rw, SIZE_MAX - 100, LW, EINVAL);
	try("remote write without local", rw, PAGE, RW, EINVAL);
	try("remote atomic without local", rw, PAGE, RA, EINVAL);
	try("unknown right", rw, PAGE, 1 << 10, EINVAL);
	try("optional bits", rw, PAGE, LW | IBV_ACCESS_RELAXED_ORDERING, 0);
	try("optional bits unknown to all", rw, PAGE, LW | (1 << 29), 0);
	try("not mapped", hole + PAGE, PAGE, LW, EFAULT);
	try("a hole inside", hole, 4 * PAGE, LW, EFAULT);
	try("a hole just behind", hole, PAGE, LW, 0);
	try("a hole just before", hole + 2 * PAGE, 2 * PAGE, LW, 0);
	try("one byte into a hole", hole, PAGE + 1, LW, EFAULT);
	try("NULL", NULL, PAGE, LW, EFAULT);
	try("PROT_NONE", none, PAGE, RR, EFAULT);
	try("read-only memory, local write", ro, PAGE, LW, EFAULT);
	try("read-only memory, remote read", ro, PAGE, RR, 0);
	try("read-only page inside, local write", mixed, 4 * PAGE, LW, EFAULT);
	try("read-only page inside, remote read", mixed, 4 * PAGE, RR, 0);
	try("program text", (void *)(uintptr_t)map, 16, RR, 0);
	munmap(rw, 16 * PAGE);
	munmap(ro, 4 * PAGE);
	munmap(none, 4 * PAGE);
	munmap(hole, 4 * PAGE);
	munmap(mixed, 4 * PAGE);
}

/* Work requests name the iova; the bytes are at addr. */
static void iova(void)
{
	struct vp_opts o = vp_defaults();
	const uint64_t base = 0x700000001000;
	struct vp_end a, b;
	struct vp_addr to;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	check_case("iova registration");
	vp_pair(&a, &b, &o);
	mr = ibv_reg_mr_iova(b.pd, b.buf + 100, 1000, base, LW | RW);
	if (!mr)
		die("reg_mr_iova");
	to = (struct vp_addr){.addr = base, .rkey = mr->rkey};
	pattern_fill(a.buf, 1000, 3);
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 1000, &to, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1);
	CHECK(pattern_filled(b.buf + 100, 1000, 3));
	CHECK(pattern_all(b.buf, 100, 0) && pattern_all(b.buf + 1100, 100, 0));
	to.addr = (uintptr_t)b.buf + 100; /* the address means nothing now */
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &to, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_REM_ACCESS_ERR, 2);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	check_case("iova 0 and zero based");
	mr = ibv_reg_mr_iova(b.pd, b.buf, 1000, 0, LW | RW);
	CHECK(mr && !ibv_dereg_mr(mr));
	check_case("iova wraps");
	errno = 0;
	CHECK(!ibv_reg_mr_iova(b.pd, b.buf, 1000, UINT64_MAX - 10, LW));
	CHECK_EQ(errno, EINVAL);
	vp_pair_free(&a, &b);
}

/* Overlapping regions each have rights of their own. */
static void overlap(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_mr *ro, *rw;
	struct vp_end a, b;
	struct vp_addr to;
	struct ibv_wc wc;

	check_case("overlapping regions");
	vp_pair(&a, &b, &o);
	ro = ibv_reg_mr(b.pd, b.buf, 8192, RR);
	rw = ibv_reg_mr(b.pd, b.buf + 4096, 8192, LW | RW);
	if (!ro || !rw)
		die("reg_mr");
	to = (struct vp_addr){.addr = (uintptr_t)b.buf + 4096, .rkey = rw->rkey};
	CHECK_EQ(vp_post_send(&a, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1);
	CHECK_EQ(ibv_dereg_mr(rw), 0);
	to.rkey = ro->rkey;
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
	CHECK_EQ(vp_post_send(&a, 3, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_REM_ACCESS_ERR, 3);
	CHECK_EQ(ibv_dereg_mr(ro), 0);
	vp_pair_free(&a, &b);
}

/* What this process has had of a CPU. */
static double cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/* No page of it is looked at. */
static void huge(void)
{
	const size_t len = 32ull << 30;
	uint8_t *p = map(len, PROT_READ | PROT_WRITE);
	double since = cpu_ms();
	struct ibv_mr *mr;

	check_case("32 GiB");
	mr = ibv_reg_mr(pd, p, len, LW | RW | RR | RA);
	CHECK(mr && !ibv_dereg_mr(mr));
	CHECK_RANGE(cpu_ms() - since, 0, 100);
	munmap(p, len);
}

/* 100,000 times: keys differ from the one before, nothing leaks, and it is quick. */
static void many(void)
{
	uint8_t *p = map(PAGE, PROT_READ | PROT_WRITE);
	uint32_t last[4] = {0}, same = 0;
	const char *mode = getenv("WEFT_SHARE");
	/* Where each one changes the address space it is not quick. */
	int n = mode && strcmp(mode, "always") == 0 ? MANY / 20 : MANY;
	double since = cpu_ms();

	check_case("%d times", n);
	for (int i = 0; i < n; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, p, PAGE, LW | RW);

		if (!mr)
			die("reg_mr number %d", i);
		CHECK(mr->rkey && mr->lkey);
		for (int k = 0; k < 4; k++)
			same += last[k] == mr->rkey;
		last[i % 4] = mr->rkey;
		if (ibv_dereg_mr(mr))
			die("dereg_mr number %d", i);
	}
	CHECK_EQ(same, 0);
	CHECK_RANGE(cpu_ms() - since, 0, 20000);
	munmap(p, PAGE);
}

static int compare(const void *x, const void *y)
{
	const uint32_t *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

/* Many at once: all keys differ. */
static void together(void)
{
	enum { N = 20000 };
	uint8_t *p = map(PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr **mr = calloc(N, sizeof(struct ibv_mr *));
	uint32_t *key = calloc(N, sizeof *key);
	int twins = 0;

	check_case("%d at once", N);
	for (int i = 0; i < N; i++) {
		mr[i] = ibv_reg_mr(pd, p, PAGE, LW);
		if (!mr[i])
			die("reg_mr number %d", i);
		key[i] = mr[i]->lkey;
	}
	qsort(key, N, sizeof *key, compare);
	for (int i = 1; i < N; i++)
		twins += key[i] == key[i - 1];
	CHECK_EQ(twins, 0);
	for (int i = 0; i < N; i++)
		CHECK_EQ(ibv_dereg_mr(mr[i]), 0);
	free(mr);
	free(key);
	munmap(p, PAGE);
}

static void in_use(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	check_case("objects in use cannot be destroyed");
	o.channel = true;
	vp_make(&e, ctx, &o);
	CHECK_EQ(ibv_dealloc_pd(e.pd), EBUSY);
	CHECK_EQ(ibv_destroy_cq(e.scq), EBUSY);
	CHECK_EQ(ibv_destroy_cq(e.rcq), EBUSY);
	CHECK_EQ(ibv_destroy_comp_channel(e.channel), EBUSY);
	CHECK_EQ(ibv_destroy_qp(e.qp), 0);
	e.qp = NULL;
	CHECK_EQ(ibv_dealloc_pd(e.pd), EBUSY); /* the MR */
	CHECK_EQ(ibv_destroy_cq(e.rcq), 0);
	e.rcq = e.scq;
	CHECK_EQ(ibv_destroy_comp_channel(e.channel), EBUSY); /* the other CQ */
	vp_free(&e);
}

/* An SGE may reach past its region, as long as what comes does not. */
static void past_the_end(enum ibv_qp_type type, uint32_t len, bool list)
{
	uint32_t head = type == IBV_QPT_UD ? 40 : 0;
	struct vp_opts o = vp_defaults();
	struct ibv_mr *mr;
	struct vp_end a, b;
	struct ibv_wc wc;
	uint8_t *p = map(2 * PAGE, PROT_READ | PROT_WRITE);

	check_case("SGEs past the end: type %d, %u bytes%s", type, len, list ? ", a list" : "");
	o.type = type;
	vp_pair(&a, &b, &o);
	mr = ibv_reg_mr(b.pd, p, head + len, LW);
	if (!mr)
		die("reg_mr");

	struct ibv_sge s[2] = {{.addr = (uintptr_t)p, .length = 4, .lkey = mr->lkey},
		{.addr = (uintptr_t)p + 4, .length = PAGE, .lkey = mr->lkey}};
	struct ibv_sge all = {.addr = (uintptr_t)p, .length = PAGE, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = list ? s : &all, .num_sge = list ? 2 : 1};
	struct ibv_recv_wr *bad;

	CHECK_EQ(ibv_post_recv(b.qp, &wr, &bad), 0);
	pattern_fill(a.buf, len, len);
	if (type == IBV_QPT_UD) {
		struct vp_addr to = vp_addr(&b);
		struct ibv_ah *ah = vp_ah(&a, &to.gid);

		CHECK_EQ(vp_post_ud(&a, 2, ah, to.qpn, VP_QKEY, 0, len), 0);
		CHECK_EQ(ibv_destroy_ah(ah), 0);
	} else {
		CHECK_EQ(vp_post_send(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, len, NULL, 0), 0);
	}
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
	CHECK(pattern_filled(p + head, len, len));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_pair_free(&a, &b);
	munmap(p, 2 * PAGE);
}

/* A port on an Ethernet of 1500 bytes takes datagrams of so many. */
enum { LEAST_MTU = 1024 };

static void all_past_the_end(void)
{
	static const uint32_t lens[] = {8, 200, 2000};

	for (unsigned i = 0; i < 2 * sizeof lens / sizeof *lens; i++) {
		uint32_t len = lens[i / 2];

		past_the_end(IBV_QPT_RC, len, i & 1);
		past_the_end(IBV_QPT_UD, len < LEAST_MTU ? len : LEAST_MTU, i & 1);
	}
}

/* The memory goes before its region: dereg still answers, and nothing is touched. */
static void unmapped_first(void)
{
	uint8_t *p = map(PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(pd, p, PAGE, LW);

	check_case("munmap before dereg");
	munmap(p, PAGE);
	CHECK(mr && !ibv_dereg_mr(mr));
}

int main(void)
{
	ctx = vp_open();
	pd = ibv_alloc_pd(ctx);
	if (!pd)
		die("alloc_pd");
	refusals();
	iova();
	overlap();
	huge();
	many();
	together();
	in_use();
	unmapped_first();
	all_past_the_end();
	check_case("the end");
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
	return check_result();
}
