// SPDX-License-Identifier: BSD-3-Clause
/*
 * udp_roce server PORT ADDRESS | client PORT ADDRESS PEER SIZE COUNT: a ping-pong that takes the
 * way of RoCEv2 packets without being any: what a message and the ACK before it cost by a socket
 * like ours, while both ends look at it again and again.  ADDRESS is this end's own.  Beside a
 * plain ping-pong (udp_pong): the socket is not connected, and names its source, since the ICRC
 * covers the IPv4 identification; message and ACK leave in one call; control messages come with
 * each; a program steers what comes; the clock is read at each look; there is another thread.
 * No byte is checked or copied.  The client prints one way in microseconds: the median and the
 * average.  It ends with status 1 after TIMEOUT seconds without an answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/pong.h"
#include "roce/port/socket.h"
#include "roce/port/steer.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum {
	ROOM = 65536,
	HEAD = 16, /* BTH and ICRC */
	ACK = 20,  /* the same and an AETH */
	SIZE_MAX_MESSAGE = 4096,
	WARM_UP = 1000,
	TIMEOUT = 20,
	QPN = 0x100000, /* ranges of the program begin there */
};

static char buffer[ROOM];

struct end {
	int fd;
	struct sockaddr_in peer;
	struct in_addr self;
};

static void *sleep_for_ever(void *none)
{
	for (;;)
		pause();
	return none;
}

static struct end open_end(const char *port, const char *address)
{
	const struct steer_range all = {.first = QPN, .last = 2 * QPN, .index = STEER_ELSE};
	struct roce_socket_wish wish = {.group = true, .port = (uint16_t)atoi(port)};
	struct sock_filter code[32];
	struct end e = {.peer = {.sin_family = AF_INET, .sin_port = htons(wish.port)}};
	pthread_t other;
	int len = steer_program(&all, 1, code, sizeof code / sizeof code[0]);

	must(inet_pton(AF_INET, address, &e.self) == 1, address);
	memcpy(wish.addr + 12, &e.self, 4);
	e.fd = roce_socket_open(&wish);
	must(e.fd >= 0 && len > 0 && steer_attach(e.fd, code, (size_t)len) == 0 &&
			roce_socket_bind(e.fd, &wish) == 0,
		"socket");
	must(pthread_create(&other, NULL, sleep_for_ever, NULL) == 0, "pthread_create");
	return e;
}

static size_t receive(struct end *e)
{
	struct iovec room = {.iov_base = buffer, .iov_len = ROOM};
	_Alignas(struct cmsghdr) char control[ROCE_CONTROL_ROOM];
	uint64_t end = clock_ns() + TIMEOUT * NSEC_PER_SEC;

	for (;;) {
		struct msghdr m = {.msg_name = &e->peer,
			.msg_namelen = sizeof e->peer,
			.msg_iov = &room,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof control};
		ssize_t n = syscall(SYS_recvmsg, e->fd, &m, MSG_DONTWAIT);

		if (n >= 0)
			return (size_t)n;
		must(errno == EINTR || errno == EAGAIN, "recvmsg");
		must(clock_ns() < end, "no answer");
	}
}

static void *control_for(struct msghdr *m, int level, int type, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	m->msg_controllen += CMSG_SPACE(len);
	return CMSG_DATA(c);
}

/* The message, and an ACK behind it, which is not longer. */
static void give(struct end *e, size_t message)
{
	struct iovec piece = {.iov_base = buffer, .iov_len = message + ACK};
	_Alignas(struct cmsghdr) char control[ROCE_CONTROL_ROOM];
	struct msghdr m = {.msg_name = &e->peer,
		.msg_namelen = sizeof e->peer,
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control};
	struct in_pktinfo from = {.ipi_spec_dst = e->self};
	uint16_t segment = (uint16_t)message;

	memcpy(control_for(&m, IPPROTO_IP, IP_PKTINFO, sizeof from), &from, sizeof from);
	memcpy(control_for(&m, SOL_UDP, UDP_SEGMENT, sizeof segment), &segment, sizeof segment);
	must(syscall(SYS_sendmsg, e->fd, &m, MSG_NOSIGNAL) == (ssize_t)piece.iov_len, "sendmsg");
}

/* Answers its first client until that sends an empty datagram. */
static void serve(struct end *e, const char *port)
{
	size_t n;

	be_seen((uint16_t)atoi(port));
	while ((n = receive(e)) > 0)
		give(e, n - ACK);
}

static void measure(struct end *e, size_t message, size_t count)
{
	double *took = calloc(count, sizeof *took);

	must(took != NULL, "calloc");
	for (size_t i = 0; i < count + WARM_UP; i++) {
		uint64_t begin = clock_ns();

		give(e, message);
		must(receive(e) == message + ACK, "an answer of another size");
		if (i >= WARM_UP)
			took[i - WARM_UP] = (double)(clock_ns() - begin);
	}
	must(sendto(e->fd, buffer, 0, 0, (struct sockaddr *)&e->peer, sizeof e->peer) == 0,
		"sendto");
	print_one_way(took, count);
	free(took);
}

int main(int argc, char **argv)
{
	struct end e;

	if (argc == 4 && strcmp(argv[1], "server") == 0) {
		e = open_end(argv[2], argv[3]);
		serve(&e, argv[2]);
		return 0;
	}
	if (argc == 7 && strcmp(argv[1], "client") == 0) {
		size_t size = strtoul(argv[5], NULL, 0), count = strtoul(argv[6], NULL, 0);

		e = open_end(argv[2], argv[3]);
		must(inet_pton(AF_INET, argv[4], &e.peer.sin_addr) == 1, argv[4]);
		must(size >= ACK - HEAD && size <= SIZE_MAX_MESSAGE && count > 0, "SIZE and COUNT");
		measure(&e, size + HEAD, count);
		return 0;
	}
	fprintf(stderr,
		"usage: udp_roce server PORT ADDRESS | client PORT ADDRESS PEER SIZE COUNT\n"
		"       SIZE is from 4 to 4096\n");
	return 2;
}
