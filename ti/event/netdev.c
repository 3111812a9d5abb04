// SPDX-License-Identifier: BSD-3-Clause
#include "ti/event/netdev.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rtnl.h"
#include "ti/core/system.h"
#include "ti/event/link.h"
#include "ti/event/route.h"

enum {
	DATAGRAM_MAX = 32768,
	PENDING_MAX = 256, /* datagrams that callbacks are behind */
	DUMPS = 3,
	GROUPS = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
		 RTMGRP_IPV6_ROUTE
};

struct datagram {
	struct job job;
	size_t len;
	char bytes[];
};

static struct {
	struct own_fd fd;
	_Atomic unsigned pending;
	_Atomic bool lost; /* messages; renewal is posted */
	struct job renewal;
} netdev = {.fd = {.fd = -1}};

/* ---- messages ---- */

static void heed(const struct nlmsghdr *nlh)
{
	struct tidings t;

	switch (nlh->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		link_heed(nlh, &t);
		tidings_tell(&t);
		break;
	case RTM_NEWADDR:
	case RTM_DELADDR:
		link_heed_addr(nlh, &t);
		tidings_tell(&t);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		route_heed(nlh);
		route_tell(nlh);
		break;
	default:
		break;
	}
}

static void run_datagram(struct job *job)
{
	struct datagram *d = (struct datagram *)job;
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)d->bytes;
	int left = (int)d->len;

	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
		heed(nlh);
	free(d);
	atomic_fetch_sub_explicit(&netdev.pending, 1, memory_order_relaxed);
}

/* ---- asking for what there is ---- */

static int known(const struct nlmsghdr *nlh, void *arg)
{
	struct tidings t;

	(void)arg;
	if (nlh->nlmsg_type == RTM_NEWLINK)
		link_heed(nlh, &t);
	else if (nlh->nlmsg_type == RTM_NEWADDR)
		link_heed_addr(nlh, &t);
	else
		return MNL_CB_OK;
	tidings_drop(&t);
	return MNL_CB_OK;
}

static int known_route(const struct nlmsghdr *nlh, void *arg)
{
	(void)arg;
	route_heed(nlh);
	return MNL_CB_OK;
}

static int told(const struct nlmsghdr *nlh, void *arg)
{
	(void)arg;
	heed(nlh);
	return MNL_CB_OK;
}

/* Events of routes that were lost stay so. */
static int dump(mnl_cb_t cb)
{
	int ret = -EINTR;

	for (int i = 0; i < DUMPS && ret == -EINTR; i++) {
		ret = rtnl_dump(RTM_GETLINK, cb, NULL);
		if (!ret)
			ret = rtnl_dump(RTM_GETADDR, cb, NULL);
		if (!ret)
			ret = rtnl_dump(RTM_GETROUTE, known_route, NULL);
	}
	return ret;
}

/* Messages were lost: what is there now is compared with what was known. */
static void run_renewal(struct job *job)
{
	struct tidings t;

	(void)job;
	atomic_store_explicit(&netdev.lost, false, memory_order_relaxed);
	links_forget();
	if (dump(told)) {
		log_line(LOG_LVL_WARN, "ti: changes of links were lost");
		return;
	}
	while (links_lost(&t))
		tidings_tell(&t);
}

/* ---- reading ---- */

static void lose(void)
{
	if (atomic_exchange_explicit(&netdev.lost, true, memory_order_relaxed))
		return;
	netdev.renewal.run = run_renewal;
	system_post(&netdev.renewal);
}

static void keep(const char *bytes, size_t len)
{
	struct datagram *d = NULL;

	if (atomic_load_explicit(&netdev.pending, memory_order_relaxed) < PENDING_MAX)
		d = malloc(sizeof *d + len);
	if (!d) {
		lose();
		return;
	}
	d->job.run = run_datagram;
	d->len = len;
	memcpy(d->bytes, bytes, len);
	atomic_fetch_add_explicit(&netdev.pending, 1, memory_order_relaxed);
	system_post(&d->job);
}

void netdev_read(int fd)
{
	static char buf[DATAGRAM_MAX] __attribute__((aligned(8)));
	struct sockaddr_nl from = {0};
	socklen_t from_len;
	ssize_t n;

	for (;;) {
		from_len = sizeof from;
		n = recvfrom(fd, buf, sizeof buf, MSG_DONTWAIT | MSG_TRUNC,
			(struct sockaddr *)&from, &from_len);
		if (n > (ssize_t)sizeof buf || (n < 0 && errno == ENOBUFS))
			lose();
		else if (n > 0 && !from.nl_pid) /* the kernel's */
			keep(buf, n);
		else if (n <= 0 && errno != EINTR)
			return;
	}
}

int netdev_open(struct own_fd *out)
{
	struct sockaddr_nl addr = {.nl_family = AF_NETLINK, .nl_groups = GROUPS};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	int ret;

	if (fd < 0)
		return -errno;
	ret = bind(fd, (struct sockaddr *)&addr, sizeof addr) ? -errno : dump(known);
	if (ret) {
		close(fd);
		return ret;
	}
	*out = netdev.fd = own_fd(fd);
	return 0;
}

/* ---- registering, fork ---- */

void netdev_each_online(const struct listener *who)
{
	struct link *l = NULL;

	while ((l = link_next_online(l)) != NULL)
		events_tell_one(who, TI_EVENT_NETDEV_ONLINE, link_desc(l), link_device(l)->name);
}

void netdev_forked(void)
{
	own_fd_close(&netdev.fd);
	atomic_store_explicit(&netdev.pending, 0, memory_order_relaxed);
	atomic_store_explicit(&netdev.lost, false, memory_order_relaxed);
	links_forked();
}
