// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/request.h"
#include "daemon/umad.h"

enum { MESSAGES_AT_A_TIME = 16 };

void session_close(struct server *s, struct session *c)
{
	umads_session_gone(s, c);
	if (c->prev)
		c->prev->next = c->next;
	else
		s->sessions = c->next;
	if (c->next)
		c->next->prev = c->prev;
	if (c->process)
		c->process->session = NULL;
	server_unwatch(s, &c->sock);
	free(c);
}

/* The connection ended, by the client's will or ours. */
static void end(struct server *s, struct session *c)
{
	struct process *p = c->process;

	session_close(s, c);
	if (p && !process_lives(p))
		process_died(s, p);
}

static void close_own(const struct reply *r)
{
	for (int i = 0; i < r->n_own; i++)
		close(r->own[i]);
}

/* Sends a reply; false if the connection has to go. */
static bool answer(struct server *s, struct session *c, const struct proto_head *q, struct reply *r,
	int status)
{
	struct proto_out out = {.head = *q};
	int ret;

	out.head.version = PROTO_VERSION;
	out.head.status = status;
	if (!status) {
		out.payload = &r->payload;
		out.len = proto_op(q->op)->reply.least;
		out.fds = r->fds;
		out.n_fds = r->n_fds;
	}
	ret = proto_send(c->sock.fd, &out);
	close_own(r);
	if (ret == -EAGAIN || ret == -ENOBUFS)
		server_refuse(s, REF_NOT_READING);
	return ret == 0;
}

/* True if the connection goes on. */
static bool handle(struct server *s, struct session *c, struct proto_in *in)
{
	struct reply r = {0};
	int status = request_handle(s, c, in, &r);

	proto_close(in);
	if (status > 0 || !in->head.cookie) {
		close_own(&r);
		return status <= 0;
	}
	return answer(s, c, &in->head, &r, status);
}

/* What could not be received as a message. */
static bool reject(struct server *s, struct session *c, struct proto_in *in, int err)
{
	struct reply r = {0};

	switch (err) {
	case -EAGAIN:
		return true;
	case -EMFILE:
		server_refuse(s, REF_NO_FDS);
		return answer(s, c, &in->head, &r, err);
	case -EPROTO:
		server_refuse(s, REF_BAD_VERSION);
		answer(s, c, &in->head, &r, err);
		return false;
	case -EBADMSG:
		server_refuse(s, REF_BAD_MESSAGE);
		return false;
	default:
		return false;
	}
}

static void on_message(struct server *s, struct watch *w, uint32_t events)
{
	struct session *c = (struct session *)w;
	struct proto_in in;

	(void)events;
	for (int i = 0; i < MESSAGES_AT_A_TIME; i++) {
		int ret = proto_recv(w->fd, &in);

		if (!(ret ? reject(s, c, &in, ret) : handle(s, c, &in))) {
			end(s, c);
			return;
		}
		/* Who waits for an answer has sent nothing more. */
		if (ret || in.head.cookie)
			return;
	}
}

/* No fds left: without this the waiting connection would keep epoll awake for ever. */
static void refuse_one(struct server *s)
{
	int fd;

	server_refuse(s, REF_NO_FDS);
	close(s->spare_fd);
	fd = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void session_accept(struct server *s, struct watch *w, uint32_t events)
{
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t len = sizeof(struct ucred);
	struct session *c;
	struct ucred cred;

	(void)events;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			refuse_one(s);
		return;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.uid != geteuid()) {
		server_refuse(s, REF_OTHER_USER);
		close(fd);
		return;
	}
	c = calloc(1, sizeof *c);
	if (c) {
		c->sock = (struct watch){on_message, fd};
		c->pid = cred.pid;
	}
	if (!c || server_watch(s, &c->sock)) {
		server_refuse(s, REF_NO_MEMORY);
		free(c);
		close(fd);
		return;
	}
	c->next = s->sessions;
	if (c->next)
		c->next->prev = c;
	s->sessions = c;
}
