// SPDX-License-Identifier: BSD-3-Clause
#include "scif/win/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "scif/ep/share.h"
#include "scif/ep/sys.h"
#include "scif/link/link.h"
#include "scif/win/reg.h"

enum { PAGE = 4096 };

/* A piece of one window in our address space. */
struct mapping {
	struct mapping *next;
	struct scif_ep *ep; /* a reference */
	uintptr_t at;
	uint64_t len, off;
};

/* What scif_get_pages() gave out. */
struct given {
	struct scif_range range; /* first: the program has its address */
	struct given *next;
	void *base;
	size_t len;
};

static struct {
	struct lock lock;
	struct mapping *mappings;
	struct given *given;
} maps;

void map_forked(void)
{
	maps.mappings = NULL;
	maps.given = NULL;
	atomic_store_explicit(&maps.lock.word, 0, memory_order_relaxed);
}

/* ---- the owner ---- */

int map_asked(struct scif_ep *ep, const struct wire_ctl *ctl)
{
	struct window *w = windows_at(&ep->own, ctl->arg[0]);
	uint64_t arg[5] = {ENXIO};

	if (w && !w->closed)
		arg[0] = -hold_export(w->hold, ep->link.pd->context);
	if (!arg[0])
		memcpy(&arg[1], &w->hold->handle, sizeof(w->hold->handle));
	return link_say(ep, WIRE_MAP_ACK, ctl->id, arg, 5);
}

_Static_assert(sizeof(struct weft_share_handle) == 4 * sizeof(uint64_t), "it fills four words");

/* ---- the peer ---- */

/* Gets the handles of all windows in the range, which the caller keeps by references. */
static int get_handles(struct scif_ep *ep, uint64_t off, uint64_t len)
{
	uint64_t answer[5], end = off + len;
	int ret = 0;

	if (ep->link.far) {
		check_why("the peer is on another machine: its windows are copied, not mapped");
		return -EOPNOTSUPP;
	}
	while (!ret && off < end) {
		struct window *w = windows_holding(&ep->theirs, off);

		if (!w)
			return -ECONNRESET;
		off = w->off + w->len;
		if (w->has_handle)
			continue;
		ret = link_ask(ep, WIRE_MAP, &w->off, 1, answer, 5);
		if (!ret && answer[0])
			ret = answer[0] == ENOMEM  ? -ENOMEM
			      : answer[0] == ENXIO ? -ENXIO
						   : -EOPNOTSUPP;
		if (ret)
			break;
		memcpy(&w->handle, &answer[1], sizeof(w->handle));
		w->has_handle = true;
	}
	return ret;
}

static int add_mapping(struct scif_ep *ep, uintptr_t at, uint64_t len, uint64_t off)
{
	struct mapping *m = malloc(sizeof(*m));

	if (!m)
		return -ENOMEM;
	ep_get(ep);
	*m = (struct mapping){.ep = ep, .at = at, .len = len, .off = off};
	lock_take(&maps.lock);
	m->next = maps.mappings;
	maps.mappings = m;
	lock_drop(&maps.lock);
	return 0;
}

/* Maps [off, off + len) at base, piece by piece; how much was mapped in *done. */
static int map_pieces(
	struct scif_ep *ep, uint8_t *base, uint64_t off, uint64_t len, int prot, uint64_t *done)
{
	const struct share_calls *share = share_calls();

	for (*done = 0; *done < len;) {
		struct window *w = windows_holding(&ep->theirs, off + *done);
		uint64_t in = off + *done - w->off, n = w->len - in;

		if (n > len - *done)
			n = len - *done;
		if (!share->map(ep->link.pd->context, &w->handle, in, n, prot, WEFT_SHARE_FIXED,
			    base + *done))
			return errno == ENOMEM || errno == ENOSPC ? -ENOMEM : -EOPNOTSUPP;
		if (add_mapping(ep, (uintptr_t)base + *done, n, off + *done)) {
			share->unmap(base + *done, n);
			return -ENOMEM;
		}
		w->refs++;
		*done += n;
	}
	return 0;
}

/*
 * Reserves a place; *ours is false if what is there now is the program's, which goes only as it is
 * replaced.  Says what is no place for memory at all.
 */
static int reserve(void *addr, uint64_t len, bool fixed, void **base, bool *ours)
{
	int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (fixed ? MAP_FIXED_NOREPLACE : 0);
	int err = errno;

	*base = mmap(addr, len, PROT_NONE, how, -1, 0);
	*ours = *base != MAP_FAILED;
	if (fixed && *ours && *base != addr) { /* a kernel that does not know the flag */
		munmap(*base, len);
		*ours = false;
	} else if (!*ours && (!fixed || errno != EEXIST)) {
		errno = err;
		check_why("no address space there, or none left");
		return -ENOMEM;
	}
	if (fixed)
		*base = addr;
	errno = err;
	return 0;
}

