// SPDX-License-Identifier: BSD-3-Clause
/* Regions beyond the plain one: other addresses, re-registered, null, on demand, device memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	      IBV_ACCESS_REMOTE_ATOMIC
};

static struct vp_end a, b;
static struct vp_addr at_a, at_b;

static void setup(void)
{
	struct vp_opts o = vp_defaults();

	o.len = 65536;
	o.mr_access = o.qp_access = ALL;
	vp_pair(&a, &b, &o);
	at_a = vp_addr(&a);
	at_b = vp_addr(&b);
}

static enum ibv_wc_status rdma(
	enum ibv_wr_opcode op, struct ibv_sge *sge, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr wr = {.sg_list = sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = addr, .rkey = rkey}};

	return vp_run(&a, &wr);
}

static enum ibv_wc_status put(uint32_t rkey, uint64_t addr, uint32_t len)
{
	struct ibv_sge sge = vp_sge(&a, 0, len);

	return rdma(IBV_WR_RDMA_WRITE, &sge, rkey, addr);
}

static void other_addresses(void)
{
	struct ibv_mr *zero, *iova;

	check_case("zero based and iova regions");
	setup();
	pattern_fill(a.buf, 100, 1);
	zero = ibv_reg_mr(b.pd, b.buf + 4096, 8192, ALL | IBV_ACCESS_ZERO_BASED);
	iova = ibv_reg_mr_iova(b.pd, b.buf + 16384, 8192, 0x7000000000ull + 384, ALL);
	CHECK(zero && iova);
	CHECK_EQ(put(zero->rkey, 10, 100), IBV_WC_SUCCESS);
	CHECK(pattern_filled(b.buf + 4096 + 10, 100, 1));
	CHECK_EQ(put(iova->rkey, 0x7000000000ull + 484, 100), IBV_WC_SUCCESS);
	CHECK(pattern_filled(b.buf + 16384 + 100, 100, 1));
	CHECK_EQ(put(zero->rkey, 8192 - 99, 100), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(put(zero->rkey, (uintptr_t)b.buf + 4096, 100), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(zero), 0);
	CHECK_EQ(ibv_dereg_mr(iova), 0);
	vp_pair_free(&a, &b);
}

static int rereg_errno(
	struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len, int access)
{
	errno = 0;
	return ibv_rereg_mr(mr, flags, pd, addr, len, access) ? errno : 0;
}

static void rereg_refusals(struct ibv_mr *mr)
{
	static const struct {
		int flags, access, want;
		size_t len;
	} cases[] = {
		{0, 0, EINVAL, 0},
		{1 << 5, 0, EINVAL, 0},
		{IBV_REREG_MR_CHANGE_PD, 0, EINVAL, 0},
		{IBV_REREG_MR_CHANGE_ACCESS, IBV_ACCESS_REMOTE_WRITE, EINVAL, 0},
		{IBV_REREG_MR_CHANGE_TRANSLATION, 0, EINVAL, 0},
	};

	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		CHECK_EQ(
			rereg_errno(mr, cases[i].flags, NULL, b.buf, cases[i].len, cases[i].access),
			cases[i].want);
	CHECK_EQ(rereg_errno(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)4096, 4096, 0),
		EFAULT);
	CHECK_EQ(put(mr->rkey, (uintptr_t)b.buf, 64), IBV_WC_SUCCESS); /* it is as it was */
}

