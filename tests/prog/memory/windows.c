// SPDX-License-Identifier: BSD-3-Clause
/* Memory windows: binding, rights, the four ways of taking them away, and what is refused. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LOCAL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
	READ_WRITE = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
};

static struct vp_end a, b; /* b has the windows, a uses them */
static struct vp_addr at_b;

static void setup(void)
{
	struct vp_opts o = vp_defaults();

	o.len = 65536;
	o.mr_access = LOCAL;
	o.qp_access = READ_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	vp_pair(&a, &b, &o);
	at_b = vp_addr(&b);
}

static enum ibv_wc_status put(uint32_t rkey, uint64_t addr, uint32_t len)
{
	struct ibv_sge sge = vp_sge(&a, 0, len);
	struct ibv_send_wr wr = {.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = addr, .rkey = rkey}};

	return vp_run(&a, &wr);
}

/* Binds a type 2 window by a work request; the status of its completion. */
static enum ibv_wc_status bind2(struct ibv_qp *qp, struct ibv_mw *mw, uint32_t rkey,
	struct ibv_mr *mr, size_t off, uint64_t len, unsigned access)
{
	struct ibv_send_wr *bad,
		wr = {.wr_id = 9, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = (uintptr_t)b.buf + off, .length = len, .mw_access_flags = access};
	CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
	CHECK(vp_poll(b.scq, &wc, VP_DEADLINE_MS));
	CHECK_EQ(wc.wr_id, 9);
	if (wc.status == IBV_WC_SUCCESS)
		CHECK_EQ(wc.opcode, IBV_WC_BIND_MW);
	return wc.status;
}

static int post_bind1(
	struct ibv_mw *mw, struct ibv_mr *mr, size_t off, uint64_t len, unsigned access)
{
	struct ibv_mw_bind bind = {.wr_id = 8, .send_flags = IBV_SEND_SIGNALED};

	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = (uintptr_t)b.buf + off, .length = len, .mw_access_flags = access};
	return ibv_bind_mw(b.qp, mw, &bind);
}

static int bind1(struct ibv_mw *mw, struct ibv_mr *mr, size_t off, uint64_t len, unsigned access)
{
	struct ibv_wc wc;
	int rc = post_bind1(mw, mr, off, len, access);

	if (!rc)
		CHECK(vp_want(b.scq, &wc, IBV_WC_SUCCESS, 8));
	return rc;
}

/* Of its beginning; the status of the completion. */
static enum ibv_wc_status bind1_status(struct ibv_mw *mw, struct ibv_mr *mr, unsigned access)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	CHECK_EQ(post_bind1(mw, mr, 0, 64, access), 0);
	CHECK(vp_poll(b.scq, &wc, VP_DEADLINE_MS) && wc.wr_id == 8);
	return wc.status;
}

static enum ibv_wc_status local_inv(uint32_t key)
{
	struct ibv_send_wr *bad, wr = {.wr_id = 7,
					 .opcode = IBV_WR_LOCAL_INV,
					 .send_flags = IBV_SEND_SIGNALED,
					 .invalidate_rkey = key};
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

	CHECK_EQ(ibv_post_send(b.qp, &wr, &bad), 0);
	CHECK(vp_poll(b.scq, &wc, VP_DEADLINE_MS));
	if (wc.status == IBV_WC_SUCCESS)
		CHECK_EQ(wc.opcode, IBV_WC_LOCAL_INV);
	return wc.status;
}

