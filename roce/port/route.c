// SPDX-License-Identifier: BSD-3-Clause
#include "roce/port/route.h"

#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/gid.h"
#include "base/rtnl.h"

/* IPv6, UDP, BTH, the largest extended header, ICRC: less than that. */
enum { ROCE_HEADERS = 80, MTU_CODE_256 = 1, MTU_CODE_4096 = 5 };

enum {
	USABLE = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP,
	QUESTION_ROOM = 256,
	NEWS_ROOM = 8192,
	PORT_DISCARD = 9,
};

static const uint8_t none[16];

int route_path_mtu(uint32_t link_mtu)
{
	int code = MTU_CODE_4096;

	while (link_mtu && code > MTU_CODE_256 && (128u << code) + ROCE_HEADERS > link_mtu)
		code--;
	return code;
}

/* ---- addresses in messages ---- */

static bool is_none(const uint8_t gid[16])
{
	return memcmp(gid, none, sizeof none) == 0;
}

static uint8_t family_of(const uint8_t gid[16])
{
	return gid_is_ipv4(gid) ? AF_INET : AF_INET6;
}

static size_t length_of(const uint8_t gid[16])
{
	return gid_is_ipv4(gid) ? 4 : 16;
}

static void put_address(struct nlmsghdr *nlh, uint16_t type, const uint8_t gid[16])
{
	size_t len = length_of(gid);

	mnl_attr_put(nlh, type, len, gid + 16 - len);
}

/* False: it is no address. */
static bool get_address(const void *bytes, size_t len, uint8_t gid[16])
{
	if (len != 4 && len != 16)
		return false;
	memset(gid, 0, 16);
	if (len == 4)
		gid_put_ipv4_prefix(gid);
	memcpy(gid + 16 - len, bytes, len);
	return true;
}

static void take_address(const struct nlattr *a, uint8_t gid[16])
{
	(void)get_address(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a), gid);
}

static uint32_t take_u32(const struct nlattr *a)
{
	return mnl_attr_get_payload_len(a) >= sizeof(uint32_t) ? mnl_attr_get_u32(a) : 0;
}

static struct nlmsghdr *begin(char *buf, uint16_t type)
{
	struct nlmsghdr *nlh;

	memset(buf, 0, QUESTION_ROOM);
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	return nlh;
}

/* ---- the route ---- */

static uint32_t mtu_of_metrics(const struct nlattr *metrics)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, metrics)
	{
		if (mnl_attr_get_type(a) == RTAX_MTU)
			return take_u32(a);
	}
	return 0;
}

/* A gateway of the other family. */
static void take_via(const struct nlattr *a, struct route *r)
{
	const struct rtvia *via = mnl_attr_get_payload(a);
	size_t len = mnl_attr_get_payload_len(a);

	if (len > sizeof *via)
		r->has_gateway = get_address(via->rtvia_addr, len - sizeof *via, r->next);
}

static void take_attribute(const struct nlattr *a, struct route *r)
{
	switch (mnl_attr_get_type(a)) {
	case RTA_OIF:
		r->ifindex = take_u32(a);
		break;
	case RTA_PREFSRC:
		take_address(a, r->src);
		break;
	case RTA_GATEWAY:
		take_address(a, r->next);
		r->has_gateway = true;
		break;
	case RTA_VIA:
		take_via(a, r);
		break;
	case RTA_METRICS:
		r->mtu = mtu_of_metrics(a);
		break;
	default:
		break;
	}
}

/* 0, or as libmnl has it. */
static int refuse(int err)
{
	errno = err;
	return MNL_CB_ERROR;
}

static int on_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct route *r = data;
	const struct nlattr *a;

	if (nlh->nlmsg_type != RTM_NEWROUTE)
		return refuse(EPROTO);
	if (rtm->rtm_type != RTN_UNICAST && rtm->rtm_type != RTN_LOCAL &&
		rtm->rtm_type != RTN_MULTICAST)
		return refuse(EHOSTUNREACH);
	r->local = rtm->rtm_type == RTN_LOCAL;
	if (rtm->rtm_type == RTN_MULTICAST)
		memset(r->next, 0, sizeof r->next);
	mnl_attr_for_each(a, nlh, sizeof *rtm)
	{
		take_attribute(a, r);
	}
	return MNL_CB_STOP;
}

/* The kernel tells the ways in which there is no route apart. */
static bool says_unreachable(int rc)
{
	return rc == -ENETUNREACH || rc == -EACCES || rc == -EINVAL || rc == -ENETDOWN ||
	       rc == -ENODEV || rc == -EHOSTUNREACH;
}

/* What route_find() says instead of rc. */
static int no_way(struct route *r, int rc)
{
	if (!says_unreachable(rc))
		return rc;
	r->refusal = rc;
	return -EHOSTUNREACH;
}

static int ask_route(const struct route_want *w, struct route *r)
{
	char buf[QUESTION_ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *nlh = begin(buf, RTM_GETROUTE);
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof *rtm);
	bool wants_source = !is_none(w->src) && gid_is_ipv4(w->src) == gid_is_ipv4(w->dst);
	int rc;

	rtm->rtm_family = family_of(w->dst);
	rtm->rtm_dst_len = 8 * length_of(w->dst);
	rtm->rtm_tos = gid_is_ipv4(w->dst) ? w->tos & 0x1c : 0;
	put_address(nlh, RTA_DST, w->dst);
	if (wants_source) {
		rtm->rtm_src_len = 8 * length_of(w->src);
		put_address(nlh, RTA_SRC, w->src);
	}
	if (w->ifindex)
		mnl_attr_put_u32(nlh, RTA_OIF, w->ifindex);
	rc = rtnl_ask(nlh, on_route, r);
	if (wants_source)
		memcpy(r->src, w->src, sizeof r->src);
	return no_way(r, rc);
}

