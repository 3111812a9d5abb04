// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two processes move checked data to, from and between memory of a fake GPU, whose addresses no
 * load or store reaches, and memory as it is, by other queues than a pair's own: UC, datagrams,
 * shared receive queues, XRC, and tags with eager messages and rendezvous.  As peer_gpu.c, which
 * has requests of all kinds.
 */
#include <endian.h>
#include <fcntl.h>
#include <infiniband/tm_types.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/places.h"
#include "tests/lib/xrc_ends.h"

enum { SIZES = 5, GRH = 40, TMH = sizeof(struct ibv_tmh) };
enum { HEADERS = TMH + sizeof(struct ibv_rvh), TAGS = 16, FIN_AT = 4096 };

static const uint32_t sizes[SIZES] = {1, 37, 4096, 65537, 300001};

/* ---- UC, and a shared receive queue ---- */

static void sends_and_writes(struct side *s)
{
	places_sizes(s, IBV_WR_SEND, sizes, SIZES, 10);
	places_sizes(s, IBV_WR_RDMA_WRITE_WITH_IMM, sizes, SIZES, 100);
}

/* In a QP of its own of that type, which stands in for the end's. */
static void in_qp(struct side *s, enum ibv_qp_type type, void (*fn)(struct side *s))
{
	struct ibv_qp *old = s->e.qp;
	const enum ibv_qp_type old_type = s->e.opts.type;

	s->e.opts.type = type;
	s->e.opts.srq = s->srq;
	s->e.qp = vp_extra_qp(&s->e);
	places_meet(s);
	vp_sync(s->sock);
	fn(s);
	vp_sync(s->sock);
	CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
	s->e.opts.srq = NULL;
	s->e.opts.type = old_type;
	s->e.qp = old;
}

static void by_srq(struct side *s)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};

	s->srq = ibv_create_srq(s->e.pd, &attr);
	CHECK(s->srq);
	in_qp(s, IBV_QPT_RC, sends_and_writes);
	CHECK_EQ(ibv_destroy_srq(s->srq), 0);
	s->srq = NULL;
}

/* ---- datagrams ---- */

static void post_datagram(struct side *s, enum place from, uint32_t len)
{
	struct ibv_ah *ah = vp_ah(&s->e, &s->peer.gid);
	struct ibv_sge sge = places_sge(s, from, len);
	struct ibv_send_wr wr = {.sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.ud = {ah, s->peer.qpn, VP_QKEY}},
			   *bad;
	struct ibv_wc wc;

	CHECK(ah);
	CHECK_EQ(ibv_post_send(s->e.qp, &wr, &bad), 0);
	vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, 0);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
}

/* The bytes come behind a GRH, or room for one, of any content. */
static void datagram(struct side *s, enum place from, enum place to, uint32_t len)
{
	const uint32_t seed = len;
	struct ibv_wc wc;

	check_case("%s: a datagram of %u bytes, %s to %s", s->posts ? "posts" : "takes", len,
		place_names[from], place_names[to]);
	places_prepare(s, s->posts ? from : to, len + GRH, s->posts ? &seed : NULL);
	if (!s->posts)
		CHECK_EQ(places_post_receive(s, to, GRH + len), 0);
	vp_sync(s->sock);
	if (s->posts) {
		post_datagram(s, from, len);
	} else {
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
		CHECK_EQ(wc.byte_len, GRH + len);
		places_check(s, to, GRH, len, seed);
	}
	vp_sync(s->sock);
}

static void datagrams(struct side *s)
{
	static const uint32_t lengths[] = {1, 37, 1000};

	for (enum place from = 0; from < PLACES; from++)
		for (enum place to = 0; to < PLACES; to++)
			for (unsigned i = 0; i < 3; i++)
				datagram(s, from, to, lengths[i]);
}

/* ---- XRC ---- */

