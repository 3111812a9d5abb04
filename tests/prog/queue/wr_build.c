// SPDX-License-Identifier: BSD-3-Clause
/* Requests built by ibv_wr_*, every operation of RC, alone and in batches. */
#include <errno.h>
#include <string.h>

#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL,
	OPS = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
	      IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
	      IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
	      IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |
	      IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH,
};

static struct vp_end a, b;
static struct vp_addr at_b;
static struct ibv_qp_ex *x;

static struct ibv_qp *make_qp(struct vp_end *e, enum ibv_qp_type type, uint64_t ops)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.qp_type = type,
		.cap = {.max_send_wr = 8,
			.max_recv_wr = 8,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = ops,
	};

	return ibv_create_qp_ex(e->ctx, &init);
}

static void setup(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr at_a;

	o.len = 65536;
	o.mr_access = o.qp_access = ALL;
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	ibv_destroy_qp(a.qp);
	a.qp = make_qp(&a, IBV_QPT_RC, OPS);
	CHECK(a.qp);
	x = ibv_qp_to_qp_ex(a.qp);
	CHECK(x && !ibv_qp_to_qp_ex(b.qp));
	at_a = vp_addr(&a);
	at_b = vp_addr(&b);
	vp_connect(&a, &at_b);
	vp_connect(&b, &at_a);
}

static void begin(uint64_t id)
{
	ibv_wr_start(x);
	x->wr_id = id;
	x->wr_flags = IBV_SEND_SIGNALED;
}

static void done(uint64_t id, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	CHECK_EQ(ibv_wr_complete(x), 0);
	if (vp_want(a.scq, &wc, IBV_WC_SUCCESS, id))
		CHECK_EQ(wc.opcode, opcode);
}

static void set(size_t off, uint32_t len)
{
	ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf + off, len);
}

static void sends(void)
{
	struct ibv_sge list[3];
	struct ibv_wc wc;

	check_case("send, with immediate, of a list of SGEs");
	setup();
	pattern_fill(a.buf, 1000, 1);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(vp_post_recv(&b, i, i * 4096, 4096), 0);
	begin(1);
	ibv_wr_send(x);
	set(0, 100);
	done(1, IBV_WC_SEND);
	begin(2);
	ibv_wr_send_imm(x, 0x11223344);
	for (int i = 0; i < 3; i++)
		list[i] = vp_sge(&a, i * 300, 300);
	ibv_wr_set_sge_list(x, 3, list);
	done(2, IBV_WC_SEND);
	begin(3);
	ibv_wr_send(x); /* of nothing */
	done(3, IBV_WC_SEND);
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 0));
	CHECK_EQ(wc.byte_len, 100);
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1));
	CHECK_EQ(wc.byte_len, 900);
	CHECK_EQ(wc.imm_data, 0x11223344);
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 2));
	CHECK_EQ(wc.byte_len, 0);
	CHECK(pattern_filled(b.buf, 100, 1) && pattern_filled(b.buf + 4096, 900, 1));
	vp_pair_free(&a, &b);
}

static void inline_data(void)
{
	char one[10] = "abcdefghi", two[50];
	struct ibv_data_buf list[2] = {{one, 10}, {two, 50}};
	struct ibv_wc wc;

	check_case("inline data is the program's again at once");
	setup();
	memset(two, 'x', sizeof two);
	CHECK_EQ(vp_post_recv(&b, 0, 0, 4096), 0);
	CHECK_EQ(vp_post_recv(&b, 1, 4096, 4096), 0);
	begin(1);
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, one, 10);
	memset(one, 0, 5);
	done(1, IBV_WC_SEND);
	begin(2);
	ibv_wr_send(x);
	ibv_wr_set_inline_data_list(x, 2, list);
	memset(two, 0, sizeof two);
	done(2, IBV_WC_SEND);
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 0));
	CHECK(!memcmp(b.buf, "abcdefghi", 10));
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1));
	CHECK_EQ(wc.byte_len, 60);
	CHECK(pattern_all(b.buf + 4096 + 10, 50, 'x'));
	vp_pair_free(&a, &b);
}

