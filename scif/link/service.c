// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/service.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "scif/ep/ep.h"
#include "scif/link/bell.h"
#include "scif/link/close.h"
#include "scif/link/cm.h"
#include "scif/link/link.h"
#include "scif/link/parts.h"

enum { MAX_CONTEXTS = 16, EVENTS = 32, TICK_MS = 500 };

/* What an epoll event is about; an inode number is that of an endpoint. */
static const uint64_t KIND = UINT64_C(3) << 62;
static const uint64_t IS_CM = UINT64_C(1) << 62, IS_CHANNEL = UINT64_C(2) << 62;
static const uint64_t IS_KICK = UINT64_C(3) << 62; /* + 1 + fd: the socket to a child */

static struct {
	struct lock lock;
	bool running;
	int epoll, kick;
	struct rdma_event_channel *cm;
	struct ibv_comp_channel *channels[MAX_CONTEXTS];
} service = {.epoll = -1, .kick = -1};

static int watch(int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = {.events = events, .data.u64 = data};

	return epoll_ctl(service.epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int set_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* ---- the thread ---- */

static void take_cm_events(void)
{
	struct rdma_cm_event *ev;

	while (rdma_get_cm_event(service.cm, &ev) == 0)
		cm_event(ev);
}

static void take_completions(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	while (ibv_get_cq_event(channel, &cq, &context) == 0) {
		struct scif_ep *ep = context;

		lock_take(&ep->lock);
		bell_rang(ep);
		link_ready(ep);
		lock_drop(&ep->lock);
		ibv_ack_cq_events(cq, 1); /* the endpoint lives until this */
	}
}

/* The program may have closed an endpoint's fd without scif_close(). */
static void look_at_fd(uint64_t ino)
{
	struct scif_ep *ep = ep_find_ino(ino);
	bool closed;

	if (!ep)
		return;
	lock_take(&ep->lock);
	closed = ep_fd_closed(ep);
	lock_drop(&ep->lock);
	if (closed && ep_remove(ep)) {
		ep_close(ep);
		ep_put(ep);
	}
	ep_put(ep);
}

/*
 * A child uses an endpoint that it inherited, or is gone.  Closing the socket does not end the
 * watch while a child that was forked just now has it too: the number would then be taken for the
 * socket when it is something else.
 */
static void serve_heir(int sock)
{
	if (link_calls.heir_asked(sock))
		return;
	epoll_ctl(service.epoll, EPOLL_CTL_DEL, sock, NULL);
	link_calls.heir_end(sock);
}

/* How long the thread may sleep. */
static int patience(void)
{
	if (bell_busy())
		return BELL_TICK_MS;
	return cm_connecting() ? TICK_MS : -1;
}

static void *run(void *arg)
{
	struct epoll_event events[EVENTS];
	uint64_t kicks;

	(void)arg;
	for (;;) {
		int n = epoll_wait(service.epoll, events, EVENTS, patience());

		for (int i = 0; i < n; i++) {
			uint64_t data = events[i].data.u64;

			if ((data & KIND) == IS_CM)
				take_cm_events();
			else if ((data & KIND) == IS_CHANNEL)
				take_completions(service.channels[data & ~KIND]);
			else if (data != IS_KICK && (data & KIND) == IS_KICK)
				serve_heir((data & ~KIND) - 1);
			else if (data == IS_KICK)
				(void)!read(service.kick, &kicks, sizeof(kicks));
			else
				look_at_fd(data);
		}
		if (bell_busy())
			bell_tick();
		if (cm_connecting())
			cm_tick();
	}
	return NULL;
}

/* ---- starting ---- */

int service_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;
	int ret = -thread_start(&thread, "scif", THREAD_CALLBACKS, fn, arg);

	if (!ret)
		pthread_detach(thread);
	return ret;
}

static int start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int ret;

	pthread_once(&once, link_calls.watch_forks);
	if (service.epoll < 0)
		service.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (service.kick < 0)
		service.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service.epoll < 0 || service.kick < 0)
		return -errno;
	if (!service.cm) {
		service.cm = rdma_create_event_channel();
		if (!service.cm)
			return -errno;
		ret = set_nonblock(service.cm->fd);
		if (!ret)
			ret = watch(service.cm->fd, EPOLLIN, IS_CM);
		if (!ret)
			ret = watch(service.kick, EPOLLIN, IS_KICK);
		if (ret)
			return ret;
	}
	ret = service_thread(run, NULL);
	service.running = !ret;
	return ret;
}

int service_start(void)
{
	int ret = 0;

	lock_take(&service.lock);
	if (!service.running)
		ret = start();
	lock_drop(&service.lock);
	return ret;
}

struct rdma_event_channel *service_cm(void)
{
	return service.cm;
}

/* The channel of that context; made, if there is none, when one is given and finds a place. */
static struct ibv_comp_channel *enter_channel(
	struct ibv_context *verbs, struct ibv_comp_channel *made)
{
	struct ibv_comp_channel *channel = NULL;
	int i;

	lock_take(&service.lock);
	for (i = 0; i < MAX_CONTEXTS && service.channels[i]; i++) {
		if (service.channels[i]->context == verbs) {
			channel = service.channels[i];
			break;
		}
	}
	if (!channel && made && i < MAX_CONTEXTS) {
		channel = service.channels[i] = made;
		watch(channel->fd, EPOLLIN, IS_CHANNEL | i);
	}
	lock_drop(&service.lock);
	return channel;
}

struct ibv_comp_channel *service_channel(struct ibv_context *verbs)
{
	struct ibv_comp_channel *channel = enter_channel(verbs, NULL), *made;

	if (channel)
		return channel;
	/* Without the lock, which a fork takes, perhaps after those of the libraries below. */
	made = ibv_create_comp_channel(verbs);
	if (made && !set_nonblock(made->fd))
		channel = enter_channel(verbs, made);
	if (made && channel != made)
		ibv_destroy_comp_channel(made);
	return channel;
}

int service_watch(struct scif_ep *ep)
{
	return watch(ep->standin.sock, EPOLLRDHUP | EPOLLET, ep->standin.ino);
}

void service_kick(void)
{
	uint64_t one = 1;

	(void)!write(service.kick, &one, sizeof(one));
}

/* ---- fork ---- */

void service_before_fork(void)
{
	lock_take(&service.lock);
}

int service_watch_heir(int sock)
{
	return watch(sock, EPOLLIN, IS_KICK | ((uint64_t)sock + 1));
}

void service_parent_forked(void)
{
	lock_drop(&service.lock);
}

void service_child_forked(void)
{
	if (service.epoll >= 0)
		close(service.epoll);
	if (service.kick >= 0)
		close(service.kick);
	service.epoll = service.kick = -1;
	service.cm = NULL; /* the parent's, as are the queues */
	service.running = false;
	for (int i = 0; i < MAX_CONTEXTS; i++)
		service.channels[i] = NULL;
	atomic_store_explicit(&service.lock.word, 0, memory_order_relaxed);
}