static void meet_xrc(struct side *s, struct ibv_qp *tgt)
{
	const struct vp_addr ini = vp_addr(&s->e);
	uint32_t srqn, peer_tgt;

	CHECK_EQ(ibv_get_srq_num(s->srq, &srqn), 0);
	s->peer = vp_swap(s->sock, &ini);
	vp_tell(s->sock, tgt->qp_num);
	peer_tgt = (uint32_t)vp_hear(s->sock);
	vp_tell(s->sock, srqn);
	s->peer_srqn = (uint32_t)vp_hear(s->sock);
	places_tell(s);
	xrc_connect(s->e.qp, peer_tgt, &s->peer.gid);
	xrc_connect(tgt, s->peer.qpn, &s->peer.gid);
	vp_sync(s->sock);
}

static void xrc_requests(struct side *s)
{
	sends_and_writes(s);
	places_sizes(s, IBV_WR_RDMA_WRITE, sizes, SIZES, 1);
	places_sizes(s, IBV_WR_RDMA_READ, sizes, SIZES, 50);
	for (enum place from = 0; from < PLACES; from++)
		for (enum place to = 0; to < PLACES; to++)
			places_one(s, (struct item){IBV_WR_ATOMIC_FETCH_AND_ADD, from, to, 8, 1});
}

static void by_xrc(struct side *s)
{
	struct ibv_xrcd *xrcd = xrc_domain(s->e.ctx, -1, O_CREAT);
	struct ibv_qp *old = s->e.qp, *tgt;

	CHECK(xrcd);
	s->srq = xrc_srq(s->e.pd, xrcd, s->e.rcq);
	s->e.qp = xrc_initiator(s->e.pd, s->e.scq);
	tgt = xrc_target(xrcd);
	meet_xrc(s, tgt);
	xrc_requests(s);
	vp_sync(s->sock);
	CHECK_EQ(ibv_destroy_qp(s->e.qp), 0);
	CHECK_EQ(ibv_destroy_qp(tgt), 0);
	CHECK_EQ(ibv_destroy_srq(s->srq), 0);
	CHECK_EQ(ibv_close_xrcd(xrcd), 0);
	s->srq = NULL;
	s->e.qp = old;
}

/* ---- tags ---- */

static struct ibv_srq *tag_srq(struct side *s)
{
	struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = s->e.pd,
		.cq = s->e.rcq,
		.tm_cap = {.max_num_tags = TAGS, .max_ops = 4}};
	struct ibv_srq *srq = ibv_create_srq_ex(s->e.ctx, &a);

	if (!srq)
		die("ibv_create_srq_ex");
	return srq;
}

static void expect_tag(struct side *s, enum place p, uint64_t tag, uint32_t len)
{
	struct ibv_sge sge = places_sge(s, p, len);
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_ADD, .flags = IBV_OPS_TM_SYNC}, *bad;

	wr.tm.add.recv_wr_id = 1;
	wr.tm.add.sg_list = &sge;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = tag;
	wr.tm.add.mask = UINT64_MAX;
	CHECK_EQ(ibv_post_srq_ops(s->srq, &wr, &bad), 0);
}

static void put_header(struct side *s, uint8_t opcode, uint64_t tag)
{
	const struct ibv_tmh h = {.opcode = opcode, .tag = htobe64(tag)};

	memcpy(s->e.buf, &h, sizeof h);
}

