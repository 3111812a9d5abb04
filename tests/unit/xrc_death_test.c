// SPDX-License-Identifier: BSD-3-Clause
/* XRC: who dies while his shared receive queue is looked up does not answer, and refuses nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/mman.h>

#include <cmocka.h>

#include "hca/complete.h"
#include "hca/exec_op.h"
#include "hca/layout.h"
#include "hca/opcode.h"

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

/* What route_srq() finds when death was noted after it was last asked for. */
static const struct end *dies(struct work *w, uint32_t srqn)
{
	(void)srqn;
	atomic_store(&w->resp->view.seg->hdr.dead, 1);
	return NULL;
}

static void death(void **state)
{
	struct end req = end_of(seg_of(), IBV_QPT_XRC_SEND, REQUESTER, RESPONDER);
	struct end resp = end_of(seg_of(), IBV_QPT_XRC_RECV, RESPONDER, REQUESTER);
	struct exec x = {.find_srq = dies};
	struct work w = {
		.x = &x, .req = &req, .resp = &resp, .mem = &resp, .op = op_of(IBV_WR_RDMA_WRITE)};

	(void)state;
	assert_int_equal(work_execute(&w), STEP_NO_PEER);
	munmap(req.view.seg, SEG_SIZE);
	munmap(resp.view.seg, SEG_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(death)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
