// SPDX-License-Identifier: BSD-3-Clause
#include "kshim/hook.h"

#include <stdatomic.h>

#include "base/log.h"

static const struct kshim_watch *_Atomic watch;
static _Atomic unsigned long calls, failing;
static atomic_bool has_failed;

static const struct kshim_watch *watching(void)
{
	return atomic_load_explicit(&watch, memory_order_acquire);
}

void hook_watch(const struct kshim_watch *w)
{
	atomic_store_explicit(&watch, w, memory_order_release);
}

bool hook_is_watched(void)
{
	return watching();
}

void hook_fail_nth(unsigned long n)
{
	atomic_store_explicit(&calls, 0, memory_order_relaxed);
	atomic_store_explicit(&has_failed, false, memory_order_relaxed);
	atomic_store_explicit(&failing, n, memory_order_release);
}

bool hook_failed(void)
{
	return atomic_load_explicit(&has_failed, memory_order_acquire);
}

bool hook_before(const char *call)
{
	const struct kshim_watch *w = watching();
	const unsigned long nth = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;

	if (w)
		w->point(call, false);
	if (nth != atomic_load_explicit(&failing, memory_order_acquire))
		return false;
	atomic_store_explicit(&has_failed, true, memory_order_release);
	return true;
}

void hook_enter(const char *call)
{
	const struct kshim_watch *w = watching();

	if (w)
		w->point(call, false);
}

int hook_after(const char *call, int rc)
{
	const struct kshim_watch *w = watching();

	if (w)
		w->point(call, true);
	return rc;
}

void hook_lock(const void *lock, const char *name, enum kshim_lock_use use)
{
	const struct kshim_watch *w = watching();

	if (w)
		w->lock(lock, name, use);
}

void hook_freed(const void *at, size_t n)
{
	const struct kshim_watch *w = watching();

	if (w)
		w->freed(at, n);
}

void hook_wrong(enum kshim_wrong which, const char *text)
{
	const struct kshim_watch *w = watching();

	log_line(LOG_LVL_ERROR, "kernel shim: %s", text);
	if (w)
		w->wrong(which, text);
}
