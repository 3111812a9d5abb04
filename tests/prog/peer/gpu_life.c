// SPDX-License-Identifier: BSD-3-Clause
/*
 * gpu_life DRIVER: whose memory a GPU's is, and for how long: loaded late or switched off,
 * dma-bufs, buffers freed and allocated anew, contexts that go, forks, captures, kernels that spin
 * until bytes arrive, and, on the fake driver, each of its functions failing.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cuda.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LEN = 1 << 20,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC
};

static const char *driver;

/* a has plain memory, b the GPU's. */
static struct vp_end a, b;
static uint8_t bytes[LEN];

static void set_up(void)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	vp_pair(&a, &b, &o);
}

static void tear_down(void)
{
	vp_pair_free(&a, &b);
}

static struct ibv_mr *reg(uint64_t at, size_t len)
{
	return ibv_reg_mr(b.pd, (void *)(uintptr_t)at, len, ACCESS);
}

static struct ibv_mr *need(uint64_t at, size_t len)
{
	struct ibv_mr *mr = reg(at, len);

	if (!mr)
		die("ibv_reg_mr of device memory");
	return mr;
}

/* a's buffer to or from device memory; the completion. */
static enum ibv_wc_status move(
	enum ibv_wr_opcode op, const struct ibv_mr *mr, uint64_t at, uint32_t len)
{
	struct ibv_sge sge = vp_sge(&a, 0, len);
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = at, .rkey = mr->rkey}};

	return vp_run(&a, &wr);
}

static bool goes_through(const struct ibv_mr *mr, uint64_t at, uint32_t seed)
{
	pattern_fill(a.buf, LEN, seed);
	if (move(IBV_WR_RDMA_WRITE, mr, at, LEN) != IBV_WC_SUCCESS)
		return false;
	memset(a.buf, 0, LEN);
	return move(IBV_WR_RDMA_READ, mr, at, LEN) == IBV_WC_SUCCESS &&
	       pattern_filled(a.buf, LEN, seed);
}

/* ---- whose ---- */

/* Before the driver is loaded, and then. */
static void late(void)
{
	uint64_t gpu;
	struct ibv_mr *mr;

	check_case("the driver is loaded after the device was opened");
	set_up();
	CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) == NULL);
	cuda_load(driver);
	CHECK(reg(4096, LEN) == NULL);
	cuda_start();
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	mr = need(gpu, LEN);
	CHECK(goes_through(mr, gpu, 1));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	tear_down();
}

static void off(void)
{
	setenv("WEFT_GPU", "0", 1);
	check_case("WEFT_GPU=0");
	cuda_start();
	set_up();
	errno = 0;
	CHECK(reg(cuda_alloc(CUDA_PLAIN, LEN), LEN) == NULL);
	CHECK_EQ(errno, EFAULT);
	if (cuda.fake_cuda_calls)
		CHECK_EQ(cuda.fake_cuda_calls("cuPointerGetAttributes"), 0);
	tear_down();
}

static void refused(uint64_t at, size_t len)
{
	errno = 0;
	CHECK(reg(at, len) == NULL);
	CHECK_EQ(errno, EFAULT);
}

