// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer that breaks every rule: packets whose ICRC and addresses are right, of any opcode, length,
 * key, address and PSN, to a queue pair that has requests of its own under way.  No byte outside
 * what was granted changes, each request ends at most once, and other queue pairs of the process
 * go on.  In a network namespace of its own, with WEFT_WIRE=always.
 *
 * usage: wire_hostile [SEED [EPISODES]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/forger.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	EPISODES = 1500,
	PACKETS = 40, /* of an episode, at most */
	REQUESTS = 6,
	RECEIVES = 4,
	AREA = 64 << 10,
	SLOT = 4 << 10,
	LEN = 64,
	NOBODY = 200, /* queue pair numbers beyond ours, of the same block */
};

/* One after the other: what is not registered, what the peer may use, what only we may, and what is
 * not registered again. */
enum area { BEFORE, GRANTED, OWN, BEHIND, AREAS };

static const char ours[] = "198.51.100.1";

static struct vp_end victim, rc[2];
static uint8_t *memory;
static struct ibv_mr *granted, *own;
/* An adapter, whose port is any, and Weft; which of them the peer is in this episode. */
static struct forger adapter, weft, *sender;
static struct vp_addr peer; /* the victim's: its number is nobody's */
static uint32_t own_psn;    /* the first of what the victim asks for */
static enum ibv_mtu mtu;
static unsigned posted, ended;
/* In some episodes most packets keep to the rules, so that the others meet a message that is under
 * way: of this act, or 0. */
static bool polite;
static uint8_t open_act;
static uint64_t state;

