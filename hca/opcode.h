/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of send opcodes: what each needs and what it completes as. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

enum op_kind { OP_NONE, OP_SEND, OP_WRITE, OP_READ, OP_ATOMIC };

struct op {
	enum op_kind kind;
	bool takes_recv; /* consumes a receive of the responder */
	bool has_imm;
	unsigned remote_access; /* right needed at rkey and at the responder's QP */
	enum ibv_wc_opcode send_wc, recv_wc;
};

/* The entry of an opcode as the program gave it; kind OP_NONE if there is none (yet). */
static inline const struct op *op_of(unsigned opcode)
{
	static const struct op none;
	static const struct op table[] = {
		[IBV_WR_SEND] = {OP_SEND, true, false, 0, IBV_WC_SEND, IBV_WC_RECV},
		[IBV_WR_SEND_WITH_IMM] = {OP_SEND, true, true, 0, IBV_WC_SEND, IBV_WC_RECV},
		[IBV_WR_RDMA_WRITE] = {OP_WRITE, false, false, IBV_ACCESS_REMOTE_WRITE,
			IBV_WC_RDMA_WRITE, 0},
		[IBV_WR_RDMA_WRITE_WITH_IMM] = {OP_WRITE, true, true, IBV_ACCESS_REMOTE_WRITE,
			IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM},
		[IBV_WR_RDMA_READ] = {OP_READ, false, false, IBV_ACCESS_REMOTE_READ,
			IBV_WC_RDMA_READ, 0},
		[IBV_WR_ATOMIC_CMP_AND_SWP] = {OP_ATOMIC, false, false, IBV_ACCESS_REMOTE_ATOMIC,
			IBV_WC_COMP_SWAP, 0},
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = {OP_ATOMIC, false, false, IBV_ACCESS_REMOTE_ATOMIC,
			IBV_WC_FETCH_ADD, 0},
	};

	return opcode < sizeof table / sizeof *table ? &table[opcode] : &none;
}
