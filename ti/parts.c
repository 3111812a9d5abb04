// SPDX-License-Identifier: BSD-3-Clause
/* What services and forks call in the other rooms. */
#include "ti/core/parts.h"

#include "ti/conn/cm.h"
#include "ti/conn/disconnect.h"
#include "ti/dev/device.h"
#include "ti/event/events.h"
#include "ti/mem/pool_get.h"
#include "ti/xfer/break.h"
#include "ti/xfer/comp.h"
#include "ti/xfer/cq.h"

static void halt(struct member *m)
{
	if (m->kind == HANDLE_CONN)
		conn_halt((struct conn *)m);
	else if (m->kind == HANDLE_POOL)
		pool_halt((struct pool *)m);
}

static void end_conn(struct member *m)
{
	conn_end((struct conn *)m);
}

static void end_cq(struct member *m)
{
	cq_end((struct cq *)m);
}

static void forked(void)
{
	devices_forked();
	cm_forked();
	comp_forked();
	events_forked();
}

const struct core_calls core_calls = {
	.start = cm_start,
	.halt = halt,
	.end_conn = end_conn,
	.end_cq = end_cq,
	.forked = forked,
};
