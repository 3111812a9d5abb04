// SPDX-License-Identifier: BSD-3-Clause
// ibv_wr_*: requests built by calls, one field after the other.
#include "verbs/context.h"

#include <stdlib.h>
#include <string.h>

#include "hca/seg/opcode.h"

/*
 * The request under construction.  It goes to the send queue when the next one begins, or at
 * wr_complete; only then is it known to be whole.
 */
struct qp_builder {
	struct ibv_send_wr wr;
	bool open;
	int err; /* the first one */
	uint32_t max_inline;
	struct ibv_sge sge[HCA_MAX_SGE];
	uint64_t word; /* of an ATOMIC WRITE */
	uint8_t inline_data[HCA_MAX_INLINE];
};

static struct qp_builder *of(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct verbs_qp, ex)->builder;
}

static struct hca_qp *hca_of(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct verbs_qp, ex)->hca;
}

static void finish(struct ibv_qp_ex *ex, struct qp_builder *b)
{
	if (b->open && !b->err)
		b->err = hca_send_put(hca_of(ex), &b->wr);
	b->open = false;
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct qp_builder *b = of(ex);

	finish(ex, b);
	b->open = true;
	b->wr.wr_id = ex->wr_id;
	b->wr.send_flags = ex->wr_flags;
	b->wr.opcode = opcode;
	b->wr.num_sge = 0;
	return &b->wr;
}

/* ---- start and end ---- */

static void wr_start(struct ibv_qp_ex *ex)
{
	hca_send_start(hca_of(ex));
	of(ex)->open = false;
	of(ex)->err = 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct qp_builder *b = of(ex);
	int err;

	finish(ex, b);
	err = b->err;
	if (err) {
		hca_send_abort(hca_of(ex)); /* from here on the builder is another thread's */
		return to_errno(err);
	}
	return to_errno(hca_send_commit(hca_of(ex)));
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	hca_send_abort(hca_of(ex));
}

/* ---- the operations ---- */

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	begin(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = rkey;
}

static struct ibv_send_wr *begin_rdma(
	struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr = begin(ex, opcode);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = addr;
	return wr;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	begin_rdma(ex, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, __be32 imm)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr)->imm_data = imm;
}

static void begin_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode, uint32_t rkey,
	uint64_t addr, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr *wr = begin(ex, opcode);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = addr;
	wr->wr.atomic.compare_add = compare_add;
	wr->wr.atomic.swap = swap;
}

static void wr_atomic_cmp_swp(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare, uint64_t swap)
{
	begin_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
	begin_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void set_error(struct qp_builder *b, int err)
{
	if (!b->err)
		b->err = err;
}

static void wr_flush(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, size_t len, uint8_t type, uint8_t level)
{
	if (!type || type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT) || level > IBV_FLUSH_MR)
		set_error(of(ex), -EINVAL);
	begin_atomic(ex, IBV_WR_FLUSH, rkey, addr, level == IBV_FLUSH_MR ? 0 : len,
		flush_operand(type, level));
}

static void set_one(struct qp_builder *b, uint64_t addr, uint32_t length, uint32_t lkey)
{
	b->sge[0] = (struct ibv_sge){.addr = addr, .length = length, .lkey = lkey};
	b->wr.num_sge = 1;
}

static void wr_atomic_write(
	struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, const void *atomic_wr)
{
	struct qp_builder *b = of(ex);

	begin_rdma(ex, IBV_WR_ATOMIC_WRITE, rkey, addr)->send_flags |= IBV_SEND_INLINE;
	memcpy(&b->word, atomic_wr, sizeof(b->word));
	set_one(b, (uintptr_t)&b->word, sizeof(b->word), 0);
}

static void wr_bind_mw(
	struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_BIND_MW);

	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

/* ---- the fields ---- */

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	set_one(of(ex), addr, length, lkey);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
	struct qp_builder *b = of(ex);

	if (n > HCA_MAX_SGE) {
		set_error(b, -EINVAL);
		return;
	}
	memcpy(b->sge, list, n * sizeof(*list));
	b->wr.num_sge = (int)n;
}

/* Adds to the inline data, of which so many bytes are there. */
static size_t add_inline(struct qp_builder *b, size_t have, const void *addr, size_t length)
{
	if (length > b->max_inline - have) {
		set_error(b, -EINVAL);
		return have;
	}
	memcpy(b->inline_data + have, addr, length);
	return have + length;
}

static void set_inline(struct qp_builder *b, size_t length)
{
	b->wr.send_flags |= IBV_SEND_INLINE;
	set_one(b, (uintptr_t)b->inline_data, (uint32_t)length, 0);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	set_inline(of(ex), add_inline(of(ex), 0, addr, length));
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
	size_t have = 0;

	for (size_t i = 0; i < n; i++)
		have = add_inline(of(ex), have, list[i].addr, list[i].length);
	set_inline(of(ex), have);
}

static void wr_set_ud_addr(
	struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ibv_send_wr *wr = &of(ex)->wr;

	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = remote_qpn;
	wr->wr.ud.remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	of(ex)->wr.qp_type.xrc.remote_srqn = remote_srqn;
}

/* ---- which QP has what ---- */

enum {
	OPS_UD = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	OPS_UC = OPS_UD | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_WRITE |
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
		 IBV_QP_EX_WITH_BIND_MW,
	OPS_RC = OPS_UC | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_WRITE |
		 IBV_QP_EX_WITH_FLUSH,
};

static uint64_t ops_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return OPS_RC;
	case IBV_QPT_UC:
		return OPS_UC;
	case IBV_QPT_UD:
		return OPS_UD;
	default:
		return 0;
	}
}

static void set_functions(struct verbs_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	qp->wr_flush = wr_flush;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
}

int qp_ex_init(struct verbs_qp *qp, uint64_t send_ops, uint32_t max_inline)
{
	if (send_ops & ~ops_of(qp->qp.qp_type))
		return -EOPNOTSUPP;
	qp->builder = calloc(1, sizeof(*qp->builder));
	if (!qp->builder)
		return -ENOMEM;
	qp->builder->wr.sg_list = qp->builder->sge;
	qp->builder->max_inline = max_inline;
	set_functions(qp);
	return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return to_qp(qp)->builder ? &to_qp(qp)->ex : NULL;
}
