// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fakes/cuda/calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/fakes/cuda/context.h"
#include "tests/fakes/cuda/stream.h"

enum { FUNCTIONS = 64, CALLERS = 256 };

struct function {
	const char *name;
	unsigned long calls; /* of libibverbs.so.1 */
	unsigned fail_in;
	int error;
	unsigned us; /* that a call takes */
};

static struct {
	pthread_mutex_t lock;
	struct function function[FUNCTIONS];
	struct {
		const void *at;
		bool weft;
	} caller[CALLERS]; /* by the address; forgotten when another comes */
	struct fake_cuda_report report;
	int error; /* of all */
	pid_t pid; /* that called cuInit */
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool of_program;

static struct function *function_of(const char *name)
{
	struct function *f = calls.function;

	while (f->name && strcmp(f->name, name) != 0)
		f++;
	f->name = name;
	return f;
}

static bool is_weft(const void *caller)
{
	unsigned i = (uintptr_t)caller / 4 % CALLERS;
	Dl_info info;

	if (calls.caller[i].at != caller) {
		calls.caller[i].at = caller;
		calls.caller[i].weft = dladdr(caller, &info) && info.dli_fname &&
				       strstr(info.dli_fname, "libibverbs.so");
	}
	return calls.caller[i].weft;
}

static void count(struct function *f, unsigned needs)
{
	struct fake_cuda_report *r = &calls.report;

	f->calls++;
	r->inits += !strcmp(f->name, "cuInit");
	r->default_stream += (needs & DEFAULT_STREAM) != 0;
	r->context_syncs += (needs & WHOLE_CONTEXT) != 0;
	*(of_program ? &r->by_program : &r->by_own_threads) += 1;
}

static int injected(struct function *f)
{
	if (calls.error)
		return calls.error;
	return f->fail_in && --f->fail_in == 0 ? f->error : 0;
}

/* What the driver itself would answer. */
static int refused(unsigned needs, bool weft)
{
	struct fake_cuda_report *r = &calls.report;
	bool child = calls.pid && calls.pid != getpid();
	int rc;

	if ((!calls.pid && !(needs & EARLY)) || child) {
		r->after_fork += child && weft;
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	if (needs & CONTEXT && !context_current()) {
		r->no_context += weft;
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	rc = needs & (UNSAFE | DEFAULT_STREAM) ? capture_forbids(needs & DEFAULT_STREAM) : 0;
	r->unsafe += rc && weft;
	return rc;
}

int call_begin(const char *function, const void *caller, unsigned needs, bool *weft)
{
	struct function *f;
	bool ours;
	unsigned us = 0;
	int rc = 0;

	pthread_mutex_lock(&calls.lock);
	ours = is_weft(caller);
	f = function_of(function);
	of_program |= !ours;
	if (ours) {
		count(f, needs);
		rc = injected(f);
		us = f->us;
	}
	if (!rc)
		rc = refused(needs, ours);
	pthread_mutex_unlock(&calls.lock);
	if (us)
		usleep(us);
	if (weft)
		*weft = ours;
	return rc;
}

void call_used_freed(void)
{
	pthread_mutex_lock(&calls.lock);
	calls.report.freed++;
	pthread_mutex_unlock(&calls.lock);
}

void call_initialised(void)
{
	calls.pid = getpid();
}

/* ---- for tests ---- */

EXPORT void fake_cuda_report(struct fake_cuda_report *to)
{
	pthread_mutex_lock(&calls.lock);
	*to = calls.report;
	pthread_mutex_unlock(&calls.lock);
}

EXPORT unsigned long fake_cuda_calls(const char *function)
{
	unsigned long n;

	pthread_mutex_lock(&calls.lock);
	n = function_of(function)->calls;
	pthread_mutex_unlock(&calls.lock);
	return n;
}

EXPORT void fake_cuda_fail(const char *function, unsigned nth, int error)
{
	struct function *f;

	pthread_mutex_lock(&calls.lock);
	f = function_of(function);
	f->fail_in = nth;
	f->error = error;
	pthread_mutex_unlock(&calls.lock);
}

EXPORT void fake_cuda_slow(const char *function, unsigned us)
{
	pthread_mutex_lock(&calls.lock);
	function_of(function)->us = us;
	pthread_mutex_unlock(&calls.lock);
}

EXPORT void fake_cuda_fail_all(int error)
{
	pthread_mutex_lock(&calls.lock);
	calls.error = error;
	pthread_mutex_unlock(&calls.lock);
}
