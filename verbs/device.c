// SPDX-License-Identifier: BSD-3-Clause
// The device list: one device, the same object for as long as the process lives.
#include "verbs/objects.h"

#include <stdlib.h>
#include <string.h>

#include "base/at_open.h"
#include "base/lock.h"

static AT_OPEN_DATA struct verbs_device device;
static AT_OPEN_DATA struct lock device_lock;
static AT_OPEN_DATA bool device_known;

static void name_device(const struct fabric_page *page)
{
	struct fabric_page copy;

	fabric_read_node(page, &copy); /* of stack, the ports are 20 KiB more */
	device.guid = copy.node_guid;
	device.dev.node_type = IBV_NODE_CA;
	device.dev.transport_type = IBV_TRANSPORT_IB;
	memcpy(device.dev.name, copy.device, sizeof(device.dev.name) - 1);
	strcpy(device.dev.dev_name, "uverbs0");
	strcpy(device.dev.dev_path, "/sys/class/infiniband_verbs/uverbs0");
	strcpy(device.dev.ibdev_path, "/sys/class/infiniband/");
	strcat(device.dev.ibdev_path, device.dev.name);
	device_known = true;
}

/*
 * NULL with errno if weftd cannot be reached (the log says what to do), instead of an empty
 * list: a program that prints the error then prints the cause.
 */
struct ibv_device **ibv_get_device_list(int *num_devices)
{
	const struct fabric_page *page;
	struct ibv_device **list;
	int rc;

	if (num_devices)
		*num_devices = 0;
	rc = hca_open(&page);
	if (rc)
		return fail_null(rc);
	list = calloc(2, sizeof(*list));
	if (!list)
		return fail_null(ENOMEM);
	if (page->node_type == FABRIC_SWITCH)
		return list; /* it has management alone */
	lock_take(&device_lock);
	if (!device_known)
		name_device(page);
	lock_drop(&device_lock);
	list[0] = &device.dev;
	if (num_devices)
		*num_devices = 1;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
	return container_of(dev, struct verbs_device, dev)->guid;
}

int ibv_get_device_index(struct ibv_device *dev)
{
	(void)dev;
	return 0;
}
