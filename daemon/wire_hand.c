// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/wire_hand.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/process.h"
#include "daemon/wire.h"
#include "roce/port/socket.h"
#include "wire/roce.h"

enum {
	READS_AT_A_TIME = 32,
	ROOM = 1 << 16, /* the longest datagram, and what GRO merges */
	QP1 = 1,
};

static const char *const drop_names[WIRE_DROP_COUNT] = {
	[WIRE_DROP_SHORT] = "too_short",
	[WIRE_DROP_NO_ADDRESS] = "no_address",
	[WIRE_DROP_NO_QP] = "no_qp",
	[WIRE_DROP_NO_SEAT] = "not_joined",
	[WIRE_DROP_BACK] = "handed_back",
	[WIRE_DROP_FULL] = "not_reading",
	[WIRE_DROP_MALFORMED] = "malformed",
};

const char *wire_drop_name(enum wire_drop why)
{
	return drop_names[why];
}

static void drop(struct wire_hand *h, enum wire_drop why)
{
	h->drops[why]++;
}

static bool pass_on(
	const struct wire_member *to, const struct wire_handed *from, const uint8_t *p, size_t len)
{
	struct iovec iov[2] = {{(void *)from, sizeof *from}, {(void *)p, len}};
	const struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

	return sendmsg(to->hand.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* One packet to whose it is.  giver: who handed it over, NULL: it came here. */
static void deliver(struct server *s, const struct wire_handed *from, const uint8_t *packet,
	size_t len, const struct wire_member *giver)
{
	struct wire_hand *h = &s->wire->hand;
	uint32_t qpn = roce_peek_qpn(packet, len);
	const struct process *p;

	h->got++;
	if (len < ROCE_BTH_LEN + ROCE_ICRC_LEN) {
		drop(h, WIRE_DROP_SHORT);
	} else if (qpn == QP1) {
		h->qp1(s, from, packet, len);
	} else if (!(p = process_find(s, lease_owner(&s->leases, qpn)))) {
		drop(h, WIRE_DROP_NO_QP);
	} else if (!p->wire) {
		drop(h, WIRE_DROP_NO_SEAT);
	} else if (p->wire == giver) {
		drop(h, WIRE_DROP_BACK);
	} else if (!pass_on(p->wire, from, packet, len)) {
		drop(h, WIRE_DROP_FULL);
	} else {
		h->handed++;
	}
}

/* ---- seat 0 ---- */

/* What one read brought: one packet, or several of one length with a shorter last one. */
static void deliver_read(
	struct server *s, const struct roce_from *f, const uint8_t *data, size_t len)
{
	struct wire_handed from = {
		.ifindex = f->ifindex, .src_port = f->src_port, .tos = f->tos, .ipv6 = f->ipv6};
	size_t each = f->segment && f->segment < len ? f->segment : len;

	memcpy(from.src, f->src, sizeof from.src);
	memcpy(from.dst, f->dst, sizeof from.dst);
	for (size_t at = 0; at < len; at += each) {
		deliver(s, &from, data + at, len - at < each ? len - at : each, NULL);
		from.ident++;
	}
}

/* False: nothing is there. */
static bool read_one(struct server *s, struct watch *w)
{
	static uint8_t data[ROOM];
	struct wire_port *port = s->wire;
	union {
		struct sockaddr_in ip4;
		struct sockaddr_in6 ip6;
	} name;
	union {
		struct cmsghdr align;
		char room[ROCE_CONTROL_ROOM];
	} control;
	struct iovec iov = {data, sizeof data};
	struct msghdr m = {.msg_name = &name,
		.msg_namelen = sizeof name,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	ssize_t len = recvmsg(w->fd, &m, MSG_DONTWAIT);
	struct roce_from from;

	if (len < 0)
		return errno != EAGAIN && errno != EBADF;
	if (!roce_socket_from(&m, &from)) {
		drop(&port->hand, WIRE_DROP_NO_ADDRESS);
		return true;
	}
	port->hand.overflow[from.ipv6] = from.lost;
	port->hand.came_bytes += len;
	if (len == 0)
		drop(&port->hand, WIRE_DROP_SHORT);
	deliver_read(s, &from, data, len);
	return true;
}

void wire_read_socket(struct server *s, struct watch *w, uint32_t events)
{
	int n = 0;

	(void)events;
	while (n < READS_AT_A_TIME && read_one(s, w))
		n++;
}

/* ---- from processes ---- */

void wire_read_hand(struct server *s, struct watch *w, uint32_t events)
{
	static uint8_t data[sizeof(struct wire_handed) + ROOM];
	const struct wire_member *giver = (struct wire_member *)w;
	struct wire_handed from;

	(void)events;
	for (int n = 0; n < READS_AT_A_TIME; n++) {
		ssize_t len = recv(w->fd, data, sizeof data, MSG_DONTWAIT);

		if (len < 0)
			return;
		if (len == 0) { /* its other end is closed, by death or by the program */
			server_unwatch(s, w);
			return;
		}
		if ((size_t)len < sizeof from) {
			drop(&s->wire->hand, WIRE_DROP_MALFORMED);
			continue;
		}
		memcpy(&from, data, sizeof from);
		deliver(s, &from, data + sizeof from, len - sizeof from, giver);
	}
}

/* ---- weftd's own ---- */

union out_control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int))];
};

static struct cmsghdr *put(
	struct msghdr *m, struct cmsghdr *c, int level, int type, const void *data, size_t len)
{
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	m->msg_controllen += CMSG_SPACE(len);
	return (struct cmsghdr *)((char *)c + CMSG_SPACE(len));
}

static void put_source(struct msghdr *m, union out_control *control, const struct wire_out *out)
{
	struct in_pktinfo info4 = {.ipi_ifindex = out->ifindex};
	struct in6_pktinfo info6 = {.ipi6_ifindex = out->ifindex};
	struct cmsghdr *c = &control->align;
	const int tos = out->tos;

	memcpy(&info4.ipi_spec_dst, out->src + 12, sizeof info4.ipi_spec_dst);
	memcpy(&info6.ipi6_addr, out->src, sizeof info6.ipi6_addr);
	m->msg_control = control;
	m->msg_controllen = 0;
	if (out->ipv6) {
		c = put(m, c, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof info6);
		put(m, c, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
	} else {
		c = put(m, c, IPPROTO_IP, IP_PKTINFO, &info4, sizeof info4);
		put(m, c, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
	}
}

int wire_send(struct server *s, const struct wire_out *out)
{
	struct wire_port *port = s->wire;
	const uint16_t to = htons(out->dst_port ? out->dst_port : ROCE_PORT);
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = to};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = to};
	union out_control control = {0};
	struct iovec iov = {(void *)out->packet, out->len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	int family = out->ipv6 ? WIRE_IPV6 : WIRE_IPV4;

	if (!port->group.open || !port->group.has[family])
		return -ENETDOWN;
	memcpy(&a4.sin_addr, out->dst + 12, sizeof a4.sin_addr);
	memcpy(&a6.sin6_addr, out->dst, sizeof a6.sin6_addr);
	if (IN6_IS_ADDR_LINKLOCAL(&a6.sin6_addr))
		a6.sin6_scope_id = out->ifindex;
	m.msg_name = out->ipv6 ? (void *)&a6 : (void *)&a4;
	m.msg_namelen = out->ipv6 ? sizeof a6 : sizeof a4;
	put_source(&m, &control, out);
	if (sendmsg(port->group.seat[0]->fd[family], &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	port->hand.sent++;
	port->hand.sent_bytes += out->len;
	return 0;
}
