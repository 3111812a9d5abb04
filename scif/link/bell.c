// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/bell.h"

#include "base/clock.h"
#include "scif/link/link.h"

/* A program that made a call so recently is at work on its endpoint ... */
static const uint64_t NEAR_NS = 50 * NSEC_PER_USEC;
/* ... and one that did not for so long is not. */
static const uint64_t QUIET_NS = BELL_TICK_MS * (uint64_t)NSEC_PER_MSEC;
/* How long a queue stays armed after something came late. */
static const uint64_t EAGER_NS = 100 * (uint64_t)NSEC_PER_MSEC;

/* Endpoints whose queue is not armed. */
static struct {
	struct lock lock;
	_Atomic uint32_t count;
	struct scif_ep *first, *last;
} busy;

static bool used_since(const struct scif_ep *ep, uint64_t then)
{
	return atomic_load_explicit(&ep->used, memory_order_relaxed) > then;
}

static bool at_work(const struct scif_ep *ep, uint64_t now)
{
	return ep->inside || used_since(ep, now - NEAR_NS);
}

static void enlist(struct scif_ep *ep)
{
	lock_take(&busy.lock);
	if (!ep->listed && !ep->forgotten) {
		ep->listed = true;
		ep->busy_next = NULL;
		if (busy.last)
			busy.last->busy_next = ep;
		else
			busy.first = ep;
		busy.last = ep;
		atomic_fetch_add_explicit(&busy.count, 1, memory_order_relaxed);
	}
	lock_drop(&busy.lock);
}

/* Takes it out of the list; before is the one before it, NULL: none.  Under the list's lock. */
static void take_out(struct scif_ep *ep, struct scif_ep *before)
{
	if (before)
		before->busy_next = ep->busy_next;
	else
		busy.first = ep->busy_next;
	if (busy.last == ep)
		busy.last = before;
	ep->listed = false;
	atomic_fetch_sub_explicit(&busy.count, 1, memory_order_relaxed);
}

void bell_forget(struct scif_ep *ep)
{
	struct scif_ep *before = NULL, *at;

	lock_take(&busy.lock);
	ep->forgotten = true;
	for (at = busy.first; at && at != ep; at = at->busy_next)
		before = at;
	if (at)
		take_out(ep, before);
	lock_drop(&busy.lock);
}

/* The first of the list, with a reference; NULL: it is empty. */
static struct scif_ep *next_busy(void)
{
	struct scif_ep *ep;

	lock_take(&busy.lock);
	ep = busy.first;
	if (ep) {
		ep_get(ep);
		take_out(ep, NULL);
	}
	lock_drop(&busy.lock);
	return ep;
}

bool bell_busy(void)
{
	return atomic_load_explicit(&busy.count, memory_order_relaxed) > 0;
}

void bell_forked(void)
{
	busy.first = busy.last = NULL;
	atomic_store_explicit(&busy.count, 0, memory_order_relaxed);
	atomic_store_explicit(&busy.lock.word, 0, memory_order_relaxed);
}

void bell_rang(struct scif_ep *ep)
{
	uint32_t seq = atomic_load_explicit(&ep->seq, memory_order_relaxed);
	uint64_t now = clock_ns();
	bool sleepers, came;

	ep->link.armed = false;
	link_poll(ep);
	if (!link_is_live(ep))
		return;
	sleepers = atomic_load_explicit(&ep->sleepers, memory_order_relaxed);
	came = seq != atomic_load_explicit(&ep->seq, memory_order_relaxed);
	/* sleepers that something wakes arm it themselves before they sleep again */
	if (now < ep->link.eager_until || (sleepers ? !came : !at_work(ep, now)))
		link_arm(ep);
	else
		enlist(ep);
}

void bell_before_sleep(struct scif_ep *ep)
{
	if (!ep->link.armed)
		link_arm(ep);
}

void bell_before_poll(struct scif_ep *ep)
{
	atomic_store_explicit(&ep->used, 0, memory_order_relaxed);
	bell_before_sleep(ep);
}

/* Is the queue armed, or are there none, after a look? */
static bool settled(struct scif_ep *ep)
{
	uint64_t msgs = ep->link.rx.came.msgs, now = clock_ns();

	if (!link_is_live(ep) || ep->link.armed)
		return true;
	link_poll(ep);
	if (ep->link.rx.came.msgs != msgs && !at_work(ep, now))
		ep->link.eager_until = now + EAGER_NS;
	else if (used_since(ep, now - QUIET_NS) || ep->inside)
		return false;
	link_arm(ep);
	return true;
}

/* Not while somebody has the lock: he is at work, and would have to wake us when he lets it go. */
static void look_at(struct scif_ep *ep)
{
	if (!lock_try(&ep->lock)) {
		enlist(ep);
		return;
	}
	if (!settled(ep))
		enlist(ep); /* who closes it forgets it after that */
	link_ready(ep);
	lock_drop(&ep->lock);
}

void bell_tick(void)
{
	uint32_t n = atomic_load_explicit(&busy.count, memory_order_relaxed);
	struct scif_ep *ep;

	while (n-- && (ep = next_busy()) != NULL) {
		look_at(ep);
		ep_put(ep);
	}
}
