// SPDX-License-Identifier: BSD-3-Clause
/* Completion channels: an eventfd, and the CQs whose events it counts (hca/seg/fired.h). */
#include "hca/queue/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
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
#define DOUBT_LATE_NS (100 * (uint64_t)NSEC_PER_MSEC)
#define ALERT_NS      (2 * (uint64_t)NSEC_PER_SEC)

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
	atomic_store_explicit(&proc_seg()->channel[ch->id].doubt_ns, 0, memory_order_relaxed);
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
			return log_busy("ibv_destroy_comp_channel", "CQs use the channel");
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

static uint32_t count_of(const _Atomic uint32_t *events, const struct hca_cq *cq)
{
	return fired_ahead(atomic_load_explicit(events, memory_order_acquire), cq->fired_seen);
}

/*
 * A count may be missing, for as long as a producer is stopped: weftd is asked to look, and to add
 * one.  Not under a lock: it may have to be started.
 */
static void ask_to_look(struct hca_channel *ch)
{
	_Atomic uint64_t *doubt_ns = &proc_seg()->channel[ch->id].doubt_ns;
	uint64_t asked, now = clock_ns(), due = now + FIRED_DOUBT_NS;

	/* weftd clears it, and then looks at what was given: one of us sees the other. */
	atomic_thread_fence(memory_order_seq_cst);
	asked = atomic_load_explicit(doubt_ns, memory_order_seq_cst);
	/* One that is long overdue died with weftd. */
	if (asked && now < asked + DOUBT_LATE_NS)
		return;
	atomic_store_explicit(doubt_ns, due, memory_order_seq_cst);
	if (!wake_timer(proc_at()->attach_id, SEG_TIMER_CHANNEL | ch->id, due, NULL))
		atomic_store_explicit(doubt_ns, 0, memory_order_relaxed);
}

/*
 * Its events that were not taken go with it, and their counts.  True: perhaps not these, but those
 * of others.
 */
static bool drop_events(struct hca_channel *ch, struct hca_cq *cq)
{
	uint32_t n = count_of(&cq->s->told, cq);

	if (!n || !own_fd_ok(&ch->own))
		return false;
	while (n-- && !wake_take(ch->fd))
		;
	return fired_more(&ch->order, &ch->reader);
}

void channel_del_cq(struct hca_channel *ch, struct hca_cq *cq)
{
	bool doubtful = false;

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
			doubtful = drop_events(ch, cq);
	}
	lock_drop(&ch->lock);
	if (doubtful)
		ask_to_look(ch);
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

/* Has somebody written the fd for an event of it that is not given out yet? */
static bool is_told(const struct hca_cq *cq)
{
	return count_of(&cq->s->told, cq);
}

/* An event to give out. */
struct choice {
	struct hca_cq *cq; /* NULL: there is none */
	bool told;
	bool others; /* not told either: its count may be one of theirs */
};

/* False: the choice is made. */
static bool consider(struct choice *c, struct hca_cq *cq)
{
	if (is_told(cq)) {
		*c = (struct choice){.cq = cq, .told = true};
		return false;
	}
	if (!c->cq)
		c->cq = cq;
	else if (c->cq != cq)
		c->others = true;
	return true;
}

/* Of all CQs, looking round from the last one found. */
static struct choice any_fired(struct hca_channel *ch)
{
	struct hca_cq *start = ch->next_up ? ch->next_up : ch->cqs, *cq = start;
	struct choice c = {NULL};

	while (cq) {
		if (count_of(&cq->s->fired, cq) && !consider(&c, cq))
			break;
		cq = cq->next ? cq->next : ch->cqs;
		if (cq == start)
			break;
	}
	ch->reader.sweeps &= !!c.cq;
	if (c.cq)
		ch->next_up = c.cq->next;
	return c;
}

/* The oldest of n entries that is told, and its number; else the oldest. */
static struct choice oldest(struct hca_channel *ch, uint32_t n, uint32_t *at)
{
	struct choice c = {NULL};
	uint64_t entry;

	for (*at = 0; *at < n && (entry = fired_peek(&ch->order, &ch->reader, *at)); ++*at) {
		struct hca_cq *cq = named_by(ch, entry);

		if (cq && !consider(&c, cq))
			break;
	}
	return c;
}

static struct choice next_fired(struct hca_channel *ch)
{
	struct hca_cq *first = NULL;
	struct choice c;
	uint64_t entry;
	uint32_t at;

	fired_begin(&ch->order, &ch->reader);
	while ((entry = fired_peek(&ch->order, &ch->reader, 0)) && !(first = named_by(ch, entry)))
		fired_drop(&ch->order, &ch->reader);
	if (!first)
		return any_fired(ch);
	c = oldest(ch, FIRED_LOOK, &at);
	/* What was told before the producer of that one began is seen to be told now. */
	if (c.told && at)
		c = oldest(ch, at + 1, &at);
	ch->reader.passed = c.cq == first ? 0 : ch->reader.passed + 1;
	if (ch->reader.passed <= FIRED_PASSED_MAX)
		return c;
	ch->reader.passed = 0;
	return (struct choice){.cq = first, .others = true};
}

/* For a count that was taken: the event that it is for.  False: it was one too many. */
static bool take_event(struct hca_channel *ch, void **cookie)
{
	struct choice c;

	lock_take(&ch->lock);
	c = next_fired(ch);
	if (c.cq) {
		c.cq->fired_seen++;
		atomic_store_explicit(&c.cq->s->given, c.cq->fired_seen, memory_order_release);
		cq_event_taken(c.cq);
		*cookie = c.cq->cookie;
		ch->last = c.cq;
	}
	lock_drop(&ch->lock);
	if (c.others && !c.told)
		ask_to_look(ch);
	return c.cq;
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

	if (ch->epoch != proc_epoch())
		return -EINVAL; /* the counts are those of the process we were forked from */
	for (;;) {
		int rc = wake_take(ch->fd);

		if (rc == -EAGAIN) {
			waited = true;
			rc = wait_readable(ch);
			if (!rc && own_fd_ok(&ch->own))
				continue;
			rc = rc ? rc : -EBADF; /* closed meanwhile: the number may be a file's */
		}
		if (rc)
			return rc;
		if (take_event(ch, cookie) || (!waited && make_up_event(ch, cookie)))
			return 0;
	}
}
