// SPDX-License-Identifier: BSD-3-Clause
/*
 * gpu_copy DRIVER: what memory of a GPU costs, within a process; medians, interleaved.  DRIVER is
 * libcuda.so.1 of the machine, or tests/fakes/libcuda.so.1 with FAKE_CUDA_LATE_US=0, whose copies
 * are memcpy() in the call. memcpy_gbps            1 MiB of plain memory pinned_gbps            1
 * MiB from pinned memory to the device, by CUDA write_gbps, read_gbps  1 MiB of plain memory to the
 * device and back, by RDMA write_us, read_us      8 B host_us                8 B of plain memory,
 * by RDMA WRITE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/lib/check.h"
#include "tests/lib/cuda.h"
#include "tests/lib/verbs_pair.h"

enum { BIG = 1 << 20, SMALL = 8, ROUNDS = 201, KINDS = 7 };

static struct vp_end a, b;
static uint64_t gpu;
static struct ibv_mr *gpu_mr;
static void *pinned;
static struct CUstream_st *stream;

static void rdma(enum ibv_wr_opcode op, uint64_t at, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = vp_sge(&a, 0, len);
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = at, .rkey = rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(a.qp, &wr, &bad))
		die("ibv_post_send");
	while (!(n = ibv_poll_cq(a.scq, 1, &wc)))
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		die("a request failed");
}

static void copy_plain(void)
{
	memcpy(b.buf, a.buf, BIG);
}

static void copy_pinned(void)
{
	cuda_need(cuda.cuMemcpyHtoDAsync_v2(gpu, pinned, BIG, stream), "cuMemcpyHtoDAsync");
	cuda_need(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static void write_big(void)
{
	rdma(IBV_WR_RDMA_WRITE, gpu, gpu_mr->rkey, BIG);
}

static void read_big(void)
{
	rdma(IBV_WR_RDMA_READ, gpu, gpu_mr->rkey, BIG);
}

static void write_small(void)
{
	rdma(IBV_WR_RDMA_WRITE, gpu, gpu_mr->rkey, SMALL);
}

static void read_small(void)
{
	rdma(IBV_WR_RDMA_READ, gpu, gpu_mr->rkey, SMALL);
}

static void write_host(void)
{
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)b.buf, b.mr->rkey, SMALL);
}

static const struct {
	const char *name;
	void (*fn)(void);
	bool rate;
} kinds[KINDS] = {
	{"memcpy_gbps", copy_plain, true},
	{"pinned_gbps", copy_pinned, true},
	{"write_gbps", write_big, true},
	{"read_gbps", read_big, true},
	{"write_us", write_small, false},
	{"read_us", read_small, false},
	{"host_us", write_host, false},
};

static void set_up(void)
{
	struct vp_opts o = vp_defaults();

	cuda_start();
	o.len = BIG;
	vp_pair(&a, &b, &o);
	memset(a.buf, 1, BIG);
	memset(b.buf, 1, BIG);
	gpu = cuda_alloc(CUDA_PLAIN, BIG);
	gpu_mr = ibv_reg_mr(b.pd, (void *)(uintptr_t)gpu, BIG, o.mr_access);
	if (!gpu_mr)
		die("ibv_reg_mr");
	cuda_need(cuda.cuMemHostAlloc(&pinned, BIG, 0), "cuMemHostAlloc");
	cuda_need(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static int by_size(const void *x, const void *y)
{
	double l = *(const double *)x, r = *(const double *)y;

	return (l > r) - (l < r);
}

int main(int argc, char **argv)
{
	static double ns[KINDS][ROUNDS];

	if (argc != 2) {
		fprintf(stderr, "usage: gpu_copy DRIVER\n");
		return 2;
	}
	cuda_load(argv[1]);
	set_up();
	for (int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < KINDS; k++) {
			uint64_t begin = clock_ns();

			kinds[k].fn();
			ns[k][r] = (double)(clock_ns() - begin);
		}
	for (int k = 0; k < KINDS; k++) {
		qsort(ns[k], ROUNDS, sizeof ns[k][0], by_size);
		printf("%s %.2f\n", kinds[k].name,
			kinds[k].rate ? BIG / ns[k][ROUNDS / 2] : ns[k][ROUNDS / 2] / 1e3);
	}
	return 0;
}
