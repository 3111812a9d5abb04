// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "hca/exec/view_backing.h"
#include "hca/proc/parts.h"
#include "hca/proc/proc.h"
#include "hca/proc/reach.h"
#include "hca/proc/tables.h"
#include "hca/proc/wake.h"
#include "hca/seg/token.h"

struct channel_fd {
	struct channel_fd *next;
	uint32_t id;
	struct own_fd fd;
};

static struct {
	struct lock control;   /* held while weftd is asked, so for seconds: by nobody else */
	struct lock lock;      /* the list and what hangs on it, references; held briefly */
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

/* With the lock held. */
static struct peer *known(uint32_t attach)
{
	for (struct peer *p = peers.first; p; p = p->next)
		if (p->view.attach == attach)
			return p;
	return NULL;
}

/* The same with one more reference, without the lock. */
static struct peer *hold_known(uint32_t attach)
{
	struct peer *p;

	lock_take(&peers.lock);
	p = known(attach);
	if (p)
		p->refs++;
	lock_drop(&peers.lock);
	return p;
}

/* How we reach it, and it us: what both have published, so that both find the same. */
static void find_paths(struct peer *p, bool same_pid_ns)
{
	const struct seg *own = proc_seg();
	uint32_t ours = atomic_load_explicit(&own->hdr.reach, memory_order_acquire);
	uint32_t theirs = atomic_load_explicit(&p->view.seg->hdr.reach, memory_order_acquire);

	p->path.by_agent = !reach_by_cma(ours, theirs, same_pid_ns);
	p->path.never_agent = (ours | theirs) & REACH_NEVER_AGENT;
	p->view.path = &p->path;
	p->needs_agent = !reach_by_cma(theirs, ours, same_pid_ns);
	if (p->path.by_agent || p->needs_agent)
		log_line(LOG_LVL_INFO,
			"process %d: process_vm_readv %s; agents copy instead, which is slower",
			p->view.pid,
			same_pid_ns ? "is refused" : "does not reach another pid namespace");
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

static void release(struct peer *p)
{
	rdv_unmap_segment(p->view.seg);
	arena_close(&p->arena);
	backing_close(&p->backings);
	close_fds(p);
	while (p->channels) {
		struct channel_fd *c = p->channels;

		p->channels = c->next;
		free(c);
	}
	free(p);
}

/* To the parts before end, or NULL: all. */
static void tell_left(struct peer *p, const struct proc_part *const *end)
{
	for (const struct proc_part *const *at = proc_parts; *at && at != end; at++)
		if ((*at)->peer_left)
			(*at)->peer_left(p);
}

static int tell_came(struct peer *p)
{
	for (const struct proc_part *const *at = proc_parts; *at; at++) {
		int rc = (*at)->peer_came ? (*at)->peer_came(p) : 0;

		if (rc) {
			tell_left(p, at);
			return rc;
		}
	}
	return 0;
}

static void close_info(const struct rdv_peer *info)
{
	close_if(info->seg_fd);
	close_if(info->pidfd);
	close_if(info->async_fd);
	close_if(info->arena_fd);
}

/* Takes over the fds of what weftd told us, also on failure.  *out comes with a reference. */
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
	p->view.backings = &p->backings;
	p->view.attach = info->attach_id;
	p->view.pid = info->pid ? info->pid : -1;
	p->refs = 1;
	find_paths(p, info->same_pid_ns && info->pid);
	rc = tell_came(p);
	if (rc) {
		release(p);
		return rc;
	}
	lock_take(&peers.lock);
	p->next = peers.first;
	peers.first = p;
	lock_drop(&peers.lock);
	*out = p;
	return 0;
}

/*
 * With control held; *out comes with a reference.  A weftd that did not answer (stopped) is left
 * alone for a while: this may be asked for by post_send and poll_cq, again and again.
 */
static int ask_weftd(uint32_t qpn, uint32_t attach, struct peer **out)
{
	struct rdv_peer info;
	int rc;

	if (clock_coarse_ns() < peers.ask_again_ns)
		return -ETIMEDOUT;
	rc = qpn ? rdv_find_qpn(qpn, &info) : rdv_find_attach(attach, &info);
	if (rc == -ETIMEDOUT)
		peers.ask_again_ns = clock_coarse_ns() + ASK_AGAIN_NS;
	if (rc)
		return rc;
	*out = hold_known(info.attach_id);
	if (!*out)
		return add_peer(&info, out);
	close_info(&info);
	return 0;
}

/* A process that we map already and that has this QP, alive, with one more reference. */
static struct peer *hold_mapped(uint32_t qpn, int64_t *index)
{
	struct peer *p;

