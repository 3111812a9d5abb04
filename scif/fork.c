// SPDX-License-Identifier: BSD-3-Clause
#include "scif/fork.h"

#include <pthread.h>

#include "scif/ep/ep.h"
#include "scif/face/client.h"
#include "scif/heir/heir.h"
#include "scif/link/bell.h"
#include "scif/link/cm.h"
#include "scif/link/half.h"
#include "scif/link/service.h"
#include "scif/win/map.h"

static void before_fork(void)
{
	service_before_fork();
	half_before_fork();
	ep_before_fork();
	heir_before_fork(ep_any());
}

static void parent_forked(void)
{
	int heir = heir_parent_forked();

	if (heir >= 0 && service_watch_heir(heir))
		heir_end(heir);
	ep_parent_forked();
	half_parent_forked();
	service_parent_forked();
}

static void child_forked(void)
{
	ep_child_forked(heir_child_forked());
	half_child_forked();
	node_forked();
	bell_forked();
	map_forked();
	hold_forked();
	client_forked();
	cm_forked();
	service_child_forked();
}

void watch_forks(void)
{
	pthread_atfork(before_fork, parent_forked, child_forked);
}
