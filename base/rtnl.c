// SPDX-License-Identifier: BSD-3-Clause
#include "base/rtnl.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

static int ask(struct mnl_socket *nl, uint16_t type)
{
	char buf[NLMSG_SPACE(sizeof(struct rtmsg)) + NLMSG_SPACE(sizeof(struct ifinfomsg))];
	struct nlmsghdr *nlh;

	memset(buf, 0, sizeof buf);
	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = type;
	/* each kind's header is at most so long, and begins with the family: any */
	(void)mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	return mnl_socket_sendto(nl, nlh, nlh->nlmsg_len) < 0 ? -errno : 0;
}

static int take(struct mnl_socket *nl, uint16_t type, mnl_cb_t cb, void *arg)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	ssize_t n;
	int ret;

	do {
		n = mnl_socket_recvfrom(nl, buf, sizeof buf);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		ret = mnl_cb_run(buf, n, type, mnl_socket_get_portid(nl), cb, arg);
	} while (ret > MNL_CB_STOP);
	return ret < 0 ? -errno : 0;
}

int rtnl_dump(uint16_t type, mnl_cb_t cb, void *arg)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int ret;

	if (!nl)
		return -errno;
	ret = mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : ask(nl, type);
	if (!ret)
		ret = take(nl, type, cb, arg);
	mnl_socket_close(nl);
	return ret;
}

static int take_one(struct mnl_socket *nl, uint32_t seq, mnl_cb_t cb, void *arg)
{
	char buf[MNL_SOCKET_BUFFER_SIZE];
	ssize_t n = mnl_socket_recvfrom(nl, buf, sizeof buf);

	if (n <= 0)
		return n < 0 ? -errno : -EIO;
	n = mnl_cb_run(buf, n, seq, mnl_socket_get_portid(nl), cb, arg);
	return n < 0 ? -errno : 0;
}

int rtnl_ask(struct nlmsghdr *question, mnl_cb_t cb, void *arg)
{
	struct mnl_socket *nl = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int ret = 0;

	if (!nl)
		return -errno;
	question->nlmsg_flags |= NLM_F_REQUEST;
	question->nlmsg_seq = question->nlmsg_type;
	if (mnl_socket_bind(nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
		mnl_socket_sendto(nl, question, question->nlmsg_len) < 0)
		ret = -errno;
	if (!ret)
		ret = take_one(nl, question->nlmsg_seq, cb, arg);
	mnl_socket_close(nl);
	return ret;
}

const struct nlattr *rtnl_attr(const struct nlmsghdr *nlh, size_t header, uint16_t type, size_t len)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, header) if (mnl_attr_get_type(a) == type &&
					      mnl_attr_get_payload_len(a) >= len) return a;
	return NULL;
}

const struct nlattr *rtnl_own_address(const struct nlmsghdr *nlh, size_t len)
{
	/* IFA_LOCAL where the other end of a link has IFA_ADDRESS. */
	const struct nlattr *a = rtnl_attr(nlh, sizeof(struct ifaddrmsg), IFA_LOCAL, len);

	return a ? a : rtnl_attr(nlh, sizeof(struct ifaddrmsg), IFA_ADDRESS, len);
}
