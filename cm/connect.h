/* SPDX-License-Identifier: BSD-3-Clause */
/* REP and MRA: what comes to the side that asks; MRA to the other one, too. */
#pragma once

#include "cm/cm.h"

void on_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_mra(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

/* The IP header of a request from id. */
void cm_fill_ip_hdr(const struct cm_id *id, uint8_t *priv);
