// SPDX-License-Identifier: BSD-3-Clause
#include "hca/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "hca/proc.h"
#include "hca/token.h"
#include "hca/wake.h"

struct channel_fd {
	struct channel_fd *next;
	uint32_t id;
	struct own_fd fd;
};

static struct {
	struct lock control;   /* held while weftd is asked; never taken by an executor */
	struct lock lock;      /* the list and what hangs on it; held briefly */
	uint64_t ask_again_ns; /* control: not before then */
	struct peer *first;
	struct peer own;
} peers;

#define ASK_AGAIN_NS (30 * NSEC_PER_SEC)

static void close_if(int fd)
{
	if (fd >= 0)
		close(fd);
}

static struct peer *known(uint32_t attach)
{
	for (struct peer *p = peers.first; p; p = p->next)
		if (p->view.attach == attach)
			return p;
	return NULL;
}

/* Takes over the fds of what weftd told us, also on failure. */
static int add_peer(struct rdv_peer *info, struct peer **out)
{
	struct peer *p = calloc(1, sizeof *p);
	int rc = p ? rdv_map_segment(info->seg_fd, &p->view.seg) : -ENOMEM;

	close_if(info->seg_fd);
	if (rc) {
		close_if(info->pidfd);
		close_if(info->async_fd);
		close_if(info->arena_fd);
		free(p);
		return rc;
	}
	p->view.pidfd = own_fd(info->pidfd);
	p->async_fd = own_fd(info->async_fd);
	p->arena_fd = own_fd(info->arena_fd);
	if (info->arena_fd >= 0 && arena_open(&p->arena, p->arena_fd.fd) == 0)
		p->view.arena = &p->arena;
	p->view.attach = info->attach_id;
	p->view.pid = info->pid ? info->pid : -1;
	p->view.reachable = info->same_pid_ns && info->pid;
	lock_take(&peers.lock);
	p->next = peers.first;
	peers.first = p;
	lock_drop(&peers.lock);
	*out = p;
	return 0;
}

/*
 * A weftd that did not answer (stopped) is left alone for a while: this may be asked for by
 * post_send and poll_cq, again and again.
 */
static int ask_weftd(uint32_t qpn, struct peer **out)
{
	struct rdv_peer info;
	int rc;

	if (clock_coarse_ns() < peers.ask_again_ns)
		return -ETIMEDOUT;
	rc = rdv_find_qpn(qpn, &info);
	if (rc == -ETIMEDOUT)
		peers.ask_again_ns = clock_coarse_ns() + ASK_AGAIN_NS;
	if (rc)
		return rc;
	*out = known(info.attach_id);
	if (!*out)
		return add_peer(&info, out);
	close_if(info.seg_fd);
	close_if(info.pidfd);
	close_if(info.async_fd);
	close_if(info.arena_fd);
	return 0;
}

/* A process that we map already and that has this QP, alive. */
static struct peer *find_mapped(uint32_t qpn, int64_t *index)
{
	for (struct peer *p = peers.first; p; p = p->next) {
		*index = view_dead(&p->view) ? -ENOENT : view_find_qpn(&p->view, qpn);
		if (*index >= 0)
			return p;
	}
	return NULL;
}

/* We ourselves as a peer: filled in once per attach, for other threads read it. */
static struct peer *own_peer(void)
{
	const struct view v = proc_view();

	lock_take(&peers.lock);
	if (!peers.own.self || peers.own.view.attach != v.attach) {
		peers.own.view = v;
		peers.own.self = true;
	}
	lock_drop(&peers.lock);
	return &peers.own;
}

int peer_find(uint32_t qpn, struct peer **out, uint32_t *index)
{
	int64_t i = 0;
	int rc = 0;

	*out = own_peer();
	i = view_find_qpn(&(*out)->view, qpn);
	if (i >= 0) {
		*index = i;
		return 0;
	}
	lock_take(&peers.control);
	*out = find_mapped(qpn, &i);
	if (!*out) {
		rc = ask_weftd(qpn, out);
		if (!rc)
			i = view_find_qpn(&(*out)->view, qpn);
	}
	if (!rc && i < 0)
		rc = -ENOENT;
	if (!rc) {
		(*out)->refs++;
		*index = i;
	}
	lock_drop(&peers.control);
	return rc;
}

