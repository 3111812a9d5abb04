/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of NVIDIA's driver API is used here: names, values and types as its public documentation has
 * them (CUDA Driver API, "Data types used by CUDA driver"; the names that a program links to).  All
 * functions answer 0 (CUDA_SUCCESS) or an error; none is linked to, they are found with dlsym().
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;

enum cu_result {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_UNKNOWN = 999,
};

enum cu_pointer_attribute {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,           /* struct CUctx_st *; NULL: of no context */
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,       /* unsigned, enum cu_memory_type */
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,         /* unsigned long long */
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,        /* unsigned */
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,    /* int */
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11, /* unsigned long long */
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,       /* size_t */
};

enum cu_memory_type { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2 };
enum cu_stream_flags { CU_STREAM_NON_BLOCKING = 1 };
enum cu_event_flags { CU_EVENT_DISABLE_TIMING = 2 };
enum cu_capture_mode {
	CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

/* Of any address, also one that CUDA does not know: then it puts 0 in all. */
int cuPointerGetAttributes(unsigned n, int *attributes, void **data, unsigned long long address);

int cuCtxPushCurrent_v2(struct CUctx_st *context);
int cuCtxPopCurrent_v2(struct CUctx_st **context);
int cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);

/* Memory of the CPU that devices reach by DMA, of the current context. */
int cuMemHostAlloc(void **at, size_t size, unsigned flags);
int cuMemFreeHost(void *at);
int cuMemcpyHtoDAsync_v2(
	unsigned long long to, const void *from, size_t n, struct CUstream_st *stream);
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n, struct CUstream_st *stream);

int cuStreamCreate(struct CUstream_st **stream, unsigned flags);
int cuStreamDestroy_v2(struct CUstream_st *stream);
int cuStreamSynchronize(struct CUstream_st *stream);
int cuEventCreate(struct CUevent_st **event, unsigned flags);
int cuEventDestroy_v2(struct CUevent_st *event);
int cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream);
int cuEventSynchronize(struct CUevent_st *event);

/* *mode, of this thread, is exchanged. */
int cuThreadExchangeStreamCaptureMode(int *mode);

int cuGetErrorName(int error, const char **name);
