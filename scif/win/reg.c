// SPDX-License-Identifier: BSD-3-Clause
#include "scif/win/reg.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "scif.h"
#include "scif/ep/share.h"
#include "scif/link/link.h"
#include "scif/link/wait.h"

enum { PAGE = 4096, RELEASE_WAIT_S = 2 };

/* ---- handles ---- */

struct scif_pinned_pages {
	struct scif_pinned_pages *next;
	struct hold *hold;
};

static struct {
	struct lock lock;
	struct scif_pinned_pages *list;
} handles;

static const char not_pinned[] = "no handle of scif_pin_pages(), or one that was ended";

static int check_pages(const void *addr, size_t len, int prot)
{
	if (((uintptr_t)addr | len) % PAGE || !len || (int64_t)len < 0) {
		check_why("address and length must be multiples of the page size, the length not "
			  "0");
		return -EINVAL;
	}
	if (!prot || (prot & ~(SCIF_PROT_READ | SCIF_PROT_WRITE))) {
		check_why("the protection must be SCIF_PROT_READ, SCIF_PROT_WRITE or both");
		return -EINVAL;
	}
	return (uintptr_t)addr + len < len ? -EFAULT : 0; /* beyond all memory */
}

int pin_pages(void *addr, size_t len, int prot, int flags, struct scif_pinned_pages **pinned)
{
	struct scif_pinned_pages *p;
	int ret;

	if (flags || !pinned) {
		check_why(pinned ? "map_flags must be 0" : "pinned_pages is NULL");
		return -EINVAL;
	}
	ret = check_pages(addr, len, prot);
	if (ret)
		return ret;
	p = malloc(sizeof(*p));
	if (!p)
		return -ENOMEM;
	ret = hold_by_any(addr, len, prot, &p->hold);
	if (ret) {
		free(p);
		return ret;
	}
	lock_take(&handles.lock);
	p->next = handles.list;
	handles.list = p;
	lock_drop(&handles.lock);
	*pinned = p;
	return 0;
}

/* Where the list points to that handle; NULL: it is none.  Under the list's lock. */
static struct scif_pinned_pages **find_handle(const struct scif_pinned_pages *pinned)
{
	struct scif_pinned_pages **at;

	for (at = &handles.list; *at && *at != pinned;)
		at = &(*at)->next;
	return *at ? at : NULL;
}

int unpin_pages(struct scif_pinned_pages *pinned)
{
	struct scif_pinned_pages **at;

	lock_take(&handles.lock);
	at = find_handle(pinned);
	if (at)
		*at = pinned->next;
	lock_drop(&handles.lock);
	if (!at) {
		check_why(not_pinned);
		return -EINVAL;
	}
	hold_put(pinned->hold);
	free(pinned);
	return 0;
}

/* ---- our windows ---- */

int reg_check(const void *addr, size_t len, int64_t off, int prot, int flags)
{
	int ret;

	if (flags & ~SCIF_MAP_FIXED) {
		check_why("map_flags has bits other than SCIF_MAP_FIXED");
		return -EINVAL;
	}
	ret = check_pages(addr, len, prot);
	if (ret)
		return ret;
	if (off < 0) {
		check_why("the offset is negative");
		return -EINVAL;
	}
	if ((flags & SCIF_MAP_FIXED) && (off % PAGE || off + len > INT64_MAX)) {
		check_why("SCIF_MAP_FIXED needs an offset that is a multiple of the page size, and "
			  "room behind it");
		return -EINVAL;
	}
	return 0;
}

static struct ibv_mr *register_region(struct scif_ep *ep, const struct window *w)
{
	int access = 0;

