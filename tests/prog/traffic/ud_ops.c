// SPDX-License-Identifier: BSD-3-Clause
/*
 * Datagrams: what arrives and where, the GRH in front, the Q_Key rules, answers by the address in
 * a completion, what is dropped in silence, the errors of either end alone, and a receiver that
 * destroys its QP under fire of a process that it does not know.
 */
#include <errno.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/by_packet.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { GRH = 40, MTU_MAX = 4096 };

static uint32_t mtu; /* of the port: less than MTU_MAX where its link has less */

/* What the SL of a receive tells of the header: RoCEv2 in IPv6 or IPv4, as adapters give it. */
enum { SL_IPV6 = 9, SL_IPV4 = 10 };

static struct vp_end a, b;
static struct ibv_ah *ah;
static struct vp_addr to_b;

static struct vp_opts ud_opts(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UD;
	return o;
}

static void set_up(void)
{
	struct vp_opts o = ud_opts();

	vp_pair(&a, &b, &o);
	to_b = vp_addr(&b);
	ah = vp_ah(&a, &to_b.gid);
	if (!ah)
		die("ibv_create_ah");
}

static void tear_down(void)
{
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	vp_pair_free(&a, &b);
}

static int send_to_b(uint64_t id, uint32_t len)
{
	return vp_post_ud(&a, id, ah, b.qp->qp_num, VP_QKEY, 0, len);
}

static void sent(uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	vp_want(a.scq, &wc, status, id);
}

static uint16_t fold(const uint8_t *p, unsigned n)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < n; i += 2)
		sum += p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* A RoCE v2 adapter puts the IPv4 header into the last 20 of the 40 bytes. */
static void check_grh(const uint8_t *grh, uint32_t len)
{
	const struct iphdr *ip = (const struct iphdr *)(grh + 20);
	unsigned wire = 20 + 8 + 12 + 8 + 4 + ((len + 3) & ~3u) + 4;

	CHECK(pattern_all(grh, 20, 0));
	CHECK_EQ(ip->version, 4);
	CHECK_EQ(ip->ihl, 5);
	CHECK_EQ(ip->protocol, IPPROTO_UDP);
	CHECK_EQ(ip->ttl, 5);
	CHECK_EQ(be16toh(ip->tot_len), wire);
	CHECK_EQ(fold((const uint8_t *)ip, 20), 0xffff);
	CHECK(!memcmp(&ip->daddr, to_b.gid.raw + 12, 4));
	CHECK(!memcmp(&ip->saddr, vp_addr(&a).gid.raw + 12, 4));
}

static void payloads(void)
{
	const uint32_t sizes[] = {0, 1, 36, 37, 88, 89, 100, mtu / 2, mtu};
	struct ibv_wc wc;

	set_up();
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		uint32_t len = sizes[i];

		check_case("%u bytes", len);
		pattern_fill(a.buf, len, i);
		memset(b.buf, 0x5a, MTU_MAX + GRH + 1);
		CHECK_EQ(vp_post_recv(&b, i, 0, MTU_MAX + GRH), 0);
		CHECK_EQ(send_to_b(i, len), 0);
		sent(i, IBV_WC_SUCCESS);
		if (!vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i))
			continue;
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.byte_len, len + GRH);
		CHECK_EQ(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
		CHECK_EQ(be32toh(wc.imm_data), i);
		CHECK_EQ(wc.src_qp, a.qp->qp_num);
		CHECK_EQ(wc.qp_num, b.qp->qp_num);
		CHECK_EQ(wc.slid, 0);
		CHECK_EQ(wc.pkey_index, 0);
		CHECK_EQ(wc.sl, SL_IPV4);
		check_grh(b.buf, len);
		CHECK(pattern_filled(b.buf + GRH, len, i));
		CHECK(b.buf[GRH + len] == 0x5a);
	}
	tear_down();
}

static struct ibv_ah *handle(uint8_t gid_index, uint8_t tclass, uint8_t hops)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = 1,
		.grh = {.sgid_index = gid_index,
			.traffic_class = tclass,
			.flow_label = 0x12345,
			.hop_limit = hops}};

	CHECK_EQ(ibv_query_gid(a.ctx, 1, gid_index, &attr.grh.dgid), 0);
	return ibv_create_ah(a.pd, &attr);
}

static void check_ipv4(uint8_t tclass, uint8_t hops)
{
	const struct iphdr *ip = (const struct iphdr *)(b.buf + 20);

	CHECK_EQ(ip->tos, tclass);
	CHECK_EQ(ip->ttl, hops);
	CHECK_EQ(fold((const uint8_t *)ip, 20), 0xffff);
}

