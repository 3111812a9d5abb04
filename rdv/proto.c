// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/proto.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

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

int proto_send_data(int sock, const struct proto_msg *msg, const void *data, size_t len)
{
	struct iovec iov[2] = {{(void *)msg, sizeof *msg}, {(void *)data, len}};
	struct msghdr mh = {.msg_iov = iov, .msg_iovlen = 2};

	return send_all(sock, &mh);
}

int proto_send(int sock, const struct proto_msg *msg, const int *fds, int n_fds)
{
	struct iovec iov = {.iov_base = (void *)msg, .iov_len = sizeof *msg};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	union fd_control ctl = {0};

	if (n_fds > 0) {
		struct cmsghdr *c;

		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
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

static bool has_data(uint32_t op)
{
	return op >= OP_CM_BIND && op <= OP_CM_PUBLISH;
}

static int check(const struct proto_in *in, ssize_t n, int came, int msg_flags)
{
	if ((size_t)n >= offsetof(struct proto_msg, cookie) && in->msg.version != PROTO_VERSION)
		return -EPROTO;
	if (n < (ssize_t)sizeof in->msg || msg_flags & MSG_TRUNC || came > PROTO_MAX_FDS)
		return -EBADMSG;
	if (n > (ssize_t)sizeof in->msg && !has_data(in->msg.op))
		return -EBADMSG;
	if (msg_flags & MSG_CTRUNC)
		return -EMFILE;
	return 0;
}

static int receive(int sock, struct proto_in *in, int flags)
{
	union fd_control ctl;
	struct iovec iov[2] = {{&in->msg, sizeof in->msg}, {in->data, sizeof in->data}};
	struct msghdr mh = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = ctl.buf,
		.msg_controllen = sizeof ctl.buf,
	};
	ssize_t n;
	int came, ret;

	memset(in, 0, offsetof(struct proto_in, data));
	n = recvmsg(sock, &mh, flags | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return gone(errno) ? -EPIPE : -errno;
	came = collect_fds(&mh, in);
	/* An empty packet looks like the end of the stream; nobody sends one on purpose. */
	ret = n == 0 ? -EPIPE : check(in, n, came, mh.msg_flags);
	if (ret)
		proto_close(in);
	else
		in->len = n - sizeof in->msg;
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
