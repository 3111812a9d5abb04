// SPDX-License-Identifier: BSD-3-Clause
/*
 * udp_pong HOW server PORT | HOW client ADDRESS PORT SIZE COUNT: a ping-pong of datagrams between
 * two hosts, the least that messages by UDP cost.  HOW: "spin" looks at the socket again and again,
 * "block" sleeps in recv.  The client prints one way in microseconds: the median and the average.
 * Nothing is sent again: the client ends with status 1 after TIMEOUT seconds without an answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/pong.h"

enum { SIZE_MAX_UDP = 65507, WARM_UP = 1000, TIMEOUT = 20 };

static char buffer[SIZE_MAX_UDP];

static int udp_socket(void)
{
	struct timeval limit = {.tv_sec = TIMEOUT};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0,
		"socket");
	return fd;
}

static size_t receive(int fd, bool spin)
{
	uint64_t end = clock_ns() + TIMEOUT * 1000000000ull;

	for (unsigned looks = 1;; looks++) {
		ssize_t n = recv(fd, buffer, sizeof buffer, spin ? MSG_DONTWAIT : 0);

		if (n >= 0)
			return (size_t)n;
		must(errno == EINTR || (spin && errno == EAGAIN), "recv");
		must(looks % 4096 || clock_ns() < end, "no answer");
	}
}

/* Answers its first client until that sends an empty datagram. */
static void serve(bool spin, uint16_t port)
{
	struct sockaddr_in self = {.sin_family = AF_INET, .sin_port = htons(port)}, peer;
	socklen_t len = sizeof peer;
	int fd = udp_socket();
	size_t size;

	must(bind(fd, (struct sockaddr *)&self, sizeof self) == 0, "bind");
	be_seen(port);
	must(recvfrom(fd, buffer, 1, MSG_PEEK, (struct sockaddr *)&peer, &len) >= 0, "recvfrom");
	must(connect(fd, (struct sockaddr *)&peer, len) == 0, "connect");
	while ((size = receive(fd, spin)) > 0)
		must(send(fd, buffer, size, 0) == (ssize_t)size, "send");
}

static void measure(int fd, bool spin, size_t size, size_t count)
{
	double *took = calloc(count, sizeof *took);

	must(took != NULL, "calloc");
	for (size_t i = 0; i < count + WARM_UP; i++) {
		uint64_t begin = clock_ns();

		must(send(fd, buffer, size, 0) == (ssize_t)size, "send");
		must(receive(fd, spin) == size, "an answer of another size");
		if (i >= WARM_UP)
			took[i - WARM_UP] = (double)(clock_ns() - begin);
	}
	must(send(fd, buffer, 0, 0) == 0, "send");
	print_one_way(took, count);
	free(took);
}

static void ask(bool spin, char **args)
{
	struct sockaddr_in peer = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(args[1]))};
	size_t size = strtoul(args[2], NULL, 0), count = strtoul(args[3], NULL, 0);
	int fd = udp_socket();

	must(inet_pton(AF_INET, args[0], &peer.sin_addr) == 1, args[0]);
	must(size > 0 && size <= sizeof buffer && count > 0, "SIZE and COUNT");
	must(connect(fd, (struct sockaddr *)&peer, sizeof peer) == 0, "connect");
	measure(fd, spin, size, count);
}

int main(int argc, char **argv)
{
	bool spin = argc > 1 && strcmp(argv[1], "spin") == 0;

	if (argc == 4 && strcmp(argv[2], "server") == 0) {
		serve(spin, (uint16_t)atoi(argv[3]));
		return 0;
	}
	if (argc == 7 && strcmp(argv[2], "client") == 0) {
		ask(spin, argv + 3);
		return 0;
	}
	fprintf(stderr, "usage: udp_pong spin|block server PORT | spin|block client ADDRESS PORT "
			"SIZE COUNT\n");
	return 2;
}
