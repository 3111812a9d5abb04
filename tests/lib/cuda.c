// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"

enum { CANNOT_RUN = 77, PIECE = 2 << 20 };

struct cuda_api cuda;

#define FUNCTION(name)                                                                             \
	{                                                                                          \
#name, (void **)&cuda.name                                                         \
	}

static const struct {
	const char *name;
	void **to;
} functions[] = {
	FUNCTION(cuInit),
	FUNCTION(cuDeviceGet),
	FUNCTION(cuDevicePrimaryCtxRetain),
	FUNCTION(cuCtxSetCurrent),
	FUNCTION(cuCtxCreate_v2),
	FUNCTION(cuCtxDestroy_v2),
	FUNCTION(cuMemAlloc_v2),
	FUNCTION(cuMemFree_v2),
	FUNCTION(cuMemAllocManaged),
	FUNCTION(cuMemAllocAsync),
	FUNCTION(cuMemFreeAsync),
	FUNCTION(cuMemHostAlloc),
	FUNCTION(cuMemFreeHost),
	FUNCTION(cuMemcpyHtoD_v2),
	FUNCTION(cuMemcpyDtoH_v2),
	FUNCTION(cuMemcpyHtoDAsync_v2),
	FUNCTION(cuMemGetHandleForAddressRange),
	FUNCTION(cuMemAddressReserve),
	FUNCTION(cuMemAddressFree),
	FUNCTION(cuMemCreate),
	FUNCTION(cuMemRelease),
	FUNCTION(cuMemMap),
	FUNCTION(cuMemUnmap),
	FUNCTION(cuMemSetAccess),
	FUNCTION(cuStreamCreate),
	FUNCTION(cuStreamSynchronize),
	FUNCTION(cuStreamBeginCapture_v2),
	FUNCTION(cuStreamEndCapture),
	FUNCTION(cuGraphDestroy),
	FUNCTION(cuModuleLoadData),
	FUNCTION(cuModuleGetFunction),
	FUNCTION(cuLaunchKernel),
	FUNCTION(fake_cuda_report),
	FUNCTION(fake_cuda_calls),
	FUNCTION(fake_cuda_fail),
	FUNCTION(fake_cuda_slow),
	FUNCTION(fake_cuda_fail_all),
};

void cuda_need(int rc, const char *what)
{
	if (rc)
		die("%s answered %d", what, rc);
}

void cuda_load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		printf("no CUDA driver: %s\n", dlerror());
		exit(CANNOT_RUN);
	}
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		*functions[i].to = dlsym(library, functions[i].name);
}

bool cuda_works(void)
{
	int rc = cuda.cuInit(0), device;

	if (!rc)
		rc = cuda.cuDeviceGet(&device, 0);
	if (rc)
		printf("no CUDA device: cuInit answered %d\n", rc);
	return !rc;
}

void cuda_start(void)
{
	struct CUctx_st *context;

	if (!cuda_works())
		exit(CANNOT_RUN);
	cuda_need(cuda.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	cuda_need(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

static uint64_t alloc_from_pool(size_t size)
{
	unsigned long long at;
	struct CUstream_st *stream;

	cuda_need(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	cuda_need(cuda.cuMemAllocAsync(&at, size, stream), "cuMemAllocAsync");
	cuda_need(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
	return at;
}

static uint64_t alloc_pieces(size_t size)
{
	const struct cu_mem_location here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
	const struct cu_mem_prop prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
	const struct cu_mem_access access = {
		.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	size_t n = (size + PIECE - 1) / PIECE;
	unsigned long long at, piece;

	cuda_need(cuda.cuMemAddressReserve(&at, n * PIECE, 0, 0, 0), "cuMemAddressReserve");
	for (size_t i = 0; i < n; i++) {
		cuda_need(cuda.cuMemCreate(&piece, PIECE, &prop, 0), "cuMemCreate");
		cuda_need(cuda.cuMemMap(at + i * PIECE, PIECE, 0, piece, 0), "cuMemMap");
		cuda_need(cuda.cuMemRelease(piece), "cuMemRelease");
	}
	cuda_need(cuda.cuMemSetAccess(at, n * PIECE, &access, 1), "cuMemSetAccess");
	return at;
}

uint64_t cuda_alloc(enum cuda_memory from, size_t size)
{
	unsigned long long at;

	if (from == CUDA_POOL)
		return alloc_from_pool(size);
	if (from == CUDA_PIECES)
		return alloc_pieces(size);
	cuda_need(cuda.cuMemAlloc_v2(&at, size), "cuMemAlloc");
	return at;
}

void cuda_put(uint64_t to, const void *from, size_t n)
{
	cuda_need(cuda.cuMemcpyHtoD_v2(to, from, n), "cuMemcpyHtoD");
}

void cuda_get(void *to, uint64_t from, size_t n)
{
	cuda_need(cuda.cuMemcpyDtoH_v2(to, from, n), "cuMemcpyDtoH");
}

static const char spin[] = ".version 6.0\n"
			   ".target sm_50\n"
			   ".address_size 64\n"
			   ".visible .entry spin(.param .u64 word)\n"
			   "{\n"
			   "	.reg .pred %p;\n"
			   "	.reg .b32 %r;\n"
			   "	.reg .b64 %a;\n"
			   "	ld.param.u64 %a, [word];\n"
			   "	cvta.to.global.u64 %a, %a;\n"
			   "again:\n"
			   "	ld.volatile.global.u32 %r, [%a];\n"
			   "	setp.eq.u32 %p, %r, 0;\n"
			   "	@%p bra again;\n"
			   "	ret;\n"
			   "}\n";

struct CUstream_st *cuda_spin(uint64_t at)
{
	struct CUmod_st *module;
	struct CUfunc_st *function;
	struct CUstream_st *stream;
	void *params[] = {&at};

	cuda_need(cuda.cuModuleLoadData(&module, spin), "cuModuleLoadData");
	cuda_need(cuda.cuModuleGetFunction(&function, module, "spin"), "cuModuleGetFunction");
	/* A blocking one, for which the default stream waits. */
	cuda_need(cuda.cuStreamCreate(&stream, 0), "cuStreamCreate");
	cuda_need(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL),
		"cuLaunchKernel");
	return stream;
}