	lock_take(&peers.lock);
	for (p = peers.first; p; p = p->next) {
		*index = view_dead(&p->view) ? -ENOENT : view_find_qpn(&p->view, qpn);
		if (*index >= 0)
			break;
	}
	if (p)
		p->refs++;
	lock_drop(&peers.lock);
	return p;
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

/* Asks weftd, if nobody else found it in the meantime. */
static int ask_for_qpn(uint32_t qpn, struct peer **out, int64_t *index)
{
	int rc = 0;

	lock_take(&peers.control);
	*out = hold_mapped(qpn, index);
	if (!*out) {
		rc = ask_weftd(qpn, 0, out);
		if (!rc)
			*index = view_find_qpn(&(*out)->view, qpn);
	}
	lock_drop(&peers.control);
	return rc;
}

int peer_find(uint32_t qpn, struct peer **out, uint32_t *index)
{
	int64_t i = 0;
	int rc = 0;

	*out = own_peer();
	i = view_find_qpn(&(*out)->view, qpn);
	if (i < 0) {
		*out = hold_mapped(qpn, &i);
		if (!*out)
			rc = ask_for_qpn(qpn, out, &i);
		if (!rc && i < 0) {
			peer_put(*out);
			rc = -ENOENT;
		}
	}
	if (!rc)
		*index = i;
	return rc;
}

bool peer_elsewhere(uint32_t qpn)
{
	struct rdv_peer info;
	int rc = -ETIMEDOUT;

	if (view_find_qpn(&own_peer()->view, qpn) >= 0)
		return false;
	lock_take(&peers.control);
	if (clock_coarse_ns() >= peers.ask_again_ns)
		rc = rdv_find_qpn(qpn, &info);
	lock_drop(&peers.control);
	if (!rc)
		close_info(&info);
	return rc == -EADDRNOTAVAIL;
}

int peer_find_attach(uint32_t attach, struct peer **out)
{
	int rc = 0;

	*out = own_peer();
	if ((*out)->view.attach == attach)
		return 0;
	*out = hold_known(attach);
	if (*out)
		return 0;
	lock_take(&peers.control);
	*out = hold_known(attach);
	if (!*out)
		rc = ask_weftd(0, attach, out);
	lock_drop(&peers.control);
	return rc;
}

/* Nobody of ours touches p any more. */
static void farewell(struct peer *p)
{
	if (p->greeted)
		atomic_store_explicit(&p->view.seg->guest[p->greeted - 1], 0, memory_order_release);
}

static void unmap(struct peer *p)
{
	farewell(p);
	tell_left(p, NULL);
	release(p);
}

/* With the lock held: true if nobody has it any more; then it must be unmapped. */
static bool put(struct peer *p)
{
	struct peer **at;

	if (--p->refs)
		return false;
	for (at = &peers.first; *at != p; at = &(*at)->next)
		;
	*at = p->next;
	return true;
}

void peer_put(struct peer *p)
{
	bool last;

	if (p->self)
		return;
	lock_take(&peers.lock);
	last = put(p);
	lock_drop(&peers.lock);
	/* Without the lock: it waits for threads, which may want them. */
	if (last)
		unmap(p);
}

/* ---- guests ---- */

/* With the lock held. */
static bool greet(struct peer *p)
{
	const struct rdv_attach *at = proc_at();
	struct seg *seg = p->view.seg;
	uint64_t word = (uint64_t)table_some_qpn() << TOKEN_ATTACH_BITS | at->attach_id;

	for (uint32_t i = 0; i < SEG_GUESTS; i++) {
		uint32_t used = atomic_load_explicit(&seg->hdr.guests_used, memory_order_relaxed);
		uint64_t none = 0;

		if (!atomic_compare_exchange_strong_explicit(&seg->guest[i], &none, word,
			    memory_order_seq_cst, memory_order_relaxed))
			continue;
		while (used < i + 1 &&
			!atomic_compare_exchange_weak_explicit(&seg->hdr.guests_used, &used, i + 1,
				memory_order_seq_cst, memory_order_relaxed))
			;
		atomic_thread_fence(memory_order_seq_cst);
		p->greeted = i + 1;
		return true;
	}
	return false;
}

bool peer_greet(struct peer *p)
{
	bool done;

	if (p->self)
		return true;
	lock_take(&peers.lock);
	done = p->greeted || greet(p);
	lock_drop(&peers.lock);
	return done;
}

static bool still_guest(const struct peer *p)
{
	const struct seg *seg = proc_seg();
	uint32_t n = atomic_load_explicit(&seg->hdr.guests_used, memory_order_acquire);

	if (view_dead(&p->view))
		return false;
	for (uint32_t i = 0; i < n && i < SEG_GUESTS; i++)
		if (token_attach(atomic_load_explicit(&seg->guest[i], memory_order_acquire)) ==
			p->view.attach)
			return true;
	return false;
}

/* Those that are to be unmapped, a list. */
static struct peer *drop_old_guests(void)
{
	struct peer *next, *gone = NULL;

