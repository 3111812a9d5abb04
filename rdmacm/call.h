/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls to weftd. */
#pragma once

#include "rdmacm/rdmacm.h"

/* What all calls about id begin with. */
struct cm_call call_for(const struct ident *id);

/* Makes the call; *reply (may be NULL): the payload of the reply, as rdv/proto.h has it for op. */
int call_weftd(uint32_t op, const struct cm_call *call, void *reply);

/* The same, without waiting for the answer where weftd takes it at once. */
int tell_weftd(uint32_t op, const struct cm_call *call);

/* Puts the program's private data into the call.  -EINVAL: more than max bytes, or there are none.
 */
int set_private_data(struct cm_call *call, const void *data, size_t len, size_t max);
