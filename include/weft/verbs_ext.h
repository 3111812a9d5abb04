/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What weft0 offers beyond the <infiniband/verbs.h> of rdma-core 44, under the names and values
 * that later releases of rdma-core gave it.  Include it after that header, of whichever release:
 * where the header has a name, this one stands for the same.
 *
 * FLUSH: completes once what earlier RDMA WRITEs of the same QP put into a range is visible to
 * everybody who may look at that memory (IBV_FLUSH_GLOBAL), or durable (IBV_FLUSH_PERSISTENT), or
 * both.  The region and the responder's QP need IBV_ACCESS_FLUSH_GLOBAL, _PERSISTENT or both, the
 * requester's QP IBV_QP_EX_WITH_FLUSH among its send_ops_flags.  Requests behind a FLUSH wait for
 * it.
 *
 * Durable is what the memory can be; any can be registered.  A shared mapping of a file on a disk
 * is written back by msync(2), before the flush completes, by its own process: a flush then takes
 * what the disk takes, and while that process is stopped it ends in RETRY_EXC_ERR.  A file that
 * cannot be written gives REM_OP_ERR.  Persistent memory (pmem_is_pmem(3), DAX devices) is written
 * back by libpmem.  Of other memory nothing outlives its process, and the flush completes at once;
 * weft status and the log (info) tell which it is.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define IBV_WR_FLUSH                ((enum ibv_wr_opcode)14)
#define IBV_WC_FLUSH                ((enum ibv_wc_opcode)8)

#define IBV_ACCESS_FLUSH_GLOBAL     (1 << 8)
#define IBV_ACCESS_FLUSH_PERSISTENT (1 << 9)

#define IBV_QP_EX_WITH_FLUSH        (1 << 11)

/* Bits of device_cap_flags_ex. */
#define IB_UVERBS_DEVICE_FLUSH_GLOBAL     (1ULL << 38)
#define IB_UVERBS_DEVICE_FLUSH_PERSISTENT (1ULL << 39)
#define IB_UVERBS_DEVICE_ATOMIC_WRITE     (1ULL << 40)

/* Types of a flush, or'ed. */
#define IBV_FLUSH_GLOBAL     1u
#define IBV_FLUSH_PERSISTENT 2u

/* Levels: the range given, or the whole region of the rkey. */
#define IBV_FLUSH_RANGE 0
#define IBV_FLUSH_MR    1

typedef void (*weft_wr_flush_fn)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
	size_t len, uint8_t type, uint8_t level);

/* Where later releases keep wr_flush in struct ibv_qp_ex: behind the last member of release 44. */
#define WEFT_WR_FLUSH_OFFSET (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *))

/*
 * Adds a FLUSH to the requests between ibv_wr_start() and ibv_wr_complete().  Only for a QP that
 * was created with IBV_QP_EX_WITH_FLUSH.
 */
static inline void weft_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
	size_t len, uint8_t type, uint8_t level)
{
	weft_wr_flush_fn *fn = (weft_wr_flush_fn *)(void *)((char *)qp + WEFT_WR_FLUSH_OFFSET);

	(*fn)(qp, rkey, remote_addr, len, type, level);
}

#define ibv_wr_flush weft_wr_flush
