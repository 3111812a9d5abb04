// SPDX-License-Identifier: BSD-3-Clause
#include "ti/core/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ti/core/handle.h"
#include "ti/core/parts.h"
#include "ti/core/system.h"

static _Atomic unsigned forks;
static _Thread_local bool ours __attribute__((tls_model("initial-exec")));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int result;

static void child(void)
{
	atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
	handles_forked();
	system_forked();
	core_calls.forked();
}

static void watch(void)
{
	result = -pthread_atfork(NULL, NULL, child);
}

int fork_watch(void)
{
	pthread_once(&once, watch);
	return result;
}

unsigned fork_count(void)
{
	return atomic_load_explicit(&forks, memory_order_relaxed);
}

void fork_thread_is_ours(void)
{
	ours = true;
}

void fork_called_back(unsigned before)
{
	if (ours && fork_count() != before)
		pthread_exit(NULL);
}