	lock_take(&peers.lock);
	for (struct peer *p = peers.first; p; p = next) {
		next = p->next;
		if (!p->guest || still_guest(p))
			continue;
		p->guest = false;
		if (!put(p))
			continue;
		p->next = gone;
		gone = p;
	}
	lock_drop(&peers.lock);
	return gone;
}

/* Takes over a reference. */
static void make_guest(struct peer *p)
{
	bool already;

	lock_take(&peers.lock);
	already = p->guest;
	p->guest = true;
	lock_drop(&peers.lock);
	if (already)
		peer_put(p);
}

/* True if the process is none that weftd has to be asked about. */
static bool meet_known(uint64_t word)
{
	uint32_t attach = token_attach(word);
	struct peer *p;

	if (!word || attach == proc_at()->attach_id)
		return true;
	p = hold_known(attach);
	if (p)
		make_guest(p);
	return p;
}

/* With control held. */
static void meet(uint64_t word)
{
	struct peer *p;
	int rc;

	if (meet_known(word))
		return;
	rc = ask_weftd(word >> TOKEN_ATTACH_BITS & 0xffffff, 0, &p);
	if (rc && rc != -ENOENT && rc != -EADDRNOTAVAIL)
		log_line(LOG_LVL_WARN,
			"cannot see whether process %#x still uses our memory: weftd does not "
			"answer",
			token_attach(word));
	if (!rc)
		make_guest(p);
}

static bool all_known(uint32_t n)
{
	const struct seg *seg = proc_seg();
	bool all = true;

	for (uint32_t i = 0; i < n && i < SEG_GUESTS; i++)
		all &= meet_known(atomic_load_explicit(&seg->guest[i], memory_order_acquire));
	return all;
}

void peers_meet_guests(void)
{
	const struct seg *seg = proc_seg();
	uint32_t n = atomic_load_explicit(&seg->hdr.guests_used, memory_order_acquire);
	struct peer *gone, *next;

	if (!n)
		return;
	if (!all_known(n)) {
		lock_take(&peers.control);
		for (uint32_t i = 0; i < n && i < SEG_GUESTS; i++)
			meet(atomic_load_explicit(&seg->guest[i], memory_order_acquire));
		lock_drop(&peers.control);
	}
	gone = drop_old_guests();
	for (struct peer *p = gone; p; p = next) {
		next = p->next;
		unmap(p);
	}
}

/* With the lock held. */
static struct channel_fd *channel_of(struct peer *p, uint32_t id)
{
	for (struct channel_fd *c = p->channels; c; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

static bool has_channel(struct peer *p, uint32_t id)
{
	bool has;

	lock_take(&peers.lock);
	has = channel_of(p, id);
	lock_drop(&peers.lock);
	return has;
}

/* With control held. */
static int get_channel(struct peer *p, uint32_t id)
{
	struct channel_fd *c;
	int fd, rc;

	if (has_channel(p, id))
		return 0;
	rc = rdv_get_channel(p->view.attach, id, &fd);
	if (rc)
		return rc;
	c = malloc(sizeof *c);
	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->id = id;
	c->fd = own_fd(fd);
	lock_take(&peers.lock);
	c->next = p->channels;
	p->channels = c;
	lock_drop(&peers.lock);
	return 0;
}

int peer_prepare_channel(struct peer *p, uint32_t id)
{
	int rc;

	if (p->self || !id || has_channel(p, id))
		return 0;
	lock_take(&peers.control);
	rc = get_channel(p, id);
	lock_drop(&peers.control);
	return rc == -ENOENT ? rc : 0;
}

bool peer_fire(uint32_t attach, uint32_t id, struct fired_note *note)
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
	done = fd && own_fd_ok(fd) && wake_write(fd->fd, note);
	lock_drop(&peers.lock);
	return done;
}

void peers_each(void (*fn)(struct peer *p, void *arg), void *arg)
{
	lock_take(&peers.lock);
	for (struct peer *p = peers.first; p; p = p->next)
		fn(p, arg);
	lock_drop(&peers.lock);
}

/* The first one (after NULL), or the one after p, whose reference is dropped; held, or NULL. */
static struct peer *next_held(struct peer *p)
{
	struct peer *next;

