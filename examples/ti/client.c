// SPDX-License-Identifier: BSD-3-Clause
/* client LOCAL-ADDRESS ADDRESS PORT SIZE...: sends so many bytes, and checks what comes back. */
#include <stdlib.h>
#include <string.h>

#include "talk.h"

static bool there_and_back(struct sock *sk, int len)
{
	char *out = malloc(len), *in = calloc(1, len);
	bool ok = out && in;

	for (int i = 0; ok && i < len; i++)
		out[i] = (char)(i * 7 + len + (i >> 8));
	ok = ok && send_all(sk, &len, sizeof len) && send_all(sk, out, len) &&
	     recv_all(sk, in, len) && memcmp(in, out, len) == 0;
	free(out);
	free(in);
	return ok;
}

static struct sock *connected(const char *local, const char *remote, unsigned short port)
{
	struct sock *sk = bound_socket(local, 0);
	struct sockaddr_in to;

	make_address(&to, remote, port);
	if (sample_connect(sk, (struct sockaddr *)&to, sizeof to))
		return NULL;
	WaitOnSignalConnectDone(sk);
	return sk->state == TCP_CONNECTED ? sk : NULL;
}

int main(int argc, char **argv)
{
	struct sock *sk;
	int len;

	if (argc < 4) {
		fprintf(stderr, "usage: %s LOCAL-ADDRESS ADDRESS PORT SIZE...\n", argv[0]);
		return 2;
	}
	sysctl_ap_msg_size *= 2; /* both ends agree on the server's */
	sk = connected(argv[1], argv[2], atoi(argv[3]));
	if (!sk) {
		fprintf(stderr, "cannot connect\n");
		return 1;
	}
	for (int i = 4; i < argc; i++) {
		len = atoi(argv[i]);
		if (len <= 0 || !there_and_back(sk, len)) {
			fprintf(stderr, "%s bytes did not come back\n", argv[i]);
			return 1;
		}
		printf("%d bytes there and back\n", len);
	}
	return sample_close(sk) != 0;
}
