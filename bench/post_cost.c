// SPDX-License-Identifier: BSD-3-Clause
/*
 * post_cost send|write|ud SIZE N: posts N requests of that size to a queue pair of its own process,
 * each after the one before has completed.  bench/instructions counts what a post executes.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { GRH_BYTES = 40 };

/* How a request is posted to b. */
struct way {
	enum ibv_wr_opcode opcode;
	struct ibv_ah *ah; /* datagrams */
	struct vp_addr to;
};

static void post(struct vp_end *a, const struct way *way, uint64_t id, uint32_t size)
{
	if (way->ah)
		vp_post_ud(a, id, way->ah, way->to.qpn, VP_QKEY, 0, size);
	else
		vp_post_send(a, id, way->opcode, IBV_SEND_SIGNALED, 0, size, &way->to, 0);
}

int main(int argc, char **argv)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct ibv_wc wc;
	struct way way;
	uint32_t size;

	if (argc != 4)
		die("usage: post_cost send|write|ud SIZE N");
	size = strtoul(argv[2], NULL, 0);
	o.len = size + GRH_BYTES;
	way.opcode = strcmp(argv[1], "write") ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
	o.type = strcmp(argv[1], "ud") ? o.type : IBV_QPT_UD;
	vp_pair(&a, &b, &o);
	way.to = vp_addr(&b);
	way.ah = o.type == IBV_QPT_UD ? vp_ah(&a, &way.to.gid) : NULL;
	for (long i = atol(argv[3]); i > 0; i--) {
		if (way.opcode == IBV_WR_SEND)
			vp_post_recv(&b, i, 0, o.len);
		post(&a, &way, i, size);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, i);
		if (way.opcode == IBV_WR_SEND)
			vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i);
	}
	if (way.ah)
		CHECK(!ibv_destroy_ah(way.ah));
	vp_pair_free(&a, &b);
	return check_failures() != 0;
}
