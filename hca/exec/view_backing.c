// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/view_backing.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "rdv/proto.h"
#include "rdv/rdv.h"

/* So long a new weftd may take to come, and to be told. */
#define LATER_NS (5 * (uint64_t)NSEC_PER_SEC)

static _Atomic bool any;

static bool is_live(uint32_t id, void *arg)
{
	const struct view *v = arg;
	const struct seg_backing *r = &v->seg->backing[id % SEG_BACKINGS];

	return atomic_load_explicit(&r->id, memory_order_acquire) == id && !view_dead(v);
}

/*
 * In asked_ns: weftd has told something then, having failed before; else (bit clear) it fails since
 * then.  What one request failed to get is to be asked for again also if another has got its own.
 */
#define TOLD 1ull

/* Asks weftd for a descriptor, and notes since when it cannot tell. */
static int get_fd(const struct view *v, uint32_t id, int *fd)
{
	int rc = rdv_get_backing(v->attach, id, fd);
	_Atomic uint64_t *asked = v->backings ? &v->backings->asked_ns : NULL;
	uint64_t since, now = clock_ns();

	if (!asked)
		return rc;
	since = atomic_load_explicit(asked, memory_order_relaxed);
	if (!since && !rc)
		return 0;
	if (!rc)
		now |= TOLD;
	else if (since && !(since & TOLD) && now - since <= 2 * LATER_NS)
		return rc; /* still the same failure */
	else
		now &= ~TOLD;
	atomic_store_explicit(asked, now, memory_order_relaxed);
	return rc;
}

bool view_backing_later(const struct view *v)
{
	uint64_t since =
		v->backings ? atomic_load_explicit(&v->backings->asked_ns, memory_order_relaxed)
			    : 0;

	return since && clock_ns() - since < LATER_NS;
}

/* What the owner says that it is; nothing of it is believed that could harm us. */
int view_backing_get(const struct view *v, uint32_t id, struct backing *b)
{
	const struct seg_backing *r = &v->seg->backing[id % SEG_BACKINGS];
	int rc;

	*b = (struct backing){.kind = r->kind, .fd = -1, .shmid = r->shmid, .ipc_ns = r->ipc_ns};
	if (!id || !is_live(id, (void *)v))
		return -ESTALE;
	if (b->kind == BACKING_SYSV)
		return 0;
	rc = get_fd(v, id, &b->fd);
	return rc != -ENOENT ? rc : view_dead(v) ? -ESTALE : -EAGAIN;
}

void *view_backing_reach(const struct view *v, uint32_t id, uint64_t offset, uint64_t len)
{
	int saved = errno;
	struct backing b;
	bool worth, there;
	void *p;

	if (!id || offset > INT64_MAX - len)
		return NULL;
	p = backing_find(v->backings, id, offset, len, &worth);
	if (p || !worth)
		return p;
	view_backing_sweep(v);
	there = !view_backing_get(v, id, &b);
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
