// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/proto.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A payload of the size of its struct, and no fds. */
#define JUST(type)                                                                                 \
	{                                                                                          \
		sizeof(struct type), sizeof(struct type), 0, 0                                     \
	}
#define WITH_FDS(type, least, most)                                                                \
	{                                                                                          \
		sizeof(struct type), sizeof(struct type), least, most                              \
	}
/* Of cm/cm_proto.h: without private data, or with some. */
#define CM(size)                                                                                   \
	{                                                                                          \
		size, size, 0, 0                                                                   \
	}
#define CM_WITH_DATA(size)                                                                         \
	{                                                                                          \
		size, size + PROTO_CM_PRIVATE, 0, 0, size##_LEN                                    \
	}
#define NOTHING                                                                                    \
	{                                                                                          \
		0, 0, 0, 0                                                                         \
	}

static const struct proto_op ops[OP_COUNT] = {
	[OP_ATTACH] = {"attach", WITH_FDS(proto_attach, 1, 4), WITH_FDS(proto_attached, 4, 5)},
	[OP_LEASE] = {"lease", NOTHING, WITH_FDS(proto_block, 0, 1)},
	[OP_CLAIM] = {"claim", WITH_FDS(proto_block, 0, 1), WITH_FDS(proto_block, 0, 1)},
	[OP_RETURN] = {"return", JUST(proto_block), NOTHING},
	[OP_FIND_QPN] = {"find_qpn", JUST(proto_find), WITH_FDS(proto_found, 2, 4)},
	[OP_ADD_CHANNEL] = {"add_channel", WITH_FDS(proto_channel, 1, 1), NOTHING},
	[OP_DEL_CHANNEL] = {"del_channel", JUST(proto_channel), NOTHING},
	[OP_GET_CHANNEL] = {"get_channel", JUST(proto_peer_channel), {0, 0, 1, 1}},
	[OP_ADD_BACKING] = {"add_backing", WITH_FDS(proto_backing, 1, 1), NOTHING},
	[OP_DEL_BACKING] = {"del_backing", JUST(proto_backing), NOTHING},
	[OP_GET_BACKING] = {"get_backing", JUST(proto_peer_backing), {0, 0, 1, 1}},
	[OP_SET_TIMER] = {"set_timer", JUST(proto_timer), NOTHING},
	[OP_FIRE] = {"fire", JUST(proto_peer_channel), NOTHING},
	[OP_MEMBERS] = {"members", JUST(proto_members), NOTHING},
	[OP_PING] = {"ping", NOTHING, NOTHING},
	[OP_STATUS] = {"status", NOTHING, WITH_FDS(proto_status, 1, 1)},
	[OP_STAY] = {"stay", NOTHING, NOTHING},
	[OP_SHUTDOWN] = {"shutdown", NOTHING, NOTHING},
	[OP_CM_ADD_CHANNEL] = {"cm_add_channel", WITH_FDS(proto_channel, 1, 1), NOTHING},
	[OP_CM_DEL_CHANNEL] = {"cm_del_channel", JUST(proto_channel), NOTHING},
	[OP_CM_WAKE_CHANNEL] = {"cm_wake_channel", JUST(proto_channel), NOTHING},
	[OP_CM_TAKEN] = {"cm_taken", JUST(proto_cm_taken), NOTHING},
	[OP_CM_BIND] = {"cm_bind", CM(PROTO_CM_BIND), JUST(proto_cm_bound)},
	[OP_CM_LISTEN] = {"cm_listen", CM(PROTO_CM_LISTEN), NOTHING},
	[OP_CM_CONNECT] = {"cm_connect", CM_WITH_DATA(PROTO_CM_CONNECT), JUST(proto_cm_connecting)},
	[OP_CM_ACCEPT] = {"cm_accept", CM_WITH_DATA(PROTO_CM_ACCEPT), NOTHING},
	[OP_CM_READY] = {"cm_ready", CM(PROTO_CM_ID), NOTHING},
	[OP_CM_REJECT] = {"cm_reject", CM_WITH_DATA(PROTO_CM_REJECT), NOTHING},
	[OP_CM_NOTIFY] = {"cm_notify", CM(PROTO_CM_ID), NOTHING},
	[OP_CM_DISCONNECT] = {"cm_disconnect", CM(PROTO_CM_ID), NOTHING},
	[OP_CM_MIGRATE] = {"cm_migrate", CM(PROTO_CM_MIGRATE), NOTHING},
	[OP_CM_DESTROY] = {"cm_destroy", CM(PROTO_CM_ID), NOTHING},
	[OP_CM_PUBLISH] = {"cm_publish", CM(PROTO_CM_PUBLISH), NOTHING},
	[OP_CM_LEND] = {"cm_lend", NOTHING, JUST(proto_cm_loan)},
	[OP_CM_RESOLVE] = {"cm_resolve", CM(PROTO_CM_RESOLVE), NOTHING},
	[OP_UMAD_OPEN] = {"umad_open", JUST(proto_umad_open), WITH_FDS(proto_umad_opened, 4, 4)},
	[OP_UMAD_JOIN] = {"umad_join", {0, 0, 1, 1}, WITH_FDS(proto_umad_opened, 3, 3)},
	[OP_UMAD_REGISTER] = {"umad_register", JUST(proto_umad_register),
		JUST(proto_umad_registered)},
	[OP_UMAD_UNREGISTER] = {"umad_unregister", JUST(proto_umad_agent), NOTHING},
	[OP_UMAD_PKEY] = {"umad_pkey", JUST(proto_umad_file), NOTHING},
	[OP_UMAD_SEND] = {"umad_send", WITH_FDS(proto_umad_send, 1, 1), NOTHING},
	[OP_UMAD_FETCH] = {"umad_fetch", JUST(proto_umad_fetch), {0, 0, 1, 1}},
	[OP_ISSM_OPEN] = {"issm_open", JUST(proto_umad_open), {0, 0, 1, 1}},
	[OP_NODE] = {"node", JUST(proto_node), JUST(proto_node_found)},
	[OP_TOPO] = {"topo", JUST(proto_topo), WITH_FDS(proto_status, 1, 1)},
	[OP_WIRE_JOIN] = {"wire_join", WITH_FDS(proto_wire_join, 1, 3),
		WITH_FDS(proto_wire_joined, 0, 4)},
	[OP_TOPO_DO] = {"topo_do", {0, PROTO_PAYLOAD_MAX, 0, 0}, WITH_FDS(proto_topo_done, 1, 1)},
	[OP_FAULT] = {"fault", {4, sizeof(struct proto_fault) - 1, 0, 0}, JUST(proto_faulted)},
};

