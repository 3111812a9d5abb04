// SPDX-License-Identifier: BSD-3-Clause
#include "roce/hand.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hca/proc/proc.h"
#include "roce/join.h"
#include "roce/rx.h"

enum {
	MESSAGES = 16, /* at a time */
	PACKET_MAX = 64 << 10,
	QPN_PER_BLOCK = SEG_QPN_PER_BLOCK,
};

static bool is_ours(uint32_t qpn)
{
	uint32_t block = qpn / QPN_PER_BLOCK;

	return qpn == ROCE_QPN_MASK ||
	       (block < SEG_QPN_BLOCKS &&
		       atomic_load_explicit(&proc_seg()->qpn_block[block], memory_order_relaxed));
}

static bool send_away(int fd, const struct roce_from *from, const uint8_t *bytes, size_t n)
{
	struct wire_handed h = {.ifindex = from->ifindex,
		.src_port = from->src_port,
		.tos = from->tos,
		.ipv6 = from->ipv6};
	struct iovec piece[] = {{&h, sizeof h}, {(void *)bytes, n}};
	struct msghdr m = {.msg_iov = piece, .msg_iovlen = 2};

	memcpy(h.src, from->src, sizeof h.src);
	memcpy(h.dst, from->dst, sizeof h.dst);
	return syscall(SYS_sendmsg, fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

void hand_over(
	struct exec *x, const struct roce_from *from, uint32_t qpn, const uint8_t *bytes, size_t n)
{
	const struct rdv_wire *wire = join_sockets();

	if (from->beside || is_ours(qpn) || !wire || wire->hand < 0 ||
		!send_away(wire->hand, from, bytes, n))
		count_add(x, CTR_WIRE_DROP_NO_QP, 1);
	else
		count_add(x, CTR_WIRE_HANDED_OVER, 1);
}

static void take(struct exec *x, const uint8_t *message, size_t n, uint64_t now)
{
	struct wire_handed h;
	struct roce_from from = {.ipv6 = false};

	if (n < sizeof h)
		return;
	memcpy(&h, message, sizeof h);
	from.ipv6 = h.ipv6;
	from.src_port = h.src_port;
	from.tos = h.tos;
	from.ifindex = h.ifindex;
	memcpy(from.src, h.src, sizeof from.src);
	memcpy(from.dst, h.dst, sizeof from.dst);
	count_add(x, CTR_WIRE_CAME, 1);
	rx_packet(x, &from, message + sizeof h, n - sizeof h, h.ident, now);
}

bool hand_look(struct exec *x, int fd, uint64_t now)
{
	static uint8_t message[sizeof(struct wire_handed) + PACKET_MAX];
	unsigned i;

	for (i = 0; i < MESSAGES && fd >= 0; i++) {
		ssize_t n = syscall(
			SYS_recvfrom, fd, message, sizeof message, MSG_DONTWAIT, NULL, NULL);

		if (n <= 0)
			break;
		take(x, message, n, now);
	}
	return i;
}