/* What is remembered of one path is not taken for another that differs in one thing. */
static void paths(void)
{
	enum { LINK_LOCAL = 0 };
	struct ibv_ah *far, *wide, *v6, *hop;
	const struct ibv_grh *grh;
	struct ibv_wc wc;

	check_case("several paths in turn");
	set_up();
	grh = (const struct ibv_grh *)b.buf;
	far = handle(VP_GID_INDEX, 0, 200);
	wide = handle(VP_GID_INDEX, 0x48, 200);
	v6 = handle(LINK_LOCAL, 0x48, 200);
	hop = handle(LINK_LOCAL, 0x48, 7);
	struct ibv_ah *all[] = {far, wide, v6, hop, wide, v6, far, far};

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, MTU_MAX + GRH), 0);
		CHECK_EQ(vp_post_ud(&a, i, all[i], b.qp->qp_num, VP_QKEY, 0, 16 + i), 0);
		sent(i, IBV_WC_SUCCESS);
		if (!vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i))
			continue;
		if (all[i] == far || all[i] == wide) {
			check_ipv4(all[i] == far ? 0 : 0x48, 200);
			CHECK_EQ(wc.sl, SL_IPV4);
			continue;
		}
		CHECK_EQ(wc.sl, SL_IPV6);
		/* A UDP socket neither sends nor shows the flow label of IPv6. */
		CHECK_EQ(be32toh(grh->version_tclass_flow),
			6u << 28 | 0x48u << 20 | (by_packet() ? 0 : 0x12345));
		CHECK_EQ(grh->hop_limit, all[i] == v6 ? 200 : 7);
		CHECK_EQ(be16toh(grh->paylen), 8 + 20 + 4 + ((16 + i + 3) & ~3u) + 4);
	}
	for (unsigned i = 0; i < 4; i++)
		CHECK_EQ(ibv_destroy_ah(all[i]), 0);
	tear_down();
}

/* The answer goes to where a completion came from. */
static void answer(void)
{
	struct ibv_ah_attr attr;
	struct ibv_ah *back;
	struct ibv_wc wc;

	check_case("an answer");
	set_up();
	CHECK_EQ(vp_post_recv(&a, 1, 4096, 256), 0);
	CHECK_EQ(vp_post_recv(&b, 2, 0, 256), 0);
	CHECK_EQ(send_to_b(3, 16), 0);
	sent(3, IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 2);
	CHECK_EQ(ibv_init_ah_from_wc(b.ctx, 1, &wc, (struct ibv_grh *)b.buf, &attr), 0);
	CHECK(attr.is_global && attr.grh.sgid_index == VP_GID_INDEX);
	CHECK(!memcmp(attr.grh.dgid.raw, vp_addr(&a).gid.raw, 16));
	back = ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)b.buf, 1);
	if (CHECK(back)) {
		pattern_fill(b.buf + 1024, 100, 77);
		CHECK_EQ(vp_post_ud(&b, 4, back, wc.src_qp, VP_QKEY, 1024, 100), 0);
		CHECK_EQ(ibv_destroy_ah(back), 0);
		vp_want(a.rcq, &wc, IBV_WC_SUCCESS, 1);
		CHECK(pattern_filled(a.buf + 4096 + GRH, 100, 77));
	}
	check_case("to itself");
	CHECK_EQ(vp_post_recv(&a, 5, 8192, 256), 0);
	CHECK_EQ(vp_post_ud(&a, 6, ah, a.qp->qp_num, VP_QKEY, 0, 16), 0);
	sent(6, IBV_WC_SUCCESS);
	vp_want(a.rcq, &wc, IBV_WC_SUCCESS, 5);
	CHECK_EQ(wc.src_qp, a.qp->qp_num);
	tear_down();
}

/* Packets take a while: what was sent to b is there, or was dropped, once this has come to a. */
static void let_arrive(void)
{
	struct ibv_wc wc;

	if (!by_packet())
		return;
	CHECK_EQ(vp_post_recv(&a, 100, 4096, 256), 0);
	CHECK_EQ(vp_post_ud(&a, 100, ah, a.qp->qp_num, VP_QKEY, 0, 16), 0);
	sent(100, IBV_WC_SUCCESS);
	vp_want(a.rcq, &wc, IBV_WC_SUCCESS, 100);
}

