// SPDX-License-Identifier: BSD-3-Clause
/* Completions as releases 0.9 to 0.11 gave them. */
#include <arpa/inet.h>
#include <string.h>

#include "rpma/conn.h"
#include "rpma/log.h"

/* struct rpma_completion as programs of release 0.9 know it. */
struct completion_0_9 {
	void *op_context;
	enum rpma_op op;
	uint32_t byte_len;
	enum ibv_wc_status op_status;
};
_Static_assert(sizeof(struct completion_0_9) == 24, "the ABI of 0.9");
_Static_assert(sizeof(struct rpma_completion) == 32, "the ABI of 0.10");

static int op_of(const struct ibv_wc *wc, enum rpma_op *op)
{
	switch (wc->opcode) {
	case IBV_WC_RDMA_READ:
		*op = RPMA_OP_READ;
		return 0;
	case IBV_WC_RDMA_WRITE:
	case IBV_WC_ATOMIC_WRITE:
		*op = RPMA_OP_WRITE;
		return 0;
	case IBV_WC_SEND:
		*op = RPMA_OP_SEND;
		return 0;
	case IBV_WC_RECV:
		*op = RPMA_OP_RECV;
		return 0;
	case IBV_WC_RECV_RDMA_WITH_IMM:
		*op = RPMA_OP_RECV_RDMA_WITH_IMM;
		return 0;
	default:
		LOG_ERROR("no operation completes with opcode %d", wc->opcode);
		return RPMA_E_NOSUPP;
	}
}

static bool is_receive(enum rpma_op op)
{
	return op == RPMA_OP_RECV || op == RPMA_OP_RECV_RDMA_WITH_IMM;
}

int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl)
{
	enum rpma_op op;
	struct ibv_wc wc;
	int ret;

	if (!cq || !cmpl)
		return RPMA_E_INVAL;
	ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
	if (ret)
		return ret;
	if (wc.status != IBV_WC_SUCCESS) {
		LOG_WARNING("an operation failed: %s", ibv_wc_status_str(wc.status));
		cmpl->op_context = (void *)(uintptr_t)wc.wr_id;
		cmpl->op_status = wc.status;
		return 0;
	}
	ret = op_of(&wc, &op);
	if (ret)
		return ret;
	*cmpl = (struct rpma_completion){
		.op_context = (void *)(uintptr_t)wc.wr_id,
		.op = op,
		.byte_len = wc.byte_len,
		.op_status = wc.status,
		.flags = wc.wc_flags,
	};
	if (is_receive(op) && wc.wc_flags & IBV_WC_WITH_IMM)
		cmpl->imm = ntohl(wc.imm_data);
	return 0;
}
RPMA_DEFAULT_NODE(rpma_cq_get_completion, "0.11");
RPMA_OLD_NAME(rpma_cq_get_completion);
RPMA_OLD_NODE(rpma_cq_get_completion, "0.10");

/* ---- of a connection's main queue ---- */

int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd)
{
	return conn ? rpma_cq_get_fd(conn->link.cq, fd) : RPMA_E_INVAL;
}
RPMA_UNTIL_0_10(rpma_conn_get_completion_fd);

int rpma_conn_completion_wait(struct rpma_conn *conn)
{
	return conn ? rpma_cq_wait(conn->link.cq) : RPMA_E_INVAL;
}
RPMA_UNTIL_0_10(rpma_conn_completion_wait);

int rpma_conn_completion_get(struct rpma_conn *conn, struct rpma_completion *cmpl)
{
	return conn ? rpma_cq_get_completion(conn->link.cq, cmpl) : RPMA_E_INVAL;
}
RPMA_DEFAULT_NODE(rpma_conn_completion_get, "0.10");

#pragma GCC visibility push(default)
int completion_get_0_9(struct rpma_conn *conn, struct completion_0_9 *cmpl);
#pragma GCC visibility pop

/* The name in LIBRPMA_1.0: writes no more than programs of 0.9 have room for. */
int completion_get_0_9(struct rpma_conn *conn, struct completion_0_9 *cmpl)
{
	struct rpma_completion whole;
	int ret;

	if (!conn || !cmpl)
		return RPMA_E_INVAL;
	memcpy(&whole, cmpl, sizeof *cmpl); /* of a failed operation only a part is set */
	ret = rpma_conn_completion_get(conn, &whole);
	if (!ret)
		memcpy(cmpl, &whole, sizeof *cmpl);
	return ret;
}
__asm__(".symver completion_get_0_9, rpma_conn_completion_get@LIBRPMA_1.0");