/* ---- its link ---- */

struct link {
	uint32_t mtu, flags;
};

static int on_link(const struct nlmsghdr *nlh, void *data)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a;
	struct link *l = data;

	if (nlh->nlmsg_type != RTM_NEWLINK)
		return refuse(EPROTO);
	a = rtnl_attr(nlh, sizeof *ifi, IFLA_MTU, sizeof(uint32_t));
	l->mtu = a ? mnl_attr_get_u32(a) : 0;
	l->flags = ifi->ifi_flags;
	return MNL_CB_STOP;
}

static int ask_link(uint32_t ifindex, struct link *l)
{
	char buf[QUESTION_ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *nlh = begin(buf, RTM_GETLINK);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof *ifi);

	ifi->ifi_index = ifindex;
	return rtnl_ask(nlh, on_link, l);
}

/* ---- its next hop ---- */

static bool says_known(const struct nlmsghdr *nlh)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);

	return nlh->nlmsg_type == RTM_NEWNEIGH && ndm->ndm_state & USABLE;
}

static int on_neighbour(const struct nlmsghdr *nlh, void *data)
{
	*(bool *)data = says_known(nlh);
	return MNL_CB_STOP;
}

int route_look_at_neighbour(const struct route *r, bool *known)
{
	char buf[QUESTION_ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *nlh = begin(buf, RTM_GETNEIGH);
	struct ndmsg *ndm = mnl_nlmsg_put_extra_header(nlh, sizeof *ndm);
	int rc;

	*known = false;
	ndm->ndm_family = family_of(r->next);
	ndm->ndm_ifindex = r->ifindex;
	put_address(nlh, NDA_DST, r->next);
	rc = rtnl_ask(nlh, on_neighbour, known);
	return rc == -ENOENT ? 0 : rc;
}

int route_find(const struct route_want *w, struct route *r)
{
	struct link link;
	int rc;

	*r = (struct route){.next_known = true};
	memcpy(r->next, w->dst, sizeof r->next);
	rc = ask_route(w, r);
	if (rc)
		return rc;
	rc = ask_link(r->ifindex, &link);
	if (rc)
		return no_way(r, rc);
	if (!r->mtu || r->mtu > link.mtu)
		r->mtu = link.mtu;
	if (r->local || link.flags & (IFF_LOOPBACK | IFF_NOARP) || is_none(r->next))
		return 0;
	return route_look_at_neighbour(r, &r->next_known);
}

/* ---- news of next hops ---- */

int route_watch_neighbours(void)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_NEIGH};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), rc;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

struct news {
	void (*tell)(void *arg, uint32_t ifindex, const uint8_t next[16], bool known);
	void *arg;
};

static int on_news(const struct nlmsghdr *nlh, void *data)
{
	const struct ndmsg *ndm = mnl_nlmsg_get_payload(nlh);
	const struct news *n = data;
	const struct nlattr *a;
	uint8_t next[16];

	if (nlh->nlmsg_type != RTM_NEWNEIGH && nlh->nlmsg_type != RTM_DELNEIGH)
		return MNL_CB_OK;
	a = rtnl_attr(nlh, sizeof *ndm, NDA_DST, 4);
	if (a && get_address(mnl_attr_get_payload(a), mnl_attr_get_payload_len(a), next))
		n->tell(n->arg, ndm->ndm_ifindex, next, says_known(nlh));
	return MNL_CB_OK;
}

bool route_read_neighbours(int fd,
	void (*tell)(void *arg, uint32_t ifindex, const uint8_t next[16], bool known), void *arg)
{
	struct news news = {tell, arg};
	char buf[NEWS_ROOM] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool all = true;
	ssize_t n;

	for (;;) {
		n = recv(fd, buf, sizeof buf, MSG_DONTWAIT);
		if (n > 0)
			(void)mnl_cb_run(buf, n, 0, 0, on_news, &news);
		else if (n < 0 && errno == ENOBUFS)
			all = false;
		else if (n == 0 || errno != EINTR)
			return all;
	}
}

static socklen_t to_sockaddr(
	const uint8_t gid[16], uint16_t port, uint32_t scope, struct sockaddr_storage *ss)
{
	struct sockaddr_in *a4 = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof *ss);
	ss->ss_family = family_of(gid);
	if (gid_is_ipv4(gid)) {
		memcpy(&a4->sin_addr, gid + 12, 4);
		a4->sin_port = htons(port);
		return sizeof *a4;
	}
	memcpy(&a6->sin6_addr, gid, 16);
	a6->sin6_port = htons(port);
	a6->sin6_scope_id = scope;
	return sizeof *a6;
}

int route_look_for_neighbour(const struct route_want *w, const struct route *r)
{
	int fd = socket(family_of(w->dst), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;
	struct sockaddr_storage ss;
	socklen_t len;

	if (fd < 0)
		return -errno;
	len = to_sockaddr(r->src, 0, r->ifindex, &ss);
	if (!is_none(r->src) && bind(fd, (struct sockaddr *)&ss, len))
		rc = -errno;
	len = to_sockaddr(w->dst, PORT_DISCARD, r->ifindex, &ss);
	if (!rc && sendto(fd, "", 0, MSG_NOSIGNAL, (struct sockaddr *)&ss, len) < 0)
		rc = -errno;
	close(fd);
	return says_unreachable(rc) ? -EHOSTUNREACH : rc;
}
