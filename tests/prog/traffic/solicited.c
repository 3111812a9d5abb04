// SPDX-License-Identifier: BSD-3-Clause
/*
 * Who waits for solicited completions alone is woken by messages that say so, of each kind and of
 * each type of queue pair, and by no other.
 */
#include <poll.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 64, MANY = 6000, GRH = 40, MCAST_QPN = 0xffffff };

static const union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 4}};

static const struct row {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode op;
	uint32_t len;
	bool srq, group;
} rows[] = {
	{"RC SEND", IBV_QPT_RC, IBV_WR_SEND, LEN},
	{"RC SEND of many packets", IBV_QPT_RC, IBV_WR_SEND, MANY},
	{"RC SEND with immediate", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM, LEN},
	{"RC WRITE with immediate", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM, LEN},
	{"RC SEND to an SRQ", IBV_QPT_RC, IBV_WR_SEND, LEN, .srq = true},
	{"UC SEND", IBV_QPT_UC, IBV_WR_SEND, LEN},
	{"UC SEND of many packets", IBV_QPT_UC, IBV_WR_SEND_WITH_IMM, MANY},
	{"UC WRITE with immediate", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM, LEN},
	{"UD SEND", IBV_QPT_UD, IBV_WR_SEND, LEN},
	{"UD SEND with immediate", IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, LEN},
	{"UD SEND to an SRQ", IBV_QPT_UD, IBV_WR_SEND, LEN, .srq = true},
	{"UD SEND to a group", IBV_QPT_UD, IBV_WR_SEND, LEN, .group = true},
};

static struct vp_end a, b;
static struct vp_addr to_b;
static struct ibv_srq *srq;

/* In place of the queue pair that b has: one whose receives are an SRQ's. */
static void take_from_srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};

	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	srq = b.opts.srq = ibv_create_srq(b.pd, &init);
	if (!srq)
		die("ibv_create_srq");
	b.qp = vp_extra_qp(&b);
}

static void set_up(const struct row *r)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr to_a;

	o.type = r->type;
	o.channel = true;
	vp_make(&a, vp_open(), &o);
	vp_make(&b, vp_open(), &o);
	if (r->srq)
		take_from_srq();
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	vp_connect(&a, &to_b);
	vp_connect(&b, &to_a);
	if (r->group)
		CHECK_EQ(ibv_attach_mcast(b.qp, &group, 0), 0);
}

static void tear_down(const struct row *r)
{
	if (r->group)
		CHECK_EQ(ibv_detach_mcast(b.qp, &group, 0), 0);
	if (r->srq) {
		CHECK_EQ(ibv_destroy_qp(b.qp), 0);
		b.qp = NULL;
		CHECK_EQ(ibv_destroy_srq(srq), 0);
	}
	vp_pair_free(&a, &b);
}

static void post_receive(const struct row *r, uint64_t id)
{
	struct ibv_sge sge = vp_sge(&b, 0, GRH + MANY);
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	if (r->srq)
		CHECK_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
	else
		CHECK_EQ(ibv_post_recv(b.qp, &wr, &bad), 0);
}

/* Sends a message, and waits until the receive has completed. */
static void message(const struct row *r, uint64_t id, unsigned flags)
{
	struct ibv_sge sge = vp_sge(&a, 0, r->len);
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = r->op,
		.send_flags = IBV_SEND_SIGNALED | flags};
	struct ibv_ah *ah = NULL;
	struct ibv_wc wc;

	if (r->type == IBV_QPT_UD) {
		ah = vp_ah(&a, r->group ? &group : &to_b.gid);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = r->group ? MCAST_QPN : b.qp->qp_num;
		wr.wr.ud.remote_qkey = VP_QKEY;
	} else {
		vp_aim(&wr, to_b.addr + 2 * MANY, to_b.rkey, 0);
	}
	post_receive(r, id);
	CHECK_EQ(vp_run(&a, &wr), IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, id);
	if (ah)
		CHECK_EQ(ibv_destroy_ah(ah), 0);
}

static bool is_told(int ms)
{
	struct pollfd p = {.fd = b.channel->fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void take(void)
{
	struct ibv_cq *cq = NULL;
	void *context;

	if (!CHECK(is_told(VP_DEADLINE_MS)))
		return;
	CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), 0);
	CHECK(cq == b.rcq);
	ibv_ack_cq_events(cq, 1);
}

static void row(const struct row *r)
{
	check_case("%s", r->name);
	set_up(r);
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 1), 0);
	message(r, 1, 0);
	CHECK(!is_told(0));
	message(r, 2, IBV_SEND_SOLICITED);
	take();
	CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
	message(r, 3, 0);
	take();
	tear_down(r);
}

int main(void)
{
	struct ibv_context *ctx = vp_open(); /* keeps the process attached */

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		row(&rows[i]);
	CHECK_EQ(ibv_close_device(ctx), 0);
	return check_result();
}
