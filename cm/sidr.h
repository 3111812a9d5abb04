/* SPDX-License-Identifier: BSD-3-Clause */
/* Service id resolution: requests of the datagram kind. */
#pragma once

#include "cm/cm.h"

void on_sidr_req(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void on_sidr_rep(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

void sidr_request(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m, bool hold);

/* A connect of the datagram kind, and the answer to a request of it. */
int sidr_connect(struct cm_id *id, const struct cm_connect_call *call);

/* qp: whose number and Q_Key go with it, or NULL.  -EINVAL: too much private data. */
int sidr_answer(struct cm_id *id, uint8_t status, const struct cm_params *qp, const uint8_t *priv,
	uint8_t len);
