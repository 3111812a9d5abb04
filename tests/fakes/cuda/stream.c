// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fakes/cuda/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakes/cuda/calls.h"
#include "tests/fakes/cuda/context.h"
#include "tests/fakes/cuda/memory.h"

enum { LATE_US = 300, LOOK_US = 50 };

/* One of these is not NULL, or word is not 0. */
struct op {
	void *out;
	const void *in;
	uint64_t at; /* device memory */
	size_t n;
	uint64_t word; /* the kernel: spins until this is not 0 */
	bool weft;     /* libibverbs.so.1 asked for it */
	struct timespec due;
	struct op *next;
};

struct CUstream_st {
	struct CUctx_st *context; /* NULL: it was lost */
	bool non_blocking;
	int error; /* of what was done so far */
	struct op *first, **last;
	uint64_t posted, done, wanted;
	bool captured, broken; /* a capture runs, which something broke */
	int mode;
	pthread_t by;
	struct CUstream_st *next;
};

struct CUevent_st {
	struct CUctx_st *context;
	struct CUstream_st *stream;
	uint64_t at; /* what its stream had been asked for */
	struct CUevent_st *next;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct CUstream_st *list; /* of this process; none goes */
	struct CUevent_st *events;
	long late_us;
	bool asked;
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* The legacy default stream: its work waits for all blocking streams. */
static _Thread_local int capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static long late_us(void)
{
	const char *late = streams.asked ? NULL : getenv("FAKE_CUDA_LATE_US");

	if (!streams.asked)
		streams.late_us = late ? atol(late) : LATE_US;
	streams.asked = true;
	return streams.late_us;
}

/* ---- what a stream does ---- */

static int do_copy(const struct op *o)
{
	bool ok = o->out ? memory_read(o->out, o->at, o->n) : memory_write(o->at, o->in, o->n);

	if (!ok && o->weft)
		call_used_freed();
	return ok ? 0 : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static int spin(const struct op *o)
{
	uint32_t word = 0;

	while (memory_read(&word, o->word, sizeof word) && !word)
		usleep(LOOK_US);
	return word ? 0 : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static int do_op(const struct op *o)
{
	return o->word ? spin(o) : do_copy(o);
}

/* With the lock held: the next, once it is due or wanted. */
static struct op *next_op(struct CUstream_st *s)
{
	while (!s->first)
		pthread_cond_wait(&streams.change, &streams.lock);
	while (s->wanted <= s->done && !s->first->word &&
		!pthread_cond_timedwait(&streams.change, &streams.lock, &s->first->due))
		;
	return s->first;
}

static void *run(void *arg)
{
	struct CUstream_st *s = arg;
	struct op *o;
	int rc;

	pthread_mutex_lock(&streams.lock);
	for (;;) {
		o = next_op(s);
		pthread_mutex_unlock(&streams.lock);
		rc = do_op(o);
		pthread_mutex_lock(&streams.lock);
		s->first = o->next;
		if (!s->first)
			s->last = &s->first;
		free(o);
		s->done++;
		s->error = s->error ? s->error : rc;
		pthread_cond_broadcast(&streams.change);
	}
	return NULL;
}

/* With the lock held. */
static int wait_until(struct CUstream_st *s, uint64_t at)
{
	if (s->done >= at)
		return s->error;
	if (s->wanted < at)
		s->wanted = at;
	pthread_cond_broadcast(&streams.change);
	while (s->done < at)
		pthread_cond_wait(&streams.change, &streams.lock);
	return s->error;
}

void streams_drain(struct CUstream_st *one)
{
	pthread_mutex_lock(&streams.lock);
	for (struct CUstream_st *s = streams.list; s; s = s->next)
		if (!one || s == one)
			wait_until(s, s->posted);
	pthread_mutex_unlock(&streams.lock);
}

static void drain_blocking(void)
{
	pthread_mutex_lock(&streams.lock);
	for (struct CUstream_st *s = streams.list; s; s = s->next)
		if (!s->non_blocking)
			wait_until(s, s->posted);
	pthread_mutex_unlock(&streams.lock);
}

void streams_lose(const struct CUctx_st *c)
{
	pthread_mutex_lock(&streams.lock);
	for (struct CUstream_st *s = streams.list; s; s = s->next)
		if (s->context == c)
			s->context = NULL;
	pthread_mutex_unlock(&streams.lock);
}

static int post(struct CUstream_st *s, const struct op *from)
{
	struct op *o;
	int rc = 0;

	if (!s->context || s->context != context_current())
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&streams.lock);
	o = s->captured ? NULL : malloc(sizeof *o);
	if (o && !late_us() && !s->first && !from->word) {
		rc = do_copy(from);
		free(o);
		o = NULL;
	}
	if (o) {
		*o = *from;
		clock_gettime(CLOCK_REALTIME, &o->due);
		o->due.tv_nsec += late_us() * 1000;
		o->due.tv_sec += o->due.tv_nsec / 1000000000;
		o->due.tv_nsec %= 1000000000;
		o->next = NULL;
		*s->last = o;
		s->last = &o->next;
		s->posted++;
		pthread_cond_broadcast(&streams.change);
	}
	pthread_mutex_unlock(&streams.lock);
	return rc;
}

/* ---- streams and events ---- */

EXPORT int cuStreamCreate(struct CUstream_st **out, unsigned flags)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE, NULL);
	struct CUstream_st *s = rc ? NULL : calloc(1, sizeof *s);
	pthread_t thread;

