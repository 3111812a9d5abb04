// SPDX-License-Identifier: BSD-3-Clause
/* ibv_modify_qp(3), ibv_query_qp(3) and ibv_create_qp(3) of RC queue pairs: every refusal. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum {
	RST = IBV_QPS_RESET,
	INI = IBV_QPS_INIT,
	RTR = IBV_QPS_RTR,
	RTS = IBV_QPS_RTS,
	SQD = IBV_QPS_SQD,
	SQE = IBV_QPS_SQE,
	ERR = IBV_QPS_ERR,
	STATES = ERR + 1,
};

enum {
	TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	TO_RTR = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	TO_RTS = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	LIVE = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
	       IBV_QP_PATH_MIG_STATE,
};

/* The table of the manual page; what is not in it is refused. */
static const struct {
	uint8_t from, to;
	int required, optional;
} table[] = {
	{RST, RST, 0, 0},
	{RST, INI, TO_INIT, 0},
	{INI, RST, 0, 0},
	{INI, ERR, 0, 0},
	{INI, INI, 0, TO_INIT},
	{INI, RTR, TO_RTR, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{RTR, RST, 0, 0},
	{RTR, ERR, 0, 0},
	{RTR, RTS, TO_RTS, LIVE},
	{RTS, RST, 0, 0},
	{RTS, ERR, 0, 0},
	{RTS, RTS, 0, LIVE},
	{RTS, SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{SQD, RST, 0, 0},
	{SQD, ERR, 0, 0},
	{SQD, RTS, 0, LIVE},
	{SQD, SQD, 0,
		IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
			IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER |
			IBV_QP_PATH_MIG_STATE},
	{ERR, RST, 0, 0},
	{ERR, ERR, 0, 0},
};

enum { TABLE = sizeof table / sizeof *table, ATTR_BITS = 21 };

static struct vp_end e, other;
static struct vp_addr other_addr;

/* Values that every transition accepts. */
static struct ibv_qp_attr good(int from, int to)
{
	return (struct ibv_qp_attr){
		.qp_state = to,
		.cur_qp_state = from,
		.path_mtu = IBV_MTU_512,
		.path_mig_state = IBV_MIG_MIGRATED,
		.rq_psn = 0x123456,
		.sq_psn = 0xfffffe,
		.dest_qp_num = other_addr.qpn,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.sl = 3,
			.grh = {.dgid = other_addr.gid,
				.sgid_index = VP_GID_INDEX,
				.hop_limit = 17,
				.flow_label = 5,
				.traffic_class = 32}},
		.alt_ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = other_addr.gid, .sgid_index = VP_GID_INDEX}},
		.alt_port_num = 1,
		.port_num = 1,
		.max_rd_atomic = 7,
		.max_dest_rd_atomic = 9,
		.min_rnr_timer = 13,
		.timeout = 18,
		.retry_cnt = 5,
		.rnr_retry = 6,
	};
}

static int modify(struct ibv_qp_attr a, int mask)
{
	int rc = ibv_modify_qp(e.qp, &a, mask);

	CHECK(rc >= 0);
	return rc;
}

static int step(int from, int to, int required)
{
	return modify(good(from, to), IBV_QP_STATE | required);
}

/* Brings the QP into a state by the shortest way; SQE cannot be reached by RC. */
static void bring_to(int state)
{
	CHECK_EQ(step(vp_get_state(&e), RST, 0), 0);
	if (state == RST)
		return;
	CHECK_EQ(step(RST, INI, TO_INIT), 0);
	if (state == ERR)
		CHECK_EQ(step(INI, ERR, 0), 0);
	if (state == INI || state == ERR)
		return;
	CHECK_EQ(step(INI, RTR, TO_RTR), 0);
	if (state == RTR)
		return;
	CHECK_EQ(step(RTR, RTS, TO_RTS), 0);
	if (state == SQD)
		CHECK_EQ(step(RTS, SQD, 0), 0);
}

static int find(int from, int to)
{
	for (int i = 0; i < TABLE; i++)
		if (table[i].from == from && table[i].to == to)
			return i;
	return -1;
}

static void refused(int from, int rc)
{
	CHECK_EQ(rc, EINVAL);
	CHECK_EQ(vp_get_state(&e), from);
}

