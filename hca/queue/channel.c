// SPDX-License-Identifier: BSD-3-Clause
/* Completion channels: an eventfd, and the CQs whose events it counts (hca/seg/fired.h). */
#include "hca/queue/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/restart.h"
#include "base/sparse.h"
#include "hca/api/hca.h"
#include "hca/obj/cq.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/proc/wake.h"
#include "hca/queue/cq_arm.h"
#include "hca/run/far.h"
#include "hca/run/progress.h"
#include "rdv/rdv.h"

/* A weftd that has just gone is looked after so often. */
enum { SLOW_TICK_MS = 100, WEFTD_GONE_MS = 10, FAR_FDS = 4 };
#define ALERT_NS (2 * (uint64_t)NSEC_PER_SEC)

/* On which channel a CQ is, by its index: under that channel's lock it stays what it is. */
static _Atomic uint32_t channel_of[SEG_CQS];

/* ---- channels ---- */

static void order_open(struct hca_channel *ch)
{
	struct ticket_ring *r;

	ch->order = seg_fired(proc_seg(), ch->id);
	r = ch->order.ring;
	atomic_store_explicit(&r->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&r->head, 0, memory_order_relaxed);
	atomic_store_explicit(&r->head_seen, 0, memory_order_relaxed);
	atomic_store_explicit(ch->order.overflow, 0, memory_order_relaxed);
}

/* Its memory goes back, and reads as zeros for the next channel. */
static void order_close(struct hca_channel *ch)
{
	size_t len = sizeof *ch->order.slots << ch->order.log_size;

	sparse_empty((void *)ch->order.slots, len);
}

int hca_channel_create(struct hca_channel **out)
{
	int rc = proc_attach(NULL);
	struct hca_channel *ch;

	if (rc)
		return rc;
	ch = calloc(1, sizeof *ch);
	if (!ch)
		return -ENOMEM;
	ch->epoch = proc_epoch();
	ch->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	ch->own = own_fd_at(ch->fd);
	rc = ch->fd < 0 ? -errno : wake_own_add(ch->fd, &ch->id);
	if (!rc) {
		order_open(ch);
		rc = rdv_add_channel(ch->id, ch->fd);
		if (rc)
			wake_own_del(ch->id);
	}
	if (rc) {
		if (ch->fd >= 0)
			close(ch->fd);
		free(ch);
		return rc;
	}
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_channel, 1, memory_order_relaxed);
	*out = ch;
	return 0;
}

int hca_channel_destroy(struct hca_channel *ch)
{
	if (ch->epoch == proc_epoch()) {
		if (ch->cqs)
			return -EBUSY;
		order_close(ch);
		wake_own_del(ch->id);
		rdv_del_channel(ch->id);
		atomic_fetch_sub_explicit(&proc_seg()->hdr.n_channel, 1, memory_order_relaxed);
	}
	close(ch->fd);
	free(ch);
	return 0;
}

int hca_channel_fd(const struct hca_channel *ch)
{
	return ch->fd;
}

void channel_add_cq(struct hca_channel *ch, struct hca_cq *cq)
{
	lock_take(&ch->lock);
	cq->next = ch->cqs;
	cq->link = &ch->cqs;
	if (cq->next)
		cq->next->link = &cq->next;
	ch->cqs = cq;
	atomic_store_explicit(&channel_of[cq->index], ch->id, memory_order_relaxed);
	lock_drop(&ch->lock);
}

/* ---- events ---- */

/*
 * Takes one count from the channel without waiting, whatever its flags say: another thread may
 * have taken the one that poll() saw.  0, -EAGAIN or another error of read(2).
 */
