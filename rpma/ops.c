// SPDX-License-Identifier: BSD-3-Clause
/* Operations: reads, writes, messages. */
#include <arpa/inet.h>
#include <string.h>

#include "rpma/conn.h"
#include "rpma/log.h"
#include "rpma/ops.h"

/* ---- posting ---- */

int ops_post(struct rpma_conn *conn, struct request *r, int flags, const void *op_context)
{
	struct ibv_send_wr *bad;
	int err;

	r->wr.wr_id = (uintptr_t)op_context;
	r->wr.send_flags |= ops_send_flags(flags);
	ops_attach(r);
	err = ibv_post_send(conn->link.id->qp, &r->wr, &bad);
	return err ? PROVIDER_FAILED("ibv_post_send()", err) : 0;
}

/* ---- reads and writes ---- */

int ops_transfer(struct request *r, const struct rpma_mr_local *local, size_t local_offset,
	const struct rpma_mr_remote *remote, size_t remote_offset, size_t len)
{
	if (!local != !remote || mr_local_range(local, local_offset, len, &r->sge))
		return RPMA_E_INVAL;
	return mr_remote_range(
		remote, remote_offset, len, &r->wr.wr.rdma.remote_addr, &r->wr.wr.rdma.rkey);
}

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
	const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
	const void *op_context)
{
	struct request r = {.wr = {.opcode = IBV_WR_RDMA_READ}};

	if (!conn || !flags || ops_transfer(&r, dst, dst_offset, src, src_offset, len))
		return RPMA_E_INVAL;
	return ops_post(conn, &r, flags, op_context);
}
RPMA_SINCE_0_10(rpma_read);

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
	const void *op_context)
{
	struct request r = {.wr = {.opcode = IBV_WR_RDMA_WRITE}};

	if (!conn || !flags || ops_transfer(&r, src, src_offset, dst, dst_offset, len))
		return RPMA_E_INVAL;
	return ops_post(conn, &r, flags, op_context);
}
RPMA_SINCE_0_10(rpma_write);

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags, uint32_t imm,
	const void *op_context)
{
	struct request r = {.wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(imm)}};

	if (!conn || !flags || ops_transfer(&r, src, src_offset, dst, dst_offset, len))
		return RPMA_E_INVAL;
	return ops_post(conn, &r, flags, op_context);
}
RPMA_SINCE_0_10(rpma_write_with_imm);

/* ---- messages ---- */

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	int flags, const void *op_context)
{
	struct request r = {.wr = {.opcode = IBV_WR_SEND}};

	if (!conn || !flags || mr_local_range(src, offset, len, &r.sge))
		return RPMA_E_INVAL;
	return ops_post(conn, &r, flags, op_context);
}
RPMA_SINCE_0_10(rpma_send);

int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
	size_t len, int flags, uint32_t imm, const void *op_context)
{
	struct request r = {.wr = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(imm)}};

	if (!conn || !flags || mr_local_range(src, offset, len, &r.sge))
		return RPMA_E_INVAL;
	return ops_post(conn, &r, flags, op_context);
}
RPMA_SINCE_0_10(rpma_send_with_imm);

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	const void *op_context)
{
	struct ibv_recv_wr *bad;
	struct recv r;
	int err;

	if (!conn || mr_recv(dst, offset, len, op_context, &r))
		return RPMA_E_INVAL;
	err = ibv_post_recv(conn->link.id->qp, &r.wr, &bad);
	return err ? PROVIDER_FAILED("ibv_post_recv()", err) : 0;
}
RPMA_SINCE_0_10(rpma_recv);
