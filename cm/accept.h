/* SPDX-License-Identifier: BSD-3-Clause */
/* REQ and RTU: what comes to the side that is asked. */
#pragma once

#include "cm/cm.h"

void on_req(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_rtu(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

/*
 * A new id for a request that came; the listener's backlog is charged.  NULL: it is refused, with
 * *reason, or not answered at all if that is 0.
 */
struct cm_id *cm_new_request(struct cm *cm, const struct mad_addr *from, uint64_t service_id,
	const struct cm_ip_hdr *ip, uint32_t flags, uint16_t *reason);

/* A REQ, or a SIDR_REQ, that is no duplicate: to its listener; hold: it may wait for one. */
void cm_request(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m, bool hold);