	lock_take(&peers.lock);
	next = p ? p->next : peers.first;
	if (next)
		next->refs++;
	lock_drop(&peers.lock);
	if (p)
		peer_put(p);
	return next;
}

void peers_sweep(void)
{
	if (!view_backing_any())
		return;
	for (struct peer *p = next_held(NULL); p; p = next_held(p))
		view_backing_sweep(&p->view);
}

bool peer_free_token(_Atomic uint64_t *token)
{
	uint32_t holder = token_attach(atomic_load_explicit(token, memory_order_relaxed));

	if (!holder)
		return false;
	if (peer_is_dead(holder))
		token_force(token, holder);
	return token_attach(atomic_load_explicit(token, memory_order_relaxed)) != holder;
}

bool peer_is_dead(uint32_t attach)
{
	int saved = errno;
	struct peer *p;
	bool dead;

	lock_take(&peers.lock);
	p = known(attach);
	dead = p && view_died(&p->view);
	lock_drop(&peers.lock);
	errno = saved;
	return dead;
}

/* ---- fork ---- */

/*
 * What the child is to close: a list of the thread that forks.  Other threads change the peers
 * while the kernel copies page after page, so that the child cannot follow their pointers; and no
 * lock is held over a fork but by those who know the handlers that run in between.
 */
static __thread struct {
	struct own_fd *fd;
	unsigned n, room;
} inherited __attribute__((tls_model("initial-exec")));

static void note_inherited(const struct own_fd *fd)
{
	if (fd->fd < 0)
		return;
	if (inherited.n < inherited.room)
		inherited.fd[inherited.n] = *fd;
	inherited.n++;
}

/* False: there are more than there is room for. */
static bool note_all(void)
{
	inherited.n = 0;
	lock_take(&peers.lock);
	for (const struct peer *p = peers.first; p; p = p->next) {
		note_inherited(&p->view.pidfd);
		note_inherited(&p->async_fd);
		note_inherited(&p->arena_fd);
		for (const struct channel_fd *c = p->channels; c; c = c->next)
			note_inherited(&c->fd);
	}
	lock_drop(&peers.lock);
	return inherited.n <= inherited.room;
}

void peers_before_fork(void)
{
	while (!note_all()) {
		unsigned room = inherited.n + inherited.n / 4;
		struct own_fd *fd = realloc(inherited.fd, room * sizeof *fd);

		if (!fd) { /* then the child keeps some */
			inherited.n = inherited.room;
			return;
		}
		inherited.fd = fd;
		inherited.room = room;
	}
}

void peers_after_fork(void)
{
	free(inherited.fd);
	inherited.fd = NULL;
	inherited.n = inherited.room = 0;
}

void peers_forked_child(void)
{
	/* The mappings were not inherited. */
	for (unsigned i = 0; i < inherited.n; i++)
		own_fd_close(&inherited.fd[i]);
	inherited.n = 0; /* its memory stays: malloc's locks may be held by nobody here */
	peers.first = NULL;
	atomic_store_explicit(&peers.control.word, 0, memory_order_relaxed);
	atomic_store_explicit(&peers.lock.word, 0, memory_order_relaxed);
}
