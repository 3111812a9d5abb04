// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/subnet_page.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "sm/attr.h"

static bool is_fdr10(struct subnet *s, uint32_t node, uint8_t number)
{
	struct ext_port_info ext;
	uint8_t data[SMP_DATA_SIZE];

	if (!attr_get(s, node, number, SMP_EXT_PORT_INFO, number, data))
		return false;
	wire_unpack(&ext_port_info_format, data, &ext);
	return ext.speed_active & EXT_PORT_FDR10;
}

/* One code for the speeds of all the fields. */
static uint16_t speed_of(
	struct subnet *s, uint32_t node, uint8_t number, const struct port_info *info)
{
	if (info->ext_speed2_active)
		return info->ext_speed2_active * PORT_SPEED_XDR;
	if (info->ext_speed_active)
		return info->ext_speed_active * PORT_SPEED_FDR;
	return is_fdr10(s, node, number) ? PORT_SPEED_FDR10 : info->speed_active;
}

static void put_gids(
	struct fabric_port *port, struct subnet *s, uint32_t node, uint8_t number, uint64_t prefix)
{
	uint8_t guids[SMP_DATA_SIZE];

	if (!attr_get(s, node, number, SMP_GUID_INFO, 0, guids))
		return;
	for (unsigned i = 0; i < SMP_GUIDS; i++) {
		uint64_t guid, be_prefix = htobe64(prefix);

		memcpy(&guid, guids + i * sizeof guid, sizeof guid);
		if (!guid)
			continue;
		memcpy(port->gid[i].raw, &be_prefix, sizeof be_prefix);
		memcpy(port->gid[i].raw + sizeof be_prefix, &guid, sizeof guid);
		port->gid[i].type = IBV_GID_TYPE_IB;
		port->n_gids = i + 1;
	}
}

static void put_pkeys(struct fabric_port *port, const struct tables *t, uint32_t index)
{
	port->n_pkeys = TABLES_PKEYS;
	for (unsigned i = 0; i < TABLES_PKEYS; i++)
		port->pkey[i] = tables_pkey(t, index, i);
}

static void put_port(struct fabric_port *port, struct subnet *s, uint32_t node, uint8_t number)
{
	const struct tables *t = subnet_tables(s);
	uint8_t data[SMP_DATA_SIZE];
	struct port_info info;

	memset(port, 0, sizeof *port);
	if (!attr_get(s, node, number, SMP_PORT_INFO, number, data))
		return;
	wire_unpack(&port_info_format, data, &info);
	port->state = info.state;
	port->phys_state = info.phys_state;
	port->max_mtu = info.mtu_cap;
	port->active_mtu = info.neighbor_mtu;
	port->link_layer = IBV_LINK_LAYER_INFINIBAND;
	port->active_width = info.width_active;
	port->active_speed = speed_of(s, node, number, &info);
	port->lmc = info.lmc;
	port->lid = info.lid;
	port->sm_lid = info.sm_lid;
	port->sm_sl = info.sm_sl;
	port->subnet_timeout = info.subnet_timeout;
	port->vl_cap = info.vl_cap;
	port->cap_mask = info.cap_mask;
	port->cap_mask2 = info.cap_mask2;
	put_gids(port, s, node, number, info.gid_prefix);
	put_pkeys(port, t, t->nodes[node].port0 + number);
}

void subnet_page_fill(
	struct fabric_page *page, struct subnet *s, const struct topo_node *topo, uint32_t node)
{
	page->node_type = topo->kind;
	page->n_ports = topo->n_ports < FABRIC_MAX_PORTS ? topo->n_ports : FABRIC_MAX_PORTS;
	if (topo->kind == TOPO_SWITCH)
		page->n_ports = 1;
	memset(page->port, 0, sizeof page->port);
	subnet_page_update(page, s, node);
}

static bool update_description(struct fabric_page *page, struct subnet *s, uint32_t node)
{
	uint8_t data[SMP_DATA_SIZE];
	char old[sizeof page->description];

	if (!attr_get(s, node, fabric_first_port(page), SMP_NODE_DESC, 0, data))
		return false;
	snprintf(old, sizeof old, "%s", page->description);
	snprintf(page->description, sizeof page->description, "%.*s", SMP_DATA_SIZE, (char *)data);
	return strcmp(old, page->description) != 0;
}

static bool update_guids(struct fabric_page *page, struct subnet *s, uint32_t node)
{
	uint8_t port = fabric_first_port(page), data[SMP_DATA_SIZE];
	struct node_info info;
	bool news;

	if (!attr_get(s, node, port, SMP_NODE_INFO, 0, data))
		return false;
	wire_unpack(&node_info_format, data, &info);
	news = page->node_guid != htobe64(info.node_guid) ||
	       page->sys_image_guid != htobe64(info.system_guid);
	page->node_guid = htobe64(info.node_guid);
	page->sys_image_guid = htobe64(info.system_guid);
	return news;
}

bool subnet_page_update(struct fabric_page *page, struct subnet *s, uint32_t node)
{
	static struct fabric_port port;
	uint32_t seq = atomic_load_explicit(&page->seq, memory_order_relaxed);
	bool news;

	atomic_store_explicit(&page->seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	news = update_guids(page, s, node);
	news |= update_description(page, s, node);
	for (uint32_t i = 0; i < page->n_ports; i++) {
		put_port(&port, s, node, fabric_first_port(page) + i);
		if (!memcmp(&port, &page->port[i], sizeof port))
			continue;
		page->port[i] = port;
		news = true;
	}
	atomic_store_explicit(&page->seq, seq + 2, memory_order_release);
	return news;
}
