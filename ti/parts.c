// SPDX-License-Identifier: BSD-3-Clause
/* What services and forks call in the other rooms. */
#include "ti/core/parts.h"

#include "ti/conn/cm.h"
#include "ti/conn/disconnect.h"
#include "ti/dev/device.h"
#include "ti/event/events.h"
#include "ti/xfer/comp.h"
#include "ti/xfer/cq.h"

static void close_conn(struct member *m)
{
	(void)conn_close((struct conn *)m, NULL, NULL);
}

static void close_cq(struct member *m)
{
	cq_close((struct cq *)m);
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
	.close_conn = close_conn,
	.close_cq = close_cq,
	.forked = forked,
};