	if (!s)
		return rc ? rc : CUDA_ERROR_OUT_OF_MEMORY;
	s->context = context_current();
	s->non_blocking = flags & CU_STREAM_NON_BLOCKING;
	s->last = &s->first;
	pthread_mutex_lock(&streams.lock);
	s->next = streams.list;
	streams.list = s;
	pthread_mutex_unlock(&streams.lock);
	if (pthread_create(&thread, NULL, run, s))
		abort();
	pthread_detach(thread);
	*out = s;
	return 0;
}

/* It stays, but cannot be used. */
EXPORT int cuStreamDestroy_v2(struct CUstream_st *s)
{
	int rc = call_begin(__func__, CALLER, UNSAFE, NULL);

	if (rc || !s || !s->context)
		return rc ? rc : CUDA_ERROR_INVALID_HANDLE;
	s->context = NULL;
	return 0;
}

EXPORT int cuStreamSynchronize(struct CUstream_st *s)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | (s ? 0 : DEFAULT_STREAM), NULL);

	if (rc)
		return rc;
	if (!s) {
		drain_blocking();
		return 0;
	}
	if (!s->context)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&streams.lock);
	rc = wait_until(s, s->posted);
	pthread_mutex_unlock(&streams.lock);
	return rc;
}

EXPORT int cuEventCreate(struct CUevent_st **out, unsigned flags)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE, NULL);
	struct CUevent_st *e = rc ? NULL : calloc(1, sizeof *e);

	(void)flags;
	if (!e)
		return rc ? rc : CUDA_ERROR_OUT_OF_MEMORY;
	e->context = context_current();
	pthread_mutex_lock(&streams.lock);
	e->next = streams.events;
	streams.events = e;
	pthread_mutex_unlock(&streams.lock);
	*out = e;
	return 0;
}

/* It stays, as streams do. */
EXPORT int cuEventDestroy_v2(struct CUevent_st *e)
{
	int rc = call_begin(__func__, CALLER, UNSAFE, NULL);

	if (!rc)
		e->stream = NULL;
	return rc;
}

EXPORT int cuEventRecord(struct CUevent_st *e, struct CUstream_st *s)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | (s ? 0 : DEFAULT_STREAM), NULL);

	if (rc || !s || !s->context || e->context != s->context)
		return rc ? rc : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&streams.lock);
	e->stream = s;
	e->at = s->posted;
	pthread_mutex_unlock(&streams.lock);
	return 0;
}

EXPORT int cuEventSynchronize(struct CUevent_st *e)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE, NULL);

	if (rc || !e->stream)
		return rc;
	if (!e->stream->context)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&streams.lock);
	rc = wait_until(e->stream, e->at);
	pthread_mutex_unlock(&streams.lock);
	return rc;
}

/* ---- copies ---- */

