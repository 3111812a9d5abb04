// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/open.h"

#include <unistd.h>

#include "scif/ep/ep.h"
#include "scif/ep/ready.h"
#include "scif/link/service.h"

int ep_open(struct scif_ep *ep)
{
	int fd, ret = ready_open(ep, &fd);

	if (ret)
		return ret;
	ep_enter(ep);
	ret = service_watch(ep);
	if (!ret)
		return fd;
	if (ep_remove(ep))
		ep_put(ep);
	close(fd);
	lock_take(&ep->lock);
	ready_undo(ep);
	lock_drop(&ep->lock);
	return ret;
}
