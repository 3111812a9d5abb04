// SPDX-License-Identifier: BSD-3-Clause
#include "scif/ep/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scif.h"
#include "scif/ep/check.h"

enum { PAGE = 4096 };
static const uint64_t place_base = UINT64_C(0x4000000000000000);
static const uint64_t place_end = UINT64_C(0x7ffffffffffff000);

size_t windows_rank(const struct windows *s, uint64_t off)
{
	size_t lo = 0, hi = s->count;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->list[mid]->off + s->list[mid]->len <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct window *windows_hit(struct windows *s, uint64_t off, uint64_t len)
{
	size_t i = windows_rank(s, off);

	return i < s->count && s->list[i]->off < off + len ? s->list[i] : NULL;
}

struct window *windows_holding(struct windows *s, uint64_t off)
{
	return windows_hit(s, off, 1);
}

struct window *windows_at(struct windows *s, uint64_t off)
{
	struct window *w = windows_holding(s, off);

	return w && w->off == off ? w : NULL;
}

static int make_room(struct windows *s)
{
	size_t room = s->room ? 2 * s->room : 8;
	struct window **list;

	if (s->count < s->room)
		return 0;
	if (s->count >= MAX_WINDOWS)
		return -ENOMEM;
	list = realloc(s->list, room * sizeof(*list));
	if (!list)
		return -ENOMEM;
	s->list = list;
	s->room = room;
	return 0;
}

int windows_add(struct windows *s, struct window *w)
{
	size_t i;
	int ret;

	if (windows_hit(s, w->off, w->len))
		return -EADDRINUSE;
	ret = make_room(s);
	if (ret)
		return ret;
	i = windows_rank(s, w->off);
	memmove(s->list + i + 1, s->list + i, (s->count - i) * sizeof(*s->list));
	s->list[i] = w;
	s->count++;
	return 0;
}

void windows_remove(struct windows *s, struct window *w)
{
	size_t i = windows_rank(s, w->off);

	if (i >= s->count || s->list[i] != w)
		return;
	s->count--;
	memmove(s->list + i, s->list + i + 1, (s->count - i) * sizeof(*s->list));
}

int windows_check(struct windows *s, int64_t off, uint64_t len, int prot)
{
	uint64_t at = off, end = at + len;
	int ret = 0;

	if (off < 0 || end > INT64_MAX || end < at) {
		check_why("offset %#llx is negative, or the range wraps", (unsigned long long)off);
		return -ENXIO;
	}
	for (size_t i = windows_rank(s, at); at < end; i++) {
		const struct window *w = i < s->count ? s->list[i] : NULL;

		if (!w || w->off > at || w->closed) {
			check_why("no open window at offset %#llx", (unsigned long long)at);
			return -ENXIO;
		}
		if ((w->prot & prot) != prot) {
			check_why("the window at %#llx is not registered for %s",
				(unsigned long long)w->off,
				w->prot & SCIF_PROT_READ ? "writing" : "reading");
			ret = -EACCES;
		}
		at = w->off + w->len;
	}
	return ret;
}

void windows_ref(struct windows *s, uint64_t off, uint64_t len, int n)
{
	for (size_t i = windows_rank(s, off); i < s->count && s->list[i]->off < off + len; i++)
		s->list[i]->refs += n;
}

/* The first place at or after from, before place_end. */
static int64_t place_after(struct windows *s, uint64_t from, uint64_t len)
{
	uint64_t at = from;

	if (len > place_end)
		return -ENOMEM;
	for (size_t i = windows_rank(s, from); i < s->count; i++) {
		if (s->list[i]->off >= at && s->list[i]->off - at >= len)
			break;
		at = s->list[i]->off + s->list[i]->len;
	}
	return at <= place_end - len ? (int64_t)at : -ENOMEM;
}

int64_t windows_place(struct windows *s, uint64_t hint, uint64_t len)
{
	int64_t off = -ENOMEM;

	if (hint && hint < place_end)
		off = place_after(s, (hint + PAGE - 1) & -(uint64_t)PAGE, len);
	return off >= 0 ? off : place_after(s, place_base, len);
}

void windows_free(struct windows *s, void (*drop)(struct window *w))
{
	for (size_t i = 0; i < s->count; i++) {
		if (drop)
			drop(s->list[i]);
		free(s->list[i]);
	}
	free(s->list);
	*s = (struct windows){0};
}

void window_drop(struct window *w)
{
	if (w->mr)
		ibv_dereg_mr(w->mr);
	w->mr = NULL;
	hold_put(w->hold);
	w->hold = NULL;
}