static void rereg(void)
{
	struct ibv_pd *other;
	struct ibv_mr *mr;
	uint32_t key;

	check_case("ibv_rereg_mr in its three forms; keys stay");
	setup();
	other = ibv_alloc_pd(b.ctx);
	mr = ibv_reg_mr(b.pd, b.buf, 4096, ALL);
	CHECK(other && mr);
	key = mr->rkey;
	rereg_refusals(mr);
	pattern_fill(a.buf, 64, 2);
	CHECK_EQ(rereg_errno(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf + 8192, 100, 0), 0);
	CHECK(mr->addr == b.buf + 8192 && mr->length == 100 && mr->rkey == key);
	CHECK_EQ(put(key, (uintptr_t)b.buf + 8192 + 36, 64), IBV_WC_SUCCESS);
	CHECK(pattern_filled(b.buf + 8192 + 36, 64, 2));
	CHECK_EQ(put(key, (uintptr_t)b.buf, 64), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(rereg_errno(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 1), 0);
	CHECK_EQ(put(key, (uintptr_t)b.buf + 8192, 64), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(rereg_errno(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_PD, other, NULL,
			 0, ALL),
		0);
	CHECK(mr->pd == other);
	CHECK_EQ(ibv_dealloc_pd(other), EBUSY);
	CHECK_EQ(put(key, (uintptr_t)b.buf + 8192, 64), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(rereg_errno(mr, IBV_REREG_MR_CHANGE_PD, b.pd, NULL, 0, 0), 0);
	CHECK_EQ(ibv_dealloc_pd(other), 0);
	CHECK_EQ(put(key, (uintptr_t)b.buf + 8192, 64), IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_pair_free(&a, &b);
}

static void null_region(void)
{
	struct ibv_sge sge = {.addr = 0x123456789, .length = 3000};
	struct ibv_mr *null;
	struct ibv_wc wc;

	check_case("the null region reads as zeros, swallows, and is for us alone");
	setup();
	null = ibv_alloc_null_mr(a.pd);
	CHECK(null);
	CHECK_EQ(null->rkey, 0);
	sge.lkey = null->lkey;
	pattern_fill(b.buf, 3001, 3);
	CHECK_EQ(rdma(IBV_WR_RDMA_READ, &sge, at_b.rkey, at_b.addr), IBV_WC_SUCCESS);
	CHECK_EQ(rdma(IBV_WR_RDMA_WRITE, &sge, at_b.rkey, at_b.addr), IBV_WC_SUCCESS);
	CHECK(pattern_all(b.buf, 3000, 0));
	CHECK_EQ(b.buf[3000], pattern_byte(3, 3000));
	for (uint32_t len = 20; len <= 20000; len *= 10) {
		struct ibv_recv_wr *bad, recv = {.sg_list = &sge, .num_sge = 1};

		sge.length = 20000;
		CHECK_EQ(ibv_post_recv(a.qp, &recv, &bad), 0);
		CHECK_EQ(vp_post_send(&b, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, len, NULL, 0), 0);
		CHECK(vp_want(b.scq, &wc, IBV_WC_SUCCESS, 1));
		CHECK(vp_want(a.rcq, &wc, IBV_WC_SUCCESS, 0));
		CHECK_EQ(wc.byte_len, len);
	}
	CHECK_EQ(put(null->lkey, 0, 64), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(null), 0);
	vp_pair_free(&a, &b);
}

static void null_rkey(void)
{
	struct ibv_mr *null;

	check_case("a null region is no target for peers");
	setup();
	null = ibv_alloc_null_mr(b.pd);
	CHECK_EQ(put(null->lkey, 0, 64), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(null), 0);
	vp_pair_free(&a, &b);
}

static int advise(struct ibv_mr *mr, enum ibv_advise_mr_advice advice, uint32_t flags, void *addr,
	uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)addr, .length = len, .lkey = mr->lkey};

	return ibv_advise_mr(mr->pd, advice, flags, &sge, 1);
}

static void on_demand(void)
{
	const size_t len = 1 << 20;
	struct ibv_mr *all, *part, *ro;
	unsigned char present = 0;
	uint8_t *p;

	check_case("on demand: mapped after the registration, prefetched, implicit");
	setup();
	p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	part = ibv_reg_mr(b.pd, p, len, ALL | IBV_ACCESS_ON_DEMAND);
	all = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
	ro = ibv_reg_mr(b.pd, p, len, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	CHECK(p != MAP_FAILED && part && all && ro);
	CHECK_EQ(mprotect(p, len, PROT_READ | PROT_WRITE), 0);
	pattern_fill(a.buf, 256, 4);
	CHECK_EQ(put(part->rkey, (uintptr_t)p + 5000, 256), IBV_WC_SUCCESS);
	CHECK(pattern_filled(p + 5000, 256, 4));
	CHECK_EQ(put(all->rkey, (uintptr_t)p + 50000, 256), IBV_WC_SUCCESS);
	CHECK(pattern_filled(p + 50000, 256, 4));
	CHECK_EQ(advise(part, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			 p + len / 2, 4096),
		0);
	CHECK_EQ(mincore(p + len / 2, 4096, &present), 0);
	CHECK_EQ(present & 1, 1);
	CHECK_EQ(advise(part, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, p, 4096), 0);
	CHECK_EQ(advise(part, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0, p, 4096), 0);
	CHECK_EQ(advise(part, 77, 0, p, 4096), EOPNOTSUPP);
	CHECK_EQ(advise(part, IBV_ADVISE_MR_ADVICE_PREFETCH, 64, p, 4096), EINVAL);
	CHECK_EQ(advise(part, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, p + len - 1, 2), EFAULT);
	CHECK_EQ(advise(ro, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, p, 4096), EPERM);
	CHECK_EQ(advise(all, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, (void *)4096, 1), EFAULT);
	CHECK_EQ(ibv_dereg_mr(all), 0);
	CHECK_EQ(ibv_dereg_mr(part), 0);
	CHECK_EQ(ibv_dereg_mr(ro), 0);
	munmap(p, len);
	vp_pair_free(&a, &b);
}

static void all_of_memory(void)
{
	struct ibv_mr *all;

	check_case("all of memory is registered on demand or not at all");
	setup();
	all = ibv_reg_mr(b.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
	CHECK(all);
	CHECK(!ibv_reg_mr(b.pd, NULL, SIZE_MAX, ALL));
	CHECK_EQ(ibv_dereg_mr(all), 0);
	vp_pair_free(&a, &b);
}

/* ---- device memory ---- */

static struct ibv_dm *alloc_dm(size_t len, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = {.length = len, .log_align_req = log_align};

	return ibv_alloc_dm(b.ctx, &attr);
}

static void dm_refusals(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64, .comp_mask = 1};
	struct ibv_dm *dm = alloc_dm(128, 6);
	struct ibv_device_attr_ex dev;
	struct ibv_dm *rest;
	char c[256];

	CHECK_EQ(ibv_query_device_ex(b.ctx, NULL, &dev), 0);
	CHECK(dev.max_dm_size > 4096);
	CHECK(!ibv_alloc_dm(b.ctx, &attr) && errno == EINVAL);
	CHECK(!alloc_dm(0, 0) && errno == EINVAL);
	CHECK(!alloc_dm(64, 40) && errno == EINVAL);
	CHECK(!alloc_dm(dev.max_dm_size + 1, 0) && errno == ENOMEM);
	CHECK(!alloc_dm(dev.max_dm_size, 0) && errno == ENOMEM);
	rest = alloc_dm(dev.max_dm_size - 128, 0);
	CHECK(rest);
	CHECK(!alloc_dm(4, 0) && errno == ENOMEM);
	CHECK_EQ(ibv_free_dm(rest), 0);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 2, c, 4), EINVAL);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 0, c, 6), EINVAL);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 0, c, 132), EINVAL);
	CHECK_EQ(ibv_memcpy_from_dm(c, dm, 128, 4), EINVAL);
	CHECK_EQ(ibv_memcpy_from_dm(c, dm, UINT64_MAX - 3, 8), EINVAL);
	CHECK_EQ(ibv_memcpy_from_dm(c, dm, 0, 128), 0);
	CHECK(pattern_all((uint8_t *)c, 128, 0));
	CHECK(!ibv_reg_dm_mr(b.pd, dm, 0, 128, ALL) && errno == EINVAL);
	CHECK(!ibv_reg_dm_mr(b.pd, dm, 64, 128, ALL | IBV_ACCESS_ZERO_BASED) && errno == EINVAL);
	CHECK_EQ(ibv_free_dm(dm), 0);
}

