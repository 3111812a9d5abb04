// SPDX-License-Identifier: BSD-3-Clause
#include "ti/event/route.h"

#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/rtnl.h"
#include "ti/event/events.h"
#include "ti/event/link.h"

struct route {
	struct rtmsg rtm;
	uint32_t table, metrics; /* a bit for each RTAX_ */
	int oif;                 /* 0: none */
	bool expires, flow, has_gateway;
	ti_inet_addr_t dst, gateway;
};

/* ---- parsing ---- */

static size_t addr_len(int family)
{
	return family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
}

static bool get_addr(const struct nlmsghdr *nlh, int family, uint16_t type, ti_inet_addr_t *out)
{
	size_t len = addr_len(family);
	const struct nlattr *a = rtnl_attr(nlh, sizeof(struct rtmsg), type, len);

	out->IP_addr_type = family == AF_INET ? TI_ADDR_IPV4 : TI_ADDR_IPV6;
	if (a)
		memcpy(&out->inet_u, mnl_attr_get_payload(a), len);
	return a;
}

static uint32_t get_u32(const struct nlmsghdr *nlh, uint16_t type)
{
	const struct nlattr *a = rtnl_attr(nlh, sizeof(struct rtmsg), type, sizeof(uint32_t));

	return a ? mnl_attr_get_u32(a) : 0;
}

static uint32_t get_metrics(const struct nlmsghdr *nlh)
{
	const struct nlattr *all = rtnl_attr(nlh, sizeof(struct rtmsg), RTA_METRICS, 0), *a;
	uint32_t metrics = 0;

	if (all)
		mnl_attr_for_each_nested(a, all) if (mnl_attr_get_type(a) < 32) metrics |=
			1u << mnl_attr_get_type(a);
	return metrics;
}

static bool does_expire(const struct nlmsghdr *nlh)
{
	const struct nlattr *a =
		rtnl_attr(nlh, sizeof(struct rtmsg), RTA_CACHEINFO, sizeof(struct rta_cacheinfo));
	const struct rta_cacheinfo *info = a ? mnl_attr_get_payload(a) : NULL;

	return (info && info->rta_expires) || get_u32(nlh, RTA_EXPIRES);
}

/* False: not of IP. */
static bool parse(const struct nlmsghdr *nlh, struct route *r)
{
	*r = (struct route){0};
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof r->rtm)
		return false;
	memcpy(&r->rtm, mnl_nlmsg_get_payload(nlh), sizeof r->rtm);
	if (r->rtm.rtm_family != AF_INET && r->rtm.rtm_family != AF_INET6)
		return false;
	(void)get_addr(nlh, r->rtm.rtm_family, RTA_DST, &r->dst);
	r->has_gateway = get_addr(nlh, r->rtm.rtm_family, RTA_GATEWAY, &r->gateway);
	r->oif = (int)get_u32(nlh, RTA_OIF);
	r->table = get_u32(nlh, RTA_TABLE);
	if (!r->table)
		r->table = r->rtm.rtm_table;
	r->metrics = get_metrics(nlh);
	r->flow = get_u32(nlh, RTA_FLOW);
	r->expires = does_expire(nlh);
	return true;
}

void route_heed(const struct nlmsghdr *nlh)
{
	bool there = nlh->nlmsg_type == RTM_NEWROUTE;
	struct route r;

	if (parse(nlh, &r) && !r.rtm.rtm_dst_len && r.table == RT_TABLE_MAIN && r.oif &&
		r.has_gateway)
		link_set_hop(r.oif, r.rtm.rtm_family, there ? &r.gateway.inet_u : NULL);
}

/* ---- which events ---- */

static bool is_v6(const struct route *r)
{
	return r->rtm.rtm_family == AF_INET6;
}

static bool is_usable(const struct route *r)
{
	return (r->rtm.rtm_type == RTN_UNICAST || r->rtm.rtm_type == RTN_LOCAL) &&
	       !(r->rtm.rtm_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN));
}

static bool is_by_gateway(const struct route *r)
{
	return r->has_gateway;
}

static bool is_to_host(const struct route *r)
{
	return r->rtm.rtm_dst_len == 8 * addr_len(r->rtm.rtm_family);
}

static bool is_redirect(const struct route *r)
{
	return r->rtm.rtm_protocol == RTPROT_REDIRECT;
}

