// SPDX-License-Identifier: BSD-3-Clause
/*
 * Waiting.  A thread that sleeps for an rsocket polls its two channels.  Of several, one takes
 * the event away from the others; so whoever has changed an rsocket wakes each thread that sleeps
 * for it (face/sleeper.h).
 */
#include "rsock/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "face/poll_many.h"
#include "rsock/config.h"
#include "rsock/connect.h"
#include "rsock/dgram.h"
#include "rsock/stream.h"

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

/* How long to sleep until then (0: for ever), ns. */
static uint64_t sleep_ns(uint64_t deadline, uint64_t now)
{
	uint64_t left = deadline > now ? deadline - now : 0;

	return deadline && left < rs_nap_ns() ? left : rs_nap_ns();
}

static int sleep_once(struct rsocket *s, bool answered, uint64_t deadline)
{
	struct sleeper me = {.fd = sleeper_fd()};
	struct pollfd fds[3] = {
		{.fd = s->fd, .events = POLLIN},
		{.fd = s->cc ? s->cc->fd : -1, .events = POLLIN},
		{.fd = me.fd, .events = POLLIN},
	};
	uint64_t since = clock_ns();
	int n;

	sleeper_enter(&s->sleepers, &me);
	lock_drop(&s->lock);
	n = poll_ns(fds, 3, sleep_ns(deadline, since));
	lock_take(&s->lock);
	if (answered)
		look_slept(&s->look, clock_ns() - since);
	sleeper_leave(&me);
	sleeper_drain(me.fd);
	if (n < 0)
		return n;
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

/*
 * Looks for a moment.  Longer only for what may be an answer, if the last ones came soon: two hosts
 * that talk in turn would both fall asleep each time.  Who only receives never does, for it would
 * take each message by itself, and slow down a sender that has more to say.
 */
static bool look(struct rsocket *s, bool (*done)(struct rsocket *s), short events, bool answered)
{
	uint64_t usual = rs_look_ns(), ns = answered ? look_begins(&s->look, usual) : usual;
	uint64_t until = clock_ns() + ns;

	if (!ns)
		return false;
	while (clock_ns() < until && !s->sleepers && !s->closed) {
		rs_progress(s, false);
		if (holds(s, done, events))
			return true;
		cpu_relax();
	}
	if (answered)
		look_failed(&s->look);
	return false;
}

int rs_wait_for(struct rsocket *s, bool (*done)(struct rsocket *s), short events, uint64_t deadline)
{
	bool answered = events & POLLIN && s->spoke;
	int ret;

	s->spoke &= !answered;
	if (look(s, done, events, answered))
		return 0;
	for (;;) {
		rs_arm(s, events);
		rs_progress(s, true);
		if (s->closed)
			return -EBADF;
		if (holds(s, done, events))
			return 0;
		ret = sleep_once(s, answered, deadline);
		if (ret)
			return ret;
	}
}

int rs_wait(struct rsocket *s, short events, uint64_t deadline)
{
	return rs_wait_for(s, NULL, events, deadline);
}
