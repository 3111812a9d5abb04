// SPDX-License-Identifier: BSD-3-Clause
#include "ti/dev/device.h"

#include <rdma/rdma_cma.h>

#include "base/lock.h"

static struct {
	struct lock lock;
	struct ibv_context **list; /* keeps them open */
} devices;

void devices_open(void)
{
	lock_take(&devices.lock);
	if (!devices.list)
		devices.list = rdma_get_devices(NULL);
	lock_drop(&devices.lock);
}

struct ibv_context *device_first(void)
{
	struct ibv_context *first;

	lock_take(&devices.lock);
	first = devices.list ? devices.list[0] : NULL;
	lock_drop(&devices.lock);
	return first;
}

void devices_forked(void)
{
	devices.lock = (struct lock){0};
	devices.list = NULL;
}
