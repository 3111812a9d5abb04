/* SPDX-License-Identifier: BSD-3-Clause */
/* The one table of send opcodes: what each needs and what it completes as. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "include/weft/verbs_ext.h"

enum op_kind {
	OP_NONE,
	OP_SEND,
	OP_WRITE,
	OP_ATOMIC_WRITE,
	OP_READ,
	OP_ATOMIC,
	OP_FLUSH,
	OP_LOCAL_INV,
	OP_BIND,
	OP_KINDS,
};

/* Where a request's operands stand in a struct ibv_send_wr: hca/queue/post.c. */
enum op_form {
	FORM_SEND, /* none, or those of an address handle */
	FORM_RDMA,
	FORM_ATOMIC,
	FORM_LOCAL_INV,
	FORM_BIND,
};

enum op_trait {
	OP_SGES = 1 << 0,      /* it has bytes of the requester; else its SGEs are not looked at */
	OP_INLINE = 1 << 1,    /* ... which may be inline */
	OP_SINK = 1 << 2,      /* ... which it writes */
	OP_ONE_SIDED = 1 << 3, /* it reaches memory of the responder, and no receive of it */
	OP_RD_ATOMIC = 1 << 4, /* max_rd_atomic of the requester, max_dest_rd_atomic there count */
	OP_OPERANDS = 1 << 5,  /* it has more of them than an address and a key */
	OP_LOCAL = 1 << 6,     /* done at the requester alone: its peer may be missing */
};

struct op {
	const char *name; /* for the log; NULL: OP_NONE */
	enum op_kind kind;
	bool takes_recv;        /* consumes a receive of the responder */
	bool has_imm;           /* wr.imm_data is an immediate */
	bool invalidates;       /* ... or the key of a window of the responder */
	uint8_t form;           /* enum op_form */
	unsigned remote_access; /* right needed at rkey and at the responder's QP */
	enum ibv_wc_opcode send_wc, recv_wc;
	unsigned traits; /* of enum op_trait, never 0 */
};