/* In *undo, how much at *mapped is to be taken away again if it fails. */
static int map_at(struct scif_ep *ep, void *addr, uint64_t len, int prot, bool fixed, uint64_t off,
	void **mapped, uint64_t *undo)
{
	uint64_t done;
	void *base;
	bool ours;
	int ret = reserve(addr, len, fixed, &base, &ours);

	if (ret)
		return ret;
	ret = map_pieces(ep, base, off, len, prot, &done);
	*mapped = base;
	*undo = ours ? len : done;
	return ret;
}

static int check_map(struct scif_ep *ep, int prot, int64_t off, uint64_t len)
{
	int ret = ep_connected(ep);

	if (ret)
		return ret;
	return windows_check(&ep->theirs, off, len, prot & (SCIF_PROT_READ | SCIF_PROT_WRITE));
}

static int check_args(const void *addr, uint64_t len, int prot, int flags, int64_t off)
{
	bool fixed = flags & SCIF_MAP_FIXED;

	if (!len || len > INT64_MAX)
		check_why("len is 0, or beyond all memory");
	else if (off % PAGE)
		check_why("the offset must be a multiple of the page size");
	else if (prot & ~(PROT_READ | PROT_WRITE))
		check_why("prot has bits other than SCIF_PROT_READ and SCIF_PROT_WRITE");
	else if (flags & ~(SCIF_MAP_FIXED | MAP_SHARED))
		check_why("flags has bits other than SCIF_MAP_FIXED");
	else if (fixed && (!addr || (uintptr_t)addr % PAGE))
		check_why("SCIF_MAP_FIXED needs an address that is a multiple of the page size and "
			  "not NULL");
	else
		return 0;
	return -EINVAL;
}

int map_window(
	struct scif_ep *ep, void *addr, size_t len, int prot, int flags, int64_t off, void **mapped)
{
	uint64_t whole = (len + PAGE - 1) & -(uint64_t)PAGE, undo = 0;
	int ret = check_args(addr, len, prot, flags, off);

	if (ret)
		return ret;
	lock_take(&ep->lock);
	link_poll(ep);
	ret = check_map(ep, prot, off, whole);
	if (!ret && !share_calls())
		ret = -EOPNOTSUPP;
	if (!ret) {
		windows_ref(&ep->theirs, off, whole, 1);
		ret = get_handles(ep, off, whole);
		if (!ret)
			ret = ep_connected(ep);
		if (!ret)
			ret = map_at(
				ep, addr, whole, prot, flags & SCIF_MAP_FIXED, off, mapped, &undo);
		if (ep->state == EP_CONNECTED) {
			windows_ref(&ep->theirs, off, whole, -1);
			reg_unused(ep);
			link_poll(ep);
		}
	}
	link_ready(ep);
	lock_drop(&ep->lock);
	if (ret && undo)
		unmap_window(*mapped, undo);
	return ret;
}

/* One reference less, or more, of the window that a mapping is a piece of. */
static void unref(const struct mapping *m, int n)
{
	struct scif_ep *ep = m->ep;

	lock_take(&ep->lock);
	if (ep->state == EP_CONNECTED) {
		windows_ref(&ep->theirs, m->off, 1, n);
		reg_unused(ep);
		link_poll(ep);
		link_ready(ep);
	}
	lock_drop(&ep->lock);
}

/* Takes the hole [at, to) out of the middle of m: what is right of it is a piece of its own. */
static int split(struct mapping *m, uintptr_t at, uintptr_t to)
{
	struct mapping *right = malloc(sizeof(*right));

	if (!right)
		return -ENOMEM;
	*right = *m;
	right->at = to;
	right->len = m->at + m->len - to;
	right->off += to - m->at;
	ep_get(m->ep);
	m->next = right;
	m->len = at - m->at;
	return 0;
}

/*
 * Takes [at, to) out of the list.  Returns the pieces that are gone; a copy of the one that
 * became two in *two, with a reference, if *two has an endpoint then.
 */
static struct mapping *cut(uintptr_t at, uintptr_t to, struct mapping *two)
{
	struct mapping *gone = NULL, **p = &maps.mappings;

