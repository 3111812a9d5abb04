// SPDX-License-Identifier: BSD-3-Clause
/*
 * A QP is destroyed while memory runs out: what other QPs completed on its CQ stays there, and in
 * order, whichever allocation fails.
 */
#include <stdlib.h>

#include "tests/lib/check.h"
#include "tests/lib/no_memory.h"
#include "tests/lib/verbs_pair.h"

enum { MESSAGES = 3, MOST = 100 };

/* ---- destroying ---- */

static struct vp_end a, b;

/* One more QP on b's CQ, with completions of its own between those of b. */
static struct ibv_qp *connect_other(struct vp_end *peer, struct vp_end *e)
{
	struct vp_addr mine, its;

	*e = b;
	e->qp = vp_extra_qp(&b);
	mine = vp_addr(e);
	its = vp_addr(peer);
	vp_connect(e, &its);
	vp_connect(peer, &mine);
	return e->qp;
}

static void message(struct vp_end *from, struct vp_end *to, uint64_t id)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_recv(to, id, 0, 8), 0);
	CHECK_EQ(vp_post_send(from, id, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, NULL, 0), 0);
	vp_want(from->scq, &wc, IBV_WC_SUCCESS, id);
}

/* True if an allocation failed, the one after so many. */
static bool destroy_after(int allocations)
{
	struct vp_opts o = vp_defaults();
	struct vp_end from, other;
	struct ibv_wc wc;
	int rc;

	check_case("memory ends after %d allocations", allocations);
	vp_make(&from, vp_open(), &o);
	connect_other(&from, &other);
	for (int i = 0; i < MESSAGES; i++) {
		message(&a, &b, i);
		message(&from, &other, 100 + i);
	}
	failed = false;
	left = allocations;
	rc = ibv_destroy_qp(other.qp);
	left = -1;
	CHECK_EQ(rc, 0);
	for (int i = 0; i < MESSAGES; i++)
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i);
	vp_quiet(b.rcq, 0);
	vp_free(&from);
	CHECK_EQ(ibv_close_device(from.ctx), 0);
	return failed;
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	int n = 0;

	vp_pair(&a, &b, &o);
	while (n < MOST && destroy_after(n))
		n++;
	CHECK(n > 0 && n < MOST);
	vp_pair_free(&a, &b);
	return check_result();
}
