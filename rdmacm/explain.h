/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log in words, at level info: why rdma_cm refuses a call, or an event tells of a failure.
 * Called where something has failed already.  None blocks.
 */
#pragma once

#include "rdmacm/rdmacm.h"

/* call comes out of order: it is for an id that is as `wants` says.  Gives -EINVAL. */
int out_of_order(const struct ident *id, const char *call, const char *wants);

/*
 * The same of a call that failed with err, and that programs make as they clean up, whatever became
 * of the id: said only where WEFT_LOG asks for it, and if err is -EINVAL.  Gives err.
 */
int at_an_end(const struct ident *id, int err, const char *call, const char *wants);

/* An address that call needs, or its route, is none of our device: gives err. */
int no_such_address(const char *call, const uint8_t gid[16], int err);

/* What an event brings that is no success; of all others nothing. */
void explain_cm_event(const struct ident *id, const struct cm_event *e);