static bool has_metric(const struct route *r, int metric)
{
	return r->metrics & 1u << metric;
}

static bool has_mtu(const struct route *r)
{
	return has_metric(r, RTAX_MTU);
}

static bool has_mss(const struct route *r)
{
	return has_metric(r, RTAX_ADVMSS);
}

static bool has_window(const struct route *r)
{
	return has_metric(r, RTAX_WINDOW);
}

static bool has_rtt(const struct route *r)
{
	return has_metric(r, RTAX_RTT);
}

static bool does_reject(const struct route *r)
{
	return r->rtm.rtm_type == RTN_UNREACHABLE || r->rtm.rtm_type == RTN_PROHIBIT ||
	       r->rtm.rtm_type == RTN_BLACKHOLE;
}

static bool is_advertised(const struct route *r)
{
	return is_v6(r) && r->rtm.rtm_protocol == RTPROT_RA;
}

static bool is_advertised_default(const struct route *r)
{
	return is_advertised(r) && !r->rtm.rtm_dst_len;
}

static bool is_advertised_prefix(const struct route *r)
{
	return is_advertised(r) && r->rtm.rtm_dst_len;
}

static bool has_no_hop(const struct route *r)
{
	return is_v6(r) && !r->has_gateway && r->oif;
}

static bool does_expire_v6(const struct route *r)
{
	return is_v6(r) && r->expires;
}

static bool is_cached(const struct route *r)
{
	return r->rtm.rtm_flags & RTM_F_CLONED;
}

static bool has_flow(const struct route *r)
{
	return r->flow;
}

static bool is_policy(const struct route *r)
{
	return r->table != RT_TABLE_MAIN && r->table != RT_TABLE_LOCAL &&
	       r->table != RT_TABLE_DEFAULT;
}

static bool is_local(const struct route *r)
{
	return r->rtm.rtm_type == RTN_LOCAL;
}

/* What a new route is; sdp_ti(3) has the same list. */
static const struct {
	ti_event_t event;
	bool (*holds)(const struct route *r);
} kinds[] = {
	{TI_EVENT_RTF_UP, is_usable},
	{TI_EVENT_RTF_GATEWAY, is_by_gateway},
	{TI_EVENT_RTF_HOST, is_to_host},
	{TI_EVENT_RTF_DYNAMIC, is_redirect},
	{TI_EVENT_RTF_MTU, has_mtu},
	{TI_EVENT_RTF_MSS, has_mss},
	{TI_EVENT_RTF_WINDOW, has_window},
	{TI_EVENT_RTF_IRTT, has_rtt},
	{TI_EVENT_RTF_REJECT, does_reject},
	{TI_EVENT_RTF_DEFAULT, is_advertised_default},
	{TI_EVENT_RTF_ADDRCONF, is_advertised_prefix},
	{TI_EVENT_RTF_NONEXTHOP, has_no_hop},
	{TI_EVENT_RTF_EXPIRES, does_expire_v6},
	{TI_EVENT_RTF_CACHE, is_cached},
	{TI_EVENT_RTF_FLOW, has_flow},
	{TI_EVENT_RTF_POLICY, is_policy},
	{TI_EVENT_RTF_LOCAL, is_local},
};

/* ---- telling ---- */

static void tell_kinds(const struct route *r, ti_inet_route_event_t *data, const char *name)
{
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (!kinds[i].holds(r))
			continue;
		data->ipaddr = kinds[i].event == TI_EVENT_RTF_GATEWAY ? r->gateway : r->dst;
		events_tell(kinds[i].event, data, name, NULL);
	}
}

void route_tell(const struct nlmsghdr *nlh)
{
	bool there = nlh->nlmsg_type == RTM_NEWROUTE;
	ti_inet_route_event_t data = {0};
	struct link *l;
	const char *name;
	struct route r;

	if (!parse(nlh, &r))
		return;
	l = r.oif ? link_get(r.oif) : NULL;
	data.ipaddr = r.dst;
	data.dev = l ? link_device(l) : NULL;
	name = l ? data.dev->name : NULL;
	events_tell(there ? TI_EVENT_RTMSG_NEWROUTE : TI_EVENT_RTMSG_DELROUTE, &data, name, NULL);
	if (there)
		tell_kinds(&r, &data, name);
	if (l)
		link_put(l);
}
