// SPDX-License-Identifier: BSD-3-Clause
#include "hca/view_backing.h"

#include <errno.h>
#include <unistd.h>

#include "rdv/proto.h"
#include "rdv/rdv.h"

static _Atomic bool any;

static bool is_live(uint32_t id, void *arg)
{
	const struct view *v = arg;
	const struct seg_backing *r = &v->seg->backing[id % SEG_BACKINGS];

	return atomic_load_explicit(&r->id, memory_order_acquire) == id && !view_dead(v);
}

/* What the owner says that it is; nothing of it is believed that could harm us.  False: gone. */
static bool source(const struct view *v, uint32_t id, struct backing *b)
{
	const struct seg_backing *r = &v->seg->backing[id % SEG_BACKINGS];

	*b = (struct backing){.kind = r->kind, .fd = -1, .shmid = r->shmid, .ipc_ns = r->ipc_ns};
	if (!is_live(id, (void *)v))
		return false;
	return b->kind == BACKING_SYSV || !rdv_get_channel(v->attach, PROTO_BACKING | id, &b->fd);
}

void *view_backing_reach(const struct view *v, uint32_t id, uint64_t offset, uint64_t len)
{
	int saved = errno;
	struct backing b;
	bool worth, there;
	void *p;

	/* An id beyond leaves no room for the mark that weftd knows them by. */
	if (!id || id >= PROTO_BACKING || offset > INT64_MAX - len)
		return NULL;
	p = backing_find(v->backings, id, offset, len, &worth);
	if (p || !worth)
		return p;
	view_backing_sweep(v);
	there = source(v, id, &b);
	atomic_store_explicit(&any, true, memory_order_relaxed);
	p = backing_map(v->backings, id, offset, len, there ? &b : NULL);
	if (there && b.fd >= 0)
		close(b.fd);
	errno = saved;
	return p;
}

void view_backing_sweep(const struct view *v)
{
	if (v->backings)
		backing_sweep(v->backings, is_live, (void *)v);
}

bool view_backing_any(void)
{
	return atomic_load_explicit(&any, memory_order_relaxed);
}
