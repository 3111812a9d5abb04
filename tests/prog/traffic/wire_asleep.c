// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that waits in a sleep of its own while weftd is killed: its watcher comes to a new
 * weftd, which then steers its packets, and both ends go on.  Started with WEFT_WIRE=always.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum { LEN = 4096, KILLS = 3, WAIT_MS = 10000 };

static void send_one(struct vp_end *a, struct vp_end *b, uint64_t id)
{
	struct ibv_wc wc;

	a->buf[0] = id;
	CHECK_EQ(vp_post_recv(b, id, 0, LEN), 0);
	CHECK_EQ(vp_post_send(a, id, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	CHECK(vp_want(a->scq, &wc, IBV_WC_SUCCESS, id));
	CHECK(vp_want(b->rcq, &wc, IBV_WC_SUCCESS, id));
	CHECK_EQ(b->buf[0], (uint8_t)id);
}

/* weft status starts none; its path is weftd's but for the last letter. */
static bool has_come(void)
{
	return system("\"${WEFT_DAEMON%d}\" status --json 2>/dev/null | grep -q '\"waiting\": 0' "
		      "&& \"${WEFT_DAEMON%d}\" status --json | grep -q '\"index\": 1,'") == 0;
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;

	o.len = LEN;
	vp_pair(&a, &b, &o);
	send_one(&a, &b, 1);
	for (int i = 0; i < KILLS; i++) {
		double end = now_ms() + WAIT_MS;

		weftd_kill(weftd_pid());
		while (!has_come() && now_ms() < end)
			usleep(10000);
		CHECK(has_come());
		send_one(&a, &b, 2 + i);
	}
	vp_pair_free(&a, &b);
	return check_result();
}
