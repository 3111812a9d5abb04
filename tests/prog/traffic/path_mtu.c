// SPDX-License-Identifier: BSD-3-Clause
/*
 * On a link whose frames have 1500 bytes, a queue pair to this very host takes every path MTU of
 * the device, and cuts its messages by it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/by_packet.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 32768, HALF = LEN / 2, PSN_MASK = 0xffffff };

static struct vp_end a, b;

static uint32_t next_psn(struct vp_end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_SQ_PSN | IBV_QP_PATH_MTU, &init), 0);
	CHECK_EQ(attr.path_mtu, e->opts.path_mtu);
	return attr.sq_psn;
}

/* How many packets a message takes shows in the PSN, whether or not there are any. */
static void carry(enum ibv_wr_opcode op, uint32_t len, uint32_t mtu)
{
	struct vp_addr to = vp_addr(&b);
	uint32_t psn = next_psn(&a), packets = len ? (len + mtu - 1) / mtu : 1;
	bool read = op == IBV_WR_RDMA_READ;
	struct ibv_wc wc;

	check_case("MTU %u, opcode %d, %u bytes", mtu, op, len);
	pattern_fill(read ? b.buf : a.buf, len, len + op);
	if (op == IBV_WR_SEND)
		CHECK_EQ(vp_post_recv(&b, len, HALF, HALF), 0);
	CHECK_EQ(vp_post_send(
			 &a, 1, op, IBV_SEND_SIGNALED, read ? HALF : 0, len, &to, read ? 0 : HALF),
		0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 1);
	if (op == IBV_WR_SEND)
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, len);
	CHECK(pattern_filled((read ? a.buf : b.buf) + HALF, len, len + op));
	CHECK_EQ((next_psn(&a) - psn) & PSN_MASK, packets);
}

static void run(enum ibv_mtu code)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	struct vp_opts o = vp_defaults();
	uint32_t mtu = 128u << code;

	check_case("MTU %u", mtu);
	o.path_mtu = code;
	o.len = LEN;
	vp_pair(&a, &b, &o);
	for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++) {
		carry(ops[i], 1, mtu);
		carry(ops[i], mtu, mtu);
		carry(ops[i], mtu + 1, mtu);
		carry(ops[i], HALF - 5, mtu);
	}
	vp_pair_free(&a, &b);
}

static void refused(enum ibv_mtu code)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to;

	check_case("code %d", code);
	o.path_mtu = code;
	vp_make(&a, vp_open(), &o);
	to = vp_addr(&a);
	CHECK_EQ(vp_init(&a), 0);
	CHECK_EQ(vp_rtr(&a, &to), EINVAL);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_INIT);
	vp_free(&a);
	CHECK_EQ(ibv_close_device(a.ctx), 0);
}

int main(void)
{
	char log[] = "/tmp/weft-mtu-XXXXXX", setting[64];
	int fd = mkstemp(log);

	if (fd < 0)
		die("mkstemp");
	snprintf(setting, sizeof setting, "info:%s", log);
	CHECK_EQ(setenv("WEFT_LOG", setting, 1), 0);
	for (enum ibv_mtu code = IBV_MTU_256; code <= IBV_MTU_4096; code++)
		run(code);
	refused(0);
	refused(IBV_MTU_4096 + 1);
	check_case("the log");
	/* 2048 and 4096, at both ends; packets go by loopback, which carries all */
	CHECK_EQ(lines_with(log, "an adapter on this link may refuse the path MTU"),
		by_packet() ? 0 : 4);
	unlink(log);
	close(fd);
	return check_result();
}
