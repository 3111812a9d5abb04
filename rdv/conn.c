// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { RETRY_NS = 5 * NSEC_PER_MSEC, MSEC_PER_SEC = 1000 };

static uint64_t deadline(void)
{
	return clock_ns() + (uint64_t)PROTO_TIMEOUT_MS * NSEC_PER_MSEC;
}

static int timed_out(const struct conn *c)
{
	if (c->server_pid > 0)
		log_line(LOG_LVL_ERROR,
			"weftd (pid %d) does not answer; is it stopped? kill -CONT %d wakes it",
			c->server_pid, c->server_pid);
	else
		log_line(LOG_LVL_ERROR, "weftd does not answer; is it stopped?");
	return -ETIMEDOUT;
}

/* Waits for events on the socket; 0, -ETIMEDOUT or another error. */
static int wait_sock(const struct conn *c, short events, uint64_t until)
{
	struct pollfd pfd = {.fd = c->sock.fd, .events = events};

	for (;;) {
		uint64_t now = clock_ns();
		uint64_t left = until > now ? until - now : 0;
		int n = poll(&pfd, 1, (left + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);

		if (n > 0)
			return 0;
		if (n == 0)
			return timed_out(c);
		if (errno != EINTR)
			return -errno;
	}
}

static int read_peer(struct conn *c)
{
	struct ucred cred;
	socklen_t len = sizeof cred;

	if (getsockopt(c->sock.fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (cred.uid != geteuid()) {
		log_line(LOG_LVL_ERROR,
			"weftd runs as user %u, this process as user %u; start one as this user",
			(unsigned)cred.uid, (unsigned)geteuid());
		return -EACCES;
	}
	c->server_pid = cred.pid;
	return 0;
}

static int connect_sock(struct conn *c, const struct rdv_paths *p)
{
	struct sockaddr_un addr;
	socklen_t len = rdv_sock_addr(p, &addr);
	uint64_t until = deadline();

	while (connect(c->sock.fd, (struct sockaddr *)&addr, len) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == ENOENT || errno == ECONNREFUSED)
			return -ENOTCONN;
		if (errno != EAGAIN)
			return -errno;
		if (clock_ns() > until) /* the backlog is full: nobody accepts */
			return timed_out(c);
		nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
	}
	return read_peer(c);
}

/* From now on receiving waits for a reply by itself, without a poll(2) before. */
static int make_waiting(int fd)
{
	const struct timeval limit = {.tv_sec = PROTO_TIMEOUT_MS / MSEC_PER_SEC};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0)
		return -errno;
	return fcntl(fd, F_SETFL, O_RDWR) < 0 ? -errno : 0;
}

static int new_socket(void)
{
	static _Atomic bool told;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret = fd < 0 ? -errno : fd;

	if (ret < 0 && !atomic_exchange(&told, true))
		log_line(LOG_LVL_ERROR,
			"cannot make a socket to weftd: %s; this process is at a limit (ulimit)",
			strerror(-ret));
	return ret;
}

int conn_open(struct conn *c, const struct rdv_paths *p)
{
	int fd = new_socket();
	int ret;

	*c = CONN_NONE;
	if (fd < 0)
		return fd;
	c->sock = own_fd(fd);
	ret = connect_sock(c, p);
	if (!ret)
		ret = make_waiting(c->sock.fd);
	if (ret)
		conn_close(c);
	return ret;
}

void conn_close(struct conn *c)
{
	own_fd_close(&c->sock);
	*c = CONN_NONE;
}

static int bad_version(const struct proto_in *in)
{
	log_line(LOG_LVL_ERROR,
		"weftd speaks protocol version %u, this library %d; end that weftd and let "
		"this version start its own",
		in->head.version, PROTO_VERSION);
	return -EPROTO;
}

/* Says once why weftd, not we, is short of something. */
static void tell_shortage(const struct conn *c, int status)
{
	static _Atomic bool told;
	const char *of = status == -ENOMEM ? "memory" : "file descriptors";

	if ((status != -EMFILE && status != -ENFILE && status != -ENOMEM) || told)
		return;
	told = true;
	log_line(LOG_LVL_ERROR,
		"weftd (pid %d) ran out of %s: it was started under a limit (ulimit); run: weft "
		"down, then weft up in a shell without it",
		c->server_pid, of);
}

/* Replies to earlier calls that timed out may still come: they are dropped. */
static int await_reply(struct conn *c, const struct proto_out *out, struct proto_in *in)
{
	uint64_t until = deadline();

	for (;;) {
		int ret = proto_await(c->sock.fd, in);

		if (ret == -EAGAIN || ret == -EINTR)
			ret = clock_ns() < until ? 0 : timed_out(c);
		else if (ret == -EPROTO)
			ret = bad_version(in);
		else if (ret == -EBADMSG)
			ret = -EPIPE;
		else if (!ret || ret == -EMFILE) {
			if (in->head.cookie == out->head.cookie)
				return ret;
			proto_close(in);
			ret = 0;
		}
		if (ret)
			return ret;
	}
}

static void stamp(struct conn *c, struct proto_out *out)
{
	out->head.version = PROTO_VERSION;
	if (++c->cookie == 0)
		c->cookie = 1;
	out->head.cookie = c->cookie;
}

/* What came in answer to that op: its status, or -EPROTO if it has not the shape of one. */
static int judge(const struct conn *c, uint32_t op, struct proto_in *in)
{
	const struct proto_op *o = proto_op(op);
	int ret = in->head.status;

	if (ret) {
		proto_close(in);
		tell_shortage(c, ret);
		return ret;
	}
	if (proto_size_fits(&o->reply, in->len) && proto_fds_fit(&o->reply, in->n_fds))
		return 0;
	log_line(LOG_LVL_ERROR, "weftd's reply to %s has %zu bytes and %d descriptors; refused",
		o->name, in->len, in->n_fds);
	proto_close(in);
	return -EPROTO;
}

int conn_call(struct conn *c, struct proto_out *out, struct proto_in *in)
{
	uint64_t until = deadline();
	int ret;

	stamp(c, out);
	while ((ret = proto_send(c->sock.fd, out)) == -EAGAIN) {
		ret = wait_sock(c, POLLOUT, until);
		if (ret)
			return ret;
	}
	/* Before it closes, weftd may have left a reply that says why. */
	if (ret && ret != -EPIPE)
		return ret;
	ret = await_reply(c, out, in);
	return ret ? ret : judge(c, out->head.op, in);
}

int conn_post(const struct conn *c, struct proto_out *out)
{
	out->head.version = PROTO_VERSION;
	return proto_send(c->sock.fd, out);
}

int conn_wait_end(struct conn *c)
{
	uint64_t until = deadline();
	struct proto_in in;
	int ret;

	for (;;) {
		ret = proto_recv(c->sock.fd, &in);
		if (ret == -EPIPE)
			return 0;
		if (!ret)
			proto_close(&in);
		else if (ret == -EAGAIN && (ret = wait_sock(c, POLLIN, until)))
			return ret;
	}
}