static uint32_t chance(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

static uint8_t *area(enum area a)
{
	return memory + (size_t)a * AREA;
}

/* ---- what is sent ---- */

static uint32_t some_length(void)
{
	static const uint32_t edges[] = {
		0, 1, 8, AREA - 1, AREA, AREA + 1, 1u << 31, (1u << 31) + 1, UINT32_MAX};
	uint32_t bytes = 128u << mtu;

	switch (chance(4)) {
	case 0:
		return edges[chance(sizeof edges / sizeof edges[0])];
	case 1:
		return bytes * chance(4);
	default:
		return chance(3 * bytes);
	}
}

static bool by_the_rules(void)
{
	return polite && chance(16);
}

static uint32_t some_key(void)
{
	if (by_the_rules())
		return granted->rkey;
	switch (chance(8)) {
	case 0:
		return own->rkey;
	case 1:
		return state >> 32;
	case 2:
		return granted->rkey ^ 1u << chance(32);
	default:
		return granted->rkey;
	}
}

static uint64_t some_address(void)
{
	static const int64_t edges[] = {-8, -1, 0, 1, AREA - 8, AREA - 1, AREA};

	if (by_the_rules())
		return (uintptr_t)area(GRANTED) + 8 * chance(AREA / 16);
	switch (chance(8)) {
	case 0:
		return state;
	case 1:
		return UINT64_MAX - chance(64);
	case 2:
		return (uintptr_t)area(GRANTED) + edges[chance(sizeof edges / sizeof edges[0])];
	default:
		return (uintptr_t)area(GRANTED) + 8 * chance(AREA / 16);
	}
}

/* Mostly one that fits the opcode. */
static size_t some_payload(const struct roce_op *op)
{
	size_t bytes = 128u << mtu;

	if (!by_the_rules() && !chance(12))
		return chance(4096 + 200);
	switch ((enum roce_payload)op->payload) {
	case ROCE_NO_PAYLOAD:
		return 0;
	case ROCE_FULL:
		return bytes;
	case ROCE_8_BYTES:
		return 8;
	default:
		return chance(bytes + 1);
	}
}

static uint8_t some_syndrome(void)
{
	static const uint8_t kinds[] = {0, ROCE_ACK_NO_CREDITS, ROCE_RNR_NAK, ROCE_NAK_PSN};

	return chance(6) ? kinds[chance(4)] | (chance(3) ? 0 : chance(32)) : chance(256);
}

/* Does a request go on as the one before began? */
static bool follows(const struct roce_op *op)
{
	if (roce_is_response(op))
		return true;
	return open_act ? op->act == open_act && !(op->place & ROCE_FIRST) : op->place & ROCE_FIRST;
}

static uint8_t some_opcode(void)
{
	bool rules = by_the_rules();
	const struct roce_op *op;
	uint8_t opcode;

	do {
		opcode = chance(20) ? chance(0x20) : chance(256);
		op = roce_op(opcode);
	} while (!op->name || (rules && !follows(op)));
	if (!roce_is_response(op))
		open_act = op->place & ROCE_LAST ? 0 : op->act;
	return opcode;
}

/* Mostly the one that comes next: *next for requests. */
static uint32_t some_psn(const struct roce_op *op, uint32_t *next)
{
	if (roce_is_response(op))
		return chance(10) ? own_psn + chance(20) : own_psn - 2 + chance(1 << 24);
	if (!by_the_rules() && !chance(6))
		return *next + chance(300) - 20;
	return polite || chance(40) ? (*next)++ : state >> 32;
}

static void attack(uint32_t *next)
{
	struct roce_packet p = {.opcode = some_opcode(),
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = victim.qp->qp_num,
		.solicited = chance(2),
		.ack_req = chance(2),
		.again = chance(2),
		.becn = !chance(16),
		.va = some_address(),
		.rkey = some_key(),
		.length = some_length(),
		.syndrome = some_syndrome(),
		.msn = state,
		.qkey = VP_QKEY,
		.invalidate = some_key(),
		.flush = chance(64)};

	p.op = roce_op(p.opcode);
	p.psn = some_psn(p.op, next) & ROCE_PSN_MASK;
	p.payload_len = some_payload(p.op);
	/* a WRITE that says how long it is, or not */
	if (p.op->act == ROCE_WRITE && p.op->place == ROCE_ONLY && (polite || chance(4)))
		p.length = p.payload_len;
	if (p.op->act == ROCE_READ && p.length < AREA)
		*next += roce_packets(p.length, 128u << mtu) - 1;
	p.pad = chance(30) ? -p.payload_len & 3 : chance(4);
	forger_send(sender, &p, 9);
}

/* ---- the victim ---- */

static void connect_victim(uint32_t psn)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = peer.qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = chance(5) ? 4 : 0,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = peer.gid, .sgid_index = VP_GID_INDEX, .hop_limit = 64}}};

	CHECK_EQ(vp_state(&victim, IBV_QPS_RESET), 0);
	CHECK_EQ(vp_init(&victim), 0);
	CHECK_EQ(ibv_modify_qp(victim.qp, &a,
			 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		0);
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.sq_psn = own_psn,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = chance(8),
		.max_rd_atomic = 4};
	CHECK_EQ(ibv_modify_qp(victim.qp, &a,
			 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static struct ibv_sge own_sge(unsigned slot, uint32_t len)
{
	return (struct ibv_sge){.addr = (uintptr_t)area(OWN) + (size_t)slot * SLOT,
		.length = len,
		.lkey = own->lkey};
}

/* Receives in the first slots of our own area, what requests fetch in those behind; the rest of it
 * is nobody's. */
static void post_all(void)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_CMP_AND_SWP};

	for (unsigned i = 0; i < RECEIVES; i++) {
		struct ibv_sge s = own_sge(i, chance(SLOT));
		struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;

		CHECK_EQ(ibv_post_recv(victim.qp, &wr, &bad), 0);
	}
	posted = ended = 0;
	for (unsigned i = 0; i < REQUESTS; i++) {
		enum ibv_wr_opcode op = opcodes[chance(sizeof opcodes / sizeof opcodes[0])];
		struct ibv_sge s = own_sge(RECEIVES + i, vp_is_atomic(op) ? 8 : chance(SLOT));
		struct ibv_send_wr *bad, wr = {.wr_id = i,
						 .opcode = op,
						 .sg_list = &s,
						 .num_sge = 1,
						 .send_flags = IBV_SEND_SIGNALED};

		vp_aim(&wr, (uintptr_t)area(GRANTED), granted->rkey, 1);
		CHECK_EQ(ibv_post_send(victim.qp, &wr, &bad), 0);
		posted++;
	}
}

