// SPDX-License-Identifier: BSD-3-Clause
// Device, port, GID and P_Key queries: all are answered from the fabric page.
#include "verbs/context.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "verbs/query.h"

/* What programs built before port_cap_flags2 have room for; they call ibv_query_port@1.1. */
enum { OLD_PORT_ATTR_SIZE = offsetof(struct ibv_port_attr, port_cap_flags2) };

/* Where headers of rdma-core 50 have active_speed_ex, behind all that those of 44 have. */
enum { NEWER_SPEED = 52 };

int verbs_read_port(uint32_t port_num, struct fabric_port *port)
{
	const struct fabric_page *live;
	int rc = hca_open(&live);

	if (!rc && fabric_read_port(live, port_num, port))
		rc = log_refused(-EINVAL, "there is no port %u: the device has %u, from 1",
			port_num, live->n_ports);
	return rc;
}

static int refuse_gid_index(int64_t index)
{
	return log_refused(-EINVAL, "there is no GID index %lld: the table has %d, from 0",
		(long long)index, FABRIC_MAX_GIDS);
}

const struct fabric_gid *verbs_gid(const struct fabric_port *port, uint32_t index)
{
	static const uint8_t none[sizeof(port->gid[0].raw)];

	if (index >= FABRIC_MAX_GIDS || !memcmp(port->gid[index].raw, none, sizeof(none)))
		return NULL;
	return &port->gid[index];
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

/* The kernel's way with speeds that 8 bits do not hold. */
static uint8_t old_speed(uint16_t speed)
{
	return speed < PORT_SPEED_NDR ? speed : PORT_SPEED_NDR;
}

static void convert_port(const struct fabric_port *port, struct ibv_port_attr *attr)
{
	bool ethernet = port->link_layer == IBV_LINK_LAYER_ETHERNET;

	*attr = (struct ibv_port_attr){
		.state = port->state,
		.max_mtu = port->max_mtu,
		.active_mtu = port->active_mtu,
		.gid_tbl_len = FABRIC_MAX_GIDS,
		.port_cap_flags = port->cap_mask | (ethernet ? IBV_PORT_IP_BASED_GIDS : 0),
		.max_msg_sz = 1u << HCA_MAX_MSG_LOG,
		.pkey_tbl_len = port->n_pkeys,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.lmc = port->lmc,
		.max_vl_num = port->vl_cap,
		.sm_sl = port->sm_sl,
		.subnet_timeout = port->subnet_timeout,
		.active_width = port->active_width,
		.active_speed = old_speed(port->active_speed),
		.phys_state = port->phys_state,
		.link_layer = port->link_layer,
		.flags = ethernet ? IBV_QPF_GRH_REQUIRED : 0,
		.port_cap_flags2 = port->cap_mask2,
	};
}

int verbs_query_port(
	struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t size)
{
	struct fabric_port port;
	struct ibv_port_attr full;
	uint32_t speed;
	int rc = verbs_read_port(port_num, &port);

	(void)context;
	if (rc)
		return to_errno(rc);
	convert_port(&port, &full);
	if (size > sizeof(full))
		memset((char *)attr + sizeof(full), 0, size - sizeof(full));
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	speed = port.active_speed;
	if (size >= NEWER_SPEED + sizeof(speed))
		memcpy((char *)attr + NEWER_SPEED, &speed, sizeof(speed));
	return 0;
}

int ibv_query_port(
	struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return verbs_query_port(
		context, port_num, (struct ibv_port_attr *)attr, OLD_PORT_ATTR_SIZE);
}

/* ---- GIDs ---- */

static void convert_gid(const struct fabric_gid *gid, uint32_t port_num, uint32_t index,
	void *entry, size_t entry_size)
{
	struct ibv_gid_entry full = {
		.gid_index = index,
		.port_num = port_num,
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
	struct fabric_port port;
	int rc;

	(void)context;
	if (flags)
		return to_errno(-EOPNOTSUPP);
	rc = verbs_read_port(port_num, &port);
	if (rc || gid_index >= FABRIC_MAX_GIDS)
		return to_errno(rc ? rc : refuse_gid_index(gid_index));
	if (!verbs_gid(&port, gid_index))
		return to_errno(-ENODATA);
	convert_gid(verbs_gid(&port, gid_index), port_num, gid_index, entry, entry_size);
	return 0;
}

/* Adds the GIDs of a port to the *n entries that are there.  -EINVAL: no room. */
static int add_gids(uint32_t port_num, struct ibv_gid_entry *entries, size_t max_entries,
	size_t entry_size, size_t *n)
{
	struct fabric_port port;
	int rc = verbs_read_port(port_num, &port);

	for (uint32_t i = 0; !rc && i < FABRIC_MAX_GIDS; i++) {
		char *out = (char *)entries + *n * entry_size;

		if (!verbs_gid(&port, i))
			continue;
		if (*n == max_entries)
			return -EINVAL;
		convert_gid(verbs_gid(&port, i), port_num, i, out, entry_size);
		++*n;
	}
	return rc;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
	size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct fabric_page *page;
	size_t n = 0;
	int rc;

	(void)context;
	if (flags)
		return -EOPNOTSUPP;
	rc = hca_open(&page);
	for (uint32_t port_num = 1; !rc && port_num <= page->n_ports; port_num++)
		rc = add_gids(port_num, entries, max_entries, entry_size, &n);
	return rc ? rc : (ssize_t)n;
}

/* An empty entry reads as zeros without an error: programs walk the whole table. */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct fabric_port port;
	int rc = verbs_read_port(port_num, &port);

	(void)context;
	if (rc || index < 0 || index >= FABRIC_MAX_GIDS)
		return fail_minus_one(rc ? rc : refuse_gid_index(index));
	memcpy(gid->raw, port.gid[index].raw, sizeof(gid->raw));
	return 0;
}

int verbs_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
	enum verbs_gid_sysfs_type *type)
{
	struct fabric_port port;
	int rc = verbs_read_port(port_num, &port);

	(void)context;
	if (rc || index >= FABRIC_MAX_GIDS)
		return fail_minus_one(rc ? rc : refuse_gid_index(index));
	*type = port.gid[index].type == IBV_GID_TYPE_ROCE_V2 ? GID_SYSFS_ROCE_V2
							     : GID_SYSFS_IB_ROCE_V1;
	return 0;
}

/* ---- P_Keys ---- */

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	struct fabric_port port;
	int rc = verbs_read_port(port_num, &port);

	(void)context;
	if (rc || index < 0 || (uint32_t)index >= port.n_pkeys || index >= FABRIC_MAX_PKEYS)
		return fail_minus_one(rc ? rc
					 : log_refused(-EINVAL,
						   "there is no P_Key index %d: the table has %u, "
						   "from 0",
						   index, port.n_pkeys));
	*pkey = htobe16(port.pkey[index]);
	return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct fabric_port port;
	int rc = verbs_read_port(port_num, &port);

	(void)context;
	if (rc)
		return fail_minus_one(rc);
	for (uint32_t i = 0; i < port.n_pkeys && i < FABRIC_MAX_PKEYS; i++)
		if (htobe16(port.pkey[i]) == pkey)
			return i;
	return fail_minus_one(ENOENT);
}
