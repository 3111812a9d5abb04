// SPDX-License-Identifier: BSD-3-Clause
/*
 * A poll that lets others run looks again after that.  Else it would say "nothing is there" of a
 * time long past, and who learns next that the peer is gone would drop what it had sent before.
 */
#include <sched.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { POLLS = 100000, ROUNDS = 3 };

static struct vp_end a, b;
static bool armed;
static unsigned yields;

/* In place of the C library's: others run, and one of them sends. */
__attribute__((visibility("default"))) int sched_yield(void)
{
	if (!armed)
		return 0;
	yields++;
	armed = false;
	CHECK_EQ(vp_post_send(&a, 2, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	return 0;
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_wc wc;

	vp_pair(&a, &b, &o);
	for (unsigned round = 0; round < ROUNDS; round++) {
		int got = 0;

		check_case("round %u", round);
		CHECK_EQ(vp_post_recv(&b, 1, 0, 8), 0);
		armed = true;
		for (unsigned i = 0; i < POLLS && armed; i++)
			got = ibv_poll_cq(b.rcq, 1, &wc);
		CHECK_EQ(yields, round + 1);
		/* The poll in which the message came has it. */
		if (got) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, 1);
		} else {
			CHECK_EQ(got, 1);
			vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
		}
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, 2);
	}
	vp_pair_free(&a, &b);
	return check_result();
}
