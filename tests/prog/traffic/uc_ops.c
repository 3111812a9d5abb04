// SPDX-License-Identifier: BSD-3-Clause
/*
 * UC: sends and writes arrive as on RC; whatever the responder finds at fault is lost and the
 * requester never hears of it; its own errors stop its send queue alone.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

static struct vp_end a, b;
static struct vp_addr to_b;

static void set_up(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UC;
	vp_pair(&a, &b, &o);
	to_b = vp_addr(&b);
}

static void sent(uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	vp_want(a.scq, &wc, status, id);
}

static int post(uint64_t id, enum ibv_wr_opcode op, uint32_t len)
{
	return vp_post_send(&a, id, op, IBV_SEND_SIGNALED, 0, len, &to_b, 16384);
}

/* That a write was sent does not say that it has arrived. */
static void written(uint32_t len, uint32_t seed)
{
	double end = now_ms() + VP_DEADLINE_MS;

	while (!pattern_filled(b.buf + 16384, len, seed) && now_ms() < end)
		sched_yield();
	CHECK(pattern_filled(b.buf + 16384, len, seed));
}

static void arrives(void)
{
	static const uint32_t sizes[] = {0, 1, 36, 1000, 5000, 16384};
	struct ibv_wc wc;

	set_up();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint32_t len = sizes[i];

		check_case("%u bytes", len);
		pattern_fill(a.buf, len, i);
		CHECK_EQ(vp_post_recv(&b, i, 0, 16384), 0);
		CHECK_EQ(post(i, IBV_WR_SEND_WITH_IMM, len), 0);
		sent(i, IBV_WC_SUCCESS);
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i);
		CHECK_EQ(be32toh(wc.imm_data), i);
		CHECK(pattern_filled(b.buf, len, i));
		CHECK_EQ(post(i, IBV_WR_RDMA_WRITE, len), 0);
		sent(i, IBV_WC_SUCCESS);
		written(len, i);
		CHECK_EQ(vp_post_recv(&b, 50 + i, 0, 0), 0);
		CHECK_EQ(post(50 + i, IBV_WR_RDMA_WRITE_WITH_IMM, len), 0);
		sent(50 + i, IBV_WC_SUCCESS);
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 50 + i);
		CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	}
	vp_pair_free(&a, &b);
}

static void lost(void)
{
	struct ibv_wc wc;
	uint32_t rkey;

	set_up();
	rkey = to_b.rkey;
	check_case("no receive");
	CHECK_EQ(post(1, IBV_WR_SEND, 8), 0);
	sent(1, IBV_WC_SUCCESS);
	CHECK_EQ(post(2, IBV_WR_RDMA_WRITE_WITH_IMM, 8), 0);
	sent(2, IBV_WC_SUCCESS);
	/* They are not to find the receive that is posted below: this comes behind them. */
	pattern_fill(a.buf, 8, 77);
	CHECK_EQ(post(2, IBV_WR_RDMA_WRITE, 8), 0);
	sent(2, IBV_WC_SUCCESS);
	written(8, 77);
	check_case("a bad rkey");
	to_b.rkey ^= 1;
	CHECK_EQ(post(3, IBV_WR_RDMA_WRITE, 8), 0);
	sent(3, IBV_WC_SUCCESS);
	to_b.rkey = rkey;
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	check_case("and then one that arrives");
	CHECK_EQ(vp_post_recv(&b, 4, 0, 64), 0);
	CHECK_EQ(post(4, IBV_WR_SEND, 8), 0);
	sent(4, IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 4);
	check_case("a receive too small is the responder's error");
	CHECK_EQ(vp_post_recv(&b, 5, 0, 4), 0);
	CHECK_EQ(post(5, IBV_WR_SEND, 8), 0);
	sent(5, IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_LOC_LEN_ERR, 5);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_RTS);
	check_case("nobody there");
	CHECK_EQ(post(6, IBV_WR_SEND, 8), 0);
	sent(6, IBV_WC_SUCCESS);
	vp_pair_free(&a, &b);
}

static void own_errors(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	set_up();
	check_case("no READ, no atomics");
	CHECK_EQ(post(1, IBV_WR_RDMA_READ, 8), EINVAL);
	CHECK_EQ(post(1, IBV_WR_ATOMIC_FETCH_AND_ADD, 8), EINVAL);
	check_case("a bad lkey");
	sge = vp_sge(&a, 0, 8);
	sge.lkey ^= 1;
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	sent(1, IBV_WC_LOC_PROT_ERR);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_SQE);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	CHECK_EQ(post(2, IBV_WR_SEND, 8), 0);
	sent(2, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(vp_state(&a, IBV_QPS_RTS), 0);
	CHECK_EQ(post(3, IBV_WR_RDMA_WRITE, 8), 0);
	sent(3, IBV_WC_SUCCESS);
	vp_pair_free(&a, &b);
}

int main(void)
{
	struct ibv_context *ctx = vp_open(); /* keeps the process attached */

	arrives();
	lost();
	own_errors();
	ibv_close_device(ctx);
	return check_result();
}
