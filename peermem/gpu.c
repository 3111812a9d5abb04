// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/at_open.h"
#include "base/loaded.h"
#include "base/lock.h"
#include "base/log.h"
#include "peermem/gpu_lane.h"
#include "peermem/gpu_region.h"

static struct {
	struct lock lock;
	_Atomic bool decided; /* nobody need look any more */
	_Atomic bool there;   /* its client is registered */
} cuda AT_OPEN_DATA;

static bool is_wanted(void)
{
	const char *value = secure_getenv("WEFT_GPU");

	return !value || strcmp(value, "0") != 0;
}

static bool add(const struct gpu_api *api, void *library)
{
	const char *missing = api->load(library);

	if (missing)
		log_line(LOG_LVL_WARN, "%s lacks %s: memory of its devices cannot be registered",
			api->soname, missing);
	if (missing || !gpu_register(api))
		return false;
	log_line(
		LOG_LVL_INFO, "%s is loaded: memory of its devices can be registered", api->soname);
	return true;
}

/* With the lock held. */
static bool look(void)
{
	const bool wanted = is_wanted(), loaded = wanted && loaded_has(gpu_cuda.soname);
	void *library;

	if (atomic_load_explicit(&cuda.decided, memory_order_relaxed))
		return false;
	/* Found, it stays, for its functions are used. */
	library = loaded ? dlopen(gpu_cuda.soname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (library)
		atomic_store_explicit(&cuda.there, add(&gpu_cuda, library), memory_order_release);
	else if (wanted)
		return false;
	atomic_store_explicit(&cuda.decided, true, memory_order_release);
	return atomic_load_explicit(&cuda.there, memory_order_relaxed);
}

bool gpu_look(void)
{
	bool more;

	if (atomic_load_explicit(&cuda.decided, memory_order_acquire))
		return false;
	lock_take(&cuda.lock);
	more = look();
	lock_drop(&cuda.lock);
	return more;
}

bool gpu_owns(uint64_t addr, uint64_t length)
{
	return atomic_load_explicit(&cuda.there, memory_order_acquire) &&
	       gpu_is_device_memory(addr, length);
}

void gpu_forked_child(void)
{
	const struct lock open = {.word = 0};

	cuda.lock = open;
	gpu_lane_forked_child();
	gpu_regions_forked_child();
}