/* What one program left there, the next one does not find: all of it, at once and in parts. */
static void dm_is_fresh(void)
{
	struct ibv_device_attr_ex dev;
	struct ibv_dm *dm, *part[2];
	uint8_t *c;

	check_case("device memory is zero when it comes");
	CHECK_EQ(ibv_query_device_ex(b.ctx, NULL, &dev), 0);
	c = malloc(dev.max_dm_size);
	dm = alloc_dm(dev.max_dm_size, 0);
	if (!c || !dm)
		die("all of device memory");
	memset(c, 0x77, dev.max_dm_size);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 0, c, dev.max_dm_size), 0);
	CHECK_EQ(ibv_free_dm(dm), 0);
	part[0] = alloc_dm(100, 0);
	part[1] = alloc_dm(4096, 12);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? 4096 : 100;

		memset(c, 0x77, len);
		CHECK_EQ(ibv_memcpy_from_dm(c, part[i], 0, len), 0);
		CHECK(pattern_all(c, len, 0));
		CHECK_EQ(ibv_free_dm(part[i]), 0);
	}
	dm = alloc_dm(dev.max_dm_size, 0);
	memset(c, 0x77, dev.max_dm_size);
	CHECK_EQ(ibv_memcpy_from_dm(c, dm, 0, dev.max_dm_size), 0);
	CHECK(pattern_all(c, dev.max_dm_size, 0));
	CHECK_EQ(ibv_free_dm(dm), 0);
	free(c);
}

