// SPDX-License-Identifier: BSD-3-Clause
/* The device: one context for all ids, which outlives them. */
#include "rdmacm/device.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/gid.h"
#include "verbs/for_rdmacm.h"

/* All ids are of one port. */
enum { PORT = 1 };

static struct device device;
static struct lock device_lock;

static uint8_t clamp(int n)
{
	return n > 0xff ? 0xff : n;
}

static int open_device(struct device *d)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_device_attr attr;

	if (!list)
		return -errno;
	d->verbs = list[0] ? ibv_open_device(list[0]) : NULL;
	ibv_free_device_list(list);
	if (!d->verbs)
		return errno ? -errno : -ENODEV;
	d->pd = ibv_alloc_pd(d->verbs);
	if (!d->pd || ibv_query_device(d->verbs, &attr)) {
		int err = errno ? errno : EIO;

		if (d->pd)
			ibv_dealloc_pd(d->pd);
		ibv_close_device(d->verbs);
		*d = (struct device){0};
		return -err;
	}
	d->max_responder = clamp(attr.max_qp_rd_atom);
	d->max_initiator = clamp(attr.max_qp_init_rd_atom);
	return 0;
}

void device_forked_child(void)
{
	atomic_store_explicit(&device_lock.word, 0, memory_order_relaxed);
	device.pd = NULL;
	device.xrcd = NULL;
}

/* Another protection domain for a forked child. */
static int renew_pd(struct device *d)
{
	d->pd = ibv_alloc_pd(d->verbs);
	return d->pd ? 0 : -errno;
}

int device_get(const struct device **dev)
{
	const struct fabric_page *page;
	int ret;

	lock_take(&device_lock);
	ret = weft_cm_attach(&page);
	if (!ret)
		atomic_store_explicit(&device.page, page, memory_order_release);
	if (!ret && !device.verbs)
		ret = open_device(&device);
	else if (!ret && !device.pd)
		ret = renew_pd(&device);
	lock_drop(&device_lock);
	*dev = &device;
	return ret;
}

int device_xrcd(struct ibv_xrcd **xrcd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	const struct device *dev;
	int ret = device_get(&dev);

	if (ret)
		return ret;
	lock_take(&device_lock);
	if (!device.xrcd)
		device.xrcd = ibv_open_xrcd(device.verbs, &attr);
	*xrcd = device.xrcd;
	ret = device.xrcd ? 0 : -errno;
	lock_drop(&device_lock);
	return ret;
}

static int read_port(const struct device *dev, struct fabric_port *port)
{
	return fabric_read_port(atomic_load_explicit(&dev->page, memory_order_acquire), PORT, port);
}

int device_gid_index(const uint8_t gid[16])
{
	const struct device *dev;
	int ret = device_get(&dev);
	struct fabric_port port;

	if (ret)
		return ret;
	ret = read_port(dev, &port);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < port.n_gids && i < FABRIC_MAX_GIDS; i++)
		if (port.gid[i].type && memcmp(port.gid[i].raw, gid, 16) == 0)
			return i;
	return -ENOENT;
}

bool device_is_simulated(void)
{
	const struct device *dev;
	struct fabric_port port;

	return !device_get(&dev) && !read_port(dev, &port) &&
	       port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

uint8_t device_mtu(const struct device *dev)
{
	const struct fabric_page *page = atomic_load_explicit(&dev->page, memory_order_acquire);

	return page->port[PORT - 1].active_mtu;
}

int device_address(uint8_t family, bool loopback, struct cm_addr *addr)
{
	const struct device *dev;
	struct fabric_port port;
	int ret = device_get(&dev);

	if (ret)
		return ret;
	ret = read_port(dev, &port);
	if (ret)
		return ret;
	for (uint32_t i = 1; i < port.n_gids && i < FABRIC_MAX_GIDS; i++) {
		const uint8_t *gid = port.gid[i].raw;
		bool is_loopback = gid_is_loopback(gid);

		if (!port.gid[i].type || gid_is_ipv4(gid) != (family == 4) ||
			is_loopback != loopback)
			continue;
		memcpy(addr->gid, gid, 16);
		addr->family = family;
		return 0;
	}
	return -ENETUNREACH;
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	const struct device *dev;
	struct ibv_context **list = calloc(2, sizeof *list);
	int ret;

	if (!list) {
		errno = ENOMEM;
		return NULL;
	}
	ret = device_get(&dev);
	if (ret) {
		free(list);
		errno = -ret;
		return NULL;
	}
	list[0] = dev->verbs;
	if (num_devices)
		*num_devices = 1;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
