// SPDX-License-Identifier: BSD-3-Clause
/*
 * Flushes and atomic writes: what makes remote memory persistent.
 *
 * A flush is the FLUSH operation, where the device has it and the peer has registered the region
 * for it; else an RDMA READ of a few bytes of the region (the "appliance persistency method"): a
 * responder answers it only once the writes before it on the same connection have arrived.  Whether
 * they are durable then depends on the responder's platform, which its peer configuration tells.
 */
#include <string.h>

#include "include/weft/verbs_ext.h"
#include "rpma/conn.h"
#include "rpma/log.h"
#include "rpma/ops.h"

enum { FLUSH_SIZE = 8 };

/* ---- flushes ---- */

/*
 * Has the peer registered the region for the operation, too?  Release 1.2 and those before it have
 * not.  Where that cannot be known, the peer is taken to be as we are, as release 1.3 does.
 */
static bool is_native(const struct rpma_conn *conn, const struct rpma_mr_remote *dst, unsigned need)
{
	const struct rpma_peer *peer = conn->link.peer;
	unsigned access;

	if (!conn->link.flush)
		return false;
	return !peer->rkey_access || peer->rkey_access(conn->link.id->qp, dst->rkey, &access) ||
	       access & need;
}

static int post_flush(struct rpma_conn *conn, uint64_t addr, uint32_t rkey, size_t len,
	enum rpma_flush_type type, int flags, const void *op_context)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(conn->link.id->qp);
	int err;

	ibv_wr_start(qp);
	qp->wr_id = (uintptr_t)op_context;
	qp->wr_flags = ops_send_flags(flags);
	ibv_wr_flush(qp, rkey, addr, len,
		type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL,
		IBV_FLUSH_RANGE);
	err = ibv_wr_complete(qp);
	return err ? PROVIDER_FAILED("ibv_wr_complete()", err) : 0;
}

/* Which bytes are read does not matter, but that they lie within the region. */
static void fill_flush(struct request *r, const struct rpma_conn *conn,
	const struct rpma_mr_remote *dst, size_t offset)
{
	uint64_t size = dst->size < FLUSH_SIZE ? dst->size : FLUSH_SIZE;

	if (offset > dst->size - size)
		offset = dst->size - size;
	r->wr.opcode = IBV_WR_RDMA_READ;
	r->wr.wr.rdma.remote_addr = dst->addr + offset;
	r->wr.wr.rdma.rkey = dst->rkey;
	(void)mr_local_range(conn->flush_dst, 0, size, &r->sge);
}

static int allows_flush(
	const struct rpma_conn *conn, const struct rpma_mr_remote *dst, enum rpma_flush_type type)
{
	int usage = type == RPMA_FLUSH_TYPE_PERSISTENT ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
						       : RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

	if (type == RPMA_FLUSH_TYPE_PERSISTENT &&
		!atomic_load_explicit(&conn->direct_write_to_pmem, memory_order_relaxed)) {
		LOG_ERROR("the peer does not write to persistent memory directly");
		return RPMA_E_NOSUPP;
	}
	if (!(dst->usage & usage)) {
		LOG_ERROR("the region is not registered for flushes of that type");
		return RPMA_E_NOSUPP;
	}
	return 0;
}

int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
	enum rpma_flush_type type, int flags, const void *op_context)
{
	struct request r = {0};
	uint64_t addr;
	uint32_t rkey;
	int ret;

	if (!conn || !dst || !flags ||
		(type != RPMA_FLUSH_TYPE_PERSISTENT && type != RPMA_FLUSH_TYPE_VISIBILITY) ||
		mr_remote_range(dst, dst_offset, len, &addr, &rkey))
		return RPMA_E_INVAL;
	ret = allows_flush(conn, dst, type);
	if (ret)
		return ret;
	if (is_native(conn, dst,
		    type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_ACCESS_FLUSH_PERSISTENT
						       : IBV_ACCESS_FLUSH_GLOBAL))
		return post_flush(conn, addr, rkey, len, type, flags, op_context);
	fill_flush(&r, conn, dst, dst_offset);
	return ops_post(conn, &r, flags, op_context);
}
RPMA_SINCE_0_10(rpma_flush);

/* ---- atomic writes ---- */

/* The fence: a flush before it is a READ, and a write may overtake the READ otherwise. */
static int post_atomic(struct rpma_conn *conn, uint64_t addr, uint32_t rkey, const char *src,
	int flags, const void *op_context)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(conn->link.id->qp);
	int err;

	ibv_wr_start(qp);
	qp->wr_id = (uintptr_t)op_context;
	qp->wr_flags = IBV_SEND_FENCE | ops_send_flags(flags);
	ibv_wr_atomic_write(qp, rkey, addr, src);
	err = ibv_wr_complete(qp);
	return err ? PROVIDER_FAILED("ibv_wr_complete()", err) : 0;
}

/* Without the operation: adapters write 8 aligned bytes in one piece. */
static int post_inline(struct rpma_conn *conn, uint64_t addr, uint32_t rkey, const char *src,
	int flags, const void *op_context)
{
	struct request r = {
		.wr = {.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_INLINE | IBV_SEND_FENCE,
			.wr.rdma = {.remote_addr = addr, .rkey = rkey}},
		.sge = {.addr = (uintptr_t)src, .length = RPMA_ATOMIC_WRITE_ALIGNMENT},
	};

	return ops_post(conn, &r, flags, op_context);
}

static int atomic_target(
	const struct rpma_mr_remote *dst, size_t offset, uint64_t *addr, uint32_t *rkey)
{
	if (!dst || offset % RPMA_ATOMIC_WRITE_ALIGNMENT)
		return RPMA_E_INVAL;
	return mr_remote_range(dst, offset, RPMA_ATOMIC_WRITE_ALIGNMENT, addr, rkey);
}

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const char src[8], int flags, const void *op_context)
{
	uint64_t addr;
	uint32_t rkey;

	if (!conn || !src || !flags || atomic_target(dst, dst_offset, &addr, &rkey))
		return RPMA_E_INVAL;
	/* The operation wants an aligned address; the region need not begin at one. */
	if (conn->link.peer->atomic_write && addr % RPMA_ATOMIC_WRITE_ALIGNMENT == 0)
		return post_atomic(conn, addr, rkey, src, flags, op_context);
	return post_inline(conn, addr, rkey, src, flags, op_context);
}
RPMA_SINCE_0_13(rpma_atomic_write);

int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const struct rpma_mr_local *src, size_t src_offset, int flags, const void *op_context)
{
	struct request r = {.wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_FENCE}};

	if (!conn || !src || !flags ||
		mr_local_range(src, src_offset, RPMA_ATOMIC_WRITE_ALIGNMENT, &r.sge) ||
		atomic_target(dst, dst_offset, &r.wr.wr.rdma.remote_addr, &r.wr.wr.rdma.rkey))
		return RPMA_E_INVAL;
	return ops_post(conn, &r, flags, op_context);
}
RPMA_UNTIL_0_13(rpma_write_atomic);
