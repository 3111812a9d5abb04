// SPDX-License-Identifier: BSD-3-Clause
/*
 * A completion channel can be read if and only if there is an event: several processes send to a
 * hub, each to a CQ of its own, and the hub is told by poll(2), by epoll, level and edge triggered,
 * by a duplicate of the channel's fd, or in several threads.  Each time that it is told it must get
 * an event, and it must be told of each.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/by_packet.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { PEERS = 5, LEN = 64, DEPTH = 8, FLYING = 2 };

enum how { BY_POLL, BY_LEVEL, BY_EDGE, BY_DUPLICATE, BY_THREADS, HOWS };

static const char *const names[] = {
	"poll(2)", "epoll", "epoll, edges", "a duplicate", "several threads"};

/* One side of all: the hub has PEERS ends, a peer has one. */
static struct vp_end end[PEERS];
static unsigned ends;
static struct ibv_comp_channel *channel;
static _Atomic unsigned received, wanted;
static _Atomic unsigned bare; /* told, but no event */
static int stop[2];           /* a pipe that ends threads */
static bool replies;          /* the hub answers each message */

/* Of each peer. */
static unsigned messages(void)
{
	return by_packet() ? 800 : 4000;
}

static void post_send(struct vp_end *e)
{
	CHECK_EQ(vp_post_send(e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
}

static void post_recv(struct vp_end *e)
{
	CHECK_EQ(vp_post_recv(e, 2, LEN, LEN), 0);
}

static void make(struct ibv_context *ctx, unsigned n)
{
	struct vp_opts o = vp_defaults();

	o.one_cq = true;
	o.on = channel = ibv_create_comp_channel(ctx);
	CHECK_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	ends = n;
	for (unsigned i = 0; i < n; i++)
		vp_make(&end[i], ctx, &o);
}

static void get_ready(unsigned i, int fd)
{
	vp_meet(&end[i], fd);
	for (int k = 0; k < DEPTH; k++)
		post_recv(&end[i]);
	CHECK_EQ(ibv_req_notify_cq(end[i].scq, 0), 0);
}

/* ---- events ---- */

static void came(struct vp_end *e)
{
	unsigned n = atomic_fetch_add(&received, 1) + 1;

	post_recv(e);
	if (replies || n + FLYING <= atomic_load(&wanted))
		post_send(e);
	if (n == atomic_load(&wanted))
		CHECK_EQ(write(stop[1], "", 1), 1);
}

static bool take(void)
{
	struct ibv_cq *cq;
	void *context;
	struct ibv_wc wc;

	errno = 0;
	if (ibv_get_cq_event(channel, &cq, &context)) {
		CHECK_EQ(errno, EAGAIN);
		return false;
	}
	ibv_ack_cq_events(cq, 1);
	CHECK_EQ(ibv_req_notify_cq(cq, 0), 0);
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			came(context);
	}
	return true;
}

static void told(enum how how)
{
	unsigned n = take();

	while (how == BY_EDGE && take())
		n++;
	if (!n && how != BY_THREADS) /* another thread may have it */
		atomic_fetch_add(&bare, 1);
}

/* True: the channel can be read. */
static bool wait_poll(int fd, bool *over)
{
	struct pollfd p[] = {{.fd = fd, .events = POLLIN}, {.fd = stop[0], .events = POLLIN}};

	if (poll(p, 2, 3 * VP_DEADLINE_MS) < 1)
		die("nothing comes: %u of %u messages", atomic_load(&received), wanted);
	*over = p[1].revents;
	return p[0].revents;
}

static bool wait_epoll(int ep, bool *over)
{
	struct epoll_event ev[2];
	int n = epoll_wait(ep, ev, 2, 3 * VP_DEADLINE_MS);
	bool readable = false;

	if (n < 1)
		die("nothing comes: %u of %u messages", atomic_load(&received), wanted);
	for (int i = 0; i < n; i++) {
		*over |= ev[i].data.fd == stop[0];
		readable |= ev[i].data.fd == channel->fd;
	}
	return readable;
}

static int epoll_of(enum how how)
{
	struct epoll_event ev = {.events = EPOLLIN | (how == BY_EDGE ? EPOLLET : 0)};
	struct epoll_event end_of_all = {.events = EPOLLIN, .data.fd = stop[0]};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	ev.data.fd = channel->fd;
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, channel->fd, &ev), 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, stop[0], &end_of_all), 0);
	return ep;
}

static void serve(enum how how)
{
	bool by_epoll = how == BY_LEVEL || how == BY_EDGE, over = false;
	int fd = by_epoll ? epoll_of(how) : dup(channel->fd);
	int at = how == BY_DUPLICATE || by_epoll ? fd : channel->fd;

	while (!over)
		if (by_epoll ? wait_epoll(at, &over) : wait_poll(at, &over))
			told(how);
	close(fd);
}

static void *serve_too(void *arg)
{
	serve((enum how)(intptr_t)arg);
	return NULL;
}

static void go(enum how how, unsigned n)
{
	pthread_t thread;

	atomic_store(&received, 0);
	atomic_store(&bare, 0);
	atomic_store(&wanted, n);
	if (pipe2(stop, O_CLOEXEC))
		die("pipe2");
	if (how == BY_THREADS && pthread_create(&thread, NULL, serve_too, (void *)(intptr_t)how))
		die("pthread_create");
	serve(how);
	if (how == BY_THREADS)
		pthread_join(thread, NULL);
	CHECK_EQ(atomic_load(&received), n);
	CHECK_EQ(atomic_load(&bare), 0);
	close(stop[0]);
	close(stop[1]);
}

/* ---- the peers ---- */

static void peer(int fd, void *arg)
{
	(void)arg;
	make(vp_open(), 1);
	get_ready(0, fd);
	for (enum how how = 0; how < HOWS; how++) {
		vp_sync(fd);
		for (int i = 0; i < FLYING; i++)
			post_send(&end[0]);
		go(how, messages());
		vp_sync(fd);
	}
}

static void hub(const struct vp_child *child)
{
	make(vp_open(), PEERS);
	replies = true;
	for (unsigned i = 0; i < PEERS; i++)
		get_ready(i, child[i].fd);
	for (enum how how = 0; how < HOWS; how++) {
		check_case("%s", names[how]);
		for (unsigned i = 0; i < PEERS; i++)
			vp_sync(child[i].fd);
		go(how, PEERS * messages());
		for (unsigned i = 0; i < PEERS; i++)
			vp_sync(child[i].fd);
	}
}

int main(void)
{
	struct vp_child child[PEERS];

	for (unsigned i = 0; i < PEERS; i++)
		child[i] = vp_fork(peer, NULL);
	hub(child);
	for (unsigned i = 0; i < PEERS; i++)
		vp_join(&child[i]);
	return check_result();
}
