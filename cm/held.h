/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that wait a little for a listener. */
#pragma once

#include "cm/cm.h"

/* Lets a REQ or a SIDR_REQ wait a little for a listener; false: it has no reason to. */
bool cm_hold(struct cm *cm, const struct mad_addr *from, const struct cm_msg *m);

/* The sender of the REQ of that number and transaction id has given up; false: it did not wait. */
bool cm_unhold(struct cm *cm, const struct mad_addr *from, uint32_t remote_comm, uint64_t tid);

/* A listener is there now. */
void cm_try_held(struct cm *cm, uint16_t ps, uint16_t port);

/* id, which listened, is about to end. */
void cm_listener_gone(struct cm *cm, const struct cm_id *id);

/* The process is gone, and will not listen again: what waits for it waits less. */
void cm_held_owner_gone(struct cm *cm, uint32_t owner);

/* Refuses those whose time is over. */
void cm_run_held(struct cm *cm);

/* Forgets all of them. */
void cm_end_held(struct cm *cm);
