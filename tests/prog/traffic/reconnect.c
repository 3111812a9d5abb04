// SPDX-License-Identifier: BSD-3-Clause
/* Ends that go through RESET one after the other find each other again, whichever was first. */
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

static void send_one(struct vp_end *from, struct vp_end *to, uint64_t id)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_recv(to, id, 0, 64), 0);
	CHECK_EQ(vp_post_send(from, id, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 16, NULL, 0), 0);
	vp_want(from->scq, &wc, IBV_WC_SUCCESS, id);
	vp_want(to->rcq, &wc, IBV_WC_SUCCESS, id);
}

static void anew(struct vp_end *e, const struct vp_addr *peer)
{
	CHECK_EQ(vp_state(e, IBV_QPS_RESET), 0);
	vp_connect(e, peer);
}

static void one_after_the_other(enum ibv_qp_state meanwhile)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr at_a, at_b;
	struct vp_end a, b;

	check_case("the second end was in state %d while the first connected", meanwhile);
	vp_pair(&a, &b, &o);
	at_a = vp_addr(&a);
	at_b = vp_addr(&b);
	for (int i = 0; i < 3; i++) {
		send_one(&a, &b, i);
		if (meanwhile == IBV_QPS_ERR)
			CHECK_EQ(vp_state(&b, IBV_QPS_ERR), 0);
		anew(&a, &at_b);
		anew(&b, &at_a);
		send_one(&b, &a, i);
		send_one(&a, &b, i);
	}
	vp_pair_free(&a, &b);
}

int main(void)
{
	one_after_the_other(IBV_QPS_ERR);
	one_after_the_other(IBV_QPS_RTS);
	return check_result();
}
