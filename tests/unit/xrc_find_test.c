// SPDX-License-Identifier: BSD-3-Clause
/*
 * XRC: who dies while his shared receive queue is looked up does not answer, and refuses nothing;
 * nor is a queue refused that cannot be found just now, or not by a helper.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/mman.h>

#include <cmocka.h>

#include "hca/exec/complete.h"
#include "hca/exec/op.h"
#include "hca/exec/work.h"
#include "hca/seg/opcode.h"
#include "hca/seg/seg.h"

enum { REQUESTER = 1, RESPONDER = 2, GEN = 1, QPN = 0x100 };

static struct seg *seg_of(void)
{
	struct seg *seg = mmap(NULL, SEG_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(seg, MAP_FAILED);
	return seg;
}

static struct end end_of(struct seg *seg, enum ibv_qp_type type, uint32_t attach, uint32_t peer)
{
	struct seg_qp *q = &seg->qp[0];

	q->state = (uint32_t)GEN << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RTS;
	q->dest_qpn = QPN;
	q->peer_attach = peer;
	return (struct end){.qp = q,
		.type = type,
		.qpn = QPN,
		.gen = GEN,
		.view = {.seg = seg, .attach = attach}};
}

typedef int (*find_fn)(struct work *w, uint32_t srqn, const struct end **out);

/* What route_srq() finds when death was noted after it was last asked for. */
static int dies(struct work *w, uint32_t srqn, const struct end **out)
{
	(void)srqn;
	(void)out;
	atomic_store(&w->resp->view.seg->hdr.dead, 1);
	return -ENOENT;
}

/* weftd was started anew, and does not know it or its channel yet. */
static int unknown(struct work *w, uint32_t srqn, const struct end **out)
{
	(void)w;
	(void)srqn;
	(void)out;
	return -EAGAIN;
}

/* We help a peer, and it is of a third process. */
static int of_another(struct work *w, uint32_t srqn, const struct end **out)
{
	(void)w;
	(void)srqn;
	(void)out;
	return -EXDEV;
}

static enum step step_of(find_fn find)
{
	struct end req = end_of(seg_of(), IBV_QPT_XRC_SEND, REQUESTER, RESPONDER);
	struct end resp = end_of(seg_of(), IBV_QPT_XRC_RECV, RESPONDER, REQUESTER);
	struct exec x = {.find_srq = find};
	struct work w = {
		.x = &x, .req = &req, .resp = &resp, .mem = &resp, .op = op_of(IBV_WR_RDMA_WRITE)};
	enum step s = op_execute(&w);

	assert_ptr_equal(w.mem, &resp);
	munmap(req.view.seg, SEG_SIZE);
	munmap(resp.view.seg, SEG_SIZE);
	return s;
}

static void death(void **state)
{
	(void)state;
	assert_int_equal(step_of(dies), STEP_NO_PEER);
}

static void not_known_yet(void **state)
{
	(void)state;
	assert_int_equal(step_of(unknown), STEP_NO_PEER);
}

static void of_a_third(void **state)
{
	(void)state;
	assert_int_equal(step_of(of_another), STEP_NOT_OURS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(death), cmocka_unit_test(not_known_yet),
		cmocka_unit_test(of_a_third)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
