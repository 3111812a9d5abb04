// SPDX-License-Identifier: BSD-3-Clause
#include "ti/core/service.h"

#include <stddef.h>
#include <stdlib.h>

#include "ti/core/fork.h"
#include "ti/core/parts.h"
#include "ti/core/trace.h"

#define SERVICE_OF(job_, field) ((struct service *)((char *)(job_)-offsetof(struct service, field)))

/* ---- members ---- */

/* Under the lock. */
static void list(struct service *ti, struct member *m)
{
	m->next = ti->members;
	m->link = &ti->members;
	if (m->next)
		m->next->link = &m->next;
	ti->members = m;
	ti->stays += m->kind == HANDLE_CONN;
}

static void unlist(struct member *m)
{
	lock_take(&m->ti->lock);
	if (m->link) {
		*m->link = m->next;
		if (m->next)
			m->next->link = m->link;
		m->link = NULL;
	}
	lock_drop(&m->ti->lock);
}

/* Opens the handle where none can be refused any more: it may be guessed.  Under the lock. */
static ti_status_t join(struct service *ti, struct member *m, void (*destroy)(struct object *o))
{
	if (service_ends(ti))
		return TI_INVALID_HANDLE;
	if (object_open(&m->obj, m->kind, destroy))
		return TI_INSUFFICIENT_RESOURCES;
	list(ti, m);
	object_hold(&m->obj); /* who closes it already waits for the lock, to unlist it */
	return TI_SUCCESS;
}

ti_status_t service_join(struct service *ti, struct member *m, enum handle_kind kind,
	void (*destroy)(struct object *o))
{
	ti_status_t st;

	m->ti = ti;
	m->kind = kind;
	object_hold(&ti->obj);
	lock_take(&ti->lock);
	st = join(ti, m, destroy);
	lock_drop(&ti->lock);
	if (st)
		object_put(&ti->obj);
	return st;
}

void *member_get(struct service *ti, const void *handle, enum handle_kind kind)
{
	struct member *m = object_get(handle, kind);

	if (m && m->ti != ti) {
		object_put(&m->obj);
		m = NULL;
	}
	return m;
}

bool service_leave(struct member *m)
{
	if (!object_close(&m->obj))
		return false;
	unlist(m);
	return true;
}

bool service_leave_locked(struct member *m)
{
	bool closed = object_close_locked(&m->obj);

	object_unlock(&m->obj);
	if (closed)
		unlist(m);
	return closed;
}

void member_end(struct member *m)
{
	object_put(&m->ti->obj);
}

struct service *service_get(ti_handle_t h_ti)
{
	return object_get(h_ti, HANDLE_SERVICE);
}

/* ---- making ---- */

static void free_service(struct object *o)
{
	free(o);
}

static int start_threads(void)
{
	int ret = fork_watch();

	if (!ret)
		ret = system_start();
	return ret ? ret : core_calls.start();
}

ti_status_t op_create_ti(ti_handle_t *ph_ti)
{
	struct service *ti;

	if (!ph_ti)
		return TI_INVALID_PARAMETER;
	*ph_ti = NULL;
	if (start_threads())
		return TI_INSUFFICIENT_RESOURCES;
	ti = calloc(1, sizeof *ti);
	if (!ti || object_open(&ti->obj, HANDLE_SERVICE, free_service)) {
		free(ti);
		return TI_INSUFFICIENT_RESOURCES;
	}
	*ph_ti = ti->obj.handle;
	log_line(LOG_LVL_INFO, "ti: service %p is there", *ph_ti);
	return TI_SUCCESS;
}

/* ---- destroying ---- */

/* The next member of that kind, or 0: of any, with a reference. */
static struct member *next_member(struct service *ti, enum handle_kind kind)
{
	struct member *m;

	lock_take(&ti->lock);
	for (m = ti->members; m && kind && m->kind != kind;)
		m = m->next;
	if (m)
		object_hold(&m->obj);
	lock_drop(&ti->lock);
	return m;
}

/* True: it is ours to end.  Else somebody has closed it, and is about to take it off the list. */
static bool take_halted(struct member *m)
{
	if (m->halted)
		unlist(m);
	return m->halted;
}

static void put_member(struct member *m)
{
	object_put(&m->obj);
}

/* Ends all of that kind. */
static void end_members(struct service *ti, enum handle_kind kind, void (*end)(struct member *m))
{
	struct member *m;

	while ((m = next_member(ti, kind)) != NULL) {
		if (take_halted(m))
			end(m);
		object_put(&m->obj);
	}
}

/* Queues go before the pools that the elements in them are of. */
static void run_end(struct job *job)
{
	struct service *ti = SERVICE_OF(job, end_job);
	unsigned forks = fork_count();

	end_members(ti, HANDLE_CQ, core_calls.end_cq);
	end_members(ti, 0, put_member);
	log_line(LOG_LVL_INFO, "ti: service %p has ended", (void *)ti->obj.handle);
	if (ti->gone_cb)
		ti->gone_cb(ti->gone_context);
	fork_called_back(forks);
	service_put(ti);
}

bool service_stay(struct service *ti)
{
	bool stays;

	lock_take(&ti->lock);
	stays = !service_ends(ti) || ti->stays;
	ti->stays += stays;
	lock_drop(&ti->lock);
	return stays;
}

void service_unstay(struct service *ti)
{
	bool last;

	lock_take(&ti->lock);
	last = --ti->stays == 0 && service_ends(ti);
	lock_drop(&ti->lock);
	if (last)
		system_post(&ti->end_job);
}

/* The closing itself counts as a connection, so that the end comes once. */
static void run_close(struct job *job)
{
	struct service *ti = SERVICE_OF(job, close_job);

	end_members(ti, HANDLE_CONN, core_calls.end_conn);
	service_unstay(ti);
}

/* Makes all handles stale, but for what others close just now; a list, each with a reference. */
static struct member *close_handles(struct service *ti)
{
	struct member *list = NULL;

	lock_take(&ti->lock);
	atomic_store_explicit(&ti->closing, true, memory_order_release);
	ti->stays++;
	for (struct member *m = ti->members; m; m = m->next) {
		m->halted = object_close(&m->obj);
		if (!m->halted)
			continue;
		object_hold(&m->obj);
		m->next_halted = list;
		list = m;
	}
	lock_drop(&ti->lock);
	return list;
}

/* What the jobs do takes its time: until then nothing is to go on. */
static void halt(struct service *ti)
{
	struct member *m = close_handles(ti), *next;

	for (; m; m = next) {
		next = m->next_halted;
		core_calls.halt(m);
		object_put(&m->obj);
	}
}

ti_status_t op_destroy_ti(ti_handle_t h_ti, ti_context_cb_t pfn_cb, void *p_context)
{
	struct service *ti = service_get(h_ti);

	if (!ti)
		return TI_INVALID_HANDLE;
	if (!object_close(&ti->obj)) {
		service_put(ti);
		return TI_INVALID_HANDLE;
	}
	halt(ti);
	ti->gone_cb = pfn_cb;
	ti->gone_context = p_context;
	ti->close_job.run = run_close;
	ti->end_job.run = run_end;
	system_post(&ti->close_job);
	service_put(ti); /* the reference of the handle is the end's */
	return TI_SUCCESS;
}
