// SPDX-License-Identifier: BSD-3-Clause
#include "tests/lib/rs_ends.h"

#include <arpa/inet.h>
#include <fcntl.h>

#include "tests/lib/check.h"

struct sockaddr_in rs_addr4(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

int rs_listener(uint16_t *port)
{
	struct sockaddr_in addr = rs_addr4(0);
	socklen_t len = sizeof addr;
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || rbind(fd, (struct sockaddr *)&addr, sizeof addr) || rlisten(fd, 0) ||
		rgetsockname(fd, (struct sockaddr *)&addr, &len))
		die("a listener");
	*port = ntohs(addr.sin_port);
	return fd;
}

short rs_poll1(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n = rpoll(&p, 1, ms);

	if (n < 0)
		die("rpoll");
	return n ? p.revents : 0;
}

void rs_nonblock(int fd, bool on)
{
	if (rfcntl(fd, F_SETFL, on ? (long)O_NONBLOCK : 0L))
		die("rfcntl");
}

int rs_connecting(uint16_t port)
{
	struct sockaddr_in addr = rs_addr4(port);
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		die("rsocket");
	if (rconnect(fd, (struct sockaddr *)&addr, sizeof addr) != -1 || errno != EINPROGRESS)
		die("rconnect");
	return fd;
}

struct rs_pair rs_pair_at(int listener, uint16_t port)
{
	struct rs_pair p = {.active = rs_connecting(port)};

	p.passive = raccept(listener, NULL, NULL);
	if (p.passive < 0)
		die("raccept");
	if (!(rs_poll1(p.active, POLLOUT, RS_TEST_WAIT_MS) & POLLOUT))
		die("not connected");
	rs_nonblock(p.active, false);
	return p;
}

struct rs_pair rs_pair(void)
{
	uint16_t port;
	int listener = rs_listener(&port);
	struct rs_pair p = rs_pair_at(listener, port);

	rclose(listener);
	return p;
}