/* By the opcode as the program gives it. */
static const struct op op_table[] = {
	[IBV_WR_SEND] = {.name = "SEND",
		.kind = OP_SEND,
		.traits = OP_SGES | OP_INLINE,
		.takes_recv = true,
		.send_wc = IBV_WC_SEND,
		.recv_wc = IBV_WC_RECV},
	[IBV_WR_SEND_WITH_IMM] = {.name = "SEND",
		.kind = OP_SEND,
		.traits = OP_SGES | OP_INLINE,
		.takes_recv = true,
		.has_imm = true,
		.send_wc = IBV_WC_SEND,
		.recv_wc = IBV_WC_RECV},
	[IBV_WR_SEND_WITH_INV] = {.name = "SEND",
		.kind = OP_SEND,
		.traits = OP_SGES | OP_INLINE,
		.takes_recv = true,
		.invalidates = true,
		.send_wc = IBV_WC_SEND,
		.recv_wc = IBV_WC_RECV},
	[IBV_WR_RDMA_WRITE] = {.name = "RDMA WRITE",
		.kind = OP_WRITE,
		.traits = OP_SGES | OP_INLINE | OP_ONE_SIDED,
		.form = FORM_RDMA,
		.remote_access = IBV_ACCESS_REMOTE_WRITE,
		.send_wc = IBV_WC_RDMA_WRITE},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {.name = "RDMA WRITE",
		.kind = OP_WRITE,
		.traits = OP_SGES | OP_INLINE,
		.form = FORM_RDMA,
		.takes_recv = true,
		.has_imm = true,
		.remote_access = IBV_ACCESS_REMOTE_WRITE,
		.send_wc = IBV_WC_RDMA_WRITE,
		.recv_wc = IBV_WC_RECV_RDMA_WITH_IMM},
	[IBV_WR_ATOMIC_WRITE] = {.name = "ATOMIC WRITE",
		.kind = OP_ATOMIC_WRITE,
		.traits = OP_SGES | OP_INLINE | OP_ONE_SIDED | OP_RD_ATOMIC,
		.form = FORM_RDMA,
		.remote_access = IBV_ACCESS_REMOTE_WRITE,
		.send_wc = IBV_WC_ATOMIC_WRITE},
	[IBV_WR_RDMA_READ] = {.name = "RDMA READ",
		.kind = OP_READ,
		.traits = OP_SGES | OP_SINK | OP_ONE_SIDED | OP_RD_ATOMIC,
		.form = FORM_RDMA,
		.remote_access = IBV_ACCESS_REMOTE_READ,
		.send_wc = IBV_WC_RDMA_READ},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {.name = "COMPARE AND SWAP",
		.kind = OP_ATOMIC,
		.traits = OP_SGES | OP_SINK | OP_ONE_SIDED | OP_RD_ATOMIC | OP_OPERANDS,
		.form = FORM_ATOMIC,
		.remote_access = IBV_ACCESS_REMOTE_ATOMIC,
		.send_wc = IBV_WC_COMP_SWAP},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {.name = "FETCH AND ADD",
		.kind = OP_ATOMIC,
		.traits = OP_SGES | OP_SINK | OP_ONE_SIDED | OP_RD_ATOMIC | OP_OPERANDS,
		.form = FORM_ATOMIC,
		.remote_access = IBV_ACCESS_REMOTE_ATOMIC,
		.send_wc = IBV_WC_FETCH_ADD},
	[IBV_WR_FLUSH] = {.name = "FLUSH",
		.kind = OP_FLUSH,
		.traits = OP_RD_ATOMIC | OP_OPERANDS,
		.form = FORM_RDMA,
		/* the right depends on the type */
		.send_wc = IBV_WC_FLUSH},
	[IBV_WR_LOCAL_INV] = {.name = "LOCAL INVALIDATE",
		.kind = OP_LOCAL_INV,
		.traits = OP_OPERANDS | OP_LOCAL,
		.form = FORM_LOCAL_INV,
		.send_wc = IBV_WC_LOCAL_INV},
	[IBV_WR_BIND_MW] = {.name = "BIND",
		.kind = OP_BIND,
		.traits = OP_OPERANDS | OP_LOCAL,
		.form = FORM_BIND,
		.send_wc = IBV_WC_BIND_MW},
};

/* The entry of an opcode as the program gave it; kind OP_NONE if there is none (yet). */
static inline const struct op *op_of(unsigned opcode)
{
	static const struct op none;

	return opcode < sizeof op_table / sizeof *op_table ? &op_table[opcode] : &none;
}

/* The second operand of a flush: its types (IBV_FLUSH_*, or'ed), and its level above them. */
enum { FLUSH_LEVEL_SHIFT = 8 };

static inline uint64_t flush_operand(uint8_t types, uint8_t level)
{
	return types | (uint64_t)level << FLUSH_LEVEL_SHIFT;
}

static inline uint8_t flush_types(uint64_t operand)
{
	return operand & (IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT);
}

static inline bool flush_is_whole(uint64_t operand)
{
	return operand >> FLUSH_LEVEL_SHIFT == IBV_FLUSH_MR;
}

/* The rights that a request needs of the key and the QP of its responder; flush: of a FLUSH. */
static inline unsigned op_rights(const struct op *op, uint64_t flush)
{
	uint8_t types = flush_types(flush);

	if (op->kind != OP_FLUSH)
		return op->remote_access;
	return (types & IBV_FLUSH_GLOBAL ? IBV_ACCESS_FLUSH_GLOBAL : 0) |
	       (types & IBV_FLUSH_PERSISTENT ? IBV_ACCESS_FLUSH_PERSISTENT : 0);
}

/* Is there such an opcode? */
static inline bool op_exists(const struct op *op)
{
	return op->traits;
}

static inline bool op_may_be_inline(const struct op *op)
{
	return op->traits & OP_INLINE;
}

/* Reaches memory of the responder, and no receive of it. */
static inline bool op_is_one_sided(const struct op *op)
{
	return op->traits & OP_ONE_SIDED;
}

/* Done at the requester alone: its peer may be missing. */
static inline bool op_is_local(const struct op *op)
{
	return op->traits & OP_LOCAL;
}
