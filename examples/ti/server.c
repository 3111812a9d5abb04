// SPDX-License-Identifier: BSD-3-Clause
/* server ADDRESS PORT: takes one connection and sends back what comes, until the client goes. */
#include <stdlib.h>

#include "talk.h"

static bool echo(struct sock *sk)
{
	int len;
	char *data;
	bool ok;

	if (!recv_all(sk, &len, sizeof len) || len <= 0)
		return false;
	data = malloc(len);
	ok = data && recv_all(sk, data, len) && send_all(sk, data, len);
	free(data);
	return ok;
}

int main(int argc, char **argv)
{
	static proto_data_t links; /* its events may come to the end */
	struct sock *listener, *sk;
	int err = 0, n = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}
	listener = bound_socket(argv[1], atoi(argv[2]));
	if (!sample_TI_bind(&links))
		fprintf(stderr, "events of links do not come\n");
	if (sample_listen(listener)) {
		fprintf(stderr, "cannot listen\n");
		return 1;
	}
	printf("listening\n");
	fflush(stdout);
	sk = sample_accept(listener, 0, &err);
	if (!sk) {
		fprintf(stderr, "no connection: %d\n", err);
		return 1;
	}
	while (echo(sk))
		n++;
	printf("%d came\n", n);
	sample_close(sk);
	return sample_close(listener) != 0;
}
