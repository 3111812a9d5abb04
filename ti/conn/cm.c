// SPDX-License-Identifier: BSD-3-Clause
#include "ti/conn/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
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

static struct {
	struct lock lock; /* of deadlines and starting */
	bool started;
	struct rdma_event_channel *channel;
	struct deadlines deadlines;
	int kick;
	_Atomic int watched; /* fd + 1 */
	void (*readable)(int fd);
} cm;

/* ---- deadlines ---- */

static void kick(void)
{
	const uint64_t one = 1;

	(void)!write(cm.kick, &one, sizeof one);
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

static void *run(void *arg)
{
	struct pollfd fds[FDS] = {
		[KICK] = {.fd = cm.kick, .events = POLLIN},
		[CHANNEL] = {.fd = cm.channel->fd, .events = POLLIN},
		[WATCHED] = {.events = POLLIN},
	};
	uint64_t kicks;

	(void)arg;
	for (;;) {
		fds[WATCHED].fd = atomic_load_explicit(&cm.watched, memory_order_acquire) - 1;
		if (poll(fds, FDS, expire()) <= 0)
			continue;
		if (fds[KICK].revents)
			(void)!read(cm.kick, &kicks, sizeof kicks);
		if (fds[CHANNEL].revents)
			read_events();
		if (fds[WATCHED].revents)
			cm.readable(fds[WATCHED].fd);
	}
	return NULL;
}

void cm_watch(int fd, void (*readable)(int fd))
{
	cm.readable = readable;
	atomic_store_explicit(&cm.watched, fd + 1, memory_order_release);
	kick();
}

/* ---- starting ---- */

static void undo(void)
{
	if (cm.kick >= 0)
		close(cm.kick);
	if (cm.channel)
		rdma_destroy_event_channel(cm.channel);
	cm.channel = NULL;
}

static int start(void)
{
	pthread_t thread;
	int ret = 0;

	cm.kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	cm.channel = rdma_create_event_channel();
	if (cm.kick < 0 || !cm.channel ||
		fcntl(cm.channel->fd, F_SETFL, fcntl(cm.channel->fd, F_GETFL) | O_NONBLOCK))
		ret = -errno;
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

int cm_start(void)
{
	int ret = 0;

	lock_take(&cm.lock);
	if (!cm.started)
		ret = start();
	lock_drop(&cm.lock);
	if (!ret)
		devices_open();
	return ret;
}

ti_status_t cm_make_id(struct conn *c)
{
	if (!rdma_create_id(cm.channel, &c->id, c, RDMA_PS_TCP))
		return TI_SUCCESS;
	c->id = NULL;
	return status_of_errno(errno);
}

void cm_forked(void)
{
	if (cm.started)
		close(cm.kick);
	cm.lock = (struct lock){0};
	cm.started = false;
	cm.channel = NULL;
	cm.deadlines = (struct deadlines){0};
	atomic_store_explicit(&cm.watched, 0, memory_order_relaxed);
}
