// SPDX-License-Identifier: BSD-3-Clause
/*
 * Waiting.  A thread that sleeps for an rsocket polls its two channels.  Of several, one takes
 * the event away from the others; so whoever has changed an rsocket writes to the eventfd of each
 * thread that sleeps for it.
 */
#include "rsock/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "rsock/config.h"
#include "rsock/connect.h"
#include "rsock/dgram.h"
#include "rsock/stream.h"

/* ---- the eventfds of threads ---- */

static pthread_key_t own_key; /* the eventfd + 1 */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool any; /* some thread has one */

static int own_fd(void)
{
	if (!atomic_load_explicit(&any, memory_order_acquire))
		return -1;
	return (int)(intptr_t)pthread_getspecific(own_key) - 1;
}

static void thread_ends(void *arg)
{
	close((int)(intptr_t)arg - 1);
}

/* The parent's thread waits with the same eventfd. */
static void forked_child(void)
{
	int fd = own_fd();

	if (fd < 0)
		return;
	close(fd);
	pthread_setspecific(own_key, NULL);
}

static void set_up(void)
{
	pthread_key_create(&own_key, thread_ends);
	pthread_atfork(NULL, NULL, forked_child);
	atomic_store_explicit(&any, true, memory_order_release);
}

int sleeper_fd(void)
{
	int fd;

	if (single_threaded())
		return -1;
	pthread_once(&once, set_up);
	fd = own_fd();
	if (fd >= 0)
		return fd;
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd >= 0)
		pthread_setspecific(own_key, (void *)(intptr_t)(fd + 1));
	return fd;
}

void sleeper_drain(int fd)
{
	eventfd_t n;

	(void)eventfd_read(fd, &n);
}

void sleeper_enter(struct rsocket *s, struct rs_sleeper *me)
{
	me->next = s->sleepers;
	me->link = &s->sleepers;
	if (me->next)
		me->next->link = &me->next;
	s->sleepers = me;
}

void sleeper_leave(struct rs_sleeper *me)
{
	*me->link = me->next;
	if (me->next)
		me->next->link = me->link;
}

void wake_others(struct rsocket *s)
{
	int own = s->sleepers ? own_fd() : -1;

	for (struct rs_sleeper *t = s->sleepers; t; t = t->next)
		if (t->fd >= 0 && t->fd != own)
			(void)eventfd_write(t->fd, 1);
}

/* ---- the state of an rsocket ---- */

static bool over(const struct rsocket *s)
{
	return s->state == RS_ENDED || (s->st.fin && s->st.tx_fin);
}

static short stream_ready(struct rsocket *s)
{
	bool in = stream_readable(s);
	short r = 0;

	if (s->state == RS_LISTENING)
		return s->request ? POLLIN : 0;
	if (s->state == RS_IDLE || s->state == RS_BOUND)
		return POLLOUT | POLLHUP; /* as a TCP socket that is not connected */
	if (in)
		r |= POLLIN;
	if (stream_writable(s))
		r |= POLLOUT;
	if (over(s) && !stream_unread(s))
		r |= POLLHUP;
	return r;
}

short rs_ready(struct rsocket *s)
{
	short r;

	if (is_dgram(s))
		r = (dgram_readable(s) ? POLLIN : 0) | (dgram_writable(s) ? POLLOUT : 0);
	else
		r = stream_ready(s);
	if (s->err)
		r |= POLLERR | POLLIN | POLLOUT;
	return r;
}

void rs_progress(struct rsocket *s, bool cm)
{
	uint64_t now;

	if (s->inherited)
		return;
	if (!cm) {
		now = clock_coarse_ns();
		cm = now != s->cm_seen;
		s->cm_seen = now;
	}
	if (is_dgram(s)) {
		if (cm || !dgram_writable(s))
			dgram_events(s);
		dgram_progress(s);
		return;
	}
	if (cm || (s->state != RS_CONNECTED && s->state != RS_ENDED))
		conn_events(s);
	stream_progress(s);
}