static void device_memory(void)
{
	struct ibv_send_wr *bad, add = {.num_sge = 1,
					 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_context *again;
	struct ibv_dm *dm, *same;
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	uint8_t c[4096];
	uint64_t v = 0;

	setup();
	dm_is_fresh();
	check_case("device memory: copies, regions, atomics, import");
	dm_refusals();
	dm = alloc_dm(4096, 3);
	mr = ibv_reg_dm_mr(b.pd, dm, 64, 4032, ALL | IBV_ACCESS_ZERO_BASED);
	CHECK(dm && mr);
	CHECK_EQ(ibv_free_dm(dm), EBUSY);
	pattern_fill(a.buf, 1000, 5);
	CHECK_EQ(put(mr->rkey, 8, 1000), IBV_WC_SUCCESS);
	CHECK_EQ(ibv_memcpy_from_dm(c, dm, 0, 4096), 0);
	CHECK(pattern_filled(c + 72, 1000, 5));
	sge = vp_sge(&a, 0, 8);
	add.sg_list = &sge;
	add.wr.atomic.remote_addr = 4024;
	add.wr.atomic.rkey = mr->rkey;
	add.wr.atomic.compare_add = 7;
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(ibv_post_send(a.qp, &add, &bad), 0);
		CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 0));
	}
	again = ibv_import_device(dup(b.ctx->cmd_fd));
	CHECK(again);
	same = ibv_import_dm(again, dm->handle);
	CHECK(same);
	CHECK_EQ(ibv_memcpy_from_dm(&v, same, 64 + 4024, 8), 0);
	CHECK_EQ(v, 21);
	CHECK(!ibv_import_dm(again, dm->handle + 1000) && errno == ENOENT);
	ibv_unimport_dm(same);
	CHECK_EQ(ibv_close_device(again), 0);
	CHECK_EQ(put(mr->rkey, 4032 - 63, 64), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_free_dm(dm), 0);
	vp_pair_free(&a, &b);
}

/* ---- behind an fd ---- */

static struct ibv_mr *reg_fd(int fd, uint64_t off, size_t len, uint64_t iova, int access)
{
	errno = 0;
	return ibv_reg_dmabuf_mr(b.pd, off, len, iova, fd, access);
}

