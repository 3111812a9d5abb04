/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log in words, at level info: why rdma_cm refuses a call, or an event tells of a failure.
 * Called where something has failed already.  None blocks.
 */
#pragma once

#include "rdmacm/rdmacm.h"

/* call comes out of order: it is for an id that is as `wants` says.  Gives -EINVAL. */
int out_of_order(const struct ident *id, const char *call, const char *wants);

/* An address that call needs, or its route, is none of our device: gives err. */
int no_such_address(const char *call, const uint8_t gid[16], int err);

/* What an event brings that is no success; of all others nothing. */
void explain_cm_event(const struct ident *id, const struct cm_event *e);
