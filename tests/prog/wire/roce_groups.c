// SPDX-License-Identifier: BSD-3-Clause
/*
 * A queue pair in more multicast groups than one socket can join (20) gets what another host sends
 * to each of them.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/two_hosts.h"
#include "tests/lib/verbs_pair.h"

enum { GROUPS = 24, LEN = 8, GRH = 40, SLOT = 64, EVERYBODY = 0xffffff };

static union ibv_gid group(unsigned i)
{
	return (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, 239, 7, 7, i + 1}};
}

static struct vp_end make(void)
{
	const struct vp_addr nobody = {0}; /* datagrams have no other end */
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	o.type = IBV_QPT_UD;
	o.recv_wr = o.send_wr = o.cqe = GROUPS;
	vp_make(&e, vp_open(), &o);
	vp_connect(&e, &nobody);
	return e;
}

static void live_far(int in, int out, void *arg)
{
	struct vp_end e;
	struct ibv_wc wc;

	(void)out;
	(void)arg;
	t_await(in);
	e = make();
	for (unsigned i = 0; i < GROUPS; i++) {
		union ibv_gid gid = group(i);
		struct ibv_ah *ah = vp_ah(&e, &gid);

		CHECK(ah != NULL);
		memset(e.buf, i, LEN);
		CHECK_EQ(vp_post_ud(&e, i, ah, EVERYBODY, VP_QKEY, 0, LEN), 0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, i);
		CHECK_EQ(ibv_destroy_ah(ah), 0);
	}
	t_await(in);
	vp_free(&e);
	exit(check_result());
}

static void take_all(struct vp_end *e)
{
	bool got[GROUPS] = {0};
	struct ibv_wc wc;

	for (unsigned i = 0; i < GROUPS && vp_poll(e->rcq, &wc, VP_DEADLINE_MS); i++) {
		uint8_t from = e->buf[wc.wr_id * SLOT + GRH];

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.byte_len, GRH + LEN);
		CHECK(from < GROUPS && !got[from]);
		got[from % GROUPS] = true;
	}
	for (unsigned i = 0; i < GROUPS; i++)
		CHECK(got[i]);
}

int main(void)
{
	struct t_child far;
	struct vp_end e;

	t_start(60);
	two_hosts(&far, live_far);
	e = make();
	for (unsigned i = 0; i < GROUPS; i++) {
		union ibv_gid gid = group(i);

		CHECK_EQ(ibv_attach_mcast(e.qp, &gid, 0), 0);
		CHECK_EQ(vp_post_recv(&e, i, (size_t)i * SLOT, SLOT), 0);
	}
	t_signal(far.to);
	take_all(&e);
	for (unsigned i = 0; i < GROUPS; i++) {
		union ibv_gid gid = group(i);

		CHECK_EQ(ibv_detach_mcast(e.qp, &gid, 0), 0);
	}
	t_signal(far.to);
	T_EQUAL(t_wait(&far), 0);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
	return check_result();
}
