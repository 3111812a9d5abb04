// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/crash_journal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/at_open.h"
#include "base/log.h"

/* The journal that our environment names; once open, it is never closed. */
static struct journal own;
static _Atomic bool journaled; /* it is open, and our segment says so */

void crash_forked_child(void)
{
	/* The mapping stays, for when the child attaches. */
	atomic_store_explicit(&journaled, false, memory_order_relaxed);
}

static void tell_foreign(const struct view *v)
{
	static _Atomic uint32_t told;

	if (atomic_exchange_explicit(&told, v->attach, memory_order_relaxed) == v->attach)
		return;
	log_line(LOG_LVL_ERROR,
		"process %d is under weft crash, and what is written into its memory would be "
		"missing in its journal: run this program by weft crash run --add with the same "
		"journal",
		v->pid);
}

int crash_journal(const struct view *v, struct journal **j)
{
	bool on = atomic_load_explicit(&journaled, memory_order_acquire);
	uint64_t id;

	*j = NULL;
	if (v->pid) {
		id = atomic_load_explicit(&v->seg->hdr.journal_id, memory_order_acquire);
		if (id && (!on || id != own.id)) {
			tell_foreign(v);
			return -EXDEV;
		}
		on = id;
	}
	if (on)
		*j = &own;
	return 0;
}

static bool open_own(const char *path)
{
	int rc = path[0] == '/' ? journal_join(&own, path) : -EINVAL;

	if (rc == -EINVAL)
		log_line(LOG_LVL_ERROR, JOURNAL_ENV "=%.80s is no absolute path; nothing is noted",
			path);
	else if (rc)
		log_line(LOG_LVL_ERROR, "cannot open the journal %.200s: %s; nothing is noted",
			path, journal_error(rc));
	return !rc;
}

AT_OPEN void crash_attach(struct seg *seg)
{
	const char *path = secure_getenv(JOURNAL_ENV);

	if (!path || !*path || (!own.head && !open_own(path)))
		return;
	atomic_store_explicit(&seg->hdr.journal_id, own.id, memory_order_release);
	atomic_store_explicit(&journaled, true, memory_order_release);
}

struct journal *crash_own_journal(void)
{
	return atomic_load_explicit(&journaled, memory_order_acquire) ? &own : NULL;
}

uint32_t crash_qp_access(void)
{
	return crash_own_journal() ? QPA_JOURNALED : 0;
}