/* ---- completion events ---- */

void rs_arm(struct rsocket *s, short events)
{
	bool out = is_dgram(s) ? events & POLLOUT : stream_send_pends(s, events & POLLOUT);

	if (s->inherited)
		return;
	if (s->recv_cq && !s->recv_armed)
		s->recv_armed = ibv_req_notify_cq(s->recv_cq, 0) == 0;
	if (s->send_cq && out && !s->send_armed)
		s->send_armed = ibv_req_notify_cq(s->send_cq, 0) == 0;
}

void rs_take_events(struct rsocket *s)
{
	struct ibv_cq *cq;
	void *context;

	while (s->cc && !s->inherited && !ibv_get_cq_event(s->cc, &cq, &context)) {
		if (cq == s->recv_cq) {
			s->recv_armed = false;
			s->recv_events++;
		} else if (cq == s->send_cq) {
			s->send_armed = false;
			s->send_events++;
		}
	}
}

void rs_free_cqs(struct rsocket *s)
{
	if (s->recv_cq) {
		ibv_ack_cq_events(s->recv_cq, s->recv_events);
		ibv_destroy_cq(s->recv_cq);
	}
	if (s->send_cq) {
		ibv_ack_cq_events(s->send_cq, s->send_events);
		ibv_destroy_cq(s->send_cq);
	}
	s->recv_cq = s->send_cq = NULL;
}

/* ---- sleeping for one of them ---- */

static int sleep_ms(uint64_t deadline)
{
	uint64_t now = clock_ns(), ms;

	if (!deadline)
		return -1;
	if (deadline <= now)
		return 0;
	ms = (deadline - now + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

static int sleep_once(struct rsocket *s, uint64_t deadline)
{
	struct rs_sleeper me = {.fd = sleeper_fd()};
	struct pollfd fds[3] = {
		{.fd = s->fd, .events = POLLIN},
		{.fd = s->cc ? s->cc->fd : -1, .events = POLLIN},
		{.fd = me.fd, .events = POLLIN},
	};
	int n, err;

	sleeper_enter(s, &me);
	lock_drop(&s->lock);
	n = poll(fds, 3, rs_sleep_ms(sleep_ms(deadline)));
	err = errno;
	lock_take(&s->lock);
	sleeper_leave(&me);
	if (me.fd >= 0)
		sleeper_drain(me.fd);
	if (n < 0)
		return -err;
	if (fds[1].revents)
		rs_take_events(s);
	rs_progress(s, fds[0].revents != 0);
	return n == 0 && deadline && clock_ns() >= deadline ? -EAGAIN : 0;
}

/* Without done: until one of the events. */
static bool holds(struct rsocket *s, bool (*done)(struct rsocket *s), short events)
{
	return done ? done(s) : rs_ready(s) & (events | POLLERR | POLLHUP);
}

static bool spin(struct rsocket *s, bool (*done)(struct rsocket *s), short events)
{
	uint64_t until = clock_ns() + rs_spin_ns();

	while (clock_ns() < until) {
		rs_progress(s, false);
		if (holds(s, done, events))
			return true;
		if (s->sleepers)
			break;
		cpu_relax();
	}
	return false;
}

int rs_wait_for(struct rsocket *s, bool (*done)(struct rsocket *s), short events, uint64_t deadline)
{
	int ret;

	if (rs_spin_ns() && spin(s, done, events))
		return 0;
	for (;;) {
		rs_arm(s, events);
		rs_progress(s, true);
		if (s->closed)
			return -EBADF;
		if (holds(s, done, events))
			return 0;
		ret = sleep_once(s, deadline);
		if (ret)
			return ret;
	}
}

int rs_wait(struct rsocket *s, short events, uint64_t deadline)
{
	return rs_wait_for(s, NULL, events, deadline);
}
