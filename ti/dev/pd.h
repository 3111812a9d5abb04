/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/dev/endpoint.h"

/*
 * What does not keep a PD from being destroyed, and goes before it does.  All of a service's are
 * under its lock guests.
 */
struct pd_guest {
	struct pd_guest *next, **link; /* in pd->guests */
	/* The PD is being destroyed: calls pd_leave().  Under that lock. */
	void (*evict)(struct pd_guest *g);
};

struct pd {
	struct member m;
	struct pd_guest *guests;
	struct ibv_context *verbs;
	struct ibv_pd *ibpd;
	struct ibv_device_attr limits;
	_Atomic uint32_t
		users; /* regions, CQs and connections; more come under the object's lock */
};

/* The PD with a reference, if it is one of ti's; else NULL. */
static inline struct pd *pd_get(struct service *ti, ti_pd_handle_t h_pd)
{
	return member_get(ti, h_pd, HANDLE_PD);
}

/*
 * One more, one less object that the PD cannot be destroyed under; each with a reference.  The
 * caller has one, too.  False: it was destroyed.
 */
bool pd_use(struct pd *pd);
void pd_unuse(struct pd *pd);

/* A guest comes; it has a reference to the PD.  False: that was destroyed.  Under the lock. */
bool pd_enter(struct pd *pd, struct pd_guest *g, void (*evict)(struct pd_guest *g));
/* It goes.  Under the lock; the caller has a reference to the service. */
void pd_leave(struct pd *pd, struct pd_guest *g);

ti_status_t op_create_pd(ti_handle_t h_ti, ti_endpoint_handle_t h_local_ep, ti_pd_handle_t *ph_pd);
ti_status_t op_destroy_pd(ti_pd_handle_t h_pd);
