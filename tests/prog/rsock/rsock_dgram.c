// SPDX-License-Identifier: BSD-3-Clause
/* Datagram rsockets: there and back, lengths, nobody there, a peer that comes again. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/rs_ends.h"

enum { LONGEST_EVER = 4088, HEADER = 8, BURST = 50 };

/* What fits into a datagram of the port beside our header. */
static int longest(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_port_attr port;

	if (!list || !list[0] || ibv_query_port(list[0], 1, &port))
		die("no port");
	rdma_free_devices(list);
	return (128 << port.active_mtu) - HEADER;
}

static int server(uint16_t *port)
{
	struct sockaddr_in addr = rs_addr4(*port);
	socklen_t len = sizeof addr;
	int s = rsocket(AF_INET, SOCK_DGRAM, 0);

	if (s < 0 || rbind(s, (struct sockaddr *)&addr, sizeof addr) ||
		rgetsockname(s, (struct sockaddr *)&addr, &len))
		die("a server");
	*port = ntohs(addr.sin_port);
	return s;
}

/* Sends back what comes, until something empty does. */
static void *echo(void *arg)
{
	int s = *(int *)arg;
	char buf[LONGEST_EVER];
	ssize_t n;

	do {
		struct sockaddr_storage from;
		socklen_t len = sizeof from;

		n = rrecvfrom(s, buf, sizeof buf, 0, (struct sockaddr *)&from, &len);
		if (n < 0 || rsendto(s, buf, n, 0, (struct sockaddr *)&from, len) != n)
			die("echo");
	} while (n);
	return NULL;
}

static void there_and_back(void)
{
	static uint8_t out[LONGEST_EVER + 1], in[LONGEST_EVER];
	const int most = longest();
	uint16_t port = 0;
	int s = server(&port), c = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = rs_addr4(port), from;
	struct iovec iov[2] = {{out, 10}, {out + 10, 90}};
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_name = &to, .msg_namelen = sizeof to};
	socklen_t len = sizeof from;
	pthread_t t;

	check_case("there and back");
	pattern_fill(out, sizeof out, 0);
	pthread_create(&t, NULL, echo, &s);
	for (int n = 1; n <= most; n += n < 200 ? 50 : 971) {
		CHECK_EQ(rsendto(c, out, n, 0, (struct sockaddr *)&to, sizeof to), n);
		memset(in, 0, sizeof in);
		CHECK_EQ(rrecvfrom(c, in, sizeof in, 0, (struct sockaddr *)&from, &len), n);
		CHECK(memcmp(in, out, n) == 0);
		CHECK(memcmp(&from, &to, sizeof to) == 0);
	}
	CHECK_EQ(rsendto(c, out, most, 0, (struct sockaddr *)&to, sizeof to), most);
	CHECK_EQ(rrecv(c, in, sizeof in, 0), most);
	CHECK_EQ(rsendto(c, out, most + 1, 0, (struct sockaddr *)&to, sizeof to), -1);
	CHECK_EQ(errno, EMSGSIZE);
	CHECK_EQ(rsend(c, out, 1, 0), -1);
	CHECK_EQ(errno, EDESTADDRREQ);
	CHECK_EQ(rconnect(c, (struct sockaddr *)&to, sizeof to), 0);
	CHECK_EQ(rgetpeername(c, (struct sockaddr *)&from, &len), 0);
	CHECK_EQ(from.sin_port, to.sin_port);
	CHECK_EQ(rsendmsg(c, &msg, 0), 100);
	/* Too short a place: the rest is lost, and the flag says so. */
	iov[0] = (struct iovec){in, 4};
	msg = (struct msghdr){.msg_iov = iov, .msg_iovlen = 1};
	CHECK_EQ(rrecv(c, in, 2, MSG_PEEK), 2);
	CHECK_EQ(rrecvmsg(c, &msg, 0), 4);
	CHECK(msg.msg_flags & MSG_TRUNC);
	CHECK_EQ(rs_poll1(c, POLLIN | POLLOUT, 0), POLLOUT);
	CHECK_EQ(rsend(c, out, 0, 0), 0);
	CHECK_EQ(rrecv(c, in, sizeof in, 0), 0);
	pthread_join(t, NULL);
	rclose(c);
	rclose(s);
}

