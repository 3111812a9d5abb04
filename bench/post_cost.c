// SPDX-License-Identifier: BSD-3-Clause
/*
 * post_cost send|write SIZE N: posts N requests of that size to a queue pair of its own process,
 * each after the one before has completed.  bench/instructions counts what a post executes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

int main(int argc, char **argv)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct vp_addr to;
	struct ibv_wc wc;
	bool send;

	if (argc != 4)
		die("usage: post_cost send|write SIZE N");
	send = !strcmp(argv[1], "send");
	o.len = strtoul(argv[2], NULL, 0);
	vp_pair(&a, &b, &o);
	to = vp_addr(&b);
	for (long i = atol(argv[3]); i > 0; i--) {
		if (send)
			vp_post_recv(&b, i, 0, o.len);
		vp_post_send(&a, i, send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0,
			o.len, &to, 0);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, i);
		if (send)
			vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i);
	}
	vp_pair_free(&a, &b);
	return check_failures() != 0;
}
