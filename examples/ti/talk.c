// SPDX-License-Identifier: BSD-3-Clause
#include "talk.h"

#include <arpa/inet.h>
#include <stdlib.h>

void make_address(struct sockaddr_in *sin, const char *ipv4, unsigned short port)
{
	*sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	if (inet_pton(AF_INET, ipv4, &sin->sin_addr) != 1) {
		fprintf(stderr, "%s is no IPv4 address\n", ipv4);
		exit(2);
	}
}

struct sock *bound_socket(const char *ipv4, unsigned short port)
{
	struct sock *sk = sk_alloc();
	struct sockaddr_in sin;

	make_address(&sin, ipv4, port);
	if (!sk || sample_sock_init(sk) || sample_bind(sk, (struct sockaddr *)&sin, sizeof sin)) {
		fprintf(stderr, "cannot bind to %s\n", ipv4);
		exit(1);
	}
	return sk;
}

bool send_all(struct sock *sk, void *data, int len)
{
	struct iovec iov = {data, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	return len == 0 || sample_sendmsg(sk, &msg, len) == 0;
}

bool recv_all(struct sock *sk, void *data, int len)
{
	for (int got; len > 0; data = (char *)data + got, len -= got) {
		struct iovec iov = {data, len};
		struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

		if (sample_msg_recv(sk, &msg, len, 0, 0, &got) || got <= 0)
			return false;
	}
	return true;
}
