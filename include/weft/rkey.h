/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer's key allows: a soft HCA can look, an adapter finds out when a request fails.  The
 * function is in Weft's libibverbs.so.1 (version node WEFT_1.0); a library that is to run with any
 * libibverbs looks it up by dlsym(3).
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * *access: the rights (enum ibv_access_flags, and those of <weft/verbs_ext.h>) that the region or
 * window with that key has in the process that qp is connected to, at this moment: whether a
 * request is executed depends on more (its queue pair, the protection domain, the range).  Asks
 * nobody, never blocks.
 *
 * 0; EINVAL: qp is connected to nobody; ENOENT: there is no such key; EOPNOTSUPP: the peer is not
 * on this machine, or not found yet.
 */
int weft_rkey_access(struct ibv_qp *qp, uint32_t rkey, unsigned *access);

typedef int (*weft_rkey_access_fn)(struct ibv_qp *qp, uint32_t rkey, unsigned *access);

#ifdef __cplusplus
}
#endif
