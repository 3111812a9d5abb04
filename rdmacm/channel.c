// SPDX-License-Identifier: BSD-3-Clause
/*
 * Event channels.  The fd that the program polls is a datagram socket with an address of its
 * own: an event of weftd is a datagram.  Events of our own making wait in a list, and while there
 * are some a datagram without contents lies in the socket.  So the fd is readable if and only if
 * there is an event, and blocks or not as the program has set it.
 *
 * The socket's name is seen by every user of the network namespace; a filter drops what does not
 * begin with the channel's secret cookie before it takes up room.
 */
#include "rdmacm/rdmacm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/restart.h"
#include "verbs/for_rdmacm.h"

enum { COOKIE_WORDS = CM_COOKIE_SIZE / 4, KEEP_ALL = -1 };
/* A reader waits in recv(2) so long, which is cheap, and then in poll(2), which sees more. */
enum { SHORT_WAIT_US = 20000 };

static _Atomic uint32_t last_channel;

static int attach_filter(int fd, const uint8_t cookie[CM_COOKIE_SIZE])
{
	struct sock_filter code[2 * COOKIE_WORDS + 2];
	struct sock_fprog prog = {.len = 2 * COOKIE_WORDS + 2, .filter = code};

	for (int i = 0; i < COOKIE_WORDS; i++) {
		uint32_t word;

		memcpy(&word, cookie + 4 * i, 4);
		code[2 * i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4 * i);
		code[2 * i + 1] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, ntohl(word), 0, 2 * (COOKIE_WORDS - 1 - i) + 1);
	}
	code[2 * COOKIE_WORDS] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (uint32_t)KEEP_ALL);
	code[2 * COOKIE_WORDS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog) < 0 ? -errno : 0;
}

static int open_socket(struct event_channel *ch)
{
	struct sockaddr_un any = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_usec = SHORT_WAIT_US};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	ch->addr_len = sizeof ch->addr;
	if (getrandom(ch->cookie, sizeof ch->cookie, 0) != (ssize_t)sizeof ch->cookie)
		ret = -EIO;
	if (!ret)
		ret = attach_filter(fd, ch->cookie);
	if (!ret && (bind(fd, (struct sockaddr *)&any, sizeof any.sun_family) < 0 ||
			    getsockname(fd, (struct sockaddr *)&ch->addr, &ch->addr_len) < 0 ||
			    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0))
		ret = -errno;
	if (ret)
		close(fd);
	ch->ch.fd = fd;
	return ret;
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
	channel_enter(ch);
	*out = ch;
	return 0;
}

int channel_describe(const struct event_channel *ch, struct cm_channel_call *call)
{
	size_t len = ch->addr_len - offsetof(struct sockaddr_un, sun_path);

	*call = (struct cm_channel_call){.channel = ch->id, .addr_len = len};
	if (len > sizeof call->addr)
		return -ENAMETOOLONG;
	memcpy(call->addr, ch->addr.sun_path, len);
	memcpy(call->cookie, ch->cookie, sizeof call->cookie);
	return 0;
}

int channel_register(struct event_channel *ch)
{
	struct proto_msg msg = {.op = OP_CM_ADD_CHANNEL};
	struct cm_channel_call call;
	int ret;

	if (ch->registered)
		return 0;
	ret = channel_describe(ch, &call);
	if (!ret)
		ret = weft_cm_call(&msg, &call, sizeof call);
	if (ret == -EEXIST)
		ret = 0;
	ch->registered = !ret;
	return ret;
}

static bool all(const struct cm_event *e, const void *arg)
{
	(void)e, (void)arg;
	return true;
}

void channel_destroy(struct event_channel *ch)
{
	struct proto_msg msg = {.op = OP_CM_DEL_CHANNEL, .id = ch->id};

	channel_leave(ch);
	channel_sift(ch, NULL, all, NULL);
	if (ch->registered)
		(void)weft_cm_call(&msg, NULL, 0);
	close(ch->ch.fd);
	free(ch);
}

/* Under the lock: makes the fd readable while the list has something. */
static void set_token(struct event_channel *ch)
{
	if (!ch->head || ch->token)
		return;
	/* If its queue is full it is readable anyway, and whoever empties it comes by here. */
	ch->token = sendto(ch->ch.fd, ch->cookie, sizeof ch->cookie, MSG_DONTWAIT | MSG_NOSIGNAL,
			    (struct sockaddr *)&ch->addr, ch->addr_len) > 0;
}

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

int channel_put(struct event_channel *ch, const struct cm_event *e, size_t len)
{
	int ret;

	lock_take(&ch->lock);
	ret = append(ch, e, len);
	set_token(ch);
	lock_drop(&ch->lock);
	return ret;
}

