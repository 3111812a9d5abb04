// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "rdv/client.h"

enum {
	JOIN_MS = 2000,
	JOIN_NAP_NS = 10 * NSEC_PER_MSEC,
	HAND_ROOM = 1 << 20,
	KEEPER_ENDS = 2,
};

/* Under the lock of control calls. */
static struct wire {
	bool joined;
	struct rdv_wire out;
	struct own_fd fd[WIRE_FAMILIES];
	struct own_fd hand, far_hand; /* ours, and weftd's: its successor gets that again */
	struct own_fd keeper[KEEPER_ENDS];
	char why[PROTO_WIRE_WHY];
	bool explained;
} wire = {
	.fd = {OWN_FD_NONE, OWN_FD_NONE},
	.hand = OWN_FD_NONE,
	.far_hand = OWN_FD_NONE,
	.keeper = {OWN_FD_NONE, OWN_FD_NONE},
};

static enum wire_mode mode;

static void read_mode(void)
{
	static const char *const names[] = {
		[WIRE_AUTO] = "auto", [WIRE_NEVER] = "never", [WIRE_ALWAYS] = "always"};
	const char *text = secure_getenv("WEFT_WIRE");

	if (!text || !*text)
		return;
	for (int i = WIRE_AUTO; i <= WIRE_ALWAYS; i++)
		if (strcmp(text, names[i]) == 0) {
			mode = i;
			return;
		}
	log_line(LOG_LVL_WARN, "WEFT_WIRE=%.40s is none of auto, never, always; it counts as auto",
		text);
}

enum wire_mode wire_mode(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_mode);
	return mode;
}

static bool whole(const struct wire *w)
{
	for (int i = 0; i < WIRE_FAMILIES; i++)
		if (w->out.fd[i] >= 0 && !own_fd_ok(&w->fd[i]))
			return false;
	return own_fd_ok(&w->hand) && own_fd_ok(&w->far_hand) && own_fd_ok(&w->keeper[0]) &&
	       own_fd_ok(&w->keeper[1]);
}

static void drop_hand(struct wire *w)
{
	own_fd_close(&w->hand);
	own_fd_close(&w->far_hand);
}

/* The sockets live on: weftd has them, and the keeper. */
static void leave(struct wire *w)
{
	w->joined = false;
	drop_hand(w);
	for (int i = 0; i < WIRE_FAMILIES; i++)
		own_fd_close(&w->fd[i]);
	for (int i = 0; i < KEEPER_ENDS; i++)
		own_fd_close(&w->keeper[i]);
}

void wire_forget(void)
{
	leave(&wire);
	wire.explained = false;
}

static int make_hand(struct wire *w)
{
	const int room = HAND_ROOM;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd))
		return -errno;
	for (int i = 0; i < 2; i++)
		setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	w->hand = own_fd(fd[0]);
	w->far_hand = own_fd(fd[1]);
	return 0;
}

/*
 * A record lock on a socket says, to any later weftd, that the process lives that has it: it goes
 * with the process, and neither a duplicate nor a child has it.
 */
static int lock_seat(const struct wire *w)
{
	struct flock mine = {.l_type = F_WRLCK};
	int fd = w->fd[w->fd[WIRE_IPV4].fd < 0].fd;

	return fcntl(fd, F_SETLK, &mine) ? -errno : 0;
}

static int take_sockets(struct wire *w, struct proto_in *in)
{
	const struct proto_wire_joined *r = &in->payload.wire_joined;
	static const uint32_t flags[WIRE_FAMILIES] = {PROTO_IPV4, PROTO_IPV6};
	int n = 0, ret;

	for (int i = 0; i < WIRE_FAMILIES; i++)
		w->fd[i] = own_fd(r->flags & flags[i] ? proto_take_fd(in, n++) : -1);
	for (int i = 0; i < KEEPER_ENDS; i++)
		w->keeper[i] = own_fd(proto_take_fd(in, n++));
	if (n == KEEPER_ENDS || n > in->n_fds)
		return -EPROTO;
	ret = lock_seat(w);
	w->out = (struct rdv_wire){
		.fd = {w->fd[0].fd, w->fd[1].fd}, .index = r->index, .hand = w->hand.fd};
	w->joined = !ret;
	return ret;
}

static void keep_reason(struct wire *w, const struct proto_wire_joined *r)
{
	snprintf(w->why, sizeof w->why, "%.*s", (int)sizeof r->why - 1, r->why);
}

static int ask(struct wire *w)
{
	const struct proto_wire_join call = {0};
	struct proto_out out = proto_call(OP_WIRE_JOIN, &call);
	struct proto_in in;
	int ret;

	out.fds = &w->far_hand.fd;
	out.n_fds = 1;
	ret = client_call(&out, &in);
	if (ret)
		return ret;
	ret = in.payload.wire_joined.result;
	if (!ret)
		ret = take_sockets(w, &in);
	else
		keep_reason(w, &in.payload.wire_joined);
	proto_close(&in);
	return ret;
}

static int join(struct wire *w)
{
	int ret;

	if (w->joined && whole(w))
		return 0;
	leave(w);
	ret = make_hand(w);
	if (!ret)
		ret = ask(w);
	if (ret)
		leave(w);
	return ret;
}

/* Under the lock, since another thread may be joining. */
static void tell(enum log_level level)
{
	int cancel = client_enter();

	if (wire.why[0] && (level != LOG_LVL_WARN || !wire.explained))
		log_line(level, "no packets from and to other machines: %s", wire.why);
	wire.explained |= level == LOG_LVL_WARN;
	client_leave(cancel, 0);
}

int rdv_wire_join(const struct rdv_wire **out)
{
	uint64_t until = clock_ns() + (uint64_t)JOIN_MS * NSEC_PER_MSEC;
	int ret;

	if (wire_mode() == WIRE_NEVER)
		return -EOPNOTSUPP;
	for (;;) {
		int cancel = client_enter();

		ret = client_leave(cancel, join(&wire));
		if (ret != -EAGAIN || clock_ns() > until)
			break;
		nanosleep(&(struct timespec){.tv_nsec = JOIN_NAP_NS}, NULL);
	}
	*out = &wire.out;
	if (ret)
		tell(LOG_LVL_INFO);
	return ret == -EAGAIN ? -EADDRINUSE : ret;
}

bool rdv_wire_whole(void)
{
	return whole(&wire);
}

void rdv_wire_explain(void)
{
	tell(LOG_LVL_WARN);
}

int wire_publish(struct conn *conn)
{
	struct wire *w = &wire;
	const struct proto_wire_join call = {.flags = PROTO_AGAIN, .index = w->out.index};
	const int fds[] = {w->far_hand.fd, w->keeper[0].fd, w->keeper[1].fd};
	struct proto_out out = proto_call(OP_WIRE_JOIN, &call);
	struct proto_in in;
	int ret;

	/* Closed behind our back: who uses them asks again. */
	if (!w->joined || !whole(w))
		return 0;
	out.fds = fds;
	out.n_fds = sizeof fds / sizeof fds[0];
	ret = conn_call(conn, &out, &in);
	if (ret)
		return ret;
	if (in.payload.wire_joined.result) {
		keep_reason(w, &in.payload.wire_joined);
		log_line(LOG_LVL_ERROR, "packets from other machines may not come any more: %s",
			w->why);
	}
	proto_close(&in);
	return 0;
}
