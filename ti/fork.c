// SPDX-License-Identifier: BSD-3-Clause
#include "ti/ti.h"

#include "ti/fork.h"

#include <errno.h>
#include <pthread.h>

#include "ti/cm.h"
#include "ti/comp.h"
#include "ti/events.h"
#include "ti/handle.h"
#include "ti/system.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int result;

static void child(void)
{
	handles_forked();
	system_forked();
	cm_forked();
	comp_forked();
	events_forked();
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