/* Many at once wait in the receiver. */
static void burst(void)
{
	uint16_t port = 0;
	int s = server(&port), c = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = rs_addr4(port);
	char b = 0;

	check_case("burst");
	rs_nonblock(c, true);
	rs_nonblock(s, true);
	while (rsendto(c, &b, 1, 0, (struct sockaddr *)&to, sizeof to) != 1) {
		CHECK_EQ(errno, EAGAIN); /* until s has been asked */
		CHECK_EQ(rrecv(s, &b, 1, 0), -1);
		usleep(1000);
	}
	for (b = 1; b < BURST; b++)
		CHECK_EQ(rsendto(c, &b, 1, 0, (struct sockaddr *)&to, sizeof to), 1);
	for (int i = 0; i < BURST; i++) {
		CHECK_EQ(rs_poll1(s, POLLIN, RS_TEST_WAIT_MS), POLLIN);
		CHECK_EQ(rrecv(s, &b, 1, 0), 1);
		CHECK_EQ(b, i);
	}
	CHECK_EQ(rs_poll1(s, POLLIN, 20), 0);
	rclose(c);
	rclose(s);
}

static void nobody(void)
{
	uint16_t port = 0;
	int s = server(&port), c = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = rs_addr4(port);

	check_case("nobody");
	rclose(s);
	CHECK_EQ(rsendto(c, "x", 1, 0, (struct sockaddr *)&to, sizeof to), -1);
	CHECK_EQ(errno, ECONNREFUSED);
	to.sin_addr.s_addr = inet_addr("203.0.113.9");
	CHECK_EQ(rsendto(c, "x", 1, 0, (struct sockaddr *)&to, sizeof to), -1);
	CHECK_EQ(errno, ENETUNREACH);
	CHECK_EQ(rlisten(c, 1), -1);
	CHECK_EQ(errno, EOPNOTSUPP);
	rclose(c);
}

/* The same port, another queue pair: found again within a second or so. */
static void comes_again(void)
{
	uint16_t port = 0;
	int s = server(&port), c = rsocket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = rs_addr4(port);
	short r = 0;
	char b;

	check_case("comes again");
	rs_nonblock(c, true);
	for (int i = 0; i < 2; i++) {
		for (double end = now_ms() + RS_TEST_WAIT_MS; !r && now_ms() < end;) {
			rsendto(c, "x", 1, 0, (struct sockaddr *)&to, sizeof to);
			r = rs_poll1(s, POLLIN, 10);
		}
		CHECK_EQ(r, POLLIN);
		CHECK_EQ(rrecv(s, &b, 1, 0), 1);
		rclose(s);
		s = server(&port);
		r = 0;
	}
	rclose(c);
	rclose(s);
}

static void version6(void)
{
	struct sockaddr_in6 addr = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	socklen_t len = sizeof addr;
	int s = rsocket(AF_INET6, SOCK_DGRAM, 0), c = rsocket(AF_INET6, SOCK_DGRAM, 0);
	pthread_t t;
	char b;

	check_case("IPv6");
	CHECK_EQ(rbind(s, (struct sockaddr *)&addr, sizeof addr), 0);
	CHECK_EQ(rgetsockname(s, (struct sockaddr *)&addr, &len), 0);
	pthread_create(&t, NULL, echo, &s);
	CHECK_EQ(rconnect(c, (struct sockaddr *)&addr, sizeof addr), 0);
	CHECK_EQ(rsend(c, "6", 1, 0), 1);
	CHECK_EQ(rrecv(c, &b, 1, 0), 1);
	CHECK_EQ(b, '6');
	CHECK_EQ(rsend(c, "", 0, 0), 0);
	pthread_join(t, NULL);
	rclose(c);
	rclose(s);
}

int main(void)
{
	there_and_back();
	burst();
	nobody();
	comes_again();
	if (has_ipv6())
		version6();
	return check_result();
}