static void take_completions(void)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(victim.rcq, 1, &wc) > 0)
		;
	while (ibv_poll_cq(victim.scq, 1, &wc) > 0)
		CHECK_EQ(wc.wr_id, ended++);
	CHECK(ended <= posted);
}

/* All that was thrown before has been read when that has arrived: it is the same socket. */
static void others_go_on(uint32_t i)
{
	struct vp_addr other = vp_addr(&rc[1]);
	struct ibv_wc wc;

	pattern_fill(rc[0].buf, LEN, i);
	CHECK_EQ(vp_post_recv(&rc[1], i, 0, LEN), 0);
	CHECK_EQ(vp_post_send(&rc[0], i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, &other, 0), 0);
	vp_want(rc[1].rcq, &wc, IBV_WC_SUCCESS, i);
	vp_want(rc[0].scq, &wc, IBV_WC_SUCCESS, i);
	CHECK(pattern_filled(rc[1].buf, LEN, i));
}

static void nothing_else_changed(void)
{
	size_t used = (size_t)(RECEIVES + REQUESTS) * SLOT;

	CHECK(pattern_all(area(BEFORE), AREA, 0xbe));
	CHECK(pattern_all(area(BEHIND), AREA, 0xbe));
	CHECK(pattern_all(area(OWN) + used, AREA - used, 0xbe));
}

static void episode(uint32_t i)
{
	uint32_t psn = chance(2) ? ROCE_PSN_MASK - chance(20) : chance(1 << 24), next = psn;

	check_case("episode %u", i);
	polite = chance(2);
	open_act = 0;
	sender = chance(2) ? &weft : &adapter;
	mtu = IBV_MTU_256 + chance(3);
	own_psn = chance(2) ? ROCE_PSN_MASK - chance(20) : chance(1 << 24);
	connect_victim(psn);
	post_all();
	for (unsigned n = chance(PACKETS) + 1; n; n--)
		attack(&next);
	others_go_on(i);
	take_completions();
	nothing_else_changed();
}

/* ---- all of it ---- */

static void make_victim(void)
{
	struct vp_opts o = vp_defaults();

	o.len = 0;
	vp_make(&victim, vp_open(), &o);
	memory = mmap(NULL, (size_t)AREAS * AREA, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
	memset(memory, 0xbe, (size_t)AREAS * AREA);
	granted = ibv_reg_mr(victim.pd, area(GRANTED), AREA, o.mr_access);
	own = ibv_reg_mr(victim.pd, area(OWN), AREA, IBV_ACCESS_LOCAL_WRITE);
	if (!granted || !own)
		die("ibv_reg_mr");
	peer = vp_addr(&victim);
	peer.qpn = victim.qp->qp_num + NOBODY;
}

static void free_victim(void)
{
	struct ibv_context *ctx = victim.ctx;

	CHECK_EQ(ibv_dereg_mr(granted), 0);
	CHECK_EQ(ibv_dereg_mr(own), 0);
	vp_free(&victim);
	CHECK_EQ(ibv_close_device(ctx), 0);
	munmap(memory, (size_t)AREAS * AREA);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint32_t episodes = argc > 2 ? strtoul(argv[2], NULL, 0) : EPISODES;
	struct vp_opts o = vp_defaults();

	state = seed;
	make_victim();
	vp_pair(&rc[0], &rc[1], &o);
	forger_open(&adapter, ours, 0, ours);
	forger_open(&weft, ours, ROCE_PORT, ours);
	for (uint32_t i = 0; i < episodes && !check_failures(); i++)
		episode(i);
	forger_close(&weft);
	forger_close(&adapter);
	vp_pair_free(&rc[0], &rc[1]);
	free_victim();
	return check_result();
}