static int post_list(struct side *s, struct ibv_sge *sge, int n)
{
	struct ibv_send_wr wr = {.wr_id = 2,
				   .sg_list = sge,
				   .num_sge = n,
				   .opcode = IBV_WR_SEND,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	return ibv_post_send(s->e.qp, &wr, &bad);
}

/* A header in ordinary memory, and the bytes from that place. */
static void post_eager(struct side *s, enum place from, uint64_t tag, uint32_t len)
{
	struct ibv_sge sge[2] = {vp_sge(&s->e, 0, TMH), places_sge(s, from, len)};

	put_header(s, IBV_TMH_EAGER, tag);
	CHECK_EQ(post_list(s, sge, 2), 0);
}

/* Where the bytes are; they stay there, and the answer comes to FIN_AT. */
static void post_rendezvous(struct side *s, enum place from, uint64_t tag, uint32_t len)
{
	struct ibv_sge sge = places_sge(s, from, len);
	const struct ibv_rvh rvh = {.va = htobe64(sge.addr),
		.rkey = htobe32(from == GPU ? s->gpu_mr->rkey : s->e.mr->rkey),
		.len = htobe32(len)};

	CHECK_EQ(vp_post_recv(&s->e, 3, FIN_AT, 64), 0);
	put_header(s, IBV_TMH_RNDV, tag);
	memcpy(s->e.buf + TMH, &rvh, sizeof rvh);
	sge = vp_sge(&s->e, 0, HEADERS);
	CHECK_EQ(post_list(s, &sge, 1), 0);
}

/* One message from the side that posts; the other expects its tag. */
static void tagged(struct side *s, enum place from, enum place to, uint32_t len, bool rendezvous)
{
	const uint32_t seed = len;
	struct ibv_wc wc;

	check_case("%s: tags, %u bytes %s, %s to %s", s->posts ? "posts" : "takes", len,
		rendezvous ? "by rendezvous" : "at once", place_names[from], place_names[to]);
	places_prepare(s, s->posts ? from : to, len, s->posts ? &seed : NULL);
	if (!s->posts)
		expect_tag(s, to, 7, len);
	vp_sync(s->sock);
	if (s->posts) {
		(rendezvous ? post_rendezvous : post_eager)(s, from, 7, len);
		vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, 2);
		if (rendezvous)
			vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 3);
	} else {
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
		if (rendezvous)
			vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
		places_check(s, to, 0, len, seed);
	}
	vp_sync(s->sock);
}

/* One that nobody expects: header and all. */
static void unexpected(struct side *s, enum place from, enum place to, uint32_t len)
{
	const uint32_t seed = len;
	struct ibv_wc wc;

	check_case("%s: an unexpected tag, %u bytes, %s to %s", s->posts ? "posts" : "takes", len,
		place_names[from], place_names[to]);
	places_prepare(
		s, s->posts ? from : to, len + (s->posts ? 0 : TMH), s->posts ? &seed : NULL);
	if (!s->posts)
		CHECK_EQ(places_post_receive(s, to, TMH + len), 0);
	vp_sync(s->sock);
	if (s->posts) {
		post_eager(s, from, 8, len);
		vp_want(s->e.scq, &wc, IBV_WC_SUCCESS, 2);
	} else {
		vp_want(s->e.rcq, &wc, IBV_WC_SUCCESS, 1);
		places_check(s, to, TMH, len, seed);
	}
	vp_sync(s->sock);
}

static void all_tagged(struct side *s)
{
	for (enum place from = 0; from < PLACES; from++)
		for (enum place to = 0; to < PLACES; to++)
			for (unsigned i = 0; i < SIZES; i++) {
				tagged(s, from, to, sizes[i], false);
				tagged(s, from, to, sizes[i], true);
			}
	for (enum place from = 0; from < PLACES; from++)
		for (enum place to = 0; to < PLACES; to++)
			unexpected(s, from, to, 4096);
}

/* Only the side that takes has such a queue: the answer to a rendezvous comes to a plain one. */
static void by_tags(struct side *s)
{
	s->srq = s->posts ? NULL : tag_srq(s);
	in_qp(s, IBV_QPT_RC, all_tagged);
	if (s->srq)
		CHECK_EQ(ibv_destroy_srq(s->srq), 0);
	s->srq = NULL;
}

/* ---- both processes ---- */

static void run(struct side *s)
{
	struct vp_opts o = vp_defaults();

	o.len = PLACES_LEN;
	places_make(s, &o);
	for (int turn = 0; turn < 2; turn++, s->posts = !s->posts) {
		in_qp(s, IBV_QPT_UC, sends_and_writes);
		in_qp(s, IBV_QPT_UD, datagrams);
		by_srq(s);
		by_xrc(s);
		by_tags(s);
	}
	places_free(s);
}

int main(void)
{
	places_both(run);
	return check_result();
}
