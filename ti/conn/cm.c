// SPDX-License-Identifier: BSD-3-Clause
#include "ti/conn/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "ti/conn/cm_event.h"
#include "ti/conn/conn.h"
#include "ti/core/status.h"
#include "ti/dev/device.h"

enum { KICK, CHANNEL, WATCHED, FDS };
enum { ROUND = 64 };

static const char *const what_ends[FDS] = {
	[KICK] = "new connections have no timeouts",
	[CHANNEL] = "connections are not made any more",
	[WATCHED] = "events of links are not told any more",
};

/* What the thread polls; the program may have closed each, and have its own file there. */
static struct {
	struct lock lock; /* of deadlines and starting */
	bool started;
	struct rdma_event_channel *channel;
	struct deadlines deadlines;
	struct own_fd kicker; /* the pipe whose other end is fds[KICK] */
	struct own_fd fds[FDS];
	bool lost[FDS];                   /* the thread's */
	void (*_Atomic readable)(int fd); /* of fds[WATCHED]; NULL: there is none yet */
} cm;

/* ---- deadlines ---- */

/* A pipe that is full wakes the thread anyway. */
static void kick(void)
{
	if (own_fd_ok(&cm.kicker))
		(void)!write(cm.kicker.fd, "", 1);
}

void cm_set_deadline(struct deadline *d, uint64_t when)
{
	bool first;

	lock_take(&cm.lock);
	if (deadline_set(&cm.deadlines, d, when))
		log_line(LOG_LVL_WARN, "ti: no memory to watch a timeout");
	first = deadline_next(&cm.deadlines) == when;
	lock_drop(&cm.lock);
	if (first)
		kick();
}

void cm_clear_deadline(struct deadline *d)
{
	lock_take(&cm.lock);
	deadline_clear(&cm.deadlines, d);
	lock_drop(&cm.lock);
}

/* The next connection whose time is up, with a reference; else NULL and how many ms are left. */
static struct conn *next_expired(int *left)
{
	uint64_t now = clock_ns(), next, ms;
	struct deadline *d;

	lock_take(&cm.lock);
	d = deadline_pop(&cm.deadlines, now);
	if (d)
		object_hold(&CONN_OF(d, due)->m.obj);
	next = deadline_next(&cm.deadlines);
	lock_drop(&cm.lock);
	ms = next > now ? (next - now) / NSEC_PER_MSEC : 0;
	*left = !next ? -1 : ms < INT_MAX ? (int)ms + 1 : INT_MAX;
	return d ? CONN_OF(d, due) : NULL;
}

static int expire(void)
{
	struct conn *c;
	int left;

	while ((c = next_expired(&left)) != NULL) {
		conn_expired(c);
		conn_put(c);
	}
	return left;
}

/* ---- the thread ---- */

static void read_events(void)
{
	struct rdma_cm_event *event;
	struct conn *again;

	/* no more, for deadlines are looked at between */
	for (int i = 0; i < ROUND && !rdma_get_cm_event(cm.channel, &event); i++) {
		again = cm_take_event(event);
		(void)rdma_ack_cm_event(event);
		if (again)
			cm_try_again(again);
	}
}

static void read_kicks(void)
{
	char kicks[ROUND];

	(void)!read(cm.fds[KICK].fd, kicks, sizeof kicks);
}

static void read_watched(void)
{
	atomic_load_explicit(&cm.readable, memory_order_relaxed)(cm.fds[WATCHED].fd);
}

static void (*const readers[FDS])(void) = {
	[KICK] = read_kicks, [CHANNEL] = read_events, [WATCHED] = read_watched};

/* The number, or -1, which poll() passes over, if it is not ours any more: for good. */
static int number(int i)
{
	if (i == WATCHED && !atomic_load_explicit(&cm.readable, memory_order_acquire))
		return -1;
	if (!cm.lost[i] && !own_fd_ok(&cm.fds[i])) {
		cm.lost[i] = true;
		log_line(LOG_LVL_ERROR, "ti: the program has closed a file descriptor of ours: %s",
			what_ends[i]);
	}
	return cm.lost[i] ? -1 : cm.fds[i].fd;
}

/* Deadlines pass, whatever the program closes. */
static void *run(void *arg)
{
	struct pollfd fds[FDS];

	(void)arg;
	for (;;) {
		for (int i = 0; i < FDS; i++)
			fds[i] = (struct pollfd){.fd = number(i), .events = POLLIN};
		if (poll(fds, FDS, expire()) <= 0)
			continue;
		for (int i = 0; i < FDS; i++)
			if (fds[i].revents && number(i) >= 0)
				readers[i]();
	}
	return NULL;
}

void cm_watch(const struct own_fd *fd, void (*readable)(int fd))
{
	cm.fds[WATCHED] = *fd;
	atomic_store_explicit(&cm.readable, readable, memory_order_release);
	kick();
}

/* ---- starting ---- */

static void undo(void)
{
	own_fd_close(&cm.kicker);
	own_fd_close(&cm.fds[KICK]);
	if (cm.channel)
		rdma_destroy_event_channel(cm.channel);
	cm.channel = NULL;
}

static int make_pipe(void)
{
	int ends[2];

	cm.kicker = cm.fds[KICK] = OWN_FD_NONE;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	cm.fds[KICK] = own_fd(ends[0]);
	cm.kicker = own_fd(ends[1]);
	return 0;
}

static int make_channel(void)
{
	int fd;

	cm.channel = rdma_create_event_channel();
	if (!cm.channel)
		return -errno;
	fd = cm.channel->fd;
	cm.fds[CHANNEL] = own_fd_at(fd);
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ? -errno : 0;
}

static int start(void)
{
	pthread_t thread;
	int ret = make_pipe();

	for (int i = 0; i < FDS; i++)
		cm.lost[i] = false;
	if (!ret)
		ret = make_channel();
	if (!ret)
		ret = -thread_start(&thread, "ti-cm", THREAD_SMALL, run, NULL);
	if (ret) {
		undo();
		return ret;
	}
	pthread_detach(thread);
	cm.started = true;
	return 0;
}

/* Can the thread be told of deadlines, and does it hear events? */
static bool is_whole(void)
{
	return own_fd_ok(&cm.kicker) && own_fd_ok(&cm.fds[KICK]) && own_fd_ok(&cm.fds[CHANNEL]);
}

int cm_start(void)
{
	int ret = 0;

	lock_take(&cm.lock);
	if (!cm.started)
		ret = start();
	lock_drop(&cm.lock);
	if (!ret && !is_whole())
		ret = -EBADF;
	if (!ret)
		devices_open();
	return ret;
}

bool cm_watches(void)
{
	return own_fd_ok(&cm.fds[WATCHED]);
}

ti_status_t cm_make_id(struct conn *c)
{
	if (!is_whole())
		return TI_INSUFFICIENT_RESOURCES;
	if (!rdma_create_id(cm.channel, &c->id, c, RDMA_PS_TCP))
		return TI_SUCCESS;
	c->id = NULL;
	return status_of_errno(errno);
}

void cm_forked(void)
{
	if (cm.started) {
		own_fd_close(&cm.kicker);
		own_fd_close(&cm.fds[KICK]);
	}
	cm.lock = (struct lock){0};
	cm.started = false;
	cm.channel = NULL;
	cm.deadlines = (struct deadlines){0};
	atomic_store_explicit(&cm.readable, NULL, memory_order_relaxed);
}
