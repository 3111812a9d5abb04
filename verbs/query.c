// SPDX-License-Identifier: BSD-3-Clause
// Device, port, GID and P_Key queries: all are answered from the fabric page.
#include "verbs/context.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "verbs/query.h"

/* What programs built before port_cap_flags2 have room for; they call ibv_query_port@1.1. */
enum { OLD_PORT_ATTR_SIZE = offsetof(struct ibv_port_attr, port_cap_flags2) };

int verbs_read_page(uint32_t port_num, struct fabric_page *page)
{
	const struct fabric_page *live;
	int rc = hca_open(&live);

	if (rc)
		return rc;
	fabric_read(live, page);
	return port_num < 1 || port_num > page->n_ports ? -EINVAL : 0;
}

const struct fabric_gid *verbs_gid(const struct fabric_page *page, uint32_t index)
{
	static const uint8_t none[sizeof(page->port.gid[0].raw)];

	if (index >= FABRIC_MAX_GIDS || !memcmp(page->port.gid[index].raw, none, sizeof(none)))
		return NULL;
	return &page->port.gid[index];
}

/* ---- device ---- */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	const struct fabric_page *page;
	struct ibv_device_attr_ex full;
	int rc = hca_open(&page);

	(void)context;
	if (rc)
		return to_errno(rc);
	hca_query_device(page, &full);
	*attr = full.orig_attr;
	return 0;
}

int verbs_query_device_ex(struct ibv_context *context,
	const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr, size_t size)
{
	const struct fabric_page *page;
	struct ibv_device_attr_ex full;
	int rc;

	(void)context;
	if (size < sizeof(full.orig_attr) || (input && input->comp_mask))
		return to_errno(-EINVAL);
	rc = hca_open(&page);
	if (rc)
		return to_errno(rc);
	hca_query_device(page, &full);
	if (size > sizeof(full))
		memset((char *)attr + sizeof(full), 0, size - sizeof(full));
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

/* Ticks in tv_nsec alone, as adapters give them: they are ns, and more than a second of them. */
int verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	(void)context;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return to_errno(-EINVAL);
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)hca_clock_ns();
	}
	return 0;
}

/* ---- port ---- */

static void convert_port(const struct fabric_port *port, struct ibv_port_attr *attr)
{
	bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;

	*attr = (struct ibv_port_attr){
		.state = port->state,
		.max_mtu = port->max_mtu,
		.active_mtu = port->active_mtu,
		.gid_tbl_len = FABRIC_MAX_GIDS,
		.port_cap_flags = IBV_PORT_CM_SUP | (ethernet ? IBV_PORT_IP_BASED_GIDS : 0),
		.max_msg_sz = 1u << HCA_MAX_MSG_LOG,
		.pkey_tbl_len = port->n_pkeys,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.max_vl_num = 1,
		.active_width = port->active_width,
		.active_speed = port->active_speed,
		.phys_state = port->phys_state,
		.link_layer = port->link_layer,
		.flags = ethernet ? IBV_QPF_GRH_REQUIRED : 0,
	};
}

int verbs_query_port(
	struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t size)
{
	struct fabric_page page;
	struct ibv_port_attr full;
	int rc = verbs_read_page(port_num, &page);

	(void)context;
	if (rc)
		return to_errno(rc);
	convert_port(&page.port, &full);
	if (size > sizeof(full))
		memset((char *)attr + sizeof(full), 0, size - sizeof(full));
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

int ibv_query_port(
	struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return verbs_query_port(
		context, port_num, (struct ibv_port_attr *)attr, OLD_PORT_ATTR_SIZE);
}

/* ---- GIDs ---- */

static void convert_gid(
	const struct fabric_gid *gid, uint32_t index, void *entry, size_t entry_size)
{
	struct ibv_gid_entry full = {
		.gid_index = index,
		.port_num = 1,
		.gid_type = gid->type,
		.ndev_ifindex = gid->ifindex,
	};

	memcpy(full.gid.raw, gid->raw, sizeof(full.gid.raw));
	memset(entry, 0, entry_size);
	memcpy(entry, &full, entry_size < sizeof(full) ? entry_size : sizeof(full));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct fabric_page page;
	int rc;

	(void)context;
	if (flags)
		return to_errno(-EOPNOTSUPP);
	rc = verbs_read_page(port_num, &page);
	if (rc || gid_index >= FABRIC_MAX_GIDS)
		return to_errno(rc ? rc : -EINVAL);
	if (!verbs_gid(&page, gid_index))
		return to_errno(-ENODATA);
	convert_gid(verbs_gid(&page, gid_index), gid_index, entry, entry_size);
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
	size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct fabric_page page;
	char *out = (char *)entries;
	size_t n = 0;
	int rc;

	(void)context;
	if (flags)
		return -EOPNOTSUPP;
	rc = verbs_read_page(1, &page);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < FABRIC_MAX_GIDS; i++) {
		if (!verbs_gid(&page, i))
			continue;
		if (n == max_entries)
			return -EINVAL;
		convert_gid(verbs_gid(&page, i), i, out + n++ * entry_size, entry_size);
	}
	return n;
}

/* An empty entry reads as zeros without an error: programs walk the whole table. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct fabric_page page;
	int rc = verbs_read_page(port_num, &page);

	(void)context;
	if (rc || index < 0 || index >= FABRIC_MAX_GIDS)
		return fail_minus_one(rc ? rc : -EINVAL);
	memcpy(gid->raw, page.port.gid[index].raw, sizeof(gid->raw));
	return 0;
}

int verbs_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
	enum verbs_gid_sysfs_type *type)
{
	struct fabric_page page;
	int rc = verbs_read_page(port_num, &page);

	(void)context;
	if (rc || index >= FABRIC_MAX_GIDS)
		return fail_minus_one(rc ? rc : -EINVAL);
	*type = page.port.gid[index].type == IBV_GID_TYPE_ROCE_V2 ? GID_SYSFS_ROCE_V2
								  : GID_SYSFS_IB_ROCE_V1;
	return 0;
}

/* ---- P_Keys ---- */

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	struct fabric_page page;
	int rc = verbs_read_page(port_num, &page);

	(void)context;
	if (rc || index < 0 || (uint32_t)index >= page.port.n_pkeys || index >= FABRIC_MAX_PKEYS)
		return fail_minus_one(rc ? rc : -EINVAL);
	*pkey = htobe16(page.port.pkey[index]);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct fabric_page page;
	int rc = verbs_read_page(port_num, &page);

	(void)context;
	if (rc)
		return fail_minus_one(rc);
	for (uint32_t i = 0; i < page.port.n_pkeys && i < FABRIC_MAX_PKEYS; i++)
		if (htobe16(page.port.pkey[i]) == pkey)
			return i;
	return fail_minus_one(ENOENT);
}