/* All attributes of a transition, each missing one, and each one too much. */
static void try_attributes(int from, int to, int required, int optional)
{
	for (int bit = 1; bit < ATTR_BITS; bit++) {
		int attr = 1 << bit;

		check_case("state %d to %d, attribute %#x", from, to, attr);
		if (required & attr) {
			refused(from, modify(good(from, to), IBV_QP_STATE | (required & ~attr)));
		} else if (!(optional & attr)) {
			refused(from, modify(good(from, to), IBV_QP_STATE | required | attr));
		} else {
			CHECK_EQ(modify(good(from, to), IBV_QP_STATE | required | attr), 0);
			CHECK_EQ(vp_get_state(&e), to);
			bring_to(from);
		}
	}
	check_case("state %d to %d", from, to);
	CHECK_EQ(modify(good(from, to), IBV_QP_STATE | required), 0);
	CHECK_EQ(vp_get_state(&e), to);
}

static void transitions(void)
{
	for (int from = 0; from < STATES; from++) {
		if (from == SQE)
			continue;
		for (int to = 0; to < STATES + 2; to++) {
			int i = find(from, to);

			check_case("state %d to %d", from, to);
			bring_to(from);
			if (i >= 0) {
				try_attributes(from, to, table[i].required, table[i].optional);
				continue;
			}
			refused(from, step(from, to, 0));
			refused(from, step(from, to, TO_INIT));
			refused(from, step(from, to, TO_RTR));
			refused(from, step(from, to, TO_RTS));
		}
	}
}

static void no_state_bit(void)
{
	check_case("no IBV_QP_STATE: an attribute of the present state");
	bring_to(RTS);
	CHECK_EQ(modify(good(RTS, RTS), IBV_QP_MIN_RNR_TIMER), 0);
	CHECK_EQ(vp_get_state(&e), RTS);
	refused(RTS, modify(good(RTS, RTS), IBV_QP_TIMEOUT));
	check_case("cur_qp_state is wrong");
	refused(RTS, modify(good(SQD, RTS), IBV_QP_STATE | IBV_QP_CUR_STATE));
}

/* ---- values ---- */

