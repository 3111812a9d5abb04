// SPDX-License-Identifier: BSD-3-Clause
/*
 * Event channels.  The fd that the program polls is a datagram socket: an event of weftd is a
 * datagram.  Events of our own making wait in a list, and for each of them a datagram of one byte,
 * a token, is sent: who waits for edges (EPOLLET) has one for each event.  While the list has
 * something a token lies in the socket, and none if it has not.  So the fd is readable if and only
 * if there is an event, and blocks or not as the program has set it.
 *
 * weftd gives the socket its name, in the runtime directory, which no other user can enter; we use
 * it only to send ourselves the token.  Where we cannot (a program that gave up its rights, or
 * changed its root), weftd does.  A channel whose name somebody removed is lost: its fd is shut
 * down, so that whoever waits for it wakes up.
 */
#include "rdmacm/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/restart.h"
#include "rdmacm/call.h"
#include "rdmacm/device.h"
#include "rdmacm/table.h"
#include "verbs/for_rdmacm.h"

enum { TOKEN_SIZE = 1 };
/* A reader waits in recv(2) so long, which is cheap, and then in poll(2), which sees more. */
enum { SHORT_WAIT_US = 20000 };

static _Atomic uint32_t last_channel;

static int open_socket(struct event_channel *ch)
{
	const struct timeval limit = {.tv_usec = SHORT_WAIT_US};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0) {
		ret = -errno;
		close(fd);
		return ret;
	}
	ch->ch.fd = fd;
	ch->sock = own_fd_at(fd);
	return 0;
}

/* The name is relative to the runtime directory; *dir_fd as weft_cm_name_addr() has it. */
static int own_address(const struct event_channel *ch, struct sockaddr_un *addr, int *dir_fd)
{
	struct sockaddr_un name = {0};
	socklen_t len = sizeof name - 1;

	*dir_fd = -1;
	if (getsockname(ch->ch.fd, (struct sockaddr *)&name, &len) < 0)
		return -errno;
	return weft_cm_name_addr(name.sun_path, addr, dir_fd);
}

static void tell_shortage(int err)
{
	if (err == -ENOSPC || err == -EDQUOT || err == -EROFS || err == -EACCES || err == -EPERM)
		log_line(LOG_LVL_ERROR,
			"cannot make an event channel in the runtime directory: %s; make room "
			"there, or set WEFT_RUNTIME_DIR to another directory",
			strerror(-err));
}

/* weftd names the socket, and knows the channel from now on. */
static int get_name(struct event_channel *ch)
{
	const struct proto_channel call = {.id = ch->id};
	int ret = weft_cm_call_fd(OP_CM_ADD_CHANNEL, &call, sizeof call, ch->ch.fd), dir_fd;

	if (ret && ret != -EEXIST) {
		tell_shortage(ret);
		return ret;
	}
	ret = own_address(ch, &ch->addr, &dir_fd);
	ch->near = !ret && dir_fd < 0;
	if (dir_fd >= 0)
		close(dir_fd);
	return 0;
}

int channel_create(struct event_channel **out)
{
	struct event_channel *ch = calloc(1, sizeof *ch);
	int ret;

	if (!ch)
		return -ENOMEM;
	ret = open_socket(ch);
	if (ret) {
		free(ch);
		return ret;
	}
	ch->id = ++last_channel;
	ch->tail = &ch->head;
	ret = get_name(ch);
	if (ret) {
		own_fd_close(&ch->sock);
		free(ch);
		return ret;
	}
	channel_enter(ch);
	*out = ch;
	return 0;
}

/* The table's lock may be held. */
static void lose(struct event_channel *ch)
{
	bool before;

	lock_take(&ch->lock);
	before = ch->lost;
	ch->lost = true;
	lock_drop(&ch->lock);
	if (before || !own_fd_ok(&ch->sock))
		return;
	log_line(LOG_LVL_ERROR,
		"the name of an event channel was removed from the runtime directory; no event "
		"comes there any more");
	(void)shutdown(ch->ch.fd, SHUT_RDWR);
}

int channel_publish(struct event_channel *ch, channel_send send, void *conn)
{
	const struct proto_channel call = {.id = ch->id};
	int ret;

	if (!own_fd_ok(&ch->sock))
		return 0; /* closed behind our back */
	ret = send(conn, OP_CM_ADD_CHANNEL, &call, sizeof call, ch->ch.fd);
	if (ret == -ENOENT)
		lose(ch);
	/* Without this channel the rest works: its number may be another file's by now. */
	return ret == -ENOENT || ret == -EEXIST || ret == -EINVAL ? 0 : ret;
}

/* One way if weftd reads; else it must learn of it all the same. */
static void tell(uint32_t op, const void *call, size_t len)
{
	if (weft_cm_post(op, call, len) == -EAGAIN)
		(void)weft_cm_call(op, call, len, NULL);
}

static bool all(const struct cm_event *e, const void *arg)
{
	(void)e, (void)arg;
	return true;
}