	if (w->prot & SCIF_PROT_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (w->prot & SCIF_PROT_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	return ibv_reg_mr_iova(ep->link.pd, w->hold->at, w->len, w->off, access);
}

/*
 * Offsets of windows that were closed a moment ago are free again once the peer said so: waits
 * for that where they are in the way.
 */
static int await_release(struct scif_ep *ep, uint64_t off, uint64_t len)
{
	uint64_t until = clock_ns() + RELEASE_WAIT_S * (uint64_t)NSEC_PER_SEC, spin = 0;
	struct window *w;

	while (ep->state == EP_CONNECTED && (w = windows_hit(&ep->own, off, len)) != NULL) {
		if (!w->closed || w->told || ep_wait(ep, &spin, until) == -ETIMEDOUT)
			return -EADDRINUSE;
	}
	return ep_connected(ep);
}

/* The same for all closed windows, since a free place is chosen by what is taken. */
static void await_places(struct scif_ep *ep)
{
	uint64_t until = clock_ns() + RELEASE_WAIT_S * (uint64_t)NSEC_PER_SEC, spin = 0;

	for (size_t i = 0; i < ep->own.count && ep->state == EP_CONNECTED;) {
		struct window *w = ep->own.list[i];

		if (!w->closed || w->told)
			i++;
		else if (ep_wait(ep, &spin, until) == -ETIMEDOUT)
			return;
		else
			i = 0;
	}
}

static int tell_peer(struct scif_ep *ep, const struct window *w)
{
	const uint64_t arg[4] = {w->off, w->len, w->prot, w->mr->rkey};
	uint64_t spin = 0;
	int ret;

	while ((ret = link_say(ep, WIRE_REGISTER, 0, arg, 4)) && ep->state == EP_CONNECTED)
		ep_wait(ep, &spin, 0);
	link_await_arrival(ep); /* it is to know the window when we return */
	return ep_connected(ep);
}

/* What is to be a window: the pages at addr, or some that are held already. */
struct wish {
	uint8_t *addr;
	size_t len;
	int prot;
	struct hold *pages;
	const struct weft_share_handle *import; /* of memory of another process */
};

/* Where the window goes. */
static int find_place(struct scif_ep *ep, struct window *w, bool fixed)
{
	int64_t off;

	if (fixed)
		return await_release(ep, w->off, w->len);
	if (ep->own.closed)
		await_places(ep);
	off = windows_place(&ep->own, w->off, w->len);
	if (off < 0)
		return off;
	w->off = off;
	return ep_connected(ep);
}

static int take_pages(struct scif_ep *ep, struct window *w, const struct wish *wish)
{
	int ret = 0;

	w->hold = wish->pages;
	if (w->hold)
		hold_get(w->hold);
	else if (wish->import)
		ret = hold_import(
			ep->link.pd->context, wish->import, wish->len, wish->prot, &w->hold);
	else
		ret = hold_new(ep->link.pd->context, wish->addr, wish->len, wish->prot, &w->hold);
	if (ret)
		return ret;
	w->mr = register_region(ep, w);
	if (!w->mr)
		return errno == EFAULT || errno == ENOMEM ? -errno : -EAGAIN;
	return 0;
}

static int add_window(struct scif_ep *ep, struct window *w, const struct wish *wish, bool fixed)
{
	int ret = find_place(ep, w, fixed);

	if (!ret)
		ret = take_pages(ep, w, wish);
	if (!ret)
		ret = windows_add(&ep->own, w);
	if (ret)
		window_drop(w);
	return ret;
}

static int64_t open_window(struct scif_ep *ep, const struct wish *wish, int64_t off, int flags)
{
	struct window *w = calloc(1, sizeof(*w));
	int64_t ret;

	if (!w)
		return -ENOMEM;
	w->len = wish->len;
	w->prot = wish->prot;
	w->off = off;
	check_begin();
	lock_take(&ep->lock);
	link_poll(ep);
	ret = ep_connected(ep);
	if (!ret)
		ret = add_window(ep, w, wish, flags & SCIF_MAP_FIXED);
	off = w->off; /* another thread may unregister it while we wait */
	if (ret)
		free(w);
	else
		ret = tell_peer(ep, w);
	link_ready(ep);
	lock_drop(&ep->lock);
	return ret ? ret : off;
}

int64_t reg_register(struct scif_ep *ep, void *addr, size_t len, int64_t off, int prot, int flags)
{
	const struct wish wish = {.addr = addr, .len = len, .prot = prot};
	int64_t ret = reg_check(addr, len, off, prot, flags);

	return ret ? ret : open_window(ep, &wish, off, flags);
}

int64_t reg_import(struct scif_ep *ep, const struct weft_share_handle *handle, size_t len,
	int64_t off, int prot, int flags)
{
	const struct wish wish = {.len = len, .prot = prot, .import = handle};
	int64_t ret = reg_check(NULL, len, off, prot, flags);

	return ret ? ret : open_window(ep, &wish, off, flags);
}

int64_t reg_pinned(struct scif_ep *ep, struct scif_pinned_pages *pinned, int64_t off, int flags)
{
	struct hold *hold = NULL;
	struct wish wish;
	int64_t ret;

	lock_take(&handles.lock);
	if (find_handle(pinned) && hold_ours(pinned->hold)) {
		hold = pinned->hold;
		hold_get(hold);
	}
	lock_drop(&handles.lock);
	if (!hold) {
		check_why(not_pinned);
		return -EINVAL;
	}
	wish = (struct wish){hold->addr, hold->len, hold->prot, hold};
	ret = reg_check(hold->addr, hold->len, off, hold->prot, flags);
	if (!ret)
		ret = open_window(ep, &wish, off, flags);
	hold_put(hold);
	return ret;
}

/* May all windows in the range be closed? */
static int check_range(struct scif_ep *ep, uint64_t off, uint64_t len)
{
	bool any = false;

	for (size_t i = windows_rank(&ep->own, off); i < ep->own.count; i++) {
		const struct window *w = ep->own.list[i];

		if (w->off >= off + len)
			break;
		if (w->closed)
			continue;
		if (w->off < off || w->off + w->len > off + len) {
			check_why("the range ends in the middle of the window at %#llx",
				(unsigned long long)w->off);
			return -EINVAL;
		}
		any = true;
	}
	if (!any)
		check_why("no open window lies in the range");
	return any ? 0 : -ENXIO;
}

static void close_window(struct scif_ep *ep, struct window *w)
{
	uint64_t spin = 0;

	w->closed = true;
	ep->own.closed++;
	while (link_say(ep, WIRE_UNREGISTER, 0, &w->off, 1) && ep->state == EP_CONNECTED)
		ep_wait(ep, &spin, 0);
}

int reg_unregister(struct scif_ep *ep, int64_t off, size_t len)
{
	size_t i = 0;
	int ret;

	if (off < 0) {
		check_why("the offset is negative");
		return -EINVAL;
	}
	lock_take(&ep->lock);
	link_poll(ep);
	ret = ep_connected(ep);
	if (!ret)
		ret = !len || off + len > INT64_MAX || off + len < len ? -ENXIO
								       : check_range(ep, off, len);
	/* waiting gives the lock up: the list may have changed */
	while (!ret && (i = windows_rank(&ep->own, off)) < ep->own.count) {
		while (i < ep->own.count && ep->own.list[i]->closed)
			i++;
		if (i == ep->own.count || ep->own.list[i]->off + ep->own.list[i]->len > off + len)
			break;
		close_window(ep, ep->own.list[i]);
	}
	link_await_arrival(ep);
	link_ready(ep);
	lock_drop(&ep->lock);
	return ret;
}

/* ---- what the peer says ---- */

static int peer_registered(struct scif_ep *ep, const uint64_t *arg)
{
	struct window *w;
	int ret;

	if (arg[0] % PAGE || arg[1] % PAGE || !arg[1] || arg[0] > INT64_MAX ||
		arg[1] > INT64_MAX - arg[0] || arg[2] > (SCIF_PROT_READ | SCIF_PROT_WRITE))
		return -EPROTO;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct window){.off = arg[0], .len = arg[1], .prot = arg[2], .rkey = arg[3]};
	ret = windows_add(&ep->theirs, w);
	if (ret)
		free(w);
	return ret;
}

static int peer_released(struct scif_ep *ep, uint64_t off)
{
	struct window *w = windows_at(&ep->own, off);

	if (!w || !w->closed)
		return -EPROTO;
	w->released = true;
	reg_unused(ep);
	return 0;
}

int reg_told(struct scif_ep *ep, const struct wire_ctl *ctl)
{
	struct window *w;

	switch (ctl->op) {
	case WIRE_REGISTER:
		return peer_registered(ep, ctl->arg);
	case WIRE_UNREGISTER:
		w = windows_at(&ep->theirs, ctl->arg[0]);
		if (!w || w->closed)
			return -EPROTO;
		w->closed = true;
		ep->theirs.closed++;
		if (w->refs)
			return link_say(ep, WIRE_RETAINED, 0, &w->off, 1);
		reg_unused(ep);
		return 0;
	case WIRE_RETAINED:
		w = windows_at(&ep->own, ctl->arg[0]);
		if (!w || !w->closed)
			return -EPROTO;
		w->told = true;
		return 0;
	case WIRE_RELEASED:
		return peer_released(ep, ctl->arg[0]);
	}
	return -EPROTO;
}

void reg_unused(struct scif_ep *ep)
{
	for (size_t i = 0; ep->own.closed && i < ep->own.count;) {
		struct window *w = ep->own.list[i];

		if (!w->closed || !w->released || w->refs) {
			i++;
			continue;
		}
		windows_remove(&ep->own, w);
		ep->own.closed--;
		window_drop(w);
		free(w);
	}
	for (size_t i = 0; ep->theirs.closed && i < ep->theirs.count;) {
		struct window *w = ep->theirs.list[i];

		if (!w->closed || w->refs || link_say(ep, WIRE_RELEASED, 0, &w->off, 1)) {
			i++;
			continue;
		}
		windows_remove(&ep->theirs, w);
		ep->theirs.closed--;
		free(w);
	}
}
