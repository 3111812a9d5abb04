// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/forger.h"

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "wire/icrc.h"

enum { HEADER = sizeof(struct udphdr) };

/* A raw socket is given all that comes, too. */
static bool takes_nothing(int fd)
{
	struct sock_filter none = {BPF_RET, 0, 0, 0};
	struct sock_fprog prog = {.len = 1, .filter = &none};

	return !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog);
}

void forger_open(struct forger *g, const char *from, uint16_t from_port, const char *to)
{
	socklen_t len = sizeof g->from;
	int probe = IP_PMTUDISC_DO;
	struct sockaddr_in at = {.sin_family = AF_INET};

	inet_pton(AF_INET, from, &at.sin_addr);
	g->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
	inet_pton(AF_INET, to, &g->to.sin_addr);
	g->fd = socket(AF_INET, (from_port ? SOCK_RAW : SOCK_DGRAM) | SOCK_CLOEXEC,
		from_port ? IPPROTO_UDP : 0);
	if (g->fd < 0 || (from_port && !takes_nothing(g->fd)) ||
		setsockopt(g->fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe) ||
		bind(g->fd, (struct sockaddr *)&at, sizeof at) ||
		getsockname(g->fd, (struct sockaddr *)&g->from, &len))
		die("a socket");
	g->raw = from_port;
	if (from_port)
		g->from.sin_port = htons(from_port);
}

void forger_close(struct forger *g)
{
	close(g->fd);
}

/* Headers, payload and ICRC; their length. */
static size_t make(struct forger *g, const struct roce_packet *p, uint32_t seed)
{
	struct icrc_path path = {.src_port = ntohs(g->from.sin_port), .dst_port = ROCE_PORT};
	uint8_t *out = g->bytes + HEADER;
	size_t head = roce_build(p, out), len;

	pattern_fill(out + head, p->payload_len + p->pad, seed);
	len = head + p->payload_len + p->pad + ROCE_ICRC_LEN;
	memcpy(path.src + 12, &g->from.sin_addr, 4);
	memcpy(path.dst + 12, &g->to.sin_addr, 4);
	icrc_put(icrc_add(icrc_begin(&path, 0, len, out, head), out + head, len - head - 4),
		out + len - 4);
	return len;
}

void forger_send(struct forger *g, const struct roce_packet *p, uint32_t seed)
{
	size_t len = make(g, p, seed), skip = g->raw ? 0 : HEADER;
	struct udphdr udp = {
		.source = g->from.sin_port, .dest = g->to.sin_port, .len = htons(HEADER + len)};

	memcpy(g->bytes, &udp, sizeof udp);
	len += HEADER - skip;
	CHECK_EQ(sendto(g->fd, g->bytes + skip, len, 0, (struct sockaddr *)&g->to, sizeof g->to),
		len);
}
