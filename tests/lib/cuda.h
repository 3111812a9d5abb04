/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's driver, or the fake one of tests/fakes/, as a program uses it: loaded by name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/more.h"

#define CUDA_FUNCTION(name) __typeof__(&name) name

struct cuda_api {
	CUDA_FUNCTION(cuInit);
	CUDA_FUNCTION(cuDeviceGet);
	CUDA_FUNCTION(cuDevicePrimaryCtxRetain);
	CUDA_FUNCTION(cuCtxSetCurrent);
	CUDA_FUNCTION(cuCtxCreate_v2);
	CUDA_FUNCTION(cuCtxDestroy_v2);
	CUDA_FUNCTION(cuMemAlloc_v2);
	CUDA_FUNCTION(cuMemFree_v2);
	CUDA_FUNCTION(cuMemAllocManaged);
	CUDA_FUNCTION(cuMemAllocAsync);
	CUDA_FUNCTION(cuMemFreeAsync);
	CUDA_FUNCTION(cuMemHostAlloc);
	CUDA_FUNCTION(cuMemFreeHost);
	CUDA_FUNCTION(cuMemcpyHtoD_v2);
	CUDA_FUNCTION(cuMemcpyDtoH_v2);
	CUDA_FUNCTION(cuMemcpyHtoDAsync_v2);
	CUDA_FUNCTION(cuMemGetHandleForAddressRange);
	CUDA_FUNCTION(cuMemAddressReserve);
	CUDA_FUNCTION(cuMemAddressFree);
	CUDA_FUNCTION(cuMemCreate);
	CUDA_FUNCTION(cuMemRelease);
	CUDA_FUNCTION(cuMemMap);
	CUDA_FUNCTION(cuMemUnmap);
	CUDA_FUNCTION(cuMemSetAccess);
	CUDA_FUNCTION(cuStreamCreate);
	CUDA_FUNCTION(cuStreamSynchronize);
	CUDA_FUNCTION(cuStreamBeginCapture_v2);
	CUDA_FUNCTION(cuStreamEndCapture);
	CUDA_FUNCTION(cuGraphDestroy);
	CUDA_FUNCTION(cuModuleLoadData);
	CUDA_FUNCTION(cuModuleGetFunction);
	CUDA_FUNCTION(cuLaunchKernel);
	/* Of the fake alone, else NULL. */
	CUDA_FUNCTION(fake_cuda_report);
	CUDA_FUNCTION(fake_cuda_calls);
	CUDA_FUNCTION(fake_cuda_fail);
	CUDA_FUNCTION(fake_cuda_slow);
	CUDA_FUNCTION(fake_cuda_fail_all);
};

extern struct cuda_api cuda;

/*
 * Loads the driver at path, without which there is none: prints why and exits with 77.  Nothing is
 * initialised.
 */
void cuda_load(const char *path);

/*
 * cuInit(), and the primary context of the first device is current.  Where there is no device:
 * exits with 77 and cuInit's answer.
 */
void cuda_start(void);

/* In a process that exits: whether it has a device.  Prints cuInit's answer if not. */
bool cuda_works(void);

/* Ends the program if rc is an error of what. */
void cuda_need(int rc, const char *what);

/* Where device memory comes from. */
enum cuda_memory {
	CUDA_PLAIN,  /* cuMemAlloc */
	CUDA_POOL,   /* cuMemAllocAsync: of no context */
	CUDA_PIECES, /* cuMemCreate, mapped one behind the other: the same */
	CUDA_MEMORIES
};

/* Allocates at least size bytes; they stay until the process ends. */
uint64_t cuda_alloc(enum cuda_memory from, size_t size);

/* Between the device and the program, by the default stream. */
void cuda_put(uint64_t to, const void *from, size_t n);
void cuda_get(void *to, uint64_t from, size_t n);

/* Starts a kernel on a stream of its own that spins until the word of 4 bytes at at is not 0. */
struct CUstream_st *cuda_spin(uint64_t at);