/* As NVIDIA's, memory that is not pinned is copied before the call returns. */
static int copy_async(struct CUstream_st *s, const struct op *o)
{
	int rc;

	if (!s) {
		drain_blocking();
		return do_copy(o);
	}
	rc = post(s, o);
	if (!rc && !memory_is_pinned(o->out ? o->out : o->in, o->n))
		streams_drain(s);
	return rc;
}

EXPORT int cuMemcpyHtoDAsync_v2(
	unsigned long long to, const void *from, size_t n, struct CUstream_st *s)
{
	struct op o = {.in = from, .at = to, .n = n};
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | (s ? 0 : DEFAULT_STREAM), &o.weft);

	return rc ? rc : copy_async(s, &o);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n, struct CUstream_st *s)
{
	struct op o = {.out = to, .at = from, .n = n};
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | (s ? 0 : DEFAULT_STREAM), &o.weft);

	return rc ? rc : copy_async(s, &o);
}

EXPORT int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t n)
{
	struct op o = {.in = from, .at = to, .n = n};
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | DEFAULT_STREAM, &o.weft);

	return rc ? rc : copy_async(NULL, &o);
}

EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t n)
{
	struct op o = {.out = to, .at = from, .n = n};
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | DEFAULT_STREAM, &o.weft);

	return rc ? rc : copy_async(NULL, &o);
}

/* ---- captures ---- */

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL), was = capture_mode;

	if (rc || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	capture_mode = *mode;
	*mode = was;
	return 0;
}

static bool breaks(const struct CUstream_st *s, bool default_stream)
{
	if (!s->captured)
		return false;
	if (default_stream && !s->non_blocking)
		return true;
	if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	if (pthread_equal(s->by, pthread_self()))
		return s->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
	return capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
	       s->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

int capture_forbids(bool default_stream)
{
	int rc = 0;

	pthread_mutex_lock(&streams.lock);
	for (struct CUstream_st *s = streams.list; s; s = s->next)
		if (breaks(s, default_stream)) {
			s->broken = true;
			rc = default_stream ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
					    : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	pthread_mutex_unlock(&streams.lock);
	return rc;
}

EXPORT int cuStreamBeginCapture_v2(struct CUstream_st *s, int mode)
{
	int rc = call_begin(__func__, CALLER, CONTEXT, NULL);

	if (rc || !s || s->captured)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&streams.lock);
	s->captured = true;
	s->broken = false;
	s->mode = mode;
	s->by = pthread_self();
	pthread_mutex_unlock(&streams.lock);
	return 0;
}

/* The graph is not there; nobody looks into it. */
EXPORT int cuStreamEndCapture(struct CUstream_st *s, struct CUgraph_st **graph)
{
	int rc = call_begin(__func__, CALLER, CONTEXT, NULL);

	if (rc || !s->captured)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&streams.lock);
	s->captured = false;
	rc = s->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
	pthread_mutex_unlock(&streams.lock);
	*graph = NULL;
	return rc;
}

EXPORT int cuGraphDestroy(struct CUgraph_st *graph)
{
	(void)graph;
	return call_begin(__func__, CALLER, ANYTIME, NULL);
}

/* ---- the one kernel: "spin", of the address of a word ---- */

static int a_module, a_function;

EXPORT int cuModuleLoadData(struct CUmod_st **out, const void *image)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE, NULL);

	if (rc || !strstr(image, ".entry spin"))
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	*out = (struct CUmod_st *)&a_module;
	return 0;
}

EXPORT int cuModuleGetFunction(struct CUfunc_st **out, struct CUmod_st *module, const char *name)
{
	int rc = call_begin(__func__, CALLER, CONTEXT, NULL);

	if (rc || module != (struct CUmod_st *)&a_module || strcmp(name, "spin") != 0)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	*out = (struct CUfunc_st *)&a_function;
	return 0;
}

EXPORT int cuLaunchKernel(struct CUfunc_st *function, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, struct CUstream_st *s,
	void **params, void **extra)
{
	struct op o = {.word = *(uint64_t *)params[0]};
	int rc = call_begin(__func__, CALLER, CONTEXT | (s ? 0 : DEFAULT_STREAM), &o.weft);

	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
	if (rc || !s || function != (struct CUfunc_st *)&a_function)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	return post(s, &o);
}
