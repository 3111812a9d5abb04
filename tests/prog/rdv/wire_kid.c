// SPDX-License-Identifier: BSD-3-Clause
#include "tests/prog/rdv/wire_kid.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "rdv/wire.h"
#include "tests/prog/rdv/help.h"
#include "wire/roce.h"

enum { PACKET = ROCE_BTH_LEN + ROCE_ICRC_LEN, WAYS = WIRE_FAMILIES + 1 };

static const struct rdv_wire *mine;

long wire_kid_join(void)
{
	int ret = rdv_wire_join(&mine);

	return ret ? ret : (long)mine->index;
}

static void write_packet(uint8_t packet[PACKET], long qpn)
{
	memset(packet, 0, PACKET);
	packet[0] = 0x04; /* RC SEND ONLY */
	packet[5] = qpn >> 16;
	packet[6] = qpn >> 8;
	packet[7] = qpn;
}

/* One packet that lies at fd: its queue pair, -1 if there is none. */
static long read_qpn(int fd, bool by_hand)
{
	uint8_t data[sizeof(struct wire_handed) + PACKET];
	size_t head = by_hand ? sizeof(struct wire_handed) : 0;
	ssize_t n = fd < 0 ? -1 : recv(fd, data, sizeof data, MSG_DONTWAIT);

	return n == (ssize_t)(head + PACKET) ? (long)roce_peek_qpn(data + head, PACKET) : -1;
}

long wire_kid_packet(long qpn, long ms)
{
	static const long names[WAYS] = {CAME_IPV4, CAME_IPV6, CAME_BY_HAND};
	struct pollfd p[WAYS] = {{.fd = mine->fd[0], .events = POLLIN},
		{.fd = mine->fd[1], .events = POLLIN}, {.fd = mine->hand, .events = POLLIN}};
	uint64_t end = clock_ns() + (uint64_t)ms * NSEC_PER_MSEC;

	do {
		if (poll(p, WAYS, 10) <= 0)
			continue;
		for (int i = 0; i < WAYS; i++)
			if (p[i].revents & POLLIN &&
				read_qpn(p[i].fd, names[i] == CAME_BY_HAND) == qpn)
				return names[i];
	} while (clock_ns() < end);
	return -EAGAIN;
}

long wire_kid_count(long qpn, long ms)
{
	long n = 0;

	while (wire_kid_packet(qpn, ms) > 0)
		n++;
	return n;
}

long wire_kid_hand(long qpn)
{
	uint8_t data[sizeof(struct wire_handed) + PACKET] = {0};

	write_packet(data + sizeof(struct wire_handed), qpn);
	return send(mine->hand, data, sizeof data, MSG_NOSIGNAL) == sizeof data ? 0 : -errno;
}

void wire_send_to(const char *addr, long qpn)
{
	bool ipv6 = strchr(addr, ':');
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(ROCE_PORT)};
	int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t packet[PACKET];
	ssize_t n;

	CHECK(fd >= 0);
	write_packet(packet, qpn);
	if (ipv6)
		CHECK(inet_pton(AF_INET6, addr, &a6.sin6_addr) == 1);
	else
		CHECK(inet_pton(AF_INET, addr, &a4.sin_addr) == 1);
	n = ipv6 ? sendto(fd, packet, sizeof packet, 0, (struct sockaddr *)&a6, sizeof a6)
		 : sendto(fd, packet, sizeof packet, 0, (struct sockaddr *)&a4, sizeof a4);
	CHECK_EQ(n, PACKET);
	close(fd);
}

void wire_send_noise(const char *addr, int n)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned seed = 1;
	uint8_t noise[64];

	CHECK(fd >= 0 && inet_pton(AF_INET, addr, &to.sin_addr) == 1);
	for (int i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof noise; k++)
			noise[k] = rand_r(&seed);
		noise[5] = 0xf0; /* queue pairs that nobody has */
		CHECK(sendto(fd, noise, 1 + i % sizeof noise, 0, (struct sockaddr *)&to,
			      sizeof to) > 0);
	}
	close(fd);
}
