/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs use of NVIDIA's driver API besides peermem/cuda.h. */
#pragma once

#include "peermem/cuda.h"

struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;

enum cu_range_handle { CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1 };
enum cu_location { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum { CU_MEM_ALLOCATION_TYPE_PINNED = 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3 };
enum { CU_MEM_ATTACH_GLOBAL = 1 };

struct cu_mem_location {
	int type, id;
};

struct cu_mem_prop {
	int type, handle_types;
	struct cu_mem_location location;
	void *win32;
	unsigned char flags[8];
};

struct cu_mem_access {
	struct cu_mem_location location;
	int flags;
};

int cuInit(unsigned flags);
int cuDeviceGetCount(int *n);
int cuDeviceGet(int *device, int ordinal);
int cuCtxCreate_v2(struct CUctx_st **context, unsigned flags, int device);
int cuCtxDestroy_v2(struct CUctx_st *context);
int cuCtxSetCurrent(struct CUctx_st *context);
int cuCtxGetCurrent(struct CUctx_st **context);
int cuCtxSynchronize(void);

int cuMemAlloc_v2(unsigned long long *at, size_t size);
int cuMemFree_v2(unsigned long long at);
int cuMemAllocManaged(unsigned long long *at, size_t size, unsigned flags);
int cuMemAllocAsync(unsigned long long *at, size_t size, struct CUstream_st *stream);
int cuMemFreeAsync(unsigned long long at, struct CUstream_st *stream);
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t n);
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t n);
int cuMemGetHandleForAddressRange(
	void *handle, unsigned long long at, size_t size, int type, unsigned long long flags);

int cuMemAddressReserve(unsigned long long *at, size_t size, size_t align,
	unsigned long long wanted, unsigned long long flags);
int cuMemAddressFree(unsigned long long at, size_t size);
int cuMemCreate(unsigned long long *handle, size_t size, const struct cu_mem_prop *prop,
	unsigned long long flags);
int cuMemRelease(unsigned long long handle);
int cuMemMap(unsigned long long at, size_t size, size_t offset, unsigned long long handle,
	unsigned long long flags);
int cuMemUnmap(unsigned long long at, size_t size);
int cuMemSetAccess(
	unsigned long long at, size_t size, const struct cu_mem_access *access, size_t n);

int cuStreamBeginCapture_v2(struct CUstream_st *stream, int mode);
int cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph);
int cuGraphDestroy(struct CUgraph_st *graph);

int cuModuleLoadData(struct CUmod_st **module, const void *image);
int cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module, const char *name);
int cuLaunchKernel(struct CUfunc_st *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, struct CUstream_st *stream, void **params,
	void **extra);