static void dropped(void)
{
	struct ibv_wc wc;

	set_up();
	check_case("no receive");
	CHECK_EQ(send_to_b(1, 16), 0);
	sent(1, IBV_WC_SUCCESS);
	let_arrive();
	CHECK_EQ(vp_post_recv(&b, 1, 0, 256), 0);
	vp_quiet(b.rcq, 5);
	check_case("a wrong Q_Key");
	CHECK_EQ(vp_post_ud(&a, 2, ah, b.qp->qp_num, VP_QKEY + 1, 0, 16), 0);
	sent(2, IBV_WC_SUCCESS);
	vp_quiet(b.rcq, 5);
	check_case("nobody has that number");
	CHECK_EQ(vp_post_ud(&a, 3, ah, 0xfffff0, VP_QKEY, 0, 16), 0);
	sent(3, IBV_WC_SUCCESS);
	check_case("the QP's own Q_Key instead");
	CHECK_EQ(vp_post_ud(&a, 4, ah, b.qp->qp_num, 0x80000000, 0, 16), 0);
	sent(4, IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 1);
	check_case("a receiver in RESET, and again in RTS");
	CHECK_EQ(vp_state(&b, IBV_QPS_RESET), 0);
	CHECK_EQ(send_to_b(5, 16), 0);
	sent(5, IBV_WC_SUCCESS);
	let_arrive();
	vp_connect(&b, &to_b);
	CHECK_EQ(vp_post_recv(&b, 6, 0, 256), 0);
	CHECK_EQ(send_to_b(6, 16), 0);
	sent(6, IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 6);
	vp_quiet(b.rcq, 5);
	tear_down();
}

static void faults(void)
{
	struct ibv_wc wc;

	set_up();
	check_case("longer than the MTU");
	CHECK_EQ(send_to_b(1, mtu + 1), 0);
	sent(1, IBV_WC_LOC_LEN_ERR);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_SQE);
	CHECK_EQ(send_to_b(2, 8), 0);
	sent(2, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(vp_state(&a, IBV_QPS_RTS), 0);
	check_case("after SQE");
	CHECK_EQ(vp_post_recv(&b, 3, 0, 256), 0);
	CHECK_EQ(send_to_b(3, 8), 0);
	sent(3, IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 3);
	check_case("not a SEND, no handle, no GRH");
	CHECK_EQ(vp_post_send(&a, 4, IBV_WR_RDMA_WRITE, 0, 0, 8, &to_b, 0), EINVAL);
	CHECK_EQ(vp_post_ud(&a, 4, NULL, b.qp->qp_num, VP_QKEY, 0, 8), EINVAL);
	{
		struct ibv_ah_attr attr = {.port_num = 1, .dlid = 1};

		CHECK(!ibv_create_ah(a.pd, &attr) && errno == EINVAL);
		attr.is_global = 1;
		attr.port_num = 2;
		attr.grh.dgid = to_b.gid;
		CHECK(!ibv_create_ah(a.pd, &attr) && errno == EINVAL);
		attr.port_num = 1;
		attr.grh.sgid_index = 250;
		CHECK(!ibv_create_ah(a.pd, &attr) && errno == EINVAL);
	}
	check_case("a receive that has no room for the GRH");
	CHECK_EQ(vp_post_recv(&b, 5, 0, GRH + 7), 0);
	CHECK_EQ(vp_post_recv(&b, 6, 0, 256), 0);
	CHECK_EQ(send_to_b(5, 8), 0);
	sent(5, IBV_WC_SUCCESS);
	vp_want(b.rcq, &wc, IBV_WC_LOC_LEN_ERR, 5);
	vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 6);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
	CHECK_EQ(vp_get_state(&a), IBV_QPS_RTS);
	check_case("a receive posted in ERR");
	CHECK_EQ(vp_post_recv(&b, 7, 0, 256), 0);
	vp_want(b.rcq, &wc, IBV_WC_WR_FLUSH_ERR, 7);
	check_case("more receives than fit");
	CHECK_EQ(vp_state(&b, IBV_QPS_RESET), 0);
	vp_connect(&b, &to_b);
	for (unsigned i = 0; i < b.opts.recv_wr; i++)
		CHECK_EQ(vp_post_recv(&b, i, 0, 256), 0);
	CHECK_EQ(vp_post_recv(&b, 99, 0, 256), ENOMEM);
	tear_down();
}

/* A sender that only fires, at every QP number it is told. */
static void shooter(int fd, void *arg)
{
	struct vp_opts o = ud_opts();
	struct vp_addr mine, theirs;
	struct ibv_wc wc;
	uint64_t word;

	(void)arg;
	vp_make(&a, vp_open(), &o);
	mine = vp_addr(&a);
	vp_connect(&a, &mine);
	theirs = vp_swap(fd, &mine);
	ah = vp_ah(&a, &theirs.gid);
	pattern_fill(a.buf, MTU_MAX, 5);
	while ((word = vp_hear(fd))) {
		double until = now_ms() + 20;

		vp_tell(fd, 1);
		while (now_ms() < until) {
			vp_post_ud(&a, 1, ah, (uint32_t)word, VP_QKEY, 0, 1000);
			while (ibv_poll_cq(a.scq, 1, &wc))
				;
		}
	}
}