	while (*p) {
		struct mapping *m = *p;
		uintptr_t end = m->at + m->len;

		p = &m->next;
		if (end <= at || m->at >= to)
			continue;
		if (m->at < at && end > to) {
			if (split(m, at, to) == 0) {
				*two = *m;
				ep_get(two->ep);
			}
			break;
		}
		if (m->at < at) {
			m->len = at - m->at;
		} else if (end > to) {
			m->off += to - m->at;
			m->len = end - to;
			m->at = to;
		} else {
			for (p = &maps.mappings; *p != m;)
				p = &(*p)->next;
			*p = m->next;
			m->next = gone;
			gone = m;
		}
	}
	return gone;
}

int unmap_window(void *addr, size_t len)
{
	uint64_t whole = (len + PAGE - 1) & -(uint64_t)PAGE;
	const struct share_calls *share = share_calls();
	struct mapping *gone, two = {.ep = NULL};
	int err = errno, ret;

	if ((uintptr_t)addr % PAGE || !len || whole < len) {
		check_why("the address must be a multiple of the page size, the length not 0");
		return -EINVAL;
	}
	lock_take(&maps.lock);
	gone = cut((uintptr_t)addr, (uintptr_t)addr + whole, &two);
	lock_drop(&maps.lock);
	if (share)
		share->unmap(addr, whole);
	ret = sys_munmap(addr, whole) < 0 ? -errno : 0;
	if (two.ep) {
		unref(&two, 1);
		ep_put(two.ep);
	}
	while (gone) {
		struct mapping *m = gone;

		gone = m->next;
		unref(m, -1);
		ep_put(m->ep);
		free(m);
	}
	errno = err;
	return ret;
}

bool map_holds(const void *addr, size_t len)
{
	uintptr_t at = (uintptr_t)addr;
	const struct mapping *m;

	lock_take(&maps.lock);
	for (m = maps.mappings; m && (m->at >= at + len || m->at + m->len <= at);)
		m = m->next;
	lock_drop(&maps.lock);
	return m != NULL;
}

/* ---- pages ---- */

static int window_prot(struct scif_ep *ep, uint64_t off, uint64_t len)
{
	struct window *w;
	int prot = -ENXIO;

	lock_take(&ep->lock);
	link_poll(ep);
	w = windows_holding(&ep->theirs, off);
	if (ep_connected(ep))
		prot = ep_connected(ep);
	else if (w && !w->closed && off + len <= w->off + w->len)
		prot = w->prot;
	lock_drop(&ep->lock);
	return prot;
}

static struct given *new_given(size_t pages)
{
	struct given *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->range.phys_addr = calloc(pages, sizeof(*g->range.phys_addr));
	g->range.va = calloc(pages, sizeof(*g->range.va));
	return g;
}

static void free_given(struct given *g)
{
	if (g) {
		free(g->range.phys_addr);
		free(g->range.va);
	}
	free(g);
}

int map_get_pages(struct scif_ep *ep, int64_t off, size_t len, struct scif_range **pages)
{
	struct given *g;
	void *base;
	int prot, ret;

	if (!pages || off < 0 || off % PAGE || !len || len % PAGE || len / PAGE > INT32_MAX) {
		check_why("offset and length must be multiples of the page size, the offset not "
			  "negative, the length not 0, pages not NULL");
		return -EINVAL;
	}
	prot = window_prot(ep, off, len);
	if (prot < 0)
		return prot;
	g = new_given(len / PAGE);
	if (!g || !g->range.va || !g->range.phys_addr) {
		free_given(g);
		return -ENOMEM;
	}
	ret = map_window(ep, NULL, len, prot, 0, off, &base);
	if (ret) {
		free_given(g);
		return ret;
	}
	g->range.cookie = g;
	g->range.nr_pages = len / PAGE;
	g->range.prot_flags = prot;
	for (size_t i = 0; i < len / PAGE; i++) {
		g->range.va[i] = (uint8_t *)base + i * PAGE;
		g->range.phys_addr[i] = (uintptr_t)g->range.va[i];
	}
	g->base = base;
	g->len = len;
	lock_take(&maps.lock);
	g->next = maps.given;
	maps.given = g;
	lock_drop(&maps.lock);
	*pages = &g->range;
	return 0;
}

int map_put_pages(struct scif_range *pages)
{
	struct given **at, *g;

	lock_take(&maps.lock);
	for (at = &maps.given; *at && &(*at)->range != pages;)
		at = &(*at)->next;
	g = *at;
	if (g)
		*at = g->next;
	lock_drop(&maps.lock);
	if (!g) {
		check_why("not of scif_get_pages(), or given back already");
		return -EINVAL;
	}
	unmap_window(g->base, g->len);
	free_given(g);
	return 0;
}
