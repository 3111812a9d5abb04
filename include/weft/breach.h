/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting peers that break a library's protocol, for `weft status`.  The function is in Weft's
 * libibverbs.so.1 (version node WEFT_1.0); a library that is to run with any libibverbs looks it up
 * by dlsym(3).
 */
#pragma once

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Adds 1 to the counter peer_breaches of this process: a library has ended a connection, refused
 * one or dropped a datagram, as what came is nothing that its protocol has.  Never blocks, leaves
 * errno alone.
 */
void weft_count_breach(struct ibv_context *context);

typedef void (*weft_count_breach_fn)(struct ibv_context *context);

#ifdef __cplusplus
}
#endif