#define BAD(from_, to_, mask_, member, value)                                                      \
	do {                                                                                       \
		struct ibv_qp_attr a_ = good(from_, to_);                                          \
                                                                                                   \
		a_.member = (value);                                                               \
		check_case("%d to %d: %s = %s", from_, to_, #member, #value);                      \
		bring_to(from_);                                                                   \
		refused(from_, modify(a_, IBV_QP_STATE | (mask_)));                                \
	} while (0)

#define GOOD(from_, to_, mask_, member, value)                                                     \
	do {                                                                                       \
		struct ibv_qp_attr a_ = good(from_, to_);                                          \
                                                                                                   \
		a_.member = (value);                                                               \
		check_case("%d to %d: %s = %s", from_, to_, #member, #value);                      \
		bring_to(from_);                                                                   \
		CHECK_EQ(modify(a_, IBV_QP_STATE | (mask_)), 0);                                   \
	} while (0)

static void values(void)
{
	struct ibv_port_attr port;
	struct ibv_device_attr dev;

	if (ibv_query_port(e.ctx, 1, &port) || ibv_query_device(e.ctx, &dev))
		die("query");
	BAD(RST, INI, TO_INIT, port_num, 0);
	BAD(RST, INI, TO_INIT, port_num, 2);
	BAD(RST, INI, TO_INIT, pkey_index, port.pkey_tbl_len);
	BAD(RST, INI, TO_INIT, qp_access_flags, 1u << 30);
	GOOD(RST, INI, TO_INIT, qp_access_flags, 0);
	GOOD(RST, INI, TO_INIT, qp_access_flags,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	BAD(INI, RTR, TO_RTR, path_mtu, 0);
	BAD(INI, RTR, TO_RTR, path_mtu, port.max_mtu + 1);
	GOOD(INI, RTR, TO_RTR, path_mtu, IBV_MTU_256);
	GOOD(INI, RTR, TO_RTR, path_mtu, port.active_mtu);
	GOOD(INI, RTR, TO_RTR, path_mtu, port.max_mtu);
	BAD(INI, RTR, TO_RTR, dest_qp_num, 1u << 24);
	BAD(INI, RTR, TO_RTR, rq_psn, 1u << 24);
	GOOD(INI, RTR, TO_RTR, rq_psn, 0xffffff);
	BAD(INI, RTR, TO_RTR, min_rnr_timer, 32);
	GOOD(INI, RTR, TO_RTR, min_rnr_timer, 31);
	BAD(INI, RTR, TO_RTR, max_dest_rd_atomic, dev.max_qp_rd_atom + 1);
	GOOD(INI, RTR, TO_RTR, max_dest_rd_atomic, dev.max_qp_rd_atom);
	BAD(INI, RTR, TO_RTR, ah_attr.port_num, 0);
	BAD(INI, RTR, TO_RTR, ah_attr.port_num, 2);
	BAD(INI, RTR, TO_RTR, ah_attr.is_global, 0);
	BAD(INI, RTR, TO_RTR, ah_attr.grh.sgid_index, 255);
	BAD(RTR, RTS, TO_RTS, timeout, 32);
	GOOD(RTR, RTS, TO_RTS, timeout, 31);
	BAD(RTR, RTS, TO_RTS, retry_cnt, 8);
	BAD(RTR, RTS, TO_RTS, rnr_retry, 8);
	BAD(RTR, RTS, TO_RTS, sq_psn, 1u << 24);
	BAD(RTR, RTS, TO_RTS, max_rd_atomic, dev.max_qp_init_rd_atom + 1);
	BAD(RTR, RTS, TO_RTS | IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 32);
	BAD(RTR, RTS, TO_RTS | IBV_QP_ACCESS_FLAGS, qp_access_flags, 1u << 30);
	BAD(RTS, RTS, IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 32);
	BAD(SQD, SQD, IBV_QP_TIMEOUT, timeout, 32);
	BAD(SQD, SQD, IBV_QP_PORT, port_num, 2);
	BAD(RTR, RTS, TO_RTS | IBV_QP_PATH_MIG_STATE, path_mig_state, 9);
	BAD(RTR, RTS, TO_RTS | IBV_QP_ALT_PATH, alt_port_num, 2);
	BAD(RTR, RTS, TO_RTS | IBV_QP_ALT_PATH, alt_timeout, 32);
	BAD(RTR, RTS, TO_RTS | IBV_QP_ALT_PATH, alt_pkey_index, port.pkey_tbl_len);
}

static void put_ipv4(union ibv_gid *gid, uint8_t last)
{
	*gid = (union ibv_gid){.raw = {[10] = 0xff, 0xff, 203, 0, 113, last}};
}

static void foreign_gid(void)
{
	struct ibv_qp_attr a = good(INI, RTR);

	check_case("a destination GID of another host");
	bring_to(INI);
	a.ah_attr.grh.sgid_index = VP_GID_INDEX;
	put_ipv4(&a.ah_attr.grh.dgid, 7);
	CHECK_EQ(modify(a, IBV_QP_STATE | TO_RTR), EHOSTUNREACH);
	CHECK_EQ(vp_get_state(&e), INI);
}

/* No packet has both: refused wherever it leads, as the kernel does, but for link-local ones. */
static void mixed_gids(void)
{
	struct ibv_qp_attr a = good(INI, RTR);

	check_case("GIDs of two kinds of addresses");
	bring_to(INI);
	a.ah_attr.grh.sgid_index = VP_GID_INDEX_IPV6;
	put_ipv4(&a.ah_attr.grh.dgid, 7);
	CHECK_EQ(modify(a, IBV_QP_STATE | TO_RTR), EINVAL);
	CHECK(!ibv_create_ah(e.pd, &a.ah_attr));
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(ibv_query_gid(e.ctx, 1, VP_GID_INDEX, &a.ah_attr.grh.dgid), 0);
	CHECK_EQ(modify(a, IBV_QP_STATE | TO_RTR), EINVAL);
	a.ah_attr.grh.sgid_index = VP_GID_INDEX;
	CHECK_EQ(ibv_query_gid(e.ctx, 1, VP_GID_INDEX_IPV6, &a.ah_attr.grh.dgid), 0);
	CHECK_EQ(modify(a, IBV_QP_STATE | TO_RTR), 0);
}

/* ---- query ---- */

static void query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr q, w = good(RTR, RTS);

	check_case("query gives back what was set");
	bring_to(RTS);
	memset(&q, 0xa5, sizeof q);
	memset(&init, 0xa5, sizeof init);
	CHECK_EQ(ibv_query_qp(e.qp, &q, 0x1fffff, &init), 0);
	CHECK_EQ(q.qp_state, RTS);
	CHECK_EQ(q.cur_qp_state, RTS);
	CHECK_EQ(q.path_mtu, w.path_mtu);
	CHECK_EQ(q.rq_psn, w.rq_psn);
	CHECK_EQ(q.sq_psn, w.sq_psn);
	CHECK_EQ(q.dest_qp_num, w.dest_qp_num);
	CHECK_EQ(q.qp_access_flags, w.qp_access_flags);
	CHECK_EQ(q.pkey_index, 0);
	CHECK_EQ(q.port_num, 1);
	CHECK_EQ(q.max_rd_atomic, w.max_rd_atomic);
	CHECK_EQ(q.max_dest_rd_atomic, w.max_dest_rd_atomic);
	CHECK_EQ(q.min_rnr_timer, w.min_rnr_timer);
	CHECK_EQ(q.timeout, w.timeout);
	CHECK_EQ(q.retry_cnt, w.retry_cnt);
	CHECK_EQ(q.rnr_retry, w.rnr_retry);
	CHECK_EQ(q.sq_draining, 0);
	CHECK(!memcmp(&q.ah_attr, &w.ah_attr, sizeof w.ah_attr));
	CHECK_EQ(q.cap.max_send_wr, init.cap.max_send_wr);
	CHECK(init.send_cq == e.scq && init.recv_cq == e.rcq && init.qp_type == IBV_QPT_RC);
	CHECK(init.qp_context == e.qp->qp_context && !init.srq && !init.sq_sig_all);
	CHECK(init.cap.max_send_wr >= e.opts.send_wr && init.cap.max_recv_wr >= e.opts.recv_wr);
	CHECK(init.cap.max_send_sge >= e.opts.sge && init.cap.max_inline_data >= e.opts.max_inline);

	check_case("RESET forgets");
	bring_to(RST);
	CHECK_EQ(ibv_query_qp(e.qp, &q, 0x1fffff, &init), 0);
	CHECK_EQ(q.qp_state, RST);
	CHECK_EQ(q.dest_qp_num, 0);
}

/* ---- create ---- */

static struct ibv_qp *create(enum ibv_qp_type type, struct ibv_qp_cap cap, struct ibv_qp_cap *got)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.scq, .recv_cq = e.rcq, .qp_type = type, .cap = cap, .qp_context = &e};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(e.pd, &init);
	if (got)
		*got = init.cap;
	return qp;
}