/* What weftd is to be told, outside the lock: msg.op is 0 if it is nothing. */
struct ack {
	struct proto_msg msg;
};

/* Under the lock: an event leaves the channel. */
static void taken(struct event_channel *ch, const struct cm_event *e, struct ack *ack)
{
	if (e->flags & CM_E_LOCAL)
		return;
	ch->unacked++;
	if (!(e->flags & CM_E_ACK))
		return;
	ack->msg = (struct proto_msg){
		.op = OP_CM_TAKEN,
		.id = ch->id,
		.qpn = e->listen_handle ? e->handle : 0,
		.size = ack->msg.size + ch->unacked,
	};
	ch->unacked = 0;
}

static void send_ack(const struct ack *ack)
{
	struct proto_msg msg = ack->msg;

	/* A weftd that does not read at the moment must learn of it all the same. */
	if (msg.op && weft_cm_post(&msg, NULL, 0) == -EAGAIN)
		(void)weft_cm_call(&msg, NULL, 0);
}

static bool well_formed(const struct cm_event *e, ssize_t n)
{
	return n >= (ssize_t)offsetof(struct cm_event, priv) && e->param.priv_len <= CM_PRIV_MAX &&
	       n == (ssize_t)cm_event_size(e);
}

/* Under the lock: with an empty list the fd must not be readable for its sake. */
static void clear_token(struct event_channel *ch)
{
	struct cm_event e;

	while (ch->token && !ch->head) {
		ssize_t n = recv(ch->ch.fd, &e, sizeof e, MSG_DONTWAIT);

		if (n < 0)
			return; /* another reader has it and waits for the lock */
		if (n == CM_COOKIE_SIZE)
			ch->token = false;
		else if (well_formed(&e, n))
			(void)append(ch, &e, n);
	}
}

/* An event that has come already. */
static bool take_listed(struct event_channel *ch, struct cm_event *e)
{
	struct ack ack = {0};
	bool got;

	lock_take(&ch->lock);
	got = pop(ch, e);
	if (got) {
		taken(ch, e, &ack);
		clear_token(ch);
		set_token(ch);
	}
	lock_drop(&ch->lock);
	send_ack(&ack);
	return got;
}

/* What came from the socket: true if *e is an event for the program now. */
static bool accept_datagram(struct event_channel *ch, struct cm_event *e, ssize_t n)
{
	struct ack ack = {0};
	bool got;

	lock_take(&ch->lock);
	if (n == CM_COOKIE_SIZE) {
		ch->token = false;
		got = pop(ch, e);
	} else {
		got = well_formed(e, n);
		/* Those in the list are older. */
		if (got && ch->head && append(ch, e, cm_event_size(e)) == 0)
			pop(ch, e);
	}
	if (got)
		taken(ch, e, &ack);
	set_token(ch);
	lock_drop(&ch->lock);
	send_ack(&ack);
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

int channel_take(struct event_channel *ch, struct cm_event *e)
{
	for (;;) {
		ssize_t n;
		int flags, ret;

		if (take_listed(ch, e))
			return 0;
		n = recv(ch->ch.fd, e, sizeof *e, 0); /* waits or not, by the fd's flag */
		if (n >= 0) {
			if (accept_datagram(ch, e, n))
				return 0;
			continue;
		}
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

/* Under the lock: all that lies in the socket comes into the list. */
static void drain(struct event_channel *ch)
{
	struct cm_event e;
	ssize_t n;

	while ((n = recv(ch->ch.fd, &e, sizeof e, MSG_DONTWAIT)) >= 0) {
		if (n == CM_COOKIE_SIZE) {
			ch->token = false;
		} else if (well_formed(&e, n)) {
			(void)append(ch, &e, n);
		}
	}
}

void channel_sift(struct event_channel *ch, struct event_channel *to,
	bool (*pick)(const struct cm_event *e, const void *arg), const void *arg)
{
	struct local_event *picked = NULL, **end = &picked;
	struct ack ack = {0};

	lock_take(&ch->lock);
	drain(ch);
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
		taken(ch, &l->e, &ack);
		l->e.flags |= CM_E_LOCAL; /* told already */
	}
	set_token(ch);
	lock_drop(&ch->lock);
	send_ack(&ack);
	while (picked) {
		struct local_event *l = picked;
		struct cm_call call = {.handle = l->e.handle};

		picked = l->next;
		if (to)
			(void)channel_put(to, &l->e, cm_event_size(&l->e));
		else if (l->e.type == RDMA_CM_EVENT_CONNECT_REQUEST)
			(void)call_weftd(OP_CM_DESTROY, &call, NULL);
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