const struct proto_op *proto_op(uint32_t op)
{
	return op < OP_COUNT && ops[op].name ? &ops[op] : NULL;
}

struct proto_out proto_call(uint32_t op, const void *payload)
{
	return (struct proto_out){
		.head = {.op = op},
		.payload = payload,
		.len = payload ? ops[op].call.least : 0,
	};
}

/* Room for more fds than allowed, so that a surplus is seen and closed by us. */
enum { RECV_FDS = 2 * PROTO_MAX_FDS };

union fd_control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * RECV_FDS)];
};

static int gone(int err)
{
	return err == EPIPE || err == ECONNRESET || err == ENOTCONN || err == EBADF ||
	       err == ENOTSOCK;
}

static int send_all(int sock, const struct msghdr *mh)
{
	while (sendmsg(sock, mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno != EINTR)
			return gone(errno) ? -EPIPE : -errno;
	}
	return 0;
}

int proto_send(int sock, const struct proto_out *out)
{
	struct iovec iov[2] = {
		{(void *)&out->head, sizeof out->head}, {(void *)out->payload, out->len}};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};
	union fd_control ctl = {0};

	if (out->n_fds > 0) {
		size_t size = sizeof(int) * out->n_fds;
		struct cmsghdr *c;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE(size);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(c), out->fds, size);
	}
	return send_all(sock, &mh);
}

/* Moves the fds of mh into in; closes those beyond PROTO_MAX_FDS.  Returns how many came. */
static int collect_fds(struct msghdr *mh, struct proto_in *in)
{
	int came = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		int n, fd;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (int i = 0; i < n; i++, came++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
			if (in->n_fds < PROTO_MAX_FDS)
				in->fds[in->n_fds++] = fd;
			else
				close(fd);
		}
	}
	return came;
}

static int check(const struct proto_in *in, ssize_t n, int came, int msg_flags)
{
	if ((size_t)n >= offsetof(struct proto_head, cookie) && in->head.version != PROTO_VERSION)
		return -EPROTO;
	if (n < (ssize_t)sizeof in->head || msg_flags & MSG_TRUNC || came > PROTO_MAX_FDS)
		return -EBADMSG;
	return msg_flags & MSG_CTRUNC ? -EMFILE : 0;
}

static int receive(int sock, struct proto_in *in, int flags)
{
	union fd_control ctl;
	struct iovec iov[2] = {{&in->head, sizeof in->head}, {&in->payload, sizeof in->payload}};
	struct msghdr mh = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = ctl.buf,
		.msg_controllen = sizeof ctl.buf,
	};
	ssize_t n;
	int came, ret;

	memset(in, 0, offsetof(struct proto_in, payload));
	n = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return gone(errno) ? -EPIPE : -errno;
	came = collect_fds(&mh, in);
	/* An empty packet looks like the end of the stream; nobody sends one on purpose. */
	ret = n == 0 ? -EPIPE : check(in, n, came, mh.msg_flags);
	if (ret)
		proto_close(in);
	else
		in->len = n - sizeof in->head;
	return ret;
}

int proto_recv(int sock, struct proto_in *in)
{
	int ret;

	do {
		ret = receive(sock, in, MSG_DONTWAIT);
	} while (ret == -EINTR);
	return ret;
}

int proto_await(int sock, struct proto_in *in)
{
	return receive(sock, in, 0);
}

int proto_take_fd(struct proto_in *in, int i)
{
	int fd;

	if (i >= in->n_fds)
		return -1;
	fd = in->fds[i];
	in->fds[i] = -1;
	return fd;
}

void proto_close(struct proto_in *in)
{
	for (int i = 0; i < in->n_fds; i++)
		if (in->fds[i] >= 0)
			close(in->fds[i]);
	in->n_fds = 0;
}