static int take_count(struct hca_channel *ch)
{
	uint64_t one;
	struct iovec iov = {.iov_base = &one, .iov_len = sizeof one};
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	if (preadv2(ch->fd, &iov, 1, -1, RWF_NOWAIT) >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	/* Emulators lack the flag. */
	if (poll(&p, 1, 0) == 0)
		return -EAGAIN;
	return read(ch->fd, &one, sizeof one) < 0 ? -errno : 0;
}

static bool readable(struct hca_channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Lets the fd be readable while there are events whose counts went to others. */
static void settle(struct hca_channel *ch)
{
	if (ch->reader.owes && fired_owes(&ch->order, &ch->reader, readable(ch)) &&
		own_fd_ok(&ch->own))
		wake_write(ch->fd);
}

static uint32_t count_of(const _Atomic uint32_t *events, const struct hca_cq *cq)
{
	return atomic_load_explicit(events, memory_order_acquire) - cq->fired_seen;
}

/* Its events that were not taken go with it, and their counts. */
static void drop_events(struct hca_channel *ch, struct hca_cq *cq)
{
	int32_t n = (int32_t)count_of(&cq->s->told, cq);

	if (n <= 0 || !own_fd_ok(&ch->own))
		return;
	while (n-- > 0 && !take_count(ch))
		;
	ch->reader.owes = true;
	settle(ch);
}

void channel_del_cq(struct hca_channel *ch, struct hca_cq *cq)
{
	lock_take(&ch->lock);
	if (ch->next_up == cq)
		ch->next_up = cq->next;
	if (ch->last == cq)
		ch->last = NULL;
	if (cq->link) {
		*cq->link = cq->next;
		if (cq->next)
			cq->next->link = cq->link;
		cq->link = NULL;
		atomic_store_explicit(&channel_of[cq->index], 0, memory_order_relaxed);
		if (cq->epoch == proc_epoch())
			drop_events(ch, cq);
	}
	lock_drop(&ch->lock);
}

/* The CQ that an entry is about if that has an event more, as the entry says. */
static struct hca_cq *named_by(struct hca_channel *ch, uint64_t entry)
{
	uint32_t index = fired_cq(entry);
	struct hca_cq *cq = NULL;

	if (atomic_load_explicit(&channel_of[index], memory_order_relaxed) == ch->id)
		cq = table_cq(index);
	return cq && count_of(&cq->s->fired, cq) && fired_is_due(entry, cq->fired_seen) ? cq : NULL;
}

/* The next in turn with an event more, looking round from the last one found. */
static struct hca_cq *any_fired(struct hca_channel *ch)
{
	struct hca_cq *start, *cq;

	start = cq = ch->next_up ? ch->next_up : ch->cqs;
	while (cq && !count_of(&cq->s->fired, cq)) {
		cq = cq->next ? cq->next : ch->cqs;
		if (cq == start)
			cq = NULL;
	}
	ch->reader.sweeps &= !!cq;
	if (cq)
		ch->next_up = cq->next;
	return cq;
}

static struct hca_cq *next_fired(struct hca_channel *ch)
{
	struct hca_cq *cq = NULL;
	uint64_t entry;

	while (!cq && (entry = fired_pop(&ch->order, &ch->reader)))
		cq = named_by(ch, entry);
	return cq ? cq : any_fired(ch);
}

/* For a count that was taken: the event that it is for.  False: it was one too many. */
static bool take_event(struct hca_channel *ch, void **cookie)
{
	struct hca_cq *cq;

	lock_take(&ch->lock);
	cq = next_fired(ch);
	if (cq) {
		cq->fired_seen++;
		cq_event_taken(cq);
		*cookie = cq->cookie;
		ch->last = cq;
		fired_give(&ch->reader, &cq->s->told, cq->fired_seen);
		settle(ch);
	}
	lock_drop(&ch->lock);
	return cq;
}

/*
 * For a count too many that was there before the program called: poll(2) may have shown it to the
 * program, which then does not expect to wait.  It gets an event of a CQ that may have nothing, as
 * it does where it has polled a CQ before it takes the event; not of one that it has never armed,
 * for which it need not be ready.  False: there is no such CQ.
 */
static bool make_up_event(struct hca_channel *ch, void **cookie)
{
	struct hca_cq *cq;

	lock_take(&ch->lock);
	cq = ch->last ? ch->last : ch->cqs;
	while (cq && !atomic_load_explicit(&cq->armed, memory_order_relaxed))
		cq = cq->next;
	if (cq)
		*cookie = cq->cookie;
	lock_drop(&ch->lock);
	return cq;
}

/* ---- waiting ---- */

/* Fires what is due; true if some CQ's events may wait. */
static bool moderated(struct hca_channel *ch)
{
	bool any = false;

	lock_take(&ch->lock);
	for (struct hca_cq *cq = ch->cqs; cq; cq = cq->next)
		any |= cq_moderated(cq, false);
	lock_drop(&ch->lock);
	return any;
}

/* Fires for completions whose producer died, with weftd, before it told.  Spurious is legal. */
static void fire_untold(struct hca_channel *ch)
{
	lock_take(&ch->lock);
	for (struct hca_cq *cq = ch->cqs; cq; cq = cq->next)
		cq_fire_untold(cq);
	lock_drop(&ch->lock);
}

/* How a sleeper looks after weftd. */
struct vigil {
	uint32_t hub_id;      /* of the weftd that was there last */
	uint64_t alert_until; /* peers that die before this may not have come to the next weftd */
};

/* What only weftd would have done, were it not down; true if there may be more of it soon. */
static bool look_after(struct hca_channel *ch, struct vigil *v)
{
	uint64_t now = clock_coarse_ns();
	uint32_t hub_id;
	bool more;
	int cancel;

	/* The program may cancel a thread that waits for events, but not with our locks held. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	progress_slow();
	progress_weftd();
	more = progress_stalled();
	fire_untold(ch);
	hub_id = atomic_load_explicit(&proc_at()->hub_id, memory_order_relaxed);
	if (rdv_socket() < 0 || hub_id != v->hub_id) {
		v->hub_id = hub_id;
		v->alert_until = now + ALERT_NS;
	}
	pthread_setcancelstate(cancel, NULL);
	return more || now < v->alert_until;
}

/* Has it CQs for which packets may come? */
static bool looks_far(struct hca_channel *ch)
{
	bool any = false;

	lock_take(&ch->lock);
	for (struct hca_cq *cq = ch->cqs; cq; cq = cq->next)
		any |= atomic_load_explicit(&cq->far_qps, memory_order_relaxed) != 0;
	lock_drop(&ch->lock);
	return any;
}

static void serve_far(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	far_look_in(0);
	pthread_setcancelstate(cancel, NULL);
}

static bool has_fired(struct hca_channel *ch)
{
	bool more;

	lock_take(&ch->lock);
	more = fired_more(&ch->order, &ch->reader);
	lock_drop(&ch->lock);
	return more;
}

/* Looks for packets a moment instead of sleeping.  True: an event came. */
static bool look_out(struct hca_channel *ch)
{
	uint64_t end = clock_ns() + LOOKOUT_NS;
	bool saw = false;
	int cancel;

	if (!lookout_begins(&ch->lookout))
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (!saw && clock_ns() < end) {
		far_look_in(1);
		saw = has_fired(ch);
	}
	pthread_setcancelstate(cancel, NULL);
	lookout_ended(&ch->lookout, saw);
	return saw;
}

static void awake(void *arg)
{
	(void)arg;
	far_awake();
}

/* poll(2) of p[0..2), and of what wakes for packets. */
static int sleep_far(struct pollfd *p, int timeout)
{
	unsigned far = far_sleep_on(p + 2, FAR_FDS);
	int n;

	pthread_cleanup_push(awake, NULL); /* the program may cancel a thread that sleeps */
	n = poll(p, 2 + far, timeout);
	pthread_cleanup_pop(1);
	return n;
}

static bool blocks(const struct hca_channel *ch)
{
	return !(fcntl(ch->fd, F_GETFL) & O_NONBLOCK);
}

/*
 * Waits until the channel can be read, or packets came for its CQs, and looks after what waits for
 * time and after weftd, which looks after the rest, meanwhile.  0, -EAGAIN if the program made
 * reading not wait, or -EINTR.
 */
static int wait_readable(struct hca_channel *ch)
{
	struct pollfd p[2 + FAR_FDS] = {{.fd = ch->fd, .events = POLLIN}, {.fd = -1}};
	struct vigil vigil = {
		.hub_id = atomic_load_explicit(&proc_at()->hub_id, memory_order_relaxed)};
	bool busy = true;

	if (looks_far(ch) && blocks(ch) && look_out(ch))
		return 0;
	while (blocks(ch)) {
		bool timed = busy || progress_pending() || moderated(ch);
		int n, timeout;

		p[1].fd = rdv_socket(); /* its end alone is looked for */
		timeout = timed || p[1].fd < 0 ? SLOW_TICK_MS : -1;
		n = looks_far(ch) ? sleep_far(p, timeout) : poll(p, 2, timeout);
		if (n < 0 && !restart_after_signal())
			return -EINTR;
		if (n > 0 && p[0].revents)
			return 0;
		if (n > 0 && !p[1].revents) {
			serve_far();
			return 0; /* it is likely to be readable now */
		}
		if (n > 0 && poll(p, 1, WEFTD_GONE_MS) > 0)
			return 0;
		busy = look_after(ch, &vigil);
	}
	return -EAGAIN;
}

int hca_channel_get(struct hca_channel *ch, void **cookie)
{
	bool waited = false;

	for (;;) {
		int rc = take_count(ch);

		if (rc == -EAGAIN) {
			waited = true;
			rc = wait_readable(ch);
			if (!rc && own_fd_ok(&ch->own))
				continue;
			rc = rc ? rc : -EBADF; /* closed meanwhile: the number may be a file's */
		}
		if (rc)
			return rc;
		if (take_event(ch, cookie) || (!waited && blocks(ch) && make_up_event(ch, cookie)))
			return 0;
	}
}