static void type_1(void)
{
	struct ibv_mw *mw;
	uint32_t first, second;

	check_case("type 1: bound, bound elsewhere, unbound; the region cannot go meanwhile");
	setup();
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	CHECK(mw);
	CHECK_EQ(ibv_dealloc_pd(b.pd), EBUSY);
	CHECK_EQ(bind1(mw, b.mr, 1000, 500, IBV_ACCESS_REMOTE_WRITE), 0);
	first = mw->rkey;
	pattern_fill(a.buf, 100, 1);
	CHECK_EQ(put(first, at_b.addr + 1400, 100), IBV_WC_SUCCESS);
	CHECK(pattern_filled(b.buf + 1400, 100, 1));
	CHECK_EQ(ibv_dereg_mr(b.mr), EBUSY);
	CHECK_EQ(bind1(mw, b.mr, 0, 100, IBV_ACCESS_REMOTE_WRITE), 0);
	second = mw->rkey;
	CHECK(first != second && first >> 8 == second >> 8);
	CHECK_EQ(put(second, at_b.addr, 100), IBV_WC_SUCCESS);
	CHECK_EQ(put(first, at_b.addr + 1000, 100), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(put(second, at_b.addr, 101), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(bind1(mw, b.mr, 0, 0, 0), 0);
	CHECK_EQ(put(mw->rkey, at_b.addr, 1), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(put(second, at_b.addr, 1), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_pair_free(&a, &b);
}

/* No change of b's region, in any form, nor its end, while a window is bound to it. */
static void region_stays(uint32_t key)
{
	static const struct {
		int flags;
		unsigned access;
	} how[] = {{IBV_REREG_MR_CHANGE_TRANSLATION, 0}, {IBV_REREG_MR_CHANGE_ACCESS, LOCAL},
		{IBV_REREG_MR_CHANGE_PD, 0},
		{IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS |
				IBV_REREG_MR_CHANGE_PD,
			LOCAL}};
	struct ibv_pd *other = ibv_alloc_pd(b.ctx);

	for (unsigned i = 0; i < sizeof how / sizeof *how; i++) {
		CHECK_FAILS(ibv_rereg_mr(b.mr, how[i].flags, other, b.buf + 8192, 8192,
				    (int)how[i].access)
				    ? -1
				    : 0,
			EBUSY);
		memset(b.buf, 0, 3 * 8192);
		pattern_fill(a.buf, 64, i + 1);
		CHECK_EQ(put(key, at_b.addr, 64), IBV_WC_SUCCESS);
		CHECK(pattern_filled(b.buf, 64, i + 1) && pattern_all(b.buf + 64, 2 * 8192, 0));
	}
	CHECK_EQ(ibv_dereg_mr(b.mr), EBUSY);
	CHECK_EQ(put(key, at_b.addr, 64), IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dealloc_pd(other), 0); /* nothing has gone there */
}

/* ... and when it is not bound any more, all that is possible. */
static void region_goes(void)
{
	CHECK_EQ(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, b.buf, b.len, 0), 0);
	CHECK_EQ(ibv_dereg_mr(b.mr), 0);
	b.mr = ibv_reg_mr(b.pd, b.buf, b.len, LOCAL);
	CHECK(b.mr);
}

static void under_a_window(void)
{
	struct ibv_mw *first, *mw[3];
	uint32_t key;

	check_case("a region under a window of type 1 cannot be changed");
	setup();
	first = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	for (int i = 0; i < 3; i++) /* others of that PD, bound to nothing */
		mw[i] = ibv_alloc_mw(b.pd, i == 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	CHECK_EQ(bind1(first, b.mr, 0, 4096, IBV_ACCESS_REMOTE_WRITE), 0);
	region_stays(first->rkey);
	CHECK_EQ(bind1(first, b.mr, 0, 0, 0), 0);
	region_goes();
	check_case("a region under a window of type 2 cannot be changed");
	key = ibv_inc_rkey(mw[1]->rkey);
	CHECK_EQ(bind2(b.qp, mw[1], key, b.mr, 0, 4096, READ_WRITE), IBV_WC_SUCCESS);
	region_stays(key);
	CHECK_EQ(local_inv(key), IBV_WC_SUCCESS);
	region_goes();
	for (int i = 0; i < 3; i++)
		CHECK_EQ(ibv_dealloc_mw(mw[i]), 0);
	CHECK_EQ(ibv_dealloc_mw(first), 0);
	vp_pair_free(&a, &b);
}

static void rights(void)
{
	struct ibv_send_wr *bad,
		wr = {.opcode = IBV_WR_RDMA_READ, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_sge sge;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	check_case("a window has its own rights, for its own addresses");
	setup();
	sge = vp_sge(&a, 0, 64);
	wr.sg_list = &sge;
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	CHECK_EQ(bind1(mw, b.mr, 4096, 4096, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED), 0);
	wr.wr.rdma.rkey = mw->rkey;
	pattern_fill(b.buf + 4096 + 10, 64, 2);
	wr.wr.rdma.remote_addr = 10;
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 0));
	CHECK(pattern_filled(a.buf, 64, 2));
	CHECK_EQ(put(mw->rkey, 10, 64), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_pair_free(&a, &b);
}

static void type_2(void)
{
	struct ibv_mw *mw;
	uint32_t key;

	check_case("type 2: its key is the program's choice, it is bound once, dealloc ends it");
	setup();
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	CHECK(mw);
	CHECK_EQ(bind1(mw, b.mr, 0, 10, 0), EINVAL); /* ibv_bind_mw is for type 1 */
	key = (mw->rkey & ~0xffu) | 0x77;
	CHECK_EQ(bind2(b.qp, mw, key, b.mr, 0, 4096, READ_WRITE), IBV_WC_SUCCESS);
	CHECK_EQ(put(key, at_b.addr, 4096), IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	CHECK_EQ(put(key, at_b.addr, 1), IBV_WC_REM_ACCESS_ERR);
	vp_pair_free(&a, &b);
}

static int send_inv(const struct vp_end *from, uint32_t key)
{
	struct ibv_sge sge = vp_sge(from, 0, 16);
	struct ibv_send_wr *bad, wr = {.wr_id = 6,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_INV,
					 .send_flags = IBV_SEND_SIGNALED,
					 .invalidate_rkey = key};

	CHECK_EQ(vp_post_recv(&b, 5, 8192, 64), 0);
	return ibv_post_send(from->qp, &wr, &bad);
}

/* A second queue pair of b's PD in b.qp, which c's uses; what was there. */
static struct ibv_qp *second_qp(struct vp_end *c)
{
	struct vp_opts o = vp_defaults();
	struct ibv_qp *own = b.qp;
	struct vp_addr at_c, at_second;

	o.qp_access = READ_WRITE;
	vp_make(c, vp_open(), &o);
	b.qp = vp_extra_qp(&b);
	at_second = vp_addr(&b);
	at_c = vp_addr(c);
	vp_connect(&b, &at_c);
	vp_connect(c, &at_second);
	return own;
}

static void other_qp(void)
{
	struct ibv_mw *mw;
	struct ibv_qp *own;
	struct ibv_wc wc;
	struct vp_end c;
	uint32_t key;

	check_case("a type 2 window is for the QP it was bound on");
	setup();
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	key = ibv_inc_rkey(mw->rkey);
	CHECK_EQ(bind2(b.qp, mw, key, b.mr, 0, 4096, READ_WRITE), IBV_WC_SUCCESS);
	own = second_qp(&c);
	at_b.rkey = key;
	CHECK_EQ(vp_post_send(&c, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &at_b, 0), 0);
	CHECK(vp_want(c.scq, &wc, IBV_WC_REM_ACCESS_ERR, 1));
	check_case("... which alone takes a SEND that invalidates it");
	vp_reconnect(&c, &b);
	CHECK_EQ(send_inv(&c, key), 0);
	CHECK(vp_want(c.scq, &wc, IBV_WC_REM_ACCESS_ERR, 6));
	CHECK(vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 5));
	CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	b.qp = own;
	CHECK_EQ(put(key, at_b.addr, 8), IBV_WC_SUCCESS);
	CHECK_EQ(send_inv(&a, key), 0);
	CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 6));
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 5));
	CHECK_EQ(wc.invalidated_rkey, key);
	CHECK_EQ(put(key, at_b.addr, 8), IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_free(&c);
	ibv_close_device(c.ctx);
	vp_pair_free(&a, &b);
}

/* A window of type 2 for the peer that is the owner elsewhere; its key. */
static uint32_t bind_at_a(struct ibv_mw *mw)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = a.mr,
		.addr = (uintptr_t)a.buf,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	CHECK_EQ(vp_run(&a, &wr), IBV_WC_SUCCESS);
	return wr.bind_mw.rkey;
}

