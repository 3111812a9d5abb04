/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids and channels of this process. */
#pragma once

#include "rdmacm/rdmacm.h"

struct ident *ident_new(
	struct rdma_event_channel *ch, void *context, enum rdma_port_space ps, uint32_t handle);

/* Out of the table: no event finds it any more. */
void ident_remove(struct ident *id);

/* Frees it once all its events are acknowledged; may block for that. */
void ident_free(struct ident *id);

/* Finds it and counts an event for it. */
struct ident *ident_count_event(uint32_t handle);

void ident_ack_event(struct ident *id);

void channel_enter(struct event_channel *ch);

void channel_leave(struct event_channel *ch);