static void fd_refusals(int fd)
{
	int pipes[2], file = open("/proc/version", O_RDONLY), ro;

	CHECK_EQ(pipe(pipes), 0);
	CHECK(!reg_fd(-1, 0, 4096, 0, ALL) && errno == EBADF);
	CHECK(!reg_fd(pipes[0], 0, 4096, 0, ALL) && errno == EINVAL);
	CHECK(!reg_fd(0, 0, 4096, 0, IBV_ACCESS_LOCAL_WRITE) && errno == EINVAL);
	CHECK(!reg_fd(file, 0, 4096, 0, 0) && errno == EINVAL);
	CHECK(!reg_fd(fd, 0, 65537, 0, ALL) && errno == EINVAL);
	CHECK(!reg_fd(fd, 0, 0, 0, ALL) && errno == EINVAL);
	CHECK(!reg_fd(fd, UINT64_MAX - 4095, 8192, 0, ALL) && errno == EINVAL);
	CHECK(!reg_fd(fd, 4096, 4096, 4097, ALL) && errno == EINVAL);
	CHECK(!reg_fd(fd, 0, 4096, 0, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(!reg_fd(fd, 0, 4096, 0, ALL | IBV_ACCESS_MW_BIND) && errno == EINVAL);
	CHECK(!reg_fd(fd, 0, 4096, 0, ALL | IBV_ACCESS_ON_DEMAND) && errno == EINVAL);
	ro = open("/dev/shm", O_RDONLY | O_DIRECTORY);
	CHECK(!reg_fd(ro, 0, 4096, 0, 0) && errno == EINVAL);
	close(pipes[0]);
	close(pipes[1]);
	close(file);
	close(ro);
}

static void behind_fd(void)
{
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	struct ibv_mr *mr;
	uint8_t *p;

	check_case("a region behind a memfd");
	setup();
	CHECK_EQ(ftruncate(fd, 65536), 0);
	p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fd_refusals(fd);
	mr = reg_fd(fd, 8192 + 100, 4096, 0x100000 + 100, ALL);
	CHECK(mr && (uintptr_t)mr->addr == 8292 && mr->length == 4096);
	close(fd); /* the region keeps its pages */
	pattern_fill(a.buf, 4096, 8);
	CHECK_EQ(put(mr->rkey, 0x100000 + 100, 4096), IBV_WC_SUCCESS);
	CHECK(pattern_filled(p + 8292, 4096, 8));
	CHECK_EQ(p[8292 + 4096], 0);
	CHECK_EQ(rereg_errno(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), EINVAL);
	CHECK_EQ(put(mr->rkey, 0x100000 + 101, 4096), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	munmap(p, 65536);
	vp_pair_free(&a, &b);
}

/* ---- import ---- */

/* What is in a PD may be destroyed after its import has ended, and touches no memory that is free.
 */
static void unimported_early(struct ibv_pd *pd)
{
	enum { BLOCKS = 64, SIZE = 56 }; /* about as large as what stands for an import */
	struct ibv_mr *mr = ibv_reg_mr(pd, a.buf, 64, IBV_ACCESS_LOCAL_WRITE);
	volatile uint8_t *block[BLOCKS];

	CHECK(mr);
	ibv_unimport_pd(pd);
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = malloc(SIZE);
		for (int k = 0; k < SIZE; k++)
			block[i][k] = 0x77;
	}
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	for (int i = 0; i < BLOCKS; i++) {
		for (int k = 0; k < SIZE; k++)
			CHECK_EQ(block[i][k], 0x77);
		free((void *)block[i]);
	}
}

/* The handle is right, the PD is another one; and of one that is gone. */
static void no_import(struct ibv_context *again)
{
	struct ibv_pd *other = ibv_alloc_pd(b.ctx), *imported = ibv_import_pd(again, other->handle);
	struct ibv_mr *gone = ibv_reg_mr(b.pd, b.buf, 64, IBV_ACCESS_LOCAL_WRITE);
	uint32_t handle = gone->handle;

	CHECK_FAILS(ibv_import_mr(other, b.mr->handle) ? 0 : -1, ENOENT);
	CHECK_FAILS(ibv_import_mr(imported, b.mr->handle) ? 0 : -1, ENOENT);
	CHECK_FAILS(ibv_import_mr(a.pd, b.mr->handle) ? 0 : -1, ENOENT);
	CHECK_FAILS(ibv_import_mr(b.pd, 0) ? 0 : -1, ENOENT);
	CHECK_EQ(ibv_dereg_mr(gone), 0);
	CHECK_FAILS(ibv_import_mr(b.pd, handle) ? 0 : -1, ENOENT);
	ibv_unimport_pd(imported);
	CHECK_EQ(ibv_dealloc_pd(other), 0);
}

static void import(void)
{
	struct ibv_context *again;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	check_case("a PD and a region by handle");
	setup();
	CHECK(!ibv_import_device(-1) && errno == EBADF);
	CHECK(!ibv_import_device(dup(0)) && errno == EINVAL);
	again = ibv_import_device(dup(b.ctx->cmd_fd));
	CHECK(again);
	no_import(again);
	pd = ibv_import_pd(again, b.pd->handle);
	CHECK(pd && pd->handle == b.pd->handle);
	CHECK(!ibv_import_pd(again, 0x7fffffff) && errno == ENOENT);
	mr = ibv_import_mr(pd, b.mr->handle);
	CHECK(mr && mr->rkey == b.mr->rkey && !mr->addr);
	CHECK(!ibv_import_mr(pd, b.mr->handle + 1) && errno == ENOENT);
	pattern_fill(a.buf, 64, 6);
	CHECK_EQ(put(mr->rkey, at_b.addr, 64), IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
	ibv_unimport_mr(mr);
	CHECK_EQ(put(at_b.rkey, at_b.addr, 64), IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dealloc_pd(b.pd), EBUSY);
	unimported_early(pd);
	CHECK_EQ(ibv_close_device(again), 0);
	vp_pair_free(&a, &b);
}

/* ---- device memory between processes ---- */

static void send_fd(int sock, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof fd)];
	struct iovec v = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	*c = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	CHECK_EQ(sendmsg(sock, &m, 0), 1);
}

static int take_fd(int sock)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec v = {&byte, 1};
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	int fd = -1;

	CHECK_EQ(recvmsg(sock, &m, 0), 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* Imports the parent's device memory, writes a part of it and registers it for itself. */
static void importer(int sock, void *arg)
{
	struct ibv_context *ctx;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	uint32_t handle, word = 0;

	(void)arg;
	handle = (uint32_t)vp_hear(sock);
	ctx = ibv_import_device(take_fd(sock));
	CHECK(ctx);
	dm = ibv_import_dm(ctx, handle);
	CHECK(dm);
	CHECK(!ibv_import_dm(ctx, handle + 1) && errno == ENOENT);
	CHECK(!ibv_import_pd(ctx, 1) && errno == EOPNOTSUPP);
	CHECK_EQ(ibv_memcpy_from_dm(&word, dm, 8, 4), 0);
	CHECK_EQ(word, 0x12345678);
	word = 0x87654321;
	CHECK_EQ(ibv_memcpy_to_dm(dm, 4092, &word, 4), 0);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 4096, &word, 4), EINVAL);
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_dm_mr(pd, dm, 0, 4096, ALL | IBV_ACCESS_ZERO_BASED);
	CHECK(mr);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0); /* what was imported stays until it is let go */
	CHECK_EQ(ibv_memcpy_from_dm(&word, dm, 4092, 4), 0);
	ibv_unimport_dm(dm);
	vp_sync(sock);
}

static void device_memory_elsewhere(void)
{
	struct vp_child c = vp_fork(importer, NULL);
	struct ibv_alloc_dm_attr attr = {.length = 4096};
	struct ibv_context *ctx = vp_open();
	uint32_t word = 0x12345678;
	struct ibv_dm *other, *dm;

	check_case("device memory imported by another process");
	other = ibv_alloc_dm(ctx, &attr);
	dm = ibv_alloc_dm(ctx, &attr);
	CHECK_EQ(ibv_free_dm(other), 0);
	CHECK_EQ(ibv_memcpy_to_dm(dm, 8, &word, 4), 0);
	vp_tell(c.fd, dm->handle);
	send_fd(c.fd, ctx->cmd_fd);
	vp_sync(c.fd);
	CHECK_EQ(ibv_memcpy_from_dm(&word, dm, 4092, 4), 0);
	CHECK_EQ(word, 0x87654321);
	CHECK_EQ(ibv_free_dm(dm), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
	vp_join(&c);
}

int main(void)
{
	device_memory_elsewhere();
	other_addresses();
	rereg();
	null_region();
	null_rkey();
	on_demand();
	all_of_memory();
	device_memory();
	behind_fd();
	import();
	return check_result();
}
