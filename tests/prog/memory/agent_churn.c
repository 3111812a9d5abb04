// SPDX-License-Identifier: BSD-3-Clause
/*
 * An agent that comes and goes with each region: told to stop at any moment of its life, such as
 * when it has not begun to sleep yet, it ends.
 */
#include "hca/run/agent.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { TIMES = 20000, DELAYS = 97 };

int main(void)
{
	struct ibv_context *ctx = vp_open();

	for (volatile unsigned i = 0; i < TIMES; i++) {
		check_case("the agent comes and goes, %u", i);
		agent_hold();
		for (volatile unsigned spin = 0; spin < 200 * (i % DELAYS); spin++)
			;
		agent_drop();
	}
	CHECK_EQ(ibv_close_device(ctx), 0);
	return check_result();
}
