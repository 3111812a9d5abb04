// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/channels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/tables/channel_names.h"

enum { QUEUE_MAX = 1 << 16, SWEEP_PAUSE = 20 /* times what a sweep took */ };

/* In two lists: of its channel, and of all that are about the same id. */
struct queued {
	struct queued *next, *prev;
	struct queued *id_next, **id_link;
	struct event_channel *ch;
	size_t len;
	struct cm_event event; /* the first len bytes of it */
};

struct event_channel {
	struct event_channel *chain;
	uint32_t owner, id;
	struct sockaddr_un addr;
	bool lost;          /* its name is gone */
	bool told;          /* by channels_lost() */
	uint32_t in_socket; /* events that may be unread there */
	uint32_t unasked;   /* the last of them, after one that will be acknowledged */
	uint32_t n_queued;
	struct queued *head, *tail;
};

static uint32_t place(uint32_t owner, uint32_t id)
{
	return (owner * 0x9e3779b1u ^ id * 0x85ebca6bu) >> 20;
}

_Static_assert(CHANNEL_BUCKETS == 1 << (32 - 20), "the shift above");

static struct event_channel *find(struct channels *c, uint32_t owner, uint32_t id)
{
	struct event_channel *ch = c->bucket[place(owner, id)];

	while (ch && (ch->owner != owner || ch->id != id))
		ch = ch->chain;
	return ch;
}

/* ---- the queue ---- */

/* Whose end ends the event: a request's is its listener. */
static uint32_t about(const struct cm_event *e)
{
	return e->listen_handle ? e->listen_handle : e->handle;
}

static void append(struct event_channel *ch, struct queued *q)
{
	q->ch = ch;
	q->next = NULL;
	q->prev = ch->tail;
	*(ch->tail ? &ch->tail->next : &ch->head) = q;
	ch->tail = q;
	ch->n_queued++;
}

static void unqueue(struct queued *q)
{
	struct event_channel *ch = q->ch;

	*(q->prev ? &q->prev->next : &ch->head) = q->next;
	*(q->next ? &q->next->prev : &ch->tail) = q->prev;
	ch->n_queued--;
}

/* The youngest first. */
static void enter_by_id(struct channels *c, struct queued *q)
{
	struct queued **list = &c->by_id[place(q->ch->owner, about(&q->event))];

	q->id_next = *list;
	if (q->id_next)
		q->id_next->id_link = &q->id_next;
	q->id_link = list;
	*list = q;
}

static void discard(struct queued *q)
{
	unqueue(q);
	*q->id_link = q->id_next;
	if (q->id_next)
		q->id_next->id_link = q->id_link;
	free(q);
}

static void drop(struct channels *c, struct queued *q)
{
	c->dropped++;
	c->drop(c->arg, q->ch->owner, &q->event);
	discard(q);
}

/* ---- sending ---- */

/*
 * Sends without keeping an fd.  What lies unread in a socket is charged to the socket that sent
 * it: when that is used up, a fresh one, closed at once, has room for one more.
 */
