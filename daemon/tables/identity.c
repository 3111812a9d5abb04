// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "roce/port/route.h"

enum {
	PAGE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL,
	PHYS_DISABLED = 3,
	PHYS_LINK_UP = 5,
	WIDTH_4X = 2,
	SPEED_EDR = 32,
	DEFAULT_PKEY = 0xffff,
};

static void fill_port(struct fabric_port *port)
{
	port->state = IBV_PORT_ACTIVE;
	port->phys_state = PHYS_LINK_UP;
	port->max_mtu = IBV_MTU_4096;
	port->active_mtu = IBV_MTU_4096;
	port->link_layer = IBV_LINK_LAYER_ETHERNET;
	port->active_width = WIDTH_4X;
	port->active_speed = SPEED_EDR;
	port->vl_cap = 1;
	port->cap_mask = PORT_CAP_CM;
	port->n_pkeys = 1;
	port->pkey[0] = DEFAULT_PKEY;
}

static void fill_page(struct fabric_page *page, const char *fabric, uint64_t guid)
{
	/* Even, and another one than at the same point of an earlier weftd's page. */
	page->seq = (uint32_t)clock_ns() << 1;
	page->version = 4;
	snprintf(page->fabric, sizeof page->fabric, "%s", fabric);
	snprintf(page->device, sizeof page->device, "weft0");
	page->node_guid = guid;
	page->sys_image_guid = page->node_guid;
	page->n_ports = 1;
	page->node_type = FABRIC_CA;
	fill_port(&page->port[0]);
}

int identity_create(const char *fabric, uint64_t guid, struct fabric_page **page, int *fd)
{
	size_t size = FABRIC_PAGE_BYTES;
	void *p = MAP_FAILED;
	int ret;

	*fd = memfd_create("weft-fabric", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	if (ftruncate(*fd, size) == 0)
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (p == MAP_FAILED || fcntl(*fd, F_ADD_SEALS, PAGE_SEALS) < 0) {
		ret = -errno;
		if (p != MAP_FAILED)
			munmap(p, size);
		close(*fd);
		return ret;
	}
	*page = p;
	fill_page(*page, fabric, guid);
	return 0;
}

void identity_end(struct fabric_page *page)
{
	munmap(page, FABRIC_PAGE_BYTES);
}

/* Returns true if that is a change. */
static bool set_state(struct fabric_port *port, bool up)
{
	uint8_t state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;

	if (port->state == state)
		return false;
	port->state = state;
	port->phys_state = up ? PHYS_LINK_UP : PHYS_DISABLED;
	return true;
}

struct identity_news identity_update(
	struct fabric_page *page, const struct gid_addr *addrs, size_t n, bool port_up)
{
	static struct fabric_gid before[FABRIC_MAX_GIDS];
	uint32_t seq = atomic_load_explicit(&page->seq, memory_order_relaxed);
	const struct gid_addr *main4 = gid_main_ipv4(addrs, n);
	struct fabric_port *port = &page->port[0];
	struct identity_news news;
	bool changed;

	memcpy(before, port->gid, sizeof before);
	atomic_store_explicit(&page->seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	news.lost = gid_table_update(port, page->node_guid, addrs, n);
	port->active_mtu = route_path_mtu(main4 ? main4->mtu : 0);
	changed = set_state(port, port_up);
	atomic_store_explicit(&page->seq, seq + 2, memory_order_release);
	news.gids = memcmp(before, port->gid, sizeof before) != 0;
	news.went_up = changed && port_up;
	news.went_down = changed && !port_up;
	return news;
}

void identity_set_cap(struct fabric_page *page, uint32_t port, uint32_t bits, bool on)
{
	uint32_t seq = atomic_load_explicit(&page->seq, memory_order_relaxed);
	uint32_t *mask = &page->port[port - 1].cap_mask;

	atomic_store_explicit(&page->seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	*mask = on ? *mask | bits : *mask & ~bits;
	atomic_store_explicit(&page->seq, seq + 2, memory_order_release);
}
