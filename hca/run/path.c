// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/path.h"

#include <errno.h>
#include <string.h>

#include "base/gid.h"
#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/proc/proc.h"
#include "hca/run/far.h"
#include "rdv/wire.h"

int path_find_gid(const uint8_t *gid, uint32_t *index)
{
	const struct fabric_port *port = &proc_at()->fabric->port[0];

	if (gid_is_multicast(gid))
		return PATH_GROUP;
	for (uint32_t i = 0; i < FABRIC_MAX_GIDS && i < port->n_gids; i++)
		if (!memcmp(port->gid[i].raw, gid, sizeof port->gid[i].raw)) {
			*index = i;
			return PATH_LOCAL;
		}
	return -EHOSTUNREACH;
}

static bool is_zero_gid(const uint8_t *raw)
{
	static const uint8_t zero[16];

	return !memcmp(raw, zero, sizeof zero);
}

/*
 * One address of IPv4, one of IPv6: no packet has both.  The kernel looks such a pair up in vain,
 * but takes any source for a link-local destination, whose MAC address it knows.
 */
static bool are_mixed(const uint8_t *sgid, const uint8_t *dgid)
{
	return gid_is_ipv4(sgid) != gid_is_ipv4(dgid) && !gid_is_multicast(dgid) &&
	       !gid_is_link_local(dgid);
}

/* What is wrong with it, or NULL. */
static const char *fault_of(const struct ibv_ah_attr *attr, const struct fabric_port *port)
{
	if (!attr->is_global)
		return "a RoCE path needs a GRH (is_global and a destination GID)";
	if (is_zero_gid(port->gid[attr->grh.sgid_index].raw))
		return "there is no GID at sgid_index";
	if (is_zero_gid(attr->grh.dgid.raw))
		return "the destination GID is zero";
	if (are_mixed(port->gid[attr->grh.sgid_index].raw, attr->grh.dgid.raw))
		return "the GID at sgid_index is of IPv4, the destination GID of IPv6, or the "
		       "other way round";
	return NULL;
}

static void describe(
	const struct ibv_ah_attr *attr, const struct fabric_port *port, struct seg_path *path)
{
	_Static_assert(FABRIC_MAX_GIDS > UINT8_MAX, "sgid_index has 8 bits");
	*path = (struct seg_path){
		.flow = (uint32_t)attr->grh.traffic_class << PATH_TCLASS_SHIFT |
			(attr->grh.flow_label & 0xfffff),
		.hop_limit = attr->grh.hop_limit,
		.mtu = port->active_mtu,
	};
	memcpy(path->sgid, port->gid[attr->grh.sgid_index].raw, sizeof path->sgid);
	memcpy(path->dgid, attr->grh.dgid.raw, sizeof path->dgid);
}

/* Have both an interface, so that packets can go from one to the other? */
static bool is_sendable(
	const struct fabric_port *port, const struct ibv_ah_attr *attr, uint32_t index)
{
	return wire_mode() == WIRE_ALWAYS && port->gid[index].ifindex &&
	       port->gid[attr->grh.sgid_index].ifindex;
}

int path_find(const struct ibv_ah_attr *attr, struct seg_path *path, const char **why)
{
	const struct fabric_port *port = fabric_port(proc_at()->fabric, attr->port_num);
	uint32_t index;
	int kind, rc;

	memset(path, 0, sizeof *path);
	if (!port) {
		*why = "the device has no port of the path's number";
		return -EINVAL;
	}
	if (port->link_layer == IBV_LINK_LAYER_INFINIBAND) {
		*why = "traffic between the nodes of a simulated subnet is not supported yet";
		return -EHOSTUNREACH;
	}
	*why = fault_of(attr, port);
	if (*why)
		return -EINVAL;
	describe(attr, port, path);
	kind = path_find_gid(path->dgid, &index);
	if (kind >= 0 && !(kind == PATH_LOCAL && is_sendable(port, attr, index)))
		return kind;
	rc = far_route(path);
	if (!rc)
		return PATH_REMOTE;
	if (rc != -EHOSTUNREACH) {
		*why = "no descriptors or no memory to look for the way to the destination";
		return rc;
	}
	if (kind < 0)
		*why = "the destination GID is not of this host, and no way leads to another";
	return kind;
}

int hca_path(const struct ibv_ah_attr *attr, uint8_t *mtu)
{
	struct seg_path path;
	const char *why = "";
	int rc = proc_attach(NULL);

	if (!rc)
		rc = path_find(attr, &path, &why);
	if (rc < 0) {
		log_refusal("no path: %s", why);
		return rc;
	}
	*mtu = path.mtu;
	return 0;
}