static int send_to(
	const struct channels *c, const struct event_channel *ch, const void *data, size_t len)
{
	const struct sockaddr *to = (const struct sockaddr *)&ch->addr;
	int fd, ret = 0;

	if (sendto(c->sender, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, to, sizeof ch->addr) >= 0)
		return 0;
	if (errno != EAGAIN && errno != ENOBUFS)
		return -errno;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -EAGAIN;
	if (sendto(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, to, sizeof ch->addr) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static bool is_gone(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -ECONNREFUSED;
}

static void note_lost(struct channels *c, struct event_channel *ch)
{
	if (ch->lost)
		return;
	ch->lost = true;
	log_line(LOG_LVL_WARN, "%s/%s is gone: an event channel gets no more events", c->paths->dir,
		ch->addr.sun_path);
	c->lost = true;
}

uint32_t channels_lost(struct channels *c)
{
	if (!c->lost)
		return 0;
	for (int i = 0; i < CHANNEL_BUCKETS; i++)
		for (struct event_channel *ch = c->bucket[i]; ch; ch = ch->chain)
			if (ch->lost && !ch->told) {
				ch->told = true;
				return ch->owner;
			}
	c->lost = false;
	return 0;
}

static int send_event(struct channels *c, struct event_channel *ch, struct queued *q)
{
	int ret;

	if (ch->unasked + 1 >= CM_ACK_EVERY)
		q->event.flags |= CM_E_ACK;
	ret = send_to(c, ch, &q->event, q->len);
	if (is_gone(ret))
		note_lost(c, ch);
	if (ret)
		return ret;
	ch->in_socket++;
	ch->unasked = q->event.flags & CM_E_ACK ? 0 : ch->unasked + 1;
	c->sent++;
	return 0;
}

/* Sends what the channel's window lets pass. */
static void pump(struct channels *c, struct event_channel *ch)
{
	while (ch->head && ch->in_socket < CM_WINDOW) {
		int ret = send_event(c, ch, ch->head);

		if (ret == -EAGAIN && ch->in_socket) {
			/* Goes on when those are taken, or soon, if nobody will tell. */
			c->stuck |= ch->unasked >= ch->in_socket;
			return;
		}
		if (ret)
			drop(c, ch->head);
		else
			discard(ch->head);
	}
}

void channels_put(
	struct channels *c, uint32_t owner, uint32_t id, const struct cm_event *e, size_t len)
{
	struct event_channel *ch = find(c, owner, id);
	struct queued *q = NULL;

	if (ch && ch->n_queued < QUEUE_MAX)
		q = malloc(offsetof(struct queued, event) + len);
	if (!q) {
		c->dropped++;
		c->drop(c->arg, owner, e);
		return;
	}
	q->len = len;
	memcpy(&q->event, e, len);
	append(ch, q);
	enter_by_id(c, q);
	pump(c, ch);
}

void channels_taken(struct channels *c, uint32_t owner, uint32_t id, uint32_t n)
{
	struct event_channel *ch = find(c, owner, id);

	if (!ch)
		return;
	ch->in_socket -= n < ch->in_socket ? n : ch->in_socket;
	if (ch->unasked > ch->in_socket)
		ch->unasked = ch->in_socket;
	pump(c, ch);
}

int channels_wake(struct channels *c, uint32_t owner, uint32_t id)
{
	struct event_channel *ch = find(c, owner, id);
	int ret = ch ? send_to(c, ch, "", 1) : -ENOENT;

	return is_gone(ret) ? -ENOENT : ret;
}

void channels_pump_stuck(struct channels *c)
{
	if (!c->stuck)
		return;
	c->stuck = false;
	for (int i = 0; i < CHANNEL_BUCKETS; i++)
		for (struct event_channel *ch = c->bucket[i]; ch; ch = ch->chain)
			pump(c, ch);
}

/* ---- of one id ---- */

static struct queued *next_about(struct queued *q, uint32_t owner, uint32_t handle)
{
	while (q && (q->ch->owner != owner || about(&q->event) != handle))
		q = q->id_next;
	return q;
}

void channels_purge(struct channels *c, uint32_t owner, uint32_t handle)
{
	struct queued *q = next_about(c->by_id[place(owner, handle)], owner, handle), *next;

	for (; q; q = next) {
		next = next_about(q->id_next, owner, handle);
		drop(c, q);
	}
}

void channels_move(struct channels *c, uint32_t owner, uint32_t handle, uint32_t to)
{
	struct event_channel *ch = find(c, owner, to);
	struct queued *q = next_about(c->by_id[place(owner, handle)], owner, handle), *next;
	struct queued *moved = NULL;

	if (!ch)
		return;
	/* The oldest is the last. */
	for (; q; q = next) {
		next = next_about(q->id_next, owner, handle);
		if (q->ch == ch)
			continue;
		unqueue(q);
		q->next = moved;
		moved = q;
	}
	for (; moved; moved = next) {
		next = moved->next;
		append(ch, moved);
	}
	pump(c, ch);
}

/* ---- what an earlier weftd named ---- */

/*
 * A process that dies before it has come to us leaves its names, and nothing tells us.  Whenever
 * channels come or go we look, with a part of our time, while there are such names.
 */
static void sweep(struct channels *c)
{
	uint64_t began = clock_ns();
	int live;

	if (began < c->sweep_ns)
		return;
	live = channel_names_sweep(c->paths);
	if (live >= 0)
		c->unclaimed = (uint32_t)live > c->n ? live - c->n : 0;
	c->sweep_ns = clock_ns();
	c->sweep_ns += SWEEP_PAUSE * (c->sweep_ns - began);
}

static void sweep_unclaimed(struct channels *c)
{
	if (c->unclaimed)
		sweep(c);
}

/* ---- channels ---- */

int channels_add(struct channels *c, uint32_t owner, uint32_t id, int fd)
{
	struct event_channel *ch = find(c, owner, id), **list = &c->bucket[place(owner, id)];
	int ret;

	if (ch)
		return ch->lost ? -ENOENT : -EEXIST;
	ch = calloc(1, sizeof *ch);
	if (!ch)
		return -ENOMEM;
	ch->owner = owner;
	ch->id = id;
	ret = channel_name_give(c->paths, fd, owner, id, &ch->addr);
	if (ret) {
		free(ch);
		return ret;
	}
	ch->chain = *list;
	*list = ch;
	c->n++;
	sweep_unclaimed(c);
	return 0;
}

static void free_channel(struct channels *c, struct event_channel *ch)
{
	while (ch->head)
		drop(c, ch->head);
	channel_name_remove(&ch->addr);
	c->n--;
	free(ch);
}

int channels_del(struct channels *c, uint32_t owner, uint32_t id)
{
	struct event_channel **link = &c->bucket[place(owner, id)], *ch;

	while (*link && ((*link)->owner != owner || (*link)->id != id))
		link = &(*link)->chain;
	ch = *link;
	if (!ch)
		return -ENOENT;
	*link = ch->chain;
	free_channel(c, ch);
	sweep_unclaimed(c);
	return 0;
}

void channels_gone(struct channels *c, uint32_t owner)
{
	for (int i = 0; i < CHANNEL_BUCKETS; i++) {
		struct event_channel **link = &c->bucket[i], *ch;

		while ((ch = *link)) {
			if (ch->owner != owner) {
				link = &ch->chain;
				continue;
			}
			*link = ch->chain;
			free_channel(c, ch);
		}
	}
	sweep_unclaimed(c);
}

int channels_start(struct channels *c)
{
	int ret;

	c->sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->sender < 0)
		return -errno;
	ret = channel_names_start(c->paths);
	if (!ret)
		sweep(c);
	return ret;
}
