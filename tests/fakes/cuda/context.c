// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fakes/cuda/context.h"

#include "tests/fakes/cuda/calls.h"
#include "tests/fakes/cuda/memory.h"
#include "tests/fakes/cuda/stream.h"

enum { CONTEXTS = 16, DEPTH = 16 };

/* The first are the primary ones.  What was destroyed is given out again, at the same address. */
static struct CUctx_st context[CONTEXTS];

static _Thread_local struct CUctx_st *stack[DEPTH];
static _Thread_local unsigned depth;

struct CUctx_st *context_current(void)
{
	struct CUctx_st *top = depth ? stack[depth - 1] : NULL;

	return top && top->alive ? top : NULL;
}

static bool is_known(const struct CUctx_st *c)
{
	return c >= context && c < context + CONTEXTS && c->alive;
}

EXPORT int cuInit(unsigned flags)
{
	int rc = call_begin(__func__, CALLER, EARLY, NULL);

	if (rc || flags)
		return rc ? rc : CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < FAKE_DEVICES; i++)
		context[i].device = i;
	call_initialised();
	return 0;
}

EXPORT int cuDeviceGetCount(int *n)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	*n = FAKE_DEVICES;
	return rc;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	if (rc || ordinal < 0 || ordinal >= FAKE_DEVICES)
		return rc ? rc : CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return 0;
}

/* ---- contexts of a program ---- */

EXPORT int cuCtxCreate_v2(struct CUctx_st **out, unsigned flags, int device)
{
	int rc = call_begin(__func__, CALLER, UNSAFE, NULL);

	(void)flags;
	for (int i = FAKE_DEVICES; !rc && i < CONTEXTS; i++)
		if (!context[i].alive) {
			context[i].alive = true;
			context[i].device = device;
			*out = &context[i];
			return cuCtxPushCurrent_v2(*out);
		}
	return rc ? rc : CUDA_ERROR_OUT_OF_MEMORY;
}

static void destroy(struct CUctx_st *c)
{
	streams_drain(NULL);
	streams_lose(c);
	memory_lose(c);
	c->alive = false;
}

EXPORT int cuCtxDestroy_v2(struct CUctx_st *c)
{
	int rc = call_begin(__func__, CALLER, UNSAFE | WHOLE_CONTEXT, NULL);

	if (rc || !is_known(c))
		return rc ? rc : CUDA_ERROR_INVALID_CONTEXT;
	destroy(c);
	if (depth && stack[depth - 1] == c)
		depth--;
	return 0;
}

/* ---- primary contexts ---- */

EXPORT int cuDevicePrimaryCtxRetain(struct CUctx_st **out, int device)
{
	int rc = call_begin(__func__, CALLER, UNSAFE, NULL);

	if (rc || device < 0 || device >= FAKE_DEVICES)
		return rc ? rc : CUDA_ERROR_INVALID_DEVICE;
	context[device].alive = true;
	context[device].retained++;
	*out = &context[device];
	return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	int rc = call_begin(__func__, CALLER, UNSAFE, NULL);

	if (rc || device < 0 || device >= FAKE_DEVICES || !context[device].retained)
		return rc ? rc : CUDA_ERROR_INVALID_CONTEXT;
	if (--context[device].retained == 0)
		destroy(&context[device]);
	return 0;
}

/* ---- the current one ---- */

EXPORT int cuCtxPushCurrent_v2(struct CUctx_st *c)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	if (!rc && (!is_known(c) || depth == DEPTH))
		rc = CUDA_ERROR_INVALID_CONTEXT;
	if (!rc)
		stack[depth++] = c;
	return rc;
}

EXPORT int cuCtxPopCurrent_v2(struct CUctx_st **out)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	if (rc || !depth)
		return rc ? rc : CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (out)
		*out = stack[depth];
	return 0;
}

EXPORT int cuCtxSetCurrent(struct CUctx_st *c)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	if (rc || (c && !is_known(c)))
		return rc ? rc : CUDA_ERROR_INVALID_CONTEXT;
	if (depth)
		depth--;
	if (c)
		stack[depth++] = c;
	return 0;
}

EXPORT int cuCtxGetCurrent(struct CUctx_st **out)
{
	int rc = call_begin(__func__, CALLER, ANYTIME, NULL);

	*out = context_current();
	return rc;
}

EXPORT int cuCtxSynchronize(void)
{
	int rc = call_begin(__func__, CALLER, CONTEXT | UNSAFE | WHOLE_CONTEXT, NULL);

	if (!rc)
		streams_drain(NULL);
	return rc;
}

EXPORT int cuGetErrorName(int error, const char **name)
{
	static const struct {
		int error;
		const char *name;
	} known[] = {{CUDA_SUCCESS, "CUDA_SUCCESS"},
		{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
		{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
		{CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
		{CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
		{CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].error == error) {
			*name = known[i].name;
			return 0;
		}
	*name = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}