/* A program that closed them behind our back may have its own files there: those stay open. */
static void close_fds(struct peer *p)
{
	own_fd_close(&p->view.pidfd);
	own_fd_close(&p->async_fd);
	own_fd_close(&p->arena_fd);
	for (struct channel_fd *c = p->channels; c; c = c->next)
		own_fd_close(&c->fd);
}

static void unmap(struct peer *p)
{
	rdv_unmap_segment(p->view.seg);
	arena_close(&p->arena);
	close_fds(p);
	while (p->channels) {
		struct channel_fd *c = p->channels;

		p->channels = c->next;
		free(c);
	}
	free(p);
}

void peer_put(struct peer *p)
{
	struct peer **at;

	if (p->self)
		return;
	lock_take(&peers.control);
	if (!--p->refs) {
		lock_take(&peers.lock);
		for (at = &peers.first; *at != p; at = &(*at)->next)
			;
		*at = p->next;
		lock_drop(&peers.lock);
		unmap(p);
	}
	lock_drop(&peers.control);
}

static struct channel_fd *channel_of(struct peer *p, uint32_t id)
{
	for (struct channel_fd *c = p->channels; c; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

void peer_prepare_channel(struct peer *p, uint32_t id)
{
	struct channel_fd *c;
	int fd;

	if (p->self || !id)
		return;
	lock_take(&peers.control);
	if (channel_of(p, id) || rdv_get_channel(p->view.attach, id, &fd))
		goto out;
	c = malloc(sizeof *c);
	if (!c) {
		close(fd);
		goto out;
	}
	c->id = id;
	c->fd = own_fd(fd);
	lock_take(&peers.lock);
	c->next = p->channels;
	p->channels = c;
	lock_drop(&peers.lock);
out:
	lock_drop(&peers.control);
}

bool peer_fire(uint32_t attach, uint32_t id)
{
	const struct own_fd *fd = NULL;
	struct channel_fd *c;
	struct peer *p;
	bool done;

	lock_take(&peers.lock);
	p = known(attach);
	if (p && !id)
		fd = &p->async_fd;
	c = p && id ? channel_of(p, id) : NULL;
	if (c)
		fd = &c->fd;
	done = fd && own_fd_ok(fd) && wake_write(fd->fd);
	lock_drop(&peers.lock);
	return done;
}

void peers_each(void (*fn)(struct peer *p, void *arg), void *arg)
{
	lock_take(&peers.control);
	for (struct peer *p = peers.first; p; p = p->next)
		fn(p, arg);
	lock_drop(&peers.control);
}

static void free_if_dead(struct peer *p, void *arg)
{
	_Atomic uint64_t *token = arg;

	if (token_attach(atomic_load_explicit(token, memory_order_relaxed)) != p->view.attach)
		return;
	if (view_died(&p->view))
		token_force(token, p->view.attach);
}

bool peer_free_token(_Atomic uint64_t *token)
{
	uint32_t holder = token_attach(atomic_load_explicit(token, memory_order_relaxed));
	int saved = errno;

	peers_each(free_if_dead, token);
	errno = saved;
	return holder && token_attach(atomic_load_explicit(token, memory_order_relaxed)) != holder;
}

void peers_forked_child(void)
{
	/* The mappings were not inherited, the fds were; they are few and shared with the parent.
	 */
	for (struct peer *p = peers.first; p; p = p->next)
		close_fds(p);
	peers.first = NULL;
	atomic_store_explicit(&peers.control.word, 0, memory_order_relaxed);
	atomic_store_explicit(&peers.lock.word, 0, memory_order_relaxed);
}
