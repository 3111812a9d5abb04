// SPDX-License-Identifier: BSD-3-Clause
/* Completions as programs of releases 0.9 to 0.11 take them. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/rpma_ends.h"

enum { LEN = 256, ALWAYS = RPMA_F_COMPLETION_ALWAYS, GUARD = 0x5a };

typedef int (*get_fn)(struct rpma_conn *conn, void *cmpl);

/* What programs of 0.9 pass, and what lies behind it. */
struct guarded {
	struct {
		void *op_context;
		uint32_t op, byte_len, op_status, padding;
	} cmpl;
	uint8_t guard[64];
};
_Static_assert(offsetof(struct guarded, guard) == 24, "the size of 0.9");

static char buf[LEN];
static struct rpma_mr_local *mr;
static struct rpma_mr_remote *remote;

static get_fn get_of(const char *node)
{
	get_fn fn = (get_fn)dlvsym(RTLD_DEFAULT, "rpma_conn_completion_get", node);

	if (!fn)
		die("no rpma_conn_completion_get@%s", node);
	return fn;
}

/* Waits for the next completion as those programs do: an event may be for nothing. */
static void await(struct rpma_conn *conn, int (*get)(struct rpma_conn *, void *), void *cmpl)
{
	int fd = -1, ret;

	CHECK_EQ(rpma_conn_get_completion_fd(conn, &fd), 0);
	while ((ret = get(conn, cmpl)) == RPMA_E_NO_COMPLETION) {
		if (!rp_readable(fd, RP_WAIT_MS))
			die("no completion");
		CHECK_EQ(rpma_conn_completion_wait(conn), 0);
	}
	CHECK_EQ(ret, 0);
}

static void check_0_9(struct rpma_conn *conn, uint32_t op, uint32_t len, const void *context)
{
	struct guarded g;

	memset(&g, GUARD, sizeof g);
	await(conn, get_of("LIBRPMA_1.0"), &g);
	CHECK_EQ(g.cmpl.op, op);
	CHECK(g.cmpl.op_context == context);
	CHECK_EQ(g.cmpl.op_status, IBV_WC_SUCCESS);
	if (op == RPMA_OP_RECV)
		CHECK_EQ(g.cmpl.byte_len, len);
	for (unsigned i = 0; i < sizeof g.guard; i++)
		CHECK_EQ(g.guard[i], GUARD);
}

static void release_0_9(struct rp_pair *p)
{
	check_case("0.9");
	CHECK(get_of("LIBRPMA_1.0") != get_of("LIBRPMA_0.10"));
	CHECK(get_of("LIBRPMA_0.10") == (get_fn)rpma_conn_completion_get);
	CHECK_EQ(rpma_write(p->active, remote, 0, mr, 8, 8, ALWAYS, buf), 0);
	check_0_9(p->active, RPMA_OP_WRITE, 8, buf);
	CHECK_EQ(rpma_read(p->active, mr, 8, remote, 0, 8, ALWAYS, buf + 1), 0);
	check_0_9(p->active, RPMA_OP_READ, 8, buf + 1);
	CHECK_EQ(rpma_flush(p->active, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, ALWAYS, buf), 0);
	check_0_9(p->active, RPMA_OP_READ, 8, buf);
	CHECK_EQ(rpma_write_atomic(p->active, remote, 16, mr, 0, ALWAYS, buf), 0);
	check_0_9(p->active, RPMA_OP_WRITE, 8, buf);
	CHECK_EQ(rpma_recv(p->passive, mr, 0, 32, buf + 2), 0);
	CHECK_EQ(rpma_send(p->active, mr, 64, 20, ALWAYS, buf), 0);
	check_0_9(p->active, RPMA_OP_SEND, 20, buf);
	check_0_9(p->passive, RPMA_OP_RECV, 20, buf + 2);
}

static int get_by_cq(struct rpma_conn *conn, void *cmpl)
{
	return rpma_cq_get_completion(rp_cq(conn), cmpl);
}

static void check_0_10(struct rpma_conn *conn, get_fn get, enum rpma_op op, uint32_t imm)
{
	struct rpma_completion c;

	memset(&c, GUARD, sizeof c);
	await(conn, get, &c);
	CHECK_EQ(c.op, op);
	CHECK_EQ(c.op_status, IBV_WC_SUCCESS);
	CHECK_EQ(c.flags, imm ? IBV_WC_WITH_IMM : 0);
	if (imm)
		CHECK(c.imm == imm && c.imm_data == imm && c.invalidate_rkey == imm);
}

static void release_0_10(struct rp_pair *p, get_fn get)
{
	CHECK_EQ(rpma_recv(p->passive, mr, 0, 32, buf), 0);
	CHECK_EQ(rpma_send_with_imm(p->active, mr, 64, 20, ALWAYS, 0xcafe1234, buf), 0);
	check_0_10(p->active, get, RPMA_OP_SEND, 0);
	check_0_10(p->passive, get, RPMA_OP_RECV, 0xcafe1234);
	CHECK_EQ(rpma_recv(p->passive, NULL, 0, 0, buf), 0);
	CHECK_EQ(rpma_write_with_imm(p->active, remote, 0, mr, 0, 8, ALWAYS, 99, buf), 0);
	check_0_10(p->active, get, RPMA_OP_WRITE, 0);
	check_0_10(p->passive, get, RPMA_OP_RECV_RDMA_WITH_IMM, 99);
	CHECK_EQ(rpma_atomic_write(p->active, remote, 8, buf, ALWAYS, buf), 0);
	check_0_10(p->active, get, RPMA_OP_WRITE, 0);
}

/* Only context and status are told of what failed. */
static void failed(struct rp_pair *p)
{
	struct rpma_completion c;
	struct guarded g;

	check_case("failed operations");
	CHECK_EQ(rpma_recv(p->passive, mr, 0, 32, buf + 3), 0);
	CHECK_EQ(rpma_recv(p->passive, mr, 0, 32, buf + 4), 0);
	CHECK_EQ(rpma_conn_disconnect(p->passive), 0);
	memset(&c, GUARD, sizeof c);
	await(p->passive, get_of("LIBRPMA_0.10"), &c);
	CHECK(c.op_context == buf + 3);
	CHECK_EQ(c.op_status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(c.byte_len, 0x5a5a5a5a);
	memset(&g, GUARD, sizeof g);
	await(p->passive, get_of("LIBRPMA_1.0"), &g);
	CHECK(g.cmpl.op_context == buf + 4);
	CHECK_EQ(g.cmpl.op_status, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(g.cmpl.op, 0x5a5a5a5a);
	CHECK_EQ(g.guard[0], GUARD);
}

int main(void)
{
	const int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST |
			  RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST |
			  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_SEND |
			  RPMA_MR_USAGE_RECV;
	struct rpma_peer *peer = rp_peer();
	struct rp_pair p;

	CHECK_EQ(rpma_mr_reg(peer, buf, LEN, usage, &mr), 0);
	remote = rp_remote(mr);
	rp_pair(peer, NULL, &p);
	release_0_9(&p);
	check_case("0.10");
	release_0_10(&p, get_of("LIBRPMA_0.10"));
	check_case("0.10, by the queue");
	release_0_10(&p, get_by_cq);
	failed(&p);
	CHECK_EQ(rpma_conn_delete(&p.active), 0);
	CHECK_EQ(rpma_conn_delete(&p.passive), 0);
	CHECK_EQ(rpma_ep_shutdown(&p.ep), 0);
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	return check_result();
}