/* Of a's PD: nothing that b's queue pair may bind, bind to or invalidate. */
static void other_pd(void)
{
	struct ibv_mw *theirs, *mw;
	struct vp_addr at_a;
	struct ibv_wc wc;

	check_case("windows and regions of another PD");
	setup();
	theirs = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	CHECK_EQ(bind2(b.qp, theirs, ibv_inc_rkey(theirs->rkey), b.mr, 0, 64, READ_WRITE),
		IBV_WC_MW_BIND_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(bind2(b.qp, mw, ibv_inc_rkey(mw->rkey), a.mr, a.buf - b.buf, 64, READ_WRITE),
		IBV_WC_MW_BIND_ERR);
	vp_reconnect(&a, &b);
	at_a = vp_addr(&a);
	at_a.rkey = bind_at_a(theirs);
	CHECK_EQ(local_inv(at_a.rkey), IBV_WC_LOC_QP_OP_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(vp_post_send(&b, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &at_a, 0), 0);
	CHECK(vp_want(b.scq, &wc, IBV_WC_SUCCESS, 1));
	CHECK_EQ(ibv_dealloc_mw(theirs), 0);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_pair_free(&a, &b);
}

static void invalidate_here(void)
{
	struct ibv_mw *mw;
	uint32_t key;

	check_case("LOCAL_INV: the key is void, the window can be bound again");
	setup();
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	key = ibv_inc_rkey(mw->rkey);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(bind2(b.qp, mw, key, b.mr, 0, 4096, READ_WRITE), IBV_WC_SUCCESS);
		CHECK_EQ(put(key, at_b.addr, 64), IBV_WC_SUCCESS);
		CHECK_EQ(local_inv(key), IBV_WC_SUCCESS);
		key = ibv_inc_rkey(key);
	}
	CHECK_EQ(put(key - 1, at_b.addr, 64), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(local_inv(key), IBV_WC_LOC_QP_OP_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(local_inv(b.mr->rkey), IBV_WC_LOC_QP_OP_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_pair_free(&a, &b);
}

static void invalidate_from_there(void)
{
	struct ibv_mw *mw;
	struct ibv_wc wc;
	uint32_t key;

	check_case("SEND_WITH_INV: the receiver hears which key is void");
	setup();
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	key = ibv_inc_rkey(mw->rkey);
	CHECK_EQ(bind2(b.qp, mw, key, b.mr, 0, 4096, READ_WRITE), IBV_WC_SUCCESS);
	CHECK_EQ(send_inv(&a, key), 0);
	CHECK(vp_want(a.scq, &wc, IBV_WC_SUCCESS, 6));
	CHECK_EQ(wc.opcode, IBV_WC_SEND);
	CHECK(vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 5));
	CHECK_EQ(wc.opcode, IBV_WC_RECV);
	CHECK_EQ(wc.wc_flags, IBV_WC_WITH_INV);
	CHECK_EQ(wc.invalidated_rkey, key);
	CHECK_EQ(send_inv(&a, key), 0); /* it is void already */
	CHECK(vp_want(a.scq, &wc, IBV_WC_REM_ACCESS_ERR, 6));
	CHECK(vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 5));
	vp_reconnect(&a, &b);
	CHECK_EQ(put(key, at_b.addr, 8), IBV_WC_REM_ACCESS_ERR);
	vp_reconnect(&a, &b);
	CHECK_EQ(send_inv(&a, b.mr->rkey), 0); /* no window */
	CHECK(vp_want(a.scq, &wc, IBV_WC_REM_ACCESS_ERR, 6));
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_pair_free(&a, &b);
}

/* Such a region gives windows for reading alone: of type 2 (mw), and of type 1. */
static void without_local_write(struct ibv_mw *mw, struct ibv_mr *read_only)
{
	static const unsigned writing[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC,
		READ_WRITE, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_mw *one = ibv_alloc_mw(b.pd, IBV_MW_TYPE_1);
	uint32_t key = ibv_inc_rkey(mw->rkey);

	for (unsigned i = 0; i < sizeof writing / sizeof *writing; i++) {
		check_case("bind: rights %#x on a region without local write", writing[i]);
		CHECK_EQ(bind2(b.qp, mw, key, read_only, 0, 64, writing[i]), IBV_WC_MW_BIND_ERR);
		vp_reconnect(&a, &b);
		CHECK_EQ(bind1_status(one, read_only, writing[i]), IBV_WC_MW_BIND_ERR);
		vp_reconnect(&a, &b);
	}
	check_case("bind: for reading, on a region without local write");
	CHECK_EQ(bind2(b.qp, mw, key, read_only, 0, 64, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
	CHECK_EQ(local_inv(key), IBV_WC_SUCCESS);
	CHECK_EQ(bind1_status(one, read_only, IBV_ACCESS_REMOTE_READ), IBV_WC_SUCCESS);
	CHECK_EQ(ibv_dealloc_mw(one), 0);
}

static void refused_binds(void)
{
	static const struct {
		const char *what;
		size_t off;
		uint64_t len;
		unsigned access;
		bool plain_region, other_index;
	} cases[] = {
		{"beyond the region", 65536 - 10, 11, IBV_ACCESS_REMOTE_READ, false, false},
		{"before the region", (size_t)-8, 64, IBV_ACCESS_REMOTE_READ, false, false},
		{"length 0", 0, 0, IBV_ACCESS_REMOTE_READ, false, false},
		{"no such right", 0, 64, IBV_ACCESS_ON_DEMAND, false, false},
		{"a region without MW_BIND", 0, 64, IBV_ACCESS_REMOTE_READ, true, false},
		{"a key of another window", 0, 64, IBV_ACCESS_REMOTE_READ, false, true},
	};
	struct ibv_mr *plain, *read_only;
	struct ibv_mw *mw;

	setup();
	plain = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	read_only = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t key = ibv_inc_rkey(mw->rkey) + (cases[i].other_index ? 256 : 0);

		check_case("bind: %s", cases[i].what);
		CHECK_EQ(bind2(b.qp, mw, key, cases[i].plain_region ? plain : b.mr, cases[i].off,
				 cases[i].len, cases[i].access),
			IBV_WC_MW_BIND_ERR);
		CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
		vp_reconnect(&a, &b);
	}
	without_local_write(mw, read_only);
	check_case("bind: a window that is bound");
	CHECK_EQ(bind2(b.qp, mw, ibv_inc_rkey(mw->rkey), b.mr, 0, 64, READ_WRITE), IBV_WC_SUCCESS);
	CHECK_EQ(bind2(b.qp, mw, ibv_inc_rkey(mw->rkey) + 1, b.mr, 0, 64, READ_WRITE),
		IBV_WC_MW_BIND_ERR);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	CHECK(!ibv_alloc_mw(b.pd, 3) && errno == EINVAL);
	CHECK_EQ(ibv_dereg_mr(plain), 0);
	CHECK_EQ(ibv_dereg_mr(read_only), 0);
	vp_pair_free(&a, &b);
}

/* ---- between processes: the owner binds and invalidates while the peer writes ---- */

enum { ROUNDS = 500, LEN = 4096 };

static void writer(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr peer;
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	peer = vp_meet(&e, fd);
	for (int i = 0; i < ROUNDS; i++) {
		peer.rkey = (uint32_t)vp_hear(fd);
		CHECK_EQ(vp_post_send(&e, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &peer, 0),
			0);
		if (!vp_want(e.scq, &wc, IBV_WC_SUCCESS, i))
			break;
		vp_tell(fd, 1);
	}
	peer.rkey = (uint32_t)vp_hear(fd);
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &peer, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_REM_ACCESS_ERR, 1);
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void two_processes(void)
{
	struct vp_child c = vp_fork(writer, NULL);
	struct vp_opts o = vp_defaults();
	struct ibv_mw *mw;
	uint32_t key;

	check_case("two processes");
	o.mr_access = LOCAL;
	o.qp_access = READ_WRITE;
	vp_make(&b, vp_open(), &o);
	vp_meet(&b, c.fd);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	key = mw->rkey;
	for (int i = 0; i < ROUNDS; i++) {
		key = ibv_inc_rkey(key);
		CHECK_EQ(bind2(b.qp, mw, key, b.mr, 0, 64, READ_WRITE), IBV_WC_SUCCESS);
		vp_tell(c.fd, key);
		vp_hear(c.fd);
		CHECK_EQ(local_inv(key), IBV_WC_SUCCESS);
	}
	vp_tell(c.fd, key);
	vp_sync(c.fd);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_free(&b);
	ibv_close_device(b.ctx);
	vp_join(&c);
}

/* ---- the owner invalidates under the peer's traffic, and gets done ---- */

enum { BUSY_LEN = 64 * 1024, BUSY_ROUNDS = 300 };

static void busy_writer(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr peer;
	struct ibv_wc wc;
	struct vp_end e;
	char byte;

	(void)arg;
	o.len = BUSY_LEN;
	vp_make(&e, vp_open(), &o);
	peer = vp_meet(&e, fd);
	vp_sync(fd);
	do {
		for (int i = 0; i < 16; i++)
			CHECK_EQ(vp_post_send(&e, i, IBV_WR_RDMA_WRITE,
					 i == 15 ? IBV_SEND_SIGNALED : 0, 0, BUSY_LEN, &peer, 0),
				0);
		if (!vp_want(e.scq, &wc, IBV_WC_SUCCESS, 15))
			break;
	} while (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0);
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void under_traffic(void)
{
	struct vp_child c = vp_fork(busy_writer, NULL);
	struct vp_opts o = vp_defaults();
	struct ibv_mw *mw;
	uint32_t key;

	check_case("invalidations get done while the peer writes without a pause");
	o.len = BUSY_LEN;
	o.mr_access = LOCAL | READ_WRITE;
	o.qp_access = READ_WRITE;
	vp_make(&b, vp_open(), &o);
	vp_meet(&b, c.fd);
	mw = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	key = mw->rkey;
	vp_sync(c.fd);
	for (int i = 0; i < BUSY_ROUNDS; i++) {
		key = ibv_inc_rkey(key);
		CHECK_EQ(bind2(b.qp, mw, key, b.mr, 0, 64, READ_WRITE), IBV_WC_SUCCESS);
		CHECK_EQ(local_inv(key), IBV_WC_SUCCESS);
	}
	vp_sync(c.fd);
	CHECK_EQ(ibv_dealloc_mw(mw), 0);
	vp_free(&b);
	ibv_close_device(b.ctx);
	vp_join(&c);
}

int main(void)
{
	under_traffic();
	two_processes();
	type_1();
	rights();
	type_2();
	under_a_window();
	other_qp();
	other_pd();
	invalidate_here();
	invalidate_from_there();
	refused_binds();
	return check_result();
}
