// SPDX-License-Identifier: BSD-3-Clause
/*
 * NVIDIA's CUDA.  Nothing here waits for the default stream or a whole context, where a kernel that
 * spins until bytes arrive would hold it up, nor frees anything: that waits for kernels, too.
 */
#include <dlfcn.h>
#include <errno.h>

#include "base/log.h"
#include "peermem/cuda.h"
#include "peermem/gpu_api.h"

static struct {
	__typeof__(&cuPointerGetAttributes) pointer_attributes;
	__typeof__(&cuCtxPushCurrent_v2) push;
	__typeof__(&cuCtxPopCurrent_v2) pop;
	__typeof__(&cuDevicePrimaryCtxRetain) retain_primary;
	__typeof__(&cuMemHostAlloc) host_alloc;
	__typeof__(&cuMemcpyHtoDAsync_v2) to_device;
	__typeof__(&cuMemcpyDtoHAsync_v2) from_device;
	__typeof__(&cuStreamCreate) stream_create;
	__typeof__(&cuEventCreate) event_create;
	__typeof__(&cuEventRecord) event_record;
	__typeof__(&cuEventSynchronize) event_wait;
	__typeof__(&cuThreadExchangeStreamCaptureMode) exchange_mode;
	__typeof__(&cuGetErrorName) error_name;
} cuda;

static const struct {
	const char *name;
	void **to;
} symbols[] = {
	{"cuPointerGetAttributes", (void **)&cuda.pointer_attributes},
	{"cuCtxPushCurrent_v2", (void **)&cuda.push},
	{"cuCtxPopCurrent_v2", (void **)&cuda.pop},
	{"cuDevicePrimaryCtxRetain", (void **)&cuda.retain_primary},
	{"cuMemHostAlloc", (void **)&cuda.host_alloc},
	{"cuMemcpyHtoDAsync_v2", (void **)&cuda.to_device},
	{"cuMemcpyDtoHAsync_v2", (void **)&cuda.from_device},
	{"cuStreamCreate", (void **)&cuda.stream_create},
	{"cuEventCreate", (void **)&cuda.event_create},
	{"cuEventRecord", (void **)&cuda.event_record},
	{"cuEventSynchronize", (void **)&cuda.event_wait},
	{"cuThreadExchangeStreamCaptureMode", (void **)&cuda.exchange_mode},
	{"cuGetErrorName", (void **)&cuda.error_name},
};

static const char *load(void *library)
{
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		*symbols[i].to = dlsym(library, symbols[i].name);
		if (!*symbols[i].to)
			return symbols[i].name;
	}
	return NULL;
}

/* 0 or -errno, of what a function answered. */
static int answer(const char *function, int rc)
{
	const char *name = NULL;

	if (!rc)
		return 0;
	if (cuda.error_name(rc, &name) || !name)
		name = "an unknown error";
	log_line(LOG_LVL_INFO, "%s: %s (%d)", function, name, rc);
	return rc == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : -EIO;
}

/* ---- whose memory ---- */

static bool find(uint64_t addr, struct gpu_range *out)
{
	enum { N = 7 };
	int what[N] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_BUFFER_ID,
		CU_POINTER_ATTRIBUTE_CONTEXT};
	unsigned type = 0, managed = 0;
	unsigned long long start = 0, id = 0;
	size_t size = 0;
	void *to[N] = {&type, &managed, &out->device, &start, &size, &id, &out->context};

	out->context = NULL;
	if (cuda.pointer_attributes(N, what, to, addr) || type != CU_MEMORYTYPE_DEVICE || managed)
		return false;
	out->start = start;
	out->size = size;
	out->id = id;
	return addr - start < size;
}

static uint64_t id_of(const void *pinned)
{
	int what = CU_POINTER_ATTRIBUTE_BUFFER_ID;
	unsigned long long id = 0;
	void *to = &id;

	return cuda.pointer_attributes(1, &what, &to, (uintptr_t)pinned) ? 0 : id;
}

/* ---- contexts ---- */

static int exchange(struct gpu_inside *was)
{
	was->capture_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	return answer("cuThreadExchangeStreamCaptureMode", cuda.exchange_mode(&was->capture_mode));
}

static void exchange_back(const struct gpu_inside *was)
{
	int mode = was->capture_mode;

	cuda.exchange_mode(&mode);
}

static int context_of(const struct gpu_range *range, void **context)
{
	struct gpu_inside was;
	int rc;

	*context = range->context;
	if (*context)
		return 0;
	rc = exchange(&was);
	if (rc)
		return rc;
	rc = answer("cuDevicePrimaryCtxRetain",
		cuda.retain_primary((struct CUctx_st **)context, range->device));
	exchange_back(&was);
	return rc;
}

static int enter(void *context, struct gpu_inside *was)
{
	int rc = exchange(was);

	if (rc)
		return rc;
	rc = answer("cuCtxPushCurrent", cuda.push(context));
	if (rc)
		exchange_back(was);
	return rc;
}

static void leave(const struct gpu_inside *was)
{
	struct CUctx_st *out;

	cuda.pop(&out);
	exchange_back(was);
}

/* ---- inside one ---- */

static int open_stream(struct gpu_handles *h)
{
	return answer("cuStreamCreate",
		cuda.stream_create((struct CUstream_st **)&h->stream, CU_STREAM_NON_BLOCKING));
}

static int alloc(size_t size, void **pinned)
{
	return answer("cuMemHostAlloc", cuda.host_alloc(pinned, size, 0));
}

static int make_event(void **event)
{
	return answer("cuEventCreate",
		cuda.event_create((struct CUevent_st **)event, CU_EVENT_DISABLE_TIMING));
}

static int to_device(const struct gpu_handles *h, uint64_t to, const void *from, size_t n)
{
	return answer("cuMemcpyHtoDAsync", cuda.to_device(to, from, n, h->stream));
}

static int from_device(const struct gpu_handles *h, void *to, uint64_t from, size_t n)
{
	return answer("cuMemcpyDtoHAsync", cuda.from_device(to, from, n, h->stream));
}

static int mark(const struct gpu_handles *h, void *event)
{
	return answer("cuEventRecord", cuda.event_record(event, h->stream));
}

static int wait_for(void *event)
{
	return answer("cuEventSynchronize", cuda.event_wait(event));
}

const struct gpu_api gpu_cuda = {
	.client = "nv_mem",
	.soname = "libcuda.so.1",
	.load = load,
	.find = find,
	.id = id_of,
	.context = context_of,
	.enter = enter,
	.leave = leave,
	.open = open_stream,
	.alloc = alloc,
	.make_event = make_event,
	.to_device = to_device,
	.from_device = from_device,
	.mark = mark,
	.wait = wait_for,
};
