// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: clients that send weftd anything.  The input is a list of packets: a byte that says
 * which of two connections, how many fds and whether the head of the message is put right; then a
 * length and the bytes.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cm/cm_proto.h"
#include "daemon/startup.h"
#include "rdv/proto.h"

enum { CLIENTS = 2, PACKET_MAX = 80 };

static struct server server;

static char dir[256];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void start(void)
{
	const char *tmp = getenv("TMPDIR");
	char why[512];

	snprintf(dir, sizeof dir, "%s/weft-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		abort();
	atexit(remove_dir);
	setenv("WEFT_RUNTIME_DIR", dir, 1);
	setenv("WEFT_LOG", "error", 1);
	if (server_start(&server, NULL, why, sizeof why)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
}

static void serve(void)
{
	struct epoll_event ev;

	while (epoll_wait(server.epfd, &ev, 1, 0) == 1) {
		struct watch *w = ev.data.ptr;

		w->ready(&server, w, ev.events);
	}
	server.stop = false;
}

static int connect_client(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;
	socklen_t len = rdv_sock_addr(&server.paths, &addr);

	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, len) < 0)
		abort();
	serve();
	return fd;
}

static void near_addr(struct cm_addr *a)
{
	*a = (struct cm_addr){
		.family = 4, .port = 4711, .gid = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
}

/* About connections: a few handles and ports, so that they meet. */
static void fill_cm_call(struct proto_out *out, uint8_t *payload, const uint8_t *data, size_t len)
{
	uint32_t op = OP_CM_BIND + data[len - 1] % (OP_CM_PUBLISH - OP_CM_BIND + 1);
	const struct proto_shape *s = &proto_op(op)->call;
	uint32_t handle = data[0] & 0x87;
	struct cm_publish_call *publish = (void *)payload;
	struct cm_connect_call *connect = (void *)payload;
	struct cm_bind_call *bound = (void *)payload;

	handle = handle & 0x80 ? 0x80000000u | (1 + (data[0] & 7)) : handle;
	memset(payload, 0, PROTO_PAYLOAD_MAX);
	memcpy(payload + 8, data, len < 48 ? len : 48);
	memcpy(payload, (uint32_t[]){handle, 1}, 8);
	if (op == OP_CM_BIND) {
		bound->ps = 0x0106;
		near_addr(&bound->src);
	} else if (op == OP_CM_CONNECT) {
		connect->ps = 0x0106;
		near_addr(&connect->src);
		near_addr(&connect->dst);
	} else if (op == OP_CM_PUBLISH) {
		publish->ps = 0x0106;
		near_addr(&publish->src);
		near_addr(&publish->dst);
	}
	if (s->len_at)
		payload[s->len_at] %= 8;
	out->head.op = op;
	out->head.cookie = 1;
	out->len = proto_said_size(s, s->least, payload);
}

static void send_packet(int sock, uint8_t how, const uint8_t *data, size_t len)
{
	int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int event = eventfd(0, EFD_CLOEXEC);
	int channel = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const int fds[4] = {how & 0x10 ? event : how & 0x20 ? channel : netns, event, netns, event};
	uint8_t payload[PROTO_PAYLOAD_MAX] = {0};
	struct proto_out out = {.head = {.version = PROTO_VERSION}, .payload = payload};

	memcpy(payload, data, len);
	if (how & 0x40) {
		fill_cm_call(&out, payload, data, len);
		proto_send(sock, &out);
	} else if (how & 0x80) { /* an op's call, of the right size or one of its own */
		const struct proto_op *op = proto_op(data[0] % (OP_COUNT + 1));

		memmove(payload, payload + 1, len);
		out.head.op = data[0] % (OP_COUNT + 1);
		out.head.cookie = how & 8;
		out.len = op && data[0] < 0xe0 ? op->call.least : len - 1;
		out.fds = fds;
		out.n_fds = how >> 1 & 3;
		proto_send(sock, &out);
	} else {
		send(sock, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	close(netns);
	close(event);
	close(channel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int client[CLIENTS];

	if (!server.epfd)
		start();
	for (int i = 0; i < CLIENTS; i++)
		client[i] = connect_client();
	while (size > 2) {
		uint8_t how = data[0];
		size_t len = 1 + data[1] % PACKET_MAX;

		data += 2;
		size -= 2;
		if (len > size)
			len = size;
		send_packet(client[how % CLIENTS], how, data, len);
		serve();
		data += len;
		size -= len;
	}
	for (int i = 0; i < CLIENTS; i++)
		close(client[i]);
	serve();
	return 0;
}
