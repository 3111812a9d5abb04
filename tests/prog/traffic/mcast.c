// SPDX-License-Identifier: BSD-3-Clause
/*
 * Multicast: every member gets a copy, of this process and of another, the sender too unless it
 * asked not to; who left, or died, gets none; what cannot be attached.
 */
#include <errno.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { GRH = 40, MCAST_QPN = 0xffffff };

static const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 0x42}};
static const union ibv_gid group4 = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
static struct vp_end a, b;

static struct vp_opts ud_opts(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UD;
	return o;
}

static void shoot(const union ibv_gid *gid, uint64_t id)
{
	struct ibv_ah *ah = vp_ah(&a, gid);
	struct ibv_wc wc;

	if (!CHECK(ah))
		return;
	pattern_fill(a.buf, 64, (uint32_t)id);
	CHECK_EQ(vp_post_ud(&a, id, ah, MCAST_QPN, VP_QKEY, 0, 64), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, id);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
}

static void got(struct vp_end *e, uint64_t msg)
{
	struct ibv_wc wc;

	if (!vp_want(e->rcq, &wc, IBV_WC_SUCCESS, msg))
		return;
	CHECK_EQ(be32toh(wc.imm_data), msg);
	CHECK(wc.wc_flags & IBV_WC_GRH);
	CHECK(pattern_filled(e->buf + 4096 + GRH, 64, (uint32_t)msg));
}

static void here(const union ibv_gid *gid)
{
	struct vp_opts o = ud_opts();

	check_case("two members of one process");
	vp_pair(&a, &b, &o);
	for (uint64_t id = 1; id <= 3; id++) {
		CHECK_EQ(vp_post_recv(&a, id, 4096, 256), 0);
		CHECK_EQ(vp_post_recv(&b, id, 4096, 256), 0);
	}
	shoot(gid, 9);
	vp_quiet(a.rcq, 2);
	CHECK_EQ(ibv_attach_mcast(a.qp, gid, 0), 0);
	CHECK_EQ(ibv_attach_mcast(b.qp, gid, 0), 0);
	CHECK_EQ(ibv_attach_mcast(b.qp, gid, 0), 0);
	shoot(gid, 1);
	got(&a, 1);
	got(&b, 1);
	vp_quiet(b.rcq, 2);
	check_case("one has left");
	CHECK_EQ(ibv_detach_mcast(a.qp, gid, 0), 0);
	CHECK_EQ(ibv_detach_mcast(a.qp, gid, 0), EINVAL);
	shoot(gid, 2);
	got(&b, 2);
	vp_quiet(a.rcq, 2);
	check_case("a member is busy");
	CHECK_EQ(ibv_destroy_qp(b.qp), EBUSY);
	CHECK_EQ(ibv_detach_mcast(b.qp, gid, 0), 0);
	vp_pair_free(&a, &b);
}

static void refused(void)
{
	struct vp_opts o = vp_defaults();
	union ibv_gid unicast;

	check_case("refused");
	vp_pair(&a, &b, &o);
	unicast = vp_addr(&a).gid;
	CHECK_EQ(ibv_attach_mcast(a.qp, &group, 0), EINVAL);
	vp_pair_free(&a, &b);
	o = ud_opts();
	vp_pair(&a, &b, &o);
	CHECK_EQ(ibv_attach_mcast(a.qp, &unicast, 0), EINVAL);
	vp_pair_free(&a, &b);
}

static void no_self(void)
{
	struct vp_opts o = ud_opts();
	struct ibv_qp_init_attr_ex init;

	check_case("not to the sender itself");
	vp_pair(&a, &b, &o);
	CHECK_EQ(ibv_destroy_qp(a.qp), 0);
	init = (struct ibv_qp_init_attr_ex){.send_cq = a.scq,
		.recv_cq = a.rcq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = a.pd,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};
	a.qp = ibv_create_qp_ex(a.ctx, &init);
	if (!a.qp)
		die("ibv_create_qp_ex");
	vp_connect(&a, &(struct vp_addr){0});
	CHECK_EQ(vp_post_recv(&a, 1, 4096, 256), 0);
	CHECK_EQ(vp_post_recv(&b, 1, 4096, 256), 0);
	CHECK_EQ(ibv_attach_mcast(a.qp, &group, 0), 0);
	CHECK_EQ(ibv_attach_mcast(b.qp, &group, 0), 0);
	shoot(&group, 1);
	got(&b, 1);
	vp_quiet(a.rcq, 2);
	CHECK_EQ(ibv_detach_mcast(a.qp, &group, 0), 0);
	CHECK_EQ(ibv_detach_mcast(b.qp, &group, 0), 0);
	vp_pair_free(&a, &b);
}

/* A member in another process. */
static void member(int fd, void *arg)
{
	struct vp_opts o = ud_opts();

	vp_make(&b, vp_open(), &o);
	vp_connect(&b, &(struct vp_addr){0});
	CHECK_EQ(vp_post_recv(&b, 1, 4096, 256), 0);
	CHECK_EQ(ibv_attach_mcast(b.qp, &group, 0), 0);
	vp_sync(fd);
	got(&b, 1);
	vp_sync(fd);
	if (arg)
		vp_hear(fd); /* is killed here */
	CHECK_EQ(ibv_detach_mcast(b.qp, &group, 0), 0);
	vp_free(&b);
}

static void elsewhere(void)
{
	struct vp_child c[2];
	struct vp_opts o = ud_opts();

	check_case("members of other processes, one dies");
	c[0] = vp_fork(member, NULL);
	c[1] = vp_fork(member, &o);
	vp_make(&a, vp_open(), &o);
	vp_connect(&a, &(struct vp_addr){0});
	vp_sync(c[0].fd);
	vp_sync(c[1].fd);
	shoot(&group, 1);
	vp_sync(c[0].fd);
	vp_sync(c[1].fd);
	vp_kill_join(&c[1]);
	shoot(&group, 2);
	vp_join(&c[0]);
	shoot(&group, 3);
	vp_free(&a);
	CHECK_EQ(ibv_close_device(a.ctx), 0);
}

int main(void)
{
	struct ibv_context *ctx;

	elsewhere();
	ctx = vp_open(); /* keeps the process attached */
	here(&group);
	here(&group4);
	no_self();
	refused();
	ibv_close_device(ctx);
	return check_result();
}