static void whose(void)
{
	unsigned long long managed;
	struct ibv_mr *mr;
	uint64_t gpu;
	void *pinned;

	cuda_start();
	set_up();
	check_case("the paths that libraries look for");
	CHECK_EQ(access("/sys/kernel/mm/memory_peers/nv_mem/version", F_OK), 0);
	CHECK_EQ(access("/sys/module/nvidia_peermem/version", F_OK), 0);
	CHECK_EQ(access("/sys/module/nv_peer_mem/version", F_OK), 0);
	check_case("beyond an allocation");
	gpu = cuda_alloc(CUDA_PIECES, 2 << 20);
	refused(gpu + 4096, 2 << 20);
	refused(gpu - 1, 4096);
	check_case("part of one, at odd addresses");
	mr = need(gpu + 12345, 70001);
	pattern_fill(a.buf, 70001, 9);
	CHECK_EQ(move(IBV_WR_RDMA_WRITE, mr, gpu + 12345, 70001), IBV_WC_SUCCESS);
	cuda_get(bytes, gpu + 12345, 70001);
	CHECK(pattern_filled(bytes, 70001, 9));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	check_case("managed memory and the CPU's");
	cuda_need(cuda.cuMemAllocManaged(&managed, LEN, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
	cuda_need(cuda.cuMemHostAlloc(&pinned, LEN, 0), "cuMemHostAlloc");
	mr = need((uintptr_t)pinned, LEN);
	CHECK(goes_through(mr, (uintptr_t)pinned, 3));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	mr = need(managed, LEN);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	cuda_need(cuda.cuMemFreeHost(pinned), "cuMemFreeHost");
	tear_down();
}

/* Its table has more entries than one, at the borders of which it goes on. */
static void large(void)
{
	const uint64_t size = 2ull << 30, border = 1ull << 30;
	unsigned long long gpu;
	struct ibv_mr *mr;

	check_case("a region of 2 GiB");
	cuda_start();
	if (cuda.cuMemAlloc_v2(&gpu, size))
		return; /* the device has less */
	set_up();
	mr = need(gpu, size);
	CHECK(goes_through(mr, (gpu & -65536ull) + border - LEN / 2, 31));
	CHECK(goes_through(mr, gpu + size - LEN, 32));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	tear_down();
}

static void dmabuf(void)
{
	uint64_t gpu;
	struct ibv_mr *mr;
	int fd, other = eventfd(0, 0);

	check_case("by its dma-buf");
	cuda_start();
	set_up();
	gpu = cuda_alloc(CUDA_PIECES, 2 << 20);
	if (cuda.cuMemGetHandleForAddressRange(
		    &fd, gpu, 2 << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0))
		return; /* the device has none */
	mr = ibv_reg_dmabuf_mr(b.pd, 4096, LEN, gpu + 4096, fd, ACCESS);
	if (!mr)
		die("ibv_reg_dmabuf_mr");
	close(fd);
	CHECK(goes_through(mr, gpu + 4096, 4));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	check_case("what is no dma-buf of a GPU");
	errno = 0;
	CHECK(ibv_reg_dmabuf_mr(b.pd, 0, LEN, gpu, -1, ACCESS) == NULL);
	CHECK_EQ(errno, EBADF);
	CHECK(ibv_reg_dmabuf_mr(b.pd, 0, LEN, (uintptr_t)a.buf, other, ACCESS) == NULL);
	CHECK_EQ(errno, EINVAL);
	CHECK(ibv_reg_dmabuf_mr(b.pd, 1, LEN, gpu, other, ACCESS) == NULL);
	CHECK_EQ(errno, EINVAL);
	tear_down();
}

/* ---- how long ---- */

/* What mr was registered over was freed, and other bytes lie at gpu now. */
static void check_dead(struct ibv_mr *mr, uint64_t gpu)
{
	struct ibv_sge sge = {.addr = gpu, .length = 64, .lkey = mr->lkey};
	struct vp_addr to = vp_addr(&a);
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = to.addr, .rkey = to.rkey}};

	memset(bytes, 0x55, LEN);
	cuda_put(gpu, bytes, LEN);
	memset(a.buf, 0xaa, LEN);
	CHECK_EQ(move(IBV_WR_RDMA_WRITE, mr, gpu, LEN), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(move(IBV_WR_RDMA_READ, mr, gpu, LEN), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(vp_run(&b, &wr), IBV_WC_LOC_PROT_ERR);
	vp_reconnect(&a, &b);
	CHECK(pattern_all(a.buf, LEN, 0xaa));
	cuda_get(bytes, gpu, LEN);
	CHECK(pattern_all(bytes, LEN, 0x55));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

static void freed(void)
{
	uint64_t gpu, anew;
	struct ibv_mr *mr;

	check_case("a buffer is freed, and another allocated");
	cuda_start();
	set_up();
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	mr = need(gpu, LEN);
	CHECK(goes_through(mr, gpu, 5));
	cuda_need(cuda.cuMemFree_v2(gpu), "cuMemFree");
	anew = cuda_alloc(CUDA_PLAIN, LEN);
	if (cuda.fake_cuda_report)
		CHECK_EQ(anew, gpu);
	if (anew == gpu)
		check_dead(mr, gpu);
	mr = need(anew, LEN);
	CHECK(goes_through(mr, anew, 6));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	tear_down();
}

static void write_from_far(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;
	struct vp_addr to;

	(void)arg;
	o.len = 64;
	vp_make(&e, vp_open(), &o);
	to = vp_meet(&e, fd);
	to.addr = vp_hear(fd);
	to.rkey = vp_hear(fd);
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	vp_want(e.scq, &(struct ibv_wc){0}, IBV_WC_REM_ACCESS_ERR, 1);
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

/* Our worker, for a queue pair connected to itself, and our agent are both asking whose it is. */
static void two_find_it_gone(void)
{
	struct vp_child far = vp_fork(write_from_far, NULL);
	struct vp_opts o = vp_defaults();
	struct vp_end e, self;
	struct vp_addr to;
	struct ibv_mr *mr;
	uint64_t gpu;

	check_case("two threads find a buffer freed");
	cuda_start();
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, far.fd);
	self = e;
	self.qp = vp_extra_qp(&e);
	to = vp_addr(&self);
	vp_connect(&self, &to);
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	mr = ibv_reg_mr(e.pd, (void *)(uintptr_t)gpu, LEN, ACCESS);
	CHECK(mr != NULL);
	cuda_need(cuda.cuMemFree_v2(gpu), "cuMemFree");
	if (cuda.fake_cuda_slow)
		cuda.fake_cuda_slow("cuPointerGetAttributes", 200000);
	vp_tell(far.fd, gpu);
	vp_tell(far.fd, mr->rkey);
	to.addr = gpu;
	to.rkey = mr->rkey;
	CHECK_EQ(vp_post_send(&self, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	vp_want(self.scq, &(struct ibv_wc){0}, IBV_WC_REM_ACCESS_ERR, 2);
	vp_sync(far.fd);
	vp_join(&far);
	if (cuda.fake_cuda_slow)
		cuda.fake_cuda_slow("cuPointerGetAttributes", 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_destroy_qp(self.qp), 0);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

/* One's memory goes with it, and our stream and buffers there. */
static void context_goes(void)
{
	struct CUctx_st *context;
	uint64_t gpu, anew;
	struct ibv_mr *mr;

	check_case("a context is destroyed, and another created");
	cuda_start();
	set_up();
	cuda_need(cuda.cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	mr = need(gpu, LEN);
	CHECK(goes_through(mr, gpu, 7));
	cuda_need(cuda.cuCtxDestroy_v2(context), "cuCtxDestroy");
	cuda_need(cuda.cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
	anew = cuda_alloc(CUDA_PLAIN, LEN);
	if (anew == gpu)
		check_dead(mr, gpu);
	mr = need(anew, LEN);
	CHECK(goes_through(mr, anew, 8));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	cuda_need(cuda.cuCtxDestroy_v2(context), "cuCtxDestroy");
	tear_down();
}

/* Registered, used and deregistered while a context of another device is current. */
static void other_device(void)
{
	struct CUctx_st *first, *second;
	uint64_t gpu, pool;
	struct ibv_mr *mr, *mr_pool;

	check_case("memory of two devices");
	cuda_start();
	if (cuda.cuDevicePrimaryCtxRetain(&second, 1))
		return; /* there is but one */
	cuda_need(cuda.cuDevicePrimaryCtxRetain(&first, 0), "cuDevicePrimaryCtxRetain");
	set_up();
	cuda_need(cuda.cuCtxSetCurrent(second), "cuCtxSetCurrent");
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	pool = cuda_alloc(CUDA_POOL, LEN);
	cuda_need(cuda.cuCtxSetCurrent(first), "cuCtxSetCurrent");
	mr = need(gpu, LEN);
	mr_pool = need(pool, LEN);
	CHECK(goes_through(mr, gpu, 21));
	CHECK(goes_through(mr_pool, pool, 22));
	CHECK(goes_through(mr, gpu, 23));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dereg_mr(mr_pool), 0);
	tear_down();
}

/* CUDA does not work in a child; nothing of it is called there. */
static void in_child(int fd, void *arg)
{
	const struct ibv_mr *mr = arg;
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct fake_cuda_report r;

	(void)fd;
	errno = 0;
	CHECK(ibv_reg_mr(pd, mr->addr, LEN, ACCESS) == NULL);
	CHECK_EQ(errno, EFAULT);
	if (cuda.fake_cuda_report) {
		cuda.fake_cuda_report(&r);
		CHECK_EQ(r.after_fork, 0);
	}
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	ibv_close_device(ctx);
}

static void forked(void)
{
	struct vp_child child;
	struct ibv_mr *mr;
	uint64_t gpu;

	check_case("fork with a registered buffer");
	cuda_start();
	set_up();
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	mr = need(gpu, LEN);
	CHECK(goes_through(mr, gpu, 11));
	child = vp_fork(in_child, mr);
	CHECK(goes_through(mr, gpu, 12));
	vp_join(&child);
	CHECK(goes_through(mr, gpu, 13));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	tear_down();
}

/* ---- beside what the program runs ---- */

/* Everything while a stream is captured in the mode that forbids most, and by the same thread. */
static void captured(void)
{
	struct CUstream_st *stream;
	struct CUgraph_st *graph = NULL;
	uint64_t gpu, other;
	struct ibv_mr *mr;

	check_case("a capture");
	cuda_start();
	set_up();
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	other = cuda_alloc(CUDA_POOL, LEN);
	cuda_need(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	cuda_need(cuda.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
		"cuStreamBeginCapture");
	mr = need(gpu, LEN);
	CHECK(goes_through(mr, gpu, 14));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	mr = need(other, LEN);
	CHECK(goes_through(mr, other, 15));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(cuda.cuStreamEndCapture(stream, &graph), 0);
	if (graph)
		cuda.cuGraphDestroy(graph);
	tear_down();
}

/* The default stream waits for the kernel, and the kernel for us. */
static void spinning(void)
{
	struct CUstream_st *stream;
	struct ibv_mr *mr;
	uint64_t gpu;

	check_case("a kernel spins until bytes arrive");
	cuda_start();
	set_up();
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	memset(bytes, 0, LEN);
	cuda_put(gpu, bytes, LEN);
	mr = need(gpu, LEN);
	stream = cuda_spin(gpu + LEN - 4);
	pattern_fill(a.buf, LEN - 4, 16);
	memset(a.buf + LEN - 4, 1, 4);
	CHECK_EQ(move(IBV_WR_RDMA_WRITE, mr, gpu, LEN - 4), IBV_WC_SUCCESS);
	memset(a.buf, 0, LEN - 4);
	CHECK_EQ(move(IBV_WR_RDMA_READ, mr, gpu, LEN - 4), IBV_WC_SUCCESS);
	CHECK(pattern_filled(a.buf, LEN - 4, 16));
	memset(a.buf, 1, 4);
	CHECK_EQ(move(IBV_WR_RDMA_WRITE, mr, gpu + LEN - 4, 4), IBV_WC_SUCCESS);
	CHECK_EQ(cuda.cuStreamSynchronize(stream), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	tear_down();
}

/* As NCCL does: a READ of a QP that is connected to itself, behind what arrived. */
static void flushed(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();
	struct vp_addr self;
	struct vp_end e;
	struct ibv_mr *mr;
	uint64_t gpu;

	check_case("a READ from itself");
	cuda_start();
	o.len = LEN;
	vp_make(&e, ctx, &o);
	self = vp_addr(&e);
	vp_connect(&e, &self);
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	memset(bytes, 0x33, LEN);
	cuda_put(gpu, bytes, LEN);
	mr = ibv_reg_mr(e.pd, (void *)(uintptr_t)gpu, LEN, ACCESS);
	CHECK(mr != NULL);
	self.addr = gpu;
	self.rkey = mr->rkey;
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, 1, &self, 0), 0);
	vp_want(e.scq, &(struct ibv_wc){0}, IBV_WC_SUCCESS, 1);
	CHECK_EQ(e.buf[0], 0x33);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_free(&e);
	ibv_close_device(ctx);
}

/* ---- a driver that fails ---- */

static void with_failure(const char *function, unsigned nth, uint64_t gpu)
{
	enum ibv_wc_status status;
	struct ibv_mr *mr;

	check_case("call %u of %s fails", nth, function);
	cuda.fake_cuda_fail(function, nth, CUDA_ERROR_UNKNOWN);
	mr = reg(gpu, LEN);
	if (mr) {
		memset(a.buf, (int)nth, LEN);
		status = move(IBV_WR_RDMA_WRITE, mr, gpu, LEN);
		CHECK(status == IBV_WC_SUCCESS || status == IBV_WC_REM_ACCESS_ERR);
		if (status != IBV_WC_SUCCESS)
			vp_reconnect(&a, &b);
		status = move(IBV_WR_RDMA_READ, mr, gpu, LEN);
		CHECK(status == IBV_WC_SUCCESS || status == IBV_WC_REM_ACCESS_ERR);
		if (status != IBV_WC_SUCCESS)
			vp_reconnect(&a, &b);
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	}
	cuda.fake_cuda_fail(function, 0, 0);
	mr = need(gpu, LEN);
	CHECK(goes_through(mr, gpu, nth));
	CHECK_EQ(ibv_dereg_mr(mr), 0);
}

static void failures(void)
{
	static const char *const functions[] = {"cuPointerGetAttributes",
		"cuThreadExchangeStreamCaptureMode", "cuCtxPushCurrent_v2", "cuStreamCreate",
		"cuEventCreate", "cuMemHostAlloc", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
		"cuEventRecord", "cuEventSynchronize"};
	uint64_t gpu;

	if (!cuda.fake_cuda_fail)
		return;
	cuda_start();
	set_up();
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	/* The lane is made by the first that succeeds. */
	for (unsigned i = sizeof functions / sizeof *functions; i-- > 0;)
		for (unsigned nth = 1; nth <= 5; nth++)
			with_failure(functions[i], nth, gpu);
	check_case("a driver that lost everything");
	cuda.fake_cuda_fail_all(CUDA_ERROR_UNKNOWN);
	refused(gpu, LEN);
	cuda.fake_cuda_fail_all(0);
	tear_down();
}

/* Completions while it fails are those of memory that is not there. */
static void failing(void)
{
	struct ibv_mr *mr;
	uint64_t gpu;

	if (!cuda.fake_cuda_fail)
		return;
	check_case("the driver fails under a region");
	cuda_start();
	set_up();
	gpu = cuda_alloc(CUDA_PLAIN, LEN);
	mr = need(gpu, LEN);
	CHECK(goes_through(mr, gpu, 17));
	cuda.fake_cuda_fail("cuMemcpyHtoDAsync_v2", 1, CUDA_ERROR_UNKNOWN);
	CHECK_EQ(move(IBV_WR_RDMA_WRITE, mr, gpu, LEN), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	cuda.fake_cuda_fail("cuEventSynchronize", 1, CUDA_ERROR_UNKNOWN);
	CHECK_EQ(move(IBV_WR_RDMA_READ, mr, gpu, LEN), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK(goes_through(mr, gpu, 18));
	cuda.fake_cuda_fail("cuPointerGetAttributes", 1, CUDA_ERROR_UNKNOWN);
	CHECK_EQ(move(IBV_WR_RDMA_READ, mr, gpu, LEN), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	tear_down();
}

/* ---- each in a process of its own ---- */

static void check_driver_calls(void)
{
	struct fake_cuda_report r;

	if (!cuda.fake_cuda_report)
		return;
	cuda.fake_cuda_report(&r);
	CHECK_EQ(r.inits, 0);
	CHECK_EQ(r.default_stream, 0);
	CHECK_EQ(r.context_syncs, 0);
	CHECK_EQ(r.unsafe, 0);
	CHECK_EQ(r.freed, 0);
	CHECK_EQ(r.no_context, 0);
	CHECK_EQ(r.after_fork, 0);
}

static void run_case(int fd, void *arg)
{
	void (*fn)(void) = *(void (**)(void))arg;

	(void)fd;
	fn();
	check_driver_calls();
}

static void run(void (*fn)(void))
{
	struct vp_child c = vp_fork(run_case, &fn);

	vp_join(&c);
}

static void look_for_device(int fd, void *arg)
{
	(void)arg;
	vp_tell(fd, cuda_works());
}

int main(int argc, char **argv)
{
	static void (*const cases[])(void) = {off, whose, large, dmabuf, freed, two_find_it_gone,
		context_goes, other_device, forked, captured, spinning, flushed, failures, failing};
	struct vp_child c;

	driver = argc > 1 ? argv[1] : "libcuda.so.1";
	if (argc > 1)
		run(late);
	cuda_load(driver);
	c = vp_fork(look_for_device, NULL);
	if (!vp_hear(c.fd))
		exit(77);
	vp_join(&c);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		run(cases[i]);
	return check_result();
}
