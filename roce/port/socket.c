// SPDX-License-Identifier: BSD-3-Clause
#include "roce/port/socket.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

struct option {
	int level, name, value;
	bool must;
};

static const struct option common[] = {
	{SOL_SOCKET, SO_RXQ_OVFL, 1, true},
	{SOL_SOCKET, SO_RCVBUF, ROCE_SOCKET_ROOM, false},
	/* without it each packet is read by itself */
	{IPPROTO_UDP, UDP_GRO, 1, false},
};

static const struct option ipv4[] = {
	{IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, true},
	{IPPROTO_IP, IP_PKTINFO, 1, true},
	{IPPROTO_IP, IP_RECVTOS, 1, true},
	{IPPROTO_IP, IP_RECVTTL, 1, true},
	/* a socket gets what it joined itself alone, and nothing of what this machine sends */
	{IPPROTO_IP, IP_MULTICAST_ALL, 0, true},
	{IPPROTO_IP, IP_MULTICAST_LOOP, 0, true},
};

static const struct option ipv6[] = {
	{IPPROTO_IPV6, IPV6_V6ONLY, 1, true},
	{IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, true},
	{IPPROTO_IPV6, IPV6_DONTFRAG, 1, true},
	{IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, true},
	{IPPROTO_IPV6, IPV6_RECVTCLASS, 1, true},
	{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1, true},
	{IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, false}, /* Linux 4.20 */
	{IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0, true},
	/* adapters, and rdma_rxe, send no UDP checksum: the ICRC covers more */
	{IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, true},
};

static int set_all(int fd, const struct option *o, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (setsockopt(fd, o[i].level, o[i].name, &o[i].value, sizeof o[i].value) &&
			o[i].must)
			return -errno;
	return 0;
}

#define SET_ALL(fd, options) set_all(fd, options, sizeof options / sizeof options[0])

int roce_socket_open(const struct roce_socket_wish *wish)
{
	static const struct option group[] = {{SOL_SOCKET, SO_REUSEPORT, 1, true}};
	int fd = socket(wish->ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		IPPROTO_UDP);
	int err = fd < 0 ? -errno : SET_ALL(fd, common);

	if (!err)
		err = wish->ipv6 ? SET_ALL(fd, ipv6) : SET_ALL(fd, ipv4);
	if (!err && wish->group)
		err = SET_ALL(fd, group);
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int roce_socket_bind(int fd, const struct roce_socket_wish *wish)
{
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(wish->port)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(wish->port)};
	int err;

	if (!wish->any) {
		memcpy(&a4.sin_addr, wish->addr + 12, sizeof a4.sin_addr);
		memcpy(&a6.sin6_addr, wish->addr, sizeof a6.sin6_addr);
	}
	err = wish->ipv6 ? bind(fd, (struct sockaddr *)&a6, sizeof a6)
			 : bind(fd, (struct sockaddr *)&a4, sizeof a4);
	return err ? -errno : 0;
}

static bool source(const struct msghdr *m, struct roce_from *f)
{
	const struct sockaddr_in *a4 = m->msg_name;
	const struct sockaddr_in6 *a6 = m->msg_name;

	memset(f, 0, sizeof *f);
	if (m->msg_namelen >= sizeof *a6 && a6->sin6_family == AF_INET6) {
		f->ipv6 = true;
		memcpy(f->src, &a6->sin6_addr, 16);
		f->src_port = ntohs(a6->sin6_port);
		return true;
	}
	if (m->msg_namelen < sizeof *a4 || a4->sin_family != AF_INET)
		return false;
	memcpy(f->src + 12, &a4->sin_addr, 4);
	f->src_port = ntohs(a4->sin_port);
	return true;
}

static bool is(const struct cmsghdr *c, int level, int type)
{
	return c->cmsg_level == level && c->cmsg_type == type;
}

/* One control message; true: it had the destination. */
static bool control(const struct cmsghdr *c, struct roce_from *f)
{
	const unsigned char *data = CMSG_DATA(c);
	struct in_pktinfo info4;
	struct in6_pktinfo info6;
	int value = 0;

	if (is(c, IPPROTO_IP, IP_PKTINFO)) {
		memcpy(&info4, data, sizeof info4);
		memcpy(f->dst + 12, &info4.ipi_addr, 4);
		f->ifindex = info4.ipi_ifindex;
		return true;
	}
	if (is(c, IPPROTO_IPV6, IPV6_PKTINFO)) {
		memcpy(&info6, data, sizeof info6);
		memcpy(f->dst, &info6.ipi6_addr, 16);
		f->ifindex = info6.ipi6_ifindex;
		return true;
	}
	if (is(c, IPPROTO_IP, IP_TOS)) {
		f->tos = *data;
		return false;
	}
	if (c->cmsg_len < CMSG_LEN(sizeof value))
		return false;
	memcpy(&value, data, sizeof value);
	if (is(c, IPPROTO_IPV6, IPV6_TCLASS))
		f->tos = value;
	else if (is(c, IPPROTO_IP, IP_TTL) || is(c, IPPROTO_IPV6, IPV6_HOPLIMIT))
		f->ttl = value;
	else if (is(c, SOL_UDP, UDP_GRO))
		f->segment = value;
	else if (is(c, SOL_SOCKET, SO_RXQ_OVFL))
		f->lost = value;
	return false;
}

bool roce_socket_from(struct msghdr *m, struct roce_from *f)
{
	bool destination = false;

	if (!source(m, f))
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		destination |= control(c, f);
	return destination;
}