void channel_destroy(struct event_channel *ch)
{
	const struct proto_channel call = {.id = ch->id};

	channel_leave(ch);
	channel_sift(ch, NULL, all, NULL);
	if (!ch->inherited)
		tell(OP_CM_DEL_CHANNEL, &call, sizeof call);
	own_fd_close(&ch->sock);
	free(ch);
}

/* ---- tokens ---- */

static int send_token(const struct event_channel *ch)
{
	struct sockaddr_un far;
	const struct sockaddr_un *to = &ch->addr;
	int dir_fd = -1, ret = 0;

	if (!ch->near) {
		ret = own_address(ch, &far, &dir_fd);
		to = &far;
	}
	if (!ret && sendto(ch->ch.fd, "", TOKEN_SIZE, MSG_DONTWAIT | MSG_NOSIGNAL,
			    (const struct sockaddr *)to, sizeof *to) < 0)
		ret = -errno;
	if (dir_fd >= 0)
		close(dir_fd);
	return ret == -ENOBUFS ? -EAGAIN : ret;
}

/*
 * Under the lock: sends one.  0; -EAGAIN: the queue is full, so the fd is readable; 1: it could
 * not, and ask_token() must be called without the lock.
 */
static int put_token(struct event_channel *ch)
{
	int ret;

	if (ch->lost || !own_fd_ok(&ch->sock))
		return 0;
	ret = send_token(ch);
	ch->tokens += ret != -EAGAIN;
	return ret && ret != -EAGAIN ? 1 : ret;
}

/* Under the lock: makes the fd readable while the list has something.  True: ask_token(). */
static bool set_token(struct event_channel *ch)
{
	/* If its queue is full whoever empties it comes by here. */
	return ch->head && !ch->tokens && put_token(ch) == 1;
}

static void ask_token(struct event_channel *ch)
{
	const struct proto_channel call = {.id = ch->id};
	int ret = weft_cm_call(OP_CM_WAKE_CHANNEL, &call, sizeof call, NULL);

	if (!ret)
		return;
	lock_take(&ch->lock);
	ch->tokens -= ch->tokens != 0;
	lock_drop(&ch->lock);
	if (ret == -ENOENT)
		lose(ch);
}

/* ---- the list ---- */

static int append(struct event_channel *ch, const struct cm_event *e, size_t len)
{
	struct local_event *l = malloc(sizeof *l);

	if (!l)
		return -ENOMEM;
	l->next = NULL;
	memcpy(&l->e, e, len);
	*ch->tail = l;
	ch->tail = &l->next;
	return 0;
}

static bool pop(struct event_channel *ch, struct cm_event *e)
{
	struct local_event *l = ch->head;

	if (!l)
		return false;
	ch->head = l->next;
	if (!ch->head)
		ch->tail = &ch->head;
	memcpy(e, &l->e, cm_event_size(&l->e));
	free(l);
	return true;
}

static bool well_formed(const struct cm_event *e, ssize_t n)
{
	return n >= (ssize_t)offsetof(struct cm_event, priv) && e->param.priv_len <= CM_PRIV_MAX &&
	       n == (ssize_t)cm_event_size(e);
}

/*
 * Under the lock: takes a datagram out of the socket, an event into the list.  False: there is
 * none.
 */
static bool drain_one(struct event_channel *ch)
{
	struct cm_event e;
	ssize_t n = recv(ch->ch.fd, &e, sizeof e, MSG_DONTWAIT);

	if (n == TOKEN_SIZE)
		ch->tokens -= ch->tokens != 0;
	else if (well_formed(&e, n))
		(void)append(ch, &e, n);
	return n > 0;
}

/* Under the lock: with an empty list the fd must not be readable for its sake. */
static void clear_tokens(struct event_channel *ch)
{
	/* (Another reader may have one, and wait for the lock.) */
	while (ch->tokens && !ch->head && drain_one(ch))
		;
}

int channel_put(struct event_channel *ch, const struct cm_event *e, size_t len)
{
	int ret, token;

	lock_take(&ch->lock);
	token = put_token(ch);
	if (token == -EAGAIN) {
		while (drain_one(ch))
			;
		token = put_token(ch);
	}
	/* The one that came last is the edge; the socket has little room, which weftd needs. */
	while (ch->tokens > 1 && drain_one(ch))
		;
	ret = append(ch, e, len);
	if (ret)
		clear_tokens(ch);
	lock_drop(&ch->lock);
	if (token == 1)
		ask_token(ch);
	return ret;
}

/* What is to be done outside the lock. */
struct after {
	struct proto_cm_taken ack; /* to weftd, if it has events */
	bool ask_token;
};

/* Under the lock: an event leaves the channel. */
static void taken(struct event_channel *ch, const struct cm_event *e, struct after *after)
{
	if (e->flags & CM_E_LOCAL)
		return;
	ch->unacked++;
	if (!(e->flags & CM_E_ACK))
		return;
	after->ack = (struct proto_cm_taken){
		.channel = ch->id,
		.handle = e->listen_handle ? e->handle : 0,
		.events = after->ack.events + ch->unacked,
	};
	ch->unacked = 0;
}

