// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/open.h"

#include <unistd.h>

#include "scif/ep/ep.h"
#include "scif/link/service.h"

int ep_open(struct scif_ep *ep)
{
	int fd, ret = standin_open(&ep->standin, &fd);

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
	standin_undo(&ep->standin);
	lock_drop(&ep->lock);
	return ret;
}
