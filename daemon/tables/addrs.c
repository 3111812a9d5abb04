// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/addrs.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rtnl.h"

struct link_info {
	uint32_t ifindex, flags, mtu;
	char name[16];
};

struct listing {
	struct link_info *links;
	size_t n_links, links_room;
	struct gid_addr *addrs;
	size_t n_addrs, max_addrs;
};

static int on_link(const struct nlmsghdr *nlh, void *data)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct listing *l = data;
	struct link_info *info;
	struct nlattr *a;

	if (l->n_links == l->links_room) {
		size_t room = l->links_room ? 2 * l->links_room : 16;
		void *p = realloc(l->links, room * sizeof *l->links);

		if (!p)
			return MNL_CB_OK;
		l->links = p;
		l->links_room = room;
	}
	info = &l->links[l->n_links++];
	*info = (struct link_info){.ifindex = ifi->ifi_index, .flags = ifi->ifi_flags};
	mnl_attr_for_each(a, nlh, sizeof *ifi)
	{
		if (mnl_attr_get_type(a) == IFLA_IFNAME)
			strncpy(info->name, mnl_attr_get_str(a), sizeof info->name - 1);
		else if (mnl_attr_get_type(a) == IFLA_MTU)
			info->mtu = mnl_attr_get_u32(a);
	}
	return MNL_CB_OK;
}

static const struct link_info *find_link(const struct listing *l, uint32_t ifindex)
{
	for (size_t i = 0; i < l->n_links; i++)
		if (l->links[i].ifindex == ifindex)
			return &l->links[i];
	return NULL;
}

static int on_addr(const struct nlmsghdr *nlh, void *data)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a = rtnl_own_address(nlh, 0);
	struct listing *l = data;
	const struct link_info *link = find_link(l, ifa->ifa_index);
	struct gid_addr *g;

	if (!a || !link || !(link->flags & IFF_UP) || l->n_addrs == l->max_addrs)
		return MNL_CB_OK;
	if (ifa->ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
		return MNL_CB_OK; /* not ours yet */
	g = &l->addrs[l->n_addrs];
	memset(g, 0, sizeof *g);
	if (ifa->ifa_family == AF_INET && mnl_attr_get_payload_len(a) == 4)
		gid_from_ipv4(g->raw, mnl_attr_get_payload(a));
	else if (ifa->ifa_family == AF_INET6 && mnl_attr_get_payload_len(a) == 16)
		memcpy(g->raw, mnl_attr_get_payload(a), 16);
	else
		return MNL_CB_OK;
	g->ifindex = ifa->ifa_index;
	g->mtu = link->mtu;
	g->loopback = link->flags & IFF_LOOPBACK;
	memcpy(g->ifname, link->name, sizeof g->ifname);
	l->n_addrs++;
	return MNL_CB_OK;
}

static unsigned count_uplinks(const struct listing *l)
{
	unsigned n = 0;

	for (size_t i = 0; i < l->n_links; i++) {
		uint32_t flags = l->links[i].flags;

		n += !(flags & IFF_LOOPBACK) && flags & IFF_UP && flags & IFF_RUNNING;
	}
	return n;
}

int addrs_list(struct gid_addr *addrs, size_t max, unsigned *uplinks)
{
	struct listing l = {.addrs = addrs, .max_addrs = max};
	int ret = rtnl_dump(RTM_GETLINK, on_link, &l);

	if (!ret)
		ret = rtnl_dump(RTM_GETADDR, on_addr, &l);
	*uplinks = count_uplinks(&l);
	free(l.links);
	return ret ? ret : (int)l.n_addrs;
}

int addrs_watch(void)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int ret;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

void addrs_drain(int fd)
{
	char buf[4096];

	/* ENOBUFS reports, once, that messages were lost. */
	while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) >= 0 || errno == ENOBUFS || errno == EINTR)
		;
}