static void finish(struct event_channel *ch, const struct after *after)
{
	if (after->ack.events)
		tell(OP_CM_TAKEN, &after->ack, sizeof after->ack);
	if (after->ask_token)
		ask_token(ch);
}

/* An event that has come already. */
static bool take_listed(struct event_channel *ch, struct cm_event *e)
{
	struct after after = {0};
	bool got;

	lock_take(&ch->lock);
	got = pop(ch, e);
	if (got) {
		taken(ch, e, &after);
		clear_tokens(ch);
		after.ask_token = set_token(ch);
	}
	lock_drop(&ch->lock);
	finish(ch, &after);
	return got;
}

/* What came from the socket: true if *e is an event for the program now. */
static bool accept_datagram(struct event_channel *ch, struct cm_event *e, ssize_t n)
{
	struct after after = {0};
	bool got;

	lock_take(&ch->lock);
	if (n == TOKEN_SIZE) {
		ch->tokens -= ch->tokens != 0;
		got = pop(ch, e);
		clear_tokens(ch);
	} else {
		got = well_formed(e, n);
		/* Those in the list are older. */
		if (got && ch->head && append(ch, e, cm_event_size(e)) == 0)
			pop(ch, e);
	}
	if (got)
		taken(ch, e, &after);
	after.ask_token = set_token(ch);
	lock_drop(&ch->lock);
	finish(ch, &after);
	return got;
}

/* Waits for a datagram, and looks after weftd meanwhile: without it none comes. */
static int wait_readable(struct event_channel *ch)
{
	struct pollfd fds[2] = {
		{.fd = ch->ch.fd, .events = POLLIN}, {.fd = weft_cm_socket()}, /* its end alone */
	};

	if (poll(fds, 2, -1) < 0)
		return errno == EINTR && restart_after_signal() ? 0 : -errno;
	if (!fds[0].revents && fds[1].revents && weft_cm_check() == -EAGAIN)
		poll(fds, 1, 10); /* somebody is starting it */
	return 0;
}

static bool is_lost(struct event_channel *ch)
{
	bool lost;

	lock_take(&ch->lock);
	lost = ch->lost;
	lock_drop(&ch->lock);
	return lost;
}

int channel_take(struct event_channel *ch, struct cm_event *e)
{
	for (;;) {
		ssize_t n;
		int flags, ret;

		if (take_listed(ch, e))
			return 0;
		n = recv(ch->ch.fd, e, sizeof *e, 0); /* waits or not, by the fd's flag */
		if (!n && is_lost(ch))
			return -ENOENT;
		if (n >= 0) {
			if (accept_datagram(ch, e, n))
				return 0;
			continue;
		}
		/* With its time limit recv(2) is not begun anew after a signal: see signal(7). */
		if (errno == EINTR && restart_after_signal())
			continue;
		if (errno != EAGAIN)
			return -errno;
		flags = fcntl(ch->ch.fd, F_GETFL);
		if (flags < 0)
			return -errno;
		if (flags & O_NONBLOCK) {
			/* A program that only asks now and then learns of a new weftd here. */
			(void)weft_cm_check();
			return -EAGAIN;
		}
		ret = wait_readable(ch);
		if (ret)
			return ret;
	}
}

void channel_sift(struct event_channel *ch, struct event_channel *to,
	bool (*pick)(const struct cm_event *e, const void *arg), const void *arg)
{
	struct local_event *picked = NULL, **end = &picked;
	struct after after = {0};

	if (ch->inherited)
		return; /* what comes is the parent's */
	lock_take(&ch->lock);
	while (own_fd_ok(&ch->sock) && drain_one(ch))
		;
	for (struct local_event **link = &ch->head; *link;) {
		struct local_event *l = *link;

		if (!pick(&l->e, arg)) {
			link = &l->next;
			continue;
		}
		*link = l->next;
		if (ch->tail == &l->next)
			ch->tail = link;
		l->next = NULL;
		*end = l;
		end = &l->next;
		taken(ch, &l->e, &after);
		l->e.flags |= CM_E_LOCAL; /* told already */
	}
	after.ask_token = set_token(ch);
	lock_drop(&ch->lock);
	finish(ch, &after);
	while (picked) {
		struct local_event *l = picked;

		picked = l->next;
		if (to)
			(void)channel_put(to, &l->e, cm_event_size(&l->e));
		else if (l->e.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			(void)call_about(OP_CM_DESTROY, l->e.handle);
		free(l);
	}
}

/* ---- public ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	const struct device *dev;
	struct event_channel *ch;
	int ret = device_get(&dev);

	if (!ret)
		ret = channel_create(&ch);
	if (ret) {
		errno = -ret;
		return NULL;
	}
	return &ch->ch;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	channel_destroy(to_channel(channel));
}
