// SPDX-License-Identifier: BSD-3-Clause
/*
 * A requester deregisters the region of a request that is being carried out: that is its own error,
 * and no answer of the peer.
 */
#include <stdint.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

/* So long that it is not copied before we get the CPU again where there is but one. */
enum { LEN = 64 << 20, TRIES = 40 };

static void dereg_under(enum ibv_wr_opcode op)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to;
	struct vp_end a, b;
	struct ibv_wc wc;
	bool failed = false;

	check_case("opcode %d", op);
	o.len = LEN;
	vp_pair(&a, &b, &o);
	to = vp_addr(&b);
	for (int i = 0; i < TRIES && !failed; i++) {
		if (op == IBV_WR_SEND)
			CHECK_EQ(vp_post_recv(&b, i, 0, LEN), 0);
		memset(b.buf, 0, LEN);
		memset(a.buf, 1, LEN);
		CHECK_EQ(vp_post_send(&a, i, op, IBV_SEND_SIGNALED, 0, LEN, &to, 0), 0);
		/* In the middle, as far as can be seen. */
		while (*(volatile uint8_t *)(op == IBV_WR_RDMA_READ ? a.buf : b.buf) ==
			(op == IBV_WR_RDMA_READ))
			;
		CHECK_EQ(ibv_dereg_mr(a.mr), 0);
		CHECK(vp_poll(a.scq, &wc, VP_DEADLINE_MS));
		CHECK(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_PROT_ERR);
		failed = wc.status != IBV_WC_SUCCESS;
		a.mr = ibv_reg_mr(a.pd, a.buf, LEN, o.mr_access);
		CHECK(a.mr != NULL);
		vp_reconnect(&a, &b);
	}
	CHECK(failed);
	vp_pair_free(&a, &b);
}

int main(void)
{
	dereg_under(IBV_WR_RDMA_WRITE);
	dereg_under(IBV_WR_RDMA_READ);
	dereg_under(IBV_WR_SEND);
	return check_result();
}