static void create_limits(void)
{
	const struct ibv_qp_cap base = {1, 1, 1, 1, 0};
	struct ibv_device_attr dev;
	struct ibv_qp_cap got;
	struct ibv_qp *qp;

	if (ibv_query_device(e.ctx, &dev))
		die("query");
	check_case("raw packets");
	CHECK(!create(IBV_QPT_RAW_PACKET, base, NULL));
	CHECK_EQ(errno, EOPNOTSUPP);
	check_case("the target of XRC without a domain");
	CHECK(!create(IBV_QPT_XRC_RECV, base, NULL));
	CHECK_EQ(errno, EINVAL);
	check_case("an unknown QP type");
	CHECK(!create(77, base, NULL));
	CHECK_EQ(errno, EINVAL);
	for (int member = 0; member < 5; member++) {
		struct ibv_qp_cap cap = base;
		uint32_t *at[] = {&cap.max_send_wr, &cap.max_recv_wr, &cap.max_send_sge,
			&cap.max_recv_sge, &cap.max_inline_data};
		uint32_t max[] = {dev.max_qp_wr, dev.max_qp_wr, dev.max_sge, dev.max_sge, 512};

		check_case("capacity %d at its limit and above", member);
		*at[member] = max[member];
		qp = create(IBV_QPT_RC, cap, &got);
		if (CHECK(qp)) {
			CHECK(got.max_send_wr >= cap.max_send_wr);
			CHECK(got.max_recv_wr >= cap.max_recv_wr);
			CHECK(got.max_send_sge >= cap.max_send_sge);
			CHECK(got.max_recv_sge >= cap.max_recv_sge);
			CHECK(got.max_inline_data >= cap.max_inline_data);
			CHECK(qp->qp_context == &e && qp->state == IBV_QPS_RESET && qp->pd == e.pd);
			CHECK(qp->qp_num > 1 && qp->qp_num < 1u << 24);
			CHECK_EQ(ibv_destroy_qp(qp), 0);
		}
		(*at[member])++;
		CHECK(!create(IBV_QPT_RC, cap, NULL));
		CHECK_EQ(errno, EINVAL);
		*at[member] = UINT32_MAX;
		CHECK(!create(IBV_QPT_RC, cap, NULL));
		CHECK(errno == EINVAL || errno == ENOMEM);
	}
	check_case("nothing asked for");
	qp = create(IBV_QPT_RC, (struct ibv_qp_cap){0}, &got);
	if (CHECK(qp))
		CHECK_EQ(ibv_destroy_qp(qp), 0);
	check_case("no CQ");
	{
		struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = base};

		CHECK(!ibv_create_qp(e.pd, &init));
		CHECK_EQ(errno, EINVAL);
	}
}

int main(void)
{
	struct vp_opts o = vp_defaults();
	struct ibv_context *ctx = vp_open();

	vp_make(&e, ctx, &o);
	vp_make(&other, ctx, &o);
	other_addr = vp_addr(&other);
	transitions();
	no_state_bit();
	values();
	foreign_gid();
	mixed_gids();
	query();
	create_limits();
	vp_free(&e);
	vp_free(&other);
	CHECK_EQ(ibv_close_device(ctx), 0);
	return check_result();
}