/* What it sends reaches us, and QPs and buffers go in the middle of it. */
static void under_fire(void)
{
	struct vp_opts o = ud_opts();
	struct vp_child c = vp_fork(shooter, NULL);
	struct ibv_context *ctx = vp_open();
	struct vp_addr mine;
	unsigned arrived = 0;
	double end = now_ms() + VP_DEADLINE_MS;

	check_case("destroyed under fire");
	vp_make(&a, ctx, &o);
	mine = vp_addr(&a);
	vp_swap(c.fd, &mine);
	/* The shooter may have to wait for a CPU for some rounds. */
	for (int round = 0; round < 20 || (arrived <= 20 && now_ms() < end); round++) {
		struct ibv_wc wc;
		double until;

		vp_make(&b, ctx, &o);
		vp_connect(&b, &mine);
		for (unsigned i = 0; i < o.recv_wr; i++)
			CHECK_EQ(vp_post_recv(&b, i, i * 512, 512), 0);
		vp_tell(c.fd, b.qp->qp_num);
		vp_hear(c.fd);
		until = now_ms() + 5 + round % 5;
		while (now_ms() < until)
			if (ibv_poll_cq(b.rcq, 1, &wc) > 0) {
				/* 1000 bytes do not fit in the first, they fit in later ones */
				CHECK(wc.status == IBV_WC_LOC_LEN_ERR ||
					wc.status == IBV_WC_WR_FLUSH_ERR ||
					wc.status == IBV_WC_SUCCESS);
				if (wc.status == IBV_WC_SUCCESS)
					CHECK(pattern_filled(b.buf + GRH, 1000, 5));
				arrived++;
				if (wc.status != IBV_WC_SUCCESS &&
					vp_get_state(&b) == IBV_QPS_ERR &&
					wc.wr_id == o.recv_wr - 1) {
					CHECK_EQ(vp_state(&b, IBV_QPS_RESET), 0);
					vp_connect(&b, &mine);
				}
				vp_post_recv(&b, wc.wr_id, 0, 4096);
			}
		vp_free(&b);
	}
	vp_tell(c.fd, 0);
	vp_join(&c);
	CHECK(arrived > 20);
	vp_free(&a);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* A datagram finds no receive as long as weftd has not heard that who had taken it is dead. */
static bool arrives(unsigned id)
{
	double end = now_ms() + VP_DEADLINE_MS;
	struct ibv_wc wc;

	do {
		CHECK_EQ(send_to_b(id, 100), 0);
		sent(id, IBV_WC_SUCCESS);
		if (vp_poll(b.rcq, &wc, 50))
			return true;
	} while (now_ms() < end);
	return false;
}

/* However often a sender is killed, no receive is lost. */
static void killed(void)
{
	struct ibv_context *ctx = vp_open();
	struct vp_opts o = ud_opts();
	struct vp_addr mine;
	struct ibv_wc wc;

	check_case("senders are killed");
	o.recv_wr = 4;
	vp_make(&a, ctx, &o);
	vp_make(&b, ctx, &o);
	mine = to_b = vp_addr(&b);
	vp_connect(&a, &mine);
	vp_connect(&b, &mine);
	for (unsigned i = 0; i < o.recv_wr; i++)
		CHECK_EQ(vp_post_recv(&b, i, i * 4096, 4096), 0);
	for (int round = 0; round < 20; round++) {
		struct vp_child c = vp_fork(shooter, NULL);
		double until;

		vp_swap(c.fd, &mine);
		vp_tell(c.fd, b.qp->qp_num);
		vp_hear(c.fd);
		until = now_ms() + 1 + round % 4;
		while (now_ms() < until)
			if (ibv_poll_cq(b.rcq, 1, &wc) > 0)
				CHECK_EQ(vp_post_recv(&b, wc.wr_id, wc.wr_id * 4096, 4096), 0);
		vp_kill_join(&c);
		while (vp_poll(b.rcq, &wc, 20)) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(vp_post_recv(&b, wc.wr_id, wc.wr_id * 4096, 4096), 0);
		}
	}
	ah = vp_ah(&a, &mine.gid);
	for (unsigned i = 0; i < o.recv_wr; i++)
		CHECK(arrives(i));
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	vp_free(&a);
	vp_free(&b);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	struct ibv_port_attr port;
	struct ibv_context *ctx;

	under_fire();
	killed();
	ctx = vp_open(); /* keeps the process attached */
	if (ibv_query_port(ctx, 1, &port))
		die("ibv_query_port");
	mtu = 128u << port.active_mtu;
	payloads();
	paths();
	answer();
	dropped();
	faults();
	ibv_close_device(ctx);
	return check_result();
}
