// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "scif.h"
#include "scif/ep/copy.h"
#include "scif/ep/ep.h"

enum { SAID_MESSAGE = 1, SAID_SOURCE = 2, SAID_CLOSE = 4, WHY_LEN = 200 };

static _Thread_local char why[WHY_LEN] __attribute__((tls_model("initial-exec")));

bool check_on(void)
{
	static _Atomic int on; /* 1: no, 2: yes */
	int is = atomic_load_explicit(&on, memory_order_relaxed);
	const char *s;

	if (!is) {
		s = secure_getenv("WEFT_SCIF_CHECK");
		is = s && *s && strcmp(s, "0") != 0 ? 2 : 1;
		atomic_store_explicit(&on, is, memory_order_relaxed);
	}
	return is == 2;
}

void check_why(const char *fmt, ...)
{
	va_list args;

	if (!check_on())
		return;
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
}

void check_begin(void)
{
	why[0] = '\0';
}

/* ---- failures ---- */

/* What an errno means where no place that gives it said more. */
static const struct {
	int err;
	const char *name, *text;
} meanings[] = {
	{EBADF, "EBADF", "no open file descriptor"},
	{ENOTTY, "ENOTTY", "a file descriptor, but no SCIF endpoint"},
	{ENOTCONN, "ENOTCONN", "the endpoint is not connected"},
	{ECONNRESET, "ECONNRESET", "the connection is over: the peer closed it, or ended"},
	{ECONNREFUSED, "ECONNREFUSED",
		"nobody listens there, its queue of requests is full, or it was closed"},
	{EISCONN, "EISCONN", "the endpoint is connected, connecting or listening"},
	{EINPROGRESS, "EINPROGRESS",
		"no failure: O_NONBLOCK is set, and the result comes with POLLOUT"},
	{EAGAIN, "EAGAIN", "no request waits, and SCIF_ACCEPT_SYNC is not set"},
	{EINTR, "EINTR", "a signal came, or another thread closed the endpoint"},
	{EINVAL, "EINVAL", "an argument is invalid, or the endpoint is in the wrong state"},
	{ENODEV, "ENODEV", "no process of that node is running"},
	{ENXIO, "ENXIO", "not all of the range lies in open windows"},
	{EACCES, "EACCES", "a port or a window does not allow it"},
	{EADDRINUSE, "EADDRINUSE", "the offsets overlap a window that is open or still in use"},
	{EFAULT, "EFAULT", "the memory is not mapped, or not with the rights needed"},
	{ENOMEM, "ENOMEM", "memory, or a limit of the adapter's, is exhausted"},
	{ENOSPC, "ENOSPC", "no port is free"},
	{EOPNOTSUPP, "EOPNOTSUPP", "not possible here; scif(7) has the list"},
};

static void log_failure(const char *call, int err)
{
	const char *name = "errno", *text = "";

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		if (meanings[i].err == err) {
			name = meanings[i].name;
			text = meanings[i].text;
		}
	}
	log_line(LOG_LVL_WARN, "SCIF check: %s: %s: %s", call, *text ? name : strerror(err),
		why[0] ? why : text);
}

/* ---- the port that is no failure ---- */

static void at_connect(struct scif_ep *ep, int64_t ret)
{
	if (ret > 0)
		ep->check.port = ret;
	else if (ret == -EISCONN && ep->check.port)
		check_why("connected since the last call, which returned its port, %d: only -1 is "
			  "a failure",
			ep->check.port);
}

static void at_close(struct scif_ep *ep)
{
	if (ep->check.port)
		log_line(LOG_LVL_WARN,
			"SCIF check: scif_close: connected, never used: scif_connect() had "
			"returned its port, %d, which is no failure",
			ep->check.port);
	if (ep->check.copies)
		log_line(LOG_LVL_WARN,
			"SCIF check: scif_close: %u asynchronous copies were never waited for by "
			"a fence",
			ep->check.copies);
}

void check_end(const char *call, struct scif_ep *ep, int64_t ret)
{
	if (ep)
		lock_take(&ep->lock);
	if (ep && !strcmp(call, "scif_connect"))
		at_connect(ep, ret);
	else if (ep && !strcmp(call, "scif_close") && ep->state == EP_CLOSED)
		at_close(ep);
	else if (ep)
		ep->check.port = 0;
	if (ep)
		lock_drop(&ep->lock);
	if (ret < 0)
		log_failure(call, -ret);
	why[0] = '\0';
}

/* ---- copies that nobody waited for ---- */

static bool overlaps(uint64_t a, uint64_t alen, uint64_t b, uint64_t blen)
{
	return a < b + blen && b < a + alen;
}

static void say_once(struct scif_ep *ep, unsigned what, const char *text)
{
	if (ep->check.said & what)
		return;
	ep->check.said |= what;
	log_line(LOG_LVL_WARN, "SCIF check: %s", text);
}

static unsigned known_copies(const struct ep_check *c)
{
	return c->copies < CHECK_COPIES ? c->copies : CHECK_COPIES;
}

/* Is memory that is about to be read the destination of a copy that may be under way? */
static bool is_pending(const struct ep_check *c, uint64_t at, uint64_t len)
{
	for (unsigned i = 0; at && i < known_copies(c); i++)
		if (c->copy[i].addr && overlaps(at, len, c->copy[i].addr, c->copy[i].len))
			return true;
	return false;
}

/* Where in memory an offset of ours is; 0: nowhere. */
static uint64_t address_of(struct scif_ep *ep, uint64_t off)
{
	const struct window *w = windows_holding(&ep->own, off);

	return w ? (uintptr_t)w->hold->addr + (off - w->off) : 0;
}

void check_copied(struct scif_ep *ep, const struct rma_args *a, uint64_t number)
{
	struct ep_check *c = &ep->check;
	uint64_t local = a->memory ? (uintptr_t)a->addr : address_of(ep, a->loff);

	if (!check_on())
		return;
	if (a->write && is_pending(c, local, a->len))
		say_once(ep, SAID_SOURCE,
			"a copy reads what an asynchronous copy writes, without a fence between");
	if (a->flags & SCIF_RMA_SYNC)
		return;
	if (c->copies < CHECK_COPIES) {
		c->copy[c->copies].number = number;
		c->copy[c->copies].addr = a->write ? 0 : local;
		c->copy[c->copies].len = a->len;
	}
	c->copies++;
}

void check_sent(struct scif_ep *ep, const void *msg, size_t len)
{
	const struct ep_check *c = &ep->check;

	if (!check_on() || !c->copies)
		return;
	if (is_pending(c, (uintptr_t)msg, len))
		say_once(ep, SAID_SOURCE,
			"scif_send() reads what an asynchronous copy writes, without a fence "
			"between");
	for (unsigned i = 0; i < known_copies(c); i++)
		if (!c->copy[i].addr)
			say_once(ep, SAID_MESSAGE,
				"a message follows an asynchronous copy without a fence: who reads "
				"the copy when the message comes may find old bytes");
}

void check_fenced(struct scif_ep *ep, uint64_t number)
{
	struct ep_check *c = &ep->check;
	unsigned left = 0, known = known_copies(c);

	for (unsigned i = 0; i < known; i++)
		if (c->copy[i].number > number)
			c->copy[left++] = c->copy[i];
	/* of those beyond the first few nothing is known: they count as covered */
	c->copies = left;
}
