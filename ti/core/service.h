/* SPDX-License-Identifier: BSD-3-Clause */
/* Services (create_ti) and the objects that each has. */
#pragma once

#include "ti/core/ti.h"

#include "base/lock.h"
#include "ti/core/handle.h"
#include "ti/core/system.h"

/* Switches of io_ctl(); bits. */
enum { TI_HOST_ORDER = 1, TI_BLOCKING_GET = 2, TI_TELL_PENDING = 4 };

struct service {
	struct object obj;
	struct lock lock;
	struct member *members; /* whose handles are open */
	unsigned stays;         /* what its end waits for: connections, and service_stay() */
	struct lock guests;     /* of what pools have in domains (ti/dev/pd.h) */
	_Atomic bool closing;   /* changes under lock */
	struct job close_job, end_job;
	ti_context_cb_t gone_cb;
	void *gone_context;
	_Atomic uint32_t switches, rdma_piece;
};

/* The first member of every object of a service. */
struct member {
	struct object obj;
	struct service *ti; /* with a reference */
	enum handle_kind kind;
	struct member *next, **link; /* in ti->members; link is NULL if it is not there */
	bool halted;                 /* destroy_ti() closed the handle, and ends it */
	struct member *next_halted;
};

/*
 * Opens a handle for m, which others may guess and close from now on: the caller has a reference.
 * destroy is called when the last one is gone, and frees it; not if this fails.
 * TI_INSUFFICIENT_RESOURCES; TI_INVALID_HANDLE: the service is being destroyed.
 */
ti_status_t service_join(struct service *ti, struct member *m, enum handle_kind kind,
	void (*destroy)(struct object *o));

/* The object of that kind with a reference, if it is one of ti's; else NULL. */
void *member_get(struct service *ti, const void *handle, enum handle_kind kind);

/* Closes the handle; true for one caller, who gives the reference back with object_put(). */
bool service_leave(struct member *m);

/* The same for who has the object's lock, and drops it. */
bool service_leave_locked(struct member *m);

/* The last step of an object's destroy: lets go of the service. */
void member_end(struct member *m);

/*
 * The end of a service that is held waits for service_unstay(): its pools are there until then.
 * False: it has come.
 */
bool service_stay(struct service *ti);

/* One thing less that its end waits for; each connection is one, until it is gone altogether. */
void service_unstay(struct service *ti);

/* The service with a reference, or NULL. */
struct service *service_get(ti_handle_t h_ti);

static inline void service_put(struct service *ti)
{
	object_put(&ti->obj);
}

/* Was destroy_ti() called?  Then nothing new begins, and no handle of its objects is open. */
static inline bool service_ends(const struct service *ti)
{
	return atomic_load_explicit(&ti->closing, memory_order_acquire);
}

static inline bool service_has(struct service *ti, uint32_t switches)
{
	return atomic_load_explicit(&ti->switches, memory_order_relaxed) & switches;
}

ti_status_t op_create_ti(ti_handle_t *ph_ti);
ti_status_t op_destroy_ti(ti_handle_t h_ti, ti_context_cb_t pfn_cb, void *p_context);
