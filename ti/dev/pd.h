/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "ti/dev/endpoint.h"

struct pd {
	struct member m;
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

ti_status_t op_create_pd(ti_handle_t h_ti, ti_endpoint_handle_t h_local_ep, ti_pd_handle_t *ph_pd);
ti_status_t op_destroy_pd(ti_pd_handle_t h_pd);
