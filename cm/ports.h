/* SPDX-License-Identifier: BSD-3-Clause */
/* Service ids and ports: who is bound where, who listens. */
#pragma once

#include "cm/cm.h"

/* The lowest bits of a service id are the port. */
uint64_t cm_service_id(uint16_t ps, uint16_t port);

/* The listener for a request to that port; *near: somebody else listens there. */
struct cm_id *cm_find_listener(struct cm *cm, uint16_t ps, const struct cm_addr *dst, bool *near);

/* Is an id of any port space bound there that listens, or may still come to it? */
bool cm_port_is_bound(struct cm *cm, uint16_t port);

void bind_release(struct cm_id *id);

/* What was lent to that owner is free again. */
void loans_end(struct cm *cm, uint32_t owner);

int bind_take(struct cm_id *id, uint16_t ps, const struct cm_addr *addr, uint32_t flags);