static void one_sided(void)
{
	uint64_t *there = (uint64_t *)b.buf, *here, word = 0x1122334455667788;
	struct ibv_wc wc;

	check_case("write, read, atomics, atomic write, flush");
	setup();
	there = (uint64_t *)b.buf;
	here = (uint64_t *)a.buf;
	pattern_fill(a.buf, 4096, 2);
	begin(1);
	ibv_wr_rdma_write(x, at_b.rkey, at_b.addr + 4096);
	set(0, 4096);
	done(1, IBV_WC_RDMA_WRITE);
	CHECK(pattern_filled(b.buf + 4096, 4096, 2));
	CHECK_EQ(vp_post_recv(&b, 5, 0, 0), 0);
	begin(2);
	ibv_wr_rdma_write_imm(x, at_b.rkey, at_b.addr + 16384, 77);
	set(0, 50);
	done(2, IBV_WC_RDMA_WRITE);
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 5));
	CHECK_EQ(wc.imm_data, 77);
	begin(3);
	ibv_wr_rdma_read(x, at_b.rkey, at_b.addr + 4096);
	set(8192, 4096);
	done(3, IBV_WC_RDMA_READ);
	CHECK(pattern_filled(a.buf + 8192, 4096, 2));
	*there = 40;
	begin(4);
	ibv_wr_atomic_fetch_add(x, at_b.rkey, at_b.addr, 2);
	set(0, 8);
	done(4, IBV_WC_FETCH_ADD);
	CHECK_EQ(*here, 40);
	begin(5);
	ibv_wr_atomic_cmp_swp(x, at_b.rkey, at_b.addr, 42, 1);
	set(0, 8);
	done(5, IBV_WC_COMP_SWAP);
	CHECK_EQ(*here, 42);
	CHECK_EQ(*there, 1);
	begin(6);
	ibv_wr_atomic_write(x, at_b.rkey, at_b.addr, &word);
	word = 0;
	done(6, IBV_WC_ATOMIC_WRITE);
	CHECK_EQ(*there, 0x1122334455667788);
	begin(7);
	ibv_wr_flush(x, at_b.rkey, at_b.addr, 4096, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	done(7, IBV_WC_FLUSH);
	begin(8);
	ibv_wr_flush(x, at_b.rkey, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	done(8, IBV_WC_FLUSH);
	vp_pair_free(&a, &b);
}

static void windows(void)
{
	struct ibv_mw_bind_info info = {.length = 4096, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	uint32_t key;

	check_case("bind and invalidate, in one batch, in order");
	setup();
	mr = ibv_reg_mr(a.pd, a.buf, 4096, ALL | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	CHECK(mr && mw);
	info.mr = mr;
	info.addr = (uintptr_t)a.buf;
	key = ibv_inc_rkey(mw->rkey);
	begin(1);
	ibv_wr_bind_mw(x, mw, key, &info);
	x->wr_id = 2;
	ibv_wr_local_inv(x, key);
	x->wr_id = 3;
	ibv_wr_bind_mw(x, mw, key + 1, &info);
	done(1, IBV_WC_BIND_MW);
	{
		struct ibv_wc wc;

		CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2));
		CHECK_EQ(wc.opcode, IBV_WC_LOCAL_INV);
		CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 3));
	}
	CHECK_EQ(ibv_dereg_mr(mr), EBUSY);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_pair_free(&a, &b);
}

/* Builds n sends; what wr_complete says. */
static int batch(int n)
{
	begin(0);
	for (int i = 0; i < n; i++) {
		x->wr_id = i;
		ibv_wr_send(x);
		set(0, 4);
	}
	return ibv_wr_complete(x);
}

