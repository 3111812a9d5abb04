// SPDX-License-Identifier: BSD-3-Clause
/*
 * beside_wire [SIZE]: what a SEND between two queue pairs of this process takes, to its completion,
 * while the process has a queue pair to another machine on a CQ of its own, and while it has none;
 * in blocks in turn.  Prints nanoseconds, medians of blocks: without, with, and their ratio.
 * Needs an address on a link (tests/lib/in_netns.sh, with WEFT_WIRE=auto); nobody has to answer.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/median.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { BLOCKS = 41, POSTS = 20000, DEFAULT_SIZE = 8 };

/* Of a host on the link; a path to it is all that is needed. */
static const char neighbour[] = "::ffff:198.51.100.2";

static double block(struct vp_end *a, struct vp_end *b, const struct vp_addr *to)
{
	uint64_t begin = clock_ns();
	struct ibv_wc wc;

	for (uint64_t id = 0; id < POSTS; id++) {
		vp_post_recv(b, id, 0, b->len);
		vp_post_send(a, id, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, a->len, to, 0);
		vp_want(a->scq, &wc, IBV_WC_SUCCESS, id);
		vp_want(b->rcq, &wc, IBV_WC_SUCCESS, id);
	}
	return (double)(clock_ns() - begin) / POSTS;
}

static double beside(struct vp_end *a, struct vp_end *b, const struct vp_addr *to)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr far = {.qpn = 0x123456};
	struct vp_end e;
	double took;

	CHECK(inet_pton(AF_INET6, neighbour, far.gid.raw) == 1);
	vp_make(&e, vp_open(), &o);
	vp_connect(&e, &far);
	took = block(a, b, to);
	vp_free(&e);
	ibv_close_device(e.ctx);
	return took;
}

int main(int argc, char **argv)
{
	struct vp_opts o = vp_defaults();
	double without[BLOCKS], with[BLOCKS];
	struct vp_end a, b;
	struct vp_addr to;

	if (argc > 2)
		die("usage: beside_wire [SIZE]");
	o.len = argc > 1 ? strtoul(argv[1], NULL, 0) : DEFAULT_SIZE;
	vp_pair(&a, &b, &o);
	to = vp_addr(&b);
	block(&a, &b, &to);
	for (int i = 0; i < BLOCKS; i++) {
		without[i] = block(&a, &b, &to);
		with[i] = beside(&a, &b, &to);
	}
	printf("%.1f %.1f %.3f\n", median(without, BLOCKS), median(with, BLOCKS),
		median(with, BLOCKS) / median(without, BLOCKS));
	vp_pair_free(&a, &b);
	return check_failures() != 0;
}
