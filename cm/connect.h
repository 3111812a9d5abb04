/* SPDX-License-Identifier: BSD-3-Clause */
/* REQ, REP, RTU, MRA: how a connection comes about. */
#pragma once

#include "cm/cm.h"

void on_req(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_rtu(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_mra(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

/* A new id for a request that came, NULL if it was refused; the listener's backlog is charged. */
struct cm_id *cm_new_request(struct cm *cm, const struct mad_addr *from, uint64_t service_id,
	const struct cm_ip_hdr *ip, uint32_t flags, uint16_t *reason);

/* A REQ, or a SIDR_REQ, that is no duplicate: to its listener; hold: it may wait for one. */
void cm_request(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m, bool hold);

/* The IP header of a request from id. */
void cm_fill_ip_hdr(const struct cm_id *id, uint8_t *priv);
