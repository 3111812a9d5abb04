// SPDX-License-Identifier: BSD-3-Clause
/* Several transfers in one call: an extension. */
#include "rpma/conn.h"
#include "rpma/log.h"
#include "rpma/ops.h"

/* The requests of a list, each pointing to the next. */
static int fill(struct request *r, const struct rpma_list_part *part, size_t n,
	enum ibv_wr_opcode opcode, int flags, const void *op_context)
{
	for (size_t i = 0; i < n; i++) {
		const struct rpma_list_part *p = &part[i];

		r[i] = (struct request){.wr = {.wr_id = (uintptr_t)op_context, .opcode = opcode}};
		if (!p->local || !p->remote ||
			ops_transfer(&r[i], p->local, p->local_offset, p->remote, p->remote_offset,
				p->len))
			return RPMA_E_INVAL;
		ops_attach(&r[i]);
		r[i].wr.next = i + 1 < n ? &r[i + 1].wr : NULL;
	}
	r[n - 1].wr.send_flags = ops_send_flags(flags);
	return 0;
}

static int post_list(struct rpma_conn *conn, const struct rpma_list_part *part, size_t n,
	enum ibv_wr_opcode opcode, int flags, const void *op_context, size_t *posted)
{
	struct request r[RPMA_LIST_MAX];
	struct ibv_send_wr *bad = NULL;
	size_t ignored;
	int err;

	posted = posted ? posted : &ignored;
	*posted = 0;
	if (!conn || !part || !n || n > RPMA_LIST_MAX || !flags ||
		fill(r, part, n, opcode, flags, op_context))
		return RPMA_E_INVAL;
	err = ibv_post_send(conn->link.id->qp, &r[0].wr, &bad);
	*posted = err ? (size_t)((struct request *)bad - r) : n;
	return err ? PROVIDER_FAILED("ibv_post_send()", err) : 0;
}

int rpma_write_list(struct rpma_conn *conn, const struct rpma_list_part *part, size_t n, int flags,
	const void *op_context, size_t *posted)
{
	return post_list(conn, part, n, IBV_WR_RDMA_WRITE, flags, op_context, posted);
}

int rpma_read_list(struct rpma_conn *conn, const struct rpma_list_part *part, size_t n, int flags,
	const void *op_context, size_t *posted)
{
	return post_list(conn, part, n, IBV_WR_RDMA_READ, flags, op_context, posted);
}
