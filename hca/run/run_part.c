// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/run_part.h"

#include <errno.h>
#include <stdlib.h>

#include "hca/proc/peer.h"
#include "hca/run/agent.h"
#include "hca/run/far.h"
#include "hca/run/progress.h"
#include "hca/run/worker.h"

static void forked_child(void)
{
	far_forked_child();
	worker_forked_child();
	agent_forked_child();
	progress_forked_child();
}

static int peer_came(struct peer *p)
{
	struct worker *lane = malloc(sizeof *lane);

	if (!lane)
		return -ENOMEM;
	worker_init(lane);
	p->path.lane = lane;
	if (p->needs_agent)
		agent_hold();
	return 0;
}

static void peer_left(struct peer *p)
{
	worker_end(p->path.lane);
	free(p->path.lane);
	if (p->needs_agent)
		agent_drop();
}

const struct proc_part run_part = {
	.forked_child = forked_child, .peer_came = peer_came, .peer_left = peer_left};