static void all_or_nothing(void)
{
	const struct ibv_sge five[5] = {{0}};
	struct ibv_wc wc;

	check_case("a batch is taken whole or not at all; abort takes nothing");
	setup();
	for (int i = 0; i < 8; i++)
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
	CHECK_EQ(batch(9), ENOMEM);
	begin(1);
	ibv_wr_send(x);
	set(0, 4);
	ibv_wr_abort(x);
	begin(1);
	ibv_wr_send(x);
	ibv_wr_set_inline_data(x, a.buf, 65);
	CHECK_EQ(ibv_wr_complete(x), EINVAL);
	begin(1);
	ibv_wr_send(x);
	ibv_wr_set_sge_list(x, 5, five);
	CHECK_EQ(ibv_wr_complete(x), EINVAL);
	begin(1);
	ibv_wr_flush(x, at_b.rkey, at_b.addr, 8, 4, IBV_FLUSH_RANGE);
	CHECK_EQ(ibv_wr_complete(x), EINVAL);
	begin(1);
	ibv_wr_flush(x, at_b.rkey, at_b.addr, 8, 0, IBV_FLUSH_RANGE);
	CHECK_EQ(ibv_wr_complete(x), EINVAL);
	begin(1);
	ibv_wr_flush(x, at_b.rkey, at_b.addr, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR + 1);
	CHECK_EQ(ibv_wr_complete(x), EINVAL);
	vp_quiet(b.rcq, 5);
	CHECK_EQ(batch(8), 0);
	for (int i = 0; i < 8; i++) {
		CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, i));
		CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i));
	}
	CHECK_EQ(vp_state(&a, IBV_QPS_RESET), 0);
	CHECK_EQ(batch(1), EINVAL);
	vp_pair_free(&a, &b);
}

static enum ibv_wc_status failed(void)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	CHECK_EQ(ibv_wr_complete(x), 0);
	CHECK(vp_poll(a.scq, &wc, VP_DEADLINE_MS));
	return wc.status;
}

static void errors(void)
{
	struct ibv_mr *plain;
	uint64_t word = 1;

	check_case("atomic write and flush are checked like the others");
	setup();
	plain = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	begin(1);
	ibv_wr_atomic_write(x, at_b.rkey, at_b.addr + 4, &word);
	CHECK_EQ(failed(), IBV_WC_REM_INV_REQ_ERR);
	vp_reconnect(&a, &b);
	begin(1);
	ibv_wr_atomic_write(x, plain->rkey, at_b.addr, &word);
	CHECK_EQ(failed(), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	begin(1);
	ibv_wr_flush(x, plain->rkey, at_b.addr, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	CHECK_EQ(failed(), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	begin(1);
	ibv_wr_flush(x, at_b.rkey, at_b.addr + 65535, 2, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	CHECK_EQ(failed(), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	begin(1);
	ibv_wr_flush(x, at_b.rkey + 1, 0, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
	CHECK_EQ(failed(), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	begin(1);
	ibv_wr_flush(x, at_b.rkey, at_b.addr, 8, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
		IBV_FLUSH_RANGE);
	CHECK_EQ(failed(), IBV_WC_REM_INV_REQ_ERR); /* the queue pair has no such right */
	CHECK_EQ(ibv_dereg_mr(plain), 0);
	vp_pair_free(&a, &b);
}

static void post_send_atomic_write(void)
{
	struct ibv_send_wr *bad,
		wr = {.opcode = IBV_WR_ATOMIC_WRITE, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge;
	struct ibv_wc wc;

	check_case("ibv_post_send: an atomic write from a registered word; no flush");
	setup();
	sge = vp_sge(&a, 0, 8);
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = at_b.addr + 8;
	wr.wr.rdma.rkey = at_b.rkey;
	pattern_fill(a.buf, 8, 3);
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 0));
	CHECK(pattern_filled(b.buf + 8, 8, 3));
	wr.opcode = IBV_WR_FLUSH;
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_WRITE;
	sge.length = 4;
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	CHECK(vp_want(a.scq, &wc, IBV_WC_LOC_LEN_ERR, 0));
	vp_pair_free(&a, &b);
}

int main(void)
{
	sends();
	inline_data();
	one_sided();
	windows();
	all_or_nothing();
	errors();
	post_send_atomic_write();
	setup();
	check_case("operations that a QP does not have");
	CHECK(!make_qp(&a, IBV_QPT_RC, IBV_QP_EX_WITH_TSO) && errno == EOPNOTSUPP);
	vp_pair_free(&a, &b);
	return check_result();
}
