// SPDX-License-Identifier: BSD-3-Clause
// Address handles, and their attributes from a received datagram.
#include "verbs/context.h"

#include <endian.h>
#include <netinet/ip.h>
#include <string.h>

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct hca_ah *ah;
	int rc = hca_ah_create(to_pd(pd)->hca, attr, &ah);

	if (rc)
		return fail_null(rc);
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	hca_ah_destroy(container_of(ah, struct hca_ah, ibv));
	return 0;
}

/* Where a datagram came from and went to, whichever header it had. */
struct route {
	union ibv_gid source;
	union ibv_gid destination;
	uint32_t flow_label;
	uint8_t hop_limit;
	uint8_t traffic_class;
};

/* The IPv4 header that RoCEv2 puts into the last 20 of the 40 bytes of GRH. */
static const struct iphdr *ipv4_header(const struct ibv_grh *grh)
{
	const struct iphdr *ip = (const struct iphdr *)((const char *)grh + 20);

	return be32toh(grh->version_tclass_flow) >> 28 != 6 && ip->version == 4 && ip->ihl == 5
		       ? ip
		       : NULL;
}

static void map_ipv4(union ibv_gid *gid, uint32_t addr)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, &addr, sizeof(addr));
}

static void read_route(const struct ibv_grh *grh, struct route *route)
{
	const struct iphdr *ip = ipv4_header(grh);
	uint32_t word = be32toh(grh->version_tclass_flow);

	memset(route, 0, sizeof(*route));
	if (ip) {
		map_ipv4(&route->source, ip->saddr);
		map_ipv4(&route->destination, ip->daddr);
		route->hop_limit = ip->ttl;
		route->traffic_class = ip->tos;
		return;
	}
	route->source = grh->sgid;
	route->destination = grh->dgid;
	route->flow_label = word & IB_GRH_FLOWLABEL_MASK;
	route->hop_limit = grh->hop_limit;
	route->traffic_class = word >> 20;
}

static int find_gid(const struct fabric_port *port, const union ibv_gid *gid)
{
	for (uint32_t i = 0; i < FABRIC_MAX_GIDS; i++)
		if (verbs_gid(port, i) && !memcmp(port->gid[i].raw, gid->raw, sizeof(gid->raw)))
			return i;
	return -ENOENT;
}

/* Returns 0, or -1 with errno. */
int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct fabric_port port;
	struct route route;
	int index, rc;

	(void)context;
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	rc = verbs_read_port(port_num, &port);
	if (rc)
		return fail_minus_one(rc);
	read_route(grh, &route);
	index = find_gid(&port, &route.destination);
	if (index < 0)
		return fail_minus_one(index);
	attr->is_global = 1;
	attr->grh.dgid = route.source;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.flow_label = route.flow_label;
	attr->grh.hop_limit = route.hop_limit;
	attr->grh.traffic_class = route.traffic_class;
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(
	struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}
