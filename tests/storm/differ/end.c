// SPDX-License-Identifier: BSD-3-Clause
#include "end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "disturb.h"
#include "include/weft/rkey.h"
#include "include/weft/verbs_ext.h"

enum {
	GID_INDEX = 1,
	QP_DEPTH = 64,
	CQ_DEPTH = 512,
	ACK_TIMEOUT = 19,  /* 2.1 s, eight times: no CPU is taken away for so long */
	KILL_TIMEOUT = 17, /* half a second: somebody waits for them */
	RNR_TIMER = 1,
	PAGES = 4096,
	SHIFT_MAX = 64, /* of 64 bytes */
	SPINS = 64,
	REST_US = 100,
	SLEEP_MS = 10,
	EX_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	UC_OPS = EX_OPS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
	RC_OPS = UC_OPS | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH,
};

void end_fail(struct end *e, const char *fmt, ...)
{
	const struct epoch *p = &e->e;
	char what[BOARD_TEXT / 2];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	board_fail("link %u, end %u (process %d), epoch %u, round %u of %u (%s, %u lanes, %s; "
		   "memory %s%s to %s, %s%s here, %s%s there)%s\n  %s",
		e->link, e->side, (int)getpid(), e->epoch, e->round, p->rounds,
		p->type == IBV_QPT_RC         ? "RC"
		: p->type == IBV_QPT_XRC_SEND ? "XRC"
		: p->type == IBV_QPT_UC       ? "UC"
					      : "UD",
		p->lanes, fault_name(p->fault), memory_name(p->end[e->side].memory),
		p->end[e->side].srq ? ", SRQ" : "", memory_name(p->end[!e->side].memory),
		region_name(p->end[e->side].region), p->end[e->side].two_regions ? "+own" : "",
		region_name(p->end[!e->side].region), p->end[!e->side].two_regions ? "+own" : "",
		end_is_broken(e)       ? "; the other process is dead"
		: end_may_be_broken(e) ? "; the other process is being killed"
				       : "",
		what);
}

void end_does(const struct end *e, const char *what)
{
	atomic_store_explicit(&board->link[e->link].doing[e->side], what, memory_order_relaxed);
}

/* ---- memory ---- */

static struct ibv_mr *reg_for_peer(struct end *e)
{
	enum region_kind kind = e->e.end[e->side].region;
	unsigned access = IBV_ACCESS_LOCAL_WRITE | RIGHTS | IBV_ACCESS_FLUSH_GLOBAL;
	uint8_t *at = e->mem.at;

	if (e->e.end[e->side].no_atomics)
		access &= ~IBV_ACCESS_REMOTE_ATOMIC;
	if (e->mem.dm)
		return ibv_reg_dm_mr(e->pd, e->mem.dm, 0, e->mem.len,
			(access & ~IBV_ACCESS_FLUSH_GLOBAL) | IBV_ACCESS_ZERO_BASED);
	e->mine.base = (uintptr_t)at;
	if (kind == REGION_IOVA)
		e->mine.base =
			(uintptr_t)at % PAGES + (uint64_t)PAGES * (1 + rnd_below(&e->rnd, 999));
	if (kind == REGION_ZERO_BASED)
		e->mine.base = 0;
	if (kind == REGION_IOVA)
		return ibv_reg_mr_iova(e->pd, at, e->mem.len, e->mine.base, access);
	access |= kind == REGION_ZERO_BASED ? IBV_ACCESS_ZERO_BASED : 0;
	access |= kind == REGION_ON_DEMAND || kind == REGION_IMPLICIT ? IBV_ACCESS_ON_DEMAND : 0;
	access |= kind >= REGION_WINDOW_1 ? IBV_ACCESS_MW_BIND : 0;
	if (kind == REGION_IMPLICIT)
		return ibv_reg_mr(e->pd, NULL, SIZE_MAX, access);
	return ibv_reg_mr(e->pd, at, e->mem.len, access);
}

static void make_regions(struct end *e)
{
	enum region_kind words = e->e.end[e->side].words;
	bool muted;

	e->mine.base = 0;
	e->mr = reg_for_peer(e);
	if (!e->mr)
		end_fail(e, "registering: %m");
	e->own = e->mr;
	e->own_base = e->mine.base;
	if (e->e.end[e->side].two_regions) {
		e->own = ibv_reg_mr(e->pd, e->mem.at, e->mem.len, IBV_ACCESS_LOCAL_WRITE);
		e->own_base = (uintptr_t)e->mem.at;
	}
	/* Only where it is needed: another region keeps peers out of the pages as well. */
	muted = e->mem.at && e->e.fault == FAULT_RIGHT;
	e->mute = muted ? ibv_reg_mr(e->pd, e->mem.at, e->mem.len, IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!e->own || (muted && !e->mute))
		end_fail(e, "registering again: %m");
	if (e->e.common)
		e->words = words_register(e->pd,
			IBV_ACCESS_LOCAL_WRITE | RIGHTS |
				(words == REGION_PLAIN ? 0 : IBV_ACCESS_ON_DEMAND),
			words == REGION_IMPLICIT);
	for (unsigned i = 0; e->words && i < WORDS; i++)
		e->mine.word[i] = words_address(i);
	e->mine.words_rkey = e->words ? e->words->rkey : 0;
	e->mine.rkey = e->mr->rkey;
	/* Of device memory the key of a region that will not do is one that is none. */
	e->mine.rkey_mute = e->mute ? e->mute->rkey : e->mr->rkey ^ 0x55;
	if (e->e.end[e->side].region < REGION_WINDOW_1)
		return;
	e->mw = ibv_alloc_mw(
		e->pd, e->e.end[e->side].region == REGION_WINDOW_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (!e->mw)
		end_fail(e, "ibv_alloc_mw: %m");
}

static void make_memory(struct end *e)
{
	memory_make(&e->mem, e->e.end[e->side].memory, e->e.size,
		64 * rnd_below(&e->rnd, SHIFT_MAX), e->ctx, e->stack);
	e->shadow = calloc(1, e->mem.len);
	if (!e->shadow)
		end_fail(e, "no memory");
	memset(e->shadow, GUARD_BYTE, GUARD);
	memset(e->shadow + e->mem.len - GUARD, GUARD_BYTE, GUARD);
	memory_put(&e->mem, 0, e->shadow, e->mem.len);
}

/* ---- queues ---- */

/* In a domain of its own. */
static void make_xrc_srq(struct end *e)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT};
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 2 * QP_DEPTH, .max_sge = PIECES},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = e->pd,
		.cq = e->rcq};

	e->xrcd = ibv_open_xrcd(e->ctx, &domain);
	if (!e->xrcd)
		end_fail(e, "ibv_open_xrcd: %m");
	attr.xrcd = e->xrcd;
	e->srq = ibv_create_srq_ex(e->ctx, &attr);
	if (!e->srq || ibv_get_srq_num(e->srq, &e->mine.srqn))
		end_fail(e, "ibv_create_srq_ex: %m");
}

static void make_srq(struct end *e)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2 * QP_DEPTH, .max_sge = PIECES}};

	if (e->e.type == IBV_QPT_XRC_SEND) {
		make_xrc_srq(e);
		return;
	}
	e->srq = e->e.end[e->side].srq ? ibv_create_srq(e->pd, &attr) : NULL;
	if (e->e.end[e->side].srq && !e->srq)
		end_fail(e, "ibv_create_srq: %m");
}

static void make_queues(struct end *e)
{
	bool sleeps = e->e.end[e->side].sleeps;

	e->channel = sleeps ? ibv_create_comp_channel(e->ctx) : NULL;
	if (sleeps && !e->channel)
		end_fail(e, "ibv_create_comp_channel: %m");
	e->scq = ibv_create_cq(e->ctx, CQ_DEPTH, NULL, e->channel, 0);
	e->rcq = e->e.end[e->side].one_cq ? e->scq
					  : ibv_create_cq(e->ctx, CQ_DEPTH, NULL, e->channel, 0);
	if (!e->scq || !e->rcq)
		end_fail(e, "ibv_create_cq: %m");
	make_srq(e);
}

/* XRC: what the other end's requests of that lane come to. */
static void make_target(struct end *e, unsigned lane)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = e->xrcd};

	e->lane[lane].target = ibv_create_qp_ex(e->ctx, &init);
	if (!e->lane[lane].target)
		end_fail(e, "ibv_create_qp_ex of a target: %m");
	e->mine.target[lane] = e->lane[lane].target->qp_num;
}

static void make_qps(struct end *e)
{
	unsigned depth = e->e.crowds ? DEPTH : QP_DEPTH;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = e->xrcd ? NULL : e->srq,
		.cap = {.max_send_wr = depth,
			.max_recv_wr = QP_DEPTH,
			.max_send_sge = PIECES,
			.max_recv_sge = PIECES,
			.max_inline_data = INLINE_MAX},
		.qp_type = e->e.type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e->pd,
		.send_ops_flags = is_reliable(&e->e)        ? RC_OPS
				  : e->e.type == IBV_QPT_UC ? UC_OPS
							    : EX_OPS,
	};

	for (unsigned i = 0; i < e->e.lanes; i++) {
		e->lane[i] = (struct lane){.qp = ibv_create_qp_ex(e->ctx, &init)};
		if (!e->lane[i].qp)
			end_fail(e, "ibv_create_qp_ex: %m");
		e->mine.qpn[i] = e->lane[i].qp->qp_num;
		if (e->xrcd)
			make_target(e, i);
	}
}

static void free_qps(struct end *e)
{
	for (unsigned i = 0; i < e->e.lanes; i++) {
		int rc = ibv_destroy_qp(e->lane[i].qp);

		if (!rc && e->lane[i].target)
			rc = ibv_destroy_qp(e->lane[i].target);
		if (rc)
			end_fail(e, "ibv_destroy_qp: %s", strerror(rc));
	}
}

/* ---- connecting ---- */

static struct ibv_qp_attr attr_of(const struct end *e)
{
	return (struct ibv_qp_attr){
		.port_num = 1,
		.qp_access_flags = RIGHTS | IBV_ACCESS_FLUSH_GLOBAL,
		.qkey = QKEY,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 16,
		.max_rd_atomic = 16,
		.min_rnr_timer = RNR_TIMER,
		.timeout = board->without & DISTURB_KILLS ? ACK_TIMEOUT : KILL_TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = e->e.rnr_retry,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.dgid = e->peer.gid, .sgid_index = GID_INDEX, .hop_limit = 64}},
	};
}

static void modify_to(struct end *e, unsigned lane, struct ibv_qp *qp, uint32_t dest,
	enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr a = attr_of(e);
	int rc;

	a.qp_state = to;
	a.dest_qp_num = dest;
	rc = ibv_modify_qp(qp, &a, mask | IBV_QP_STATE);
	if (rc)
		end_fail(e, "lane %u to state %d: %s", lane, to, strerror(rc));
}

static void modify(struct end *e, unsigned lane, enum ibv_qp_state to, int mask)
{
	uint32_t dest = e->xrcd ? e->peer.target[lane] : e->peer.qpn[lane];

	modify_to(e, lane, e->lane[lane].qp, dest, to, mask);
}

/* The half of a lane that takes requests. */
static void connect_target(struct end *e, unsigned lane)
{
	struct ibv_qp *qp = e->lane[lane].target;
	uint32_t dest = e->peer.qpn[lane];

	modify_to(e, lane, qp, dest, IBV_QPS_INIT,
		IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	modify_to(e, lane, qp, dest, IBV_QPS_RTR,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify_to(e, lane, qp, dest, IBV_QPS_RTS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT);
}

static void connect_lane(struct end *e, unsigned lane)
{
	int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (e->e.type == IBV_QPT_UD) {
		modify(e, lane, IBV_QPS_INIT, init | IBV_QP_QKEY);
		modify(e, lane, IBV_QPS_RTR, 0);
		modify(e, lane, IBV_QPS_RTS, IBV_QP_SQ_PSN);
		return;
	}
	modify(e, lane, IBV_QPS_INIT, init | IBV_QP_ACCESS_FLAGS);
	if (e->e.type == IBV_QPT_UC) {
		modify(e, lane, IBV_QPS_RTR, path);
		modify(e, lane, IBV_QPS_RTS, IBV_QP_SQ_PSN);
		return;
	}
	if (e->xrcd)
		connect_target(e, lane);
	else
		path |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(e, lane, IBV_QPS_RTR, path);
	modify(e, lane, IBV_QPS_RTS,
		IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC);
}

/*
 * What UC sends while the two ends have not found each other is lost, and they are told of each
 * other by weftd, which may be dead.  (RC waits.)
 */
static bool await_found(struct end *e, unsigned lane)
{
	struct ibv_wc wc;
	unsigned access;
	bool is_send;

	end_does(e, "waits until weftd tells where the other is");
	for (unsigned idle = 0;
		weft_rkey_access(e->lane[lane].qp, e->peer.rkey, &access) == EOPNOTSUPP; idle++) {
		if (end_poll(e, &wc, &is_send))
			end_fail(e, "a completion, and nothing was posted");
		if (end_is_broken(e))
			return false;
		end_rest(e, idle);
	}
	return true;
}

bool end_may_be_broken(const struct end *e)
{
	return atomic_load(&board->link[e->link].dying) != e->life;
}

bool end_is_broken(const struct end *e)
{
	return atomic_load(&board->link[e->link].dead) != e->life;
}

bool end_meet(struct end *e)
{
	return board_meet(e->link, e->side, e->life, &e->mine, &e->peer);
}

/* The words of another process begin anew. */
static void know_words(struct end *e)
{
	if (e->peer_life != e->peer.life)
		memset(e->word_floor, 0, sizeof e->word_floor);
	e->peer_life = e->peer.life;
}

static bool connect_all(struct end *e)
{
	struct ibv_qp_attr a;

	end_does(e, "meets the other to connect");
	if (!end_meet(e))
		return false;
	know_words(e);
	end_does(e, "connects");
	for (unsigned i = 0; i < e->e.lanes; i++)
		connect_lane(e, i);
	for (unsigned i = 0; e->e.type == IBV_QPT_UC && i < e->e.lanes; i++)
		if (!await_found(e, i))
			return false;
	if (e->e.type != IBV_QPT_UD || e->ah)
		return true;
	a = attr_of(e);
	e->ah = ibv_create_ah(e->pd, &a.ah_attr);
	if (!e->ah)
		end_fail(e, "ibv_create_ah: %m");
	return true;
}

void end_wreck(struct end *e)
{
	e->wrecked = true;
	for (unsigned i = 0; i < e->e.lanes; i++)
		modify(e, i, IBV_QPS_ERR, 0);
}

bool end_reconnect(struct end *e)
{
	struct ibv_wc wc;
	bool is_send;

	/* The other end is through with the round, too, and has seen its errors. */
	end_does(e, "meets the other before it connects anew");
	if (!end_meet(e))
		return false;
	end_does(e, e->e.same_qp ? "resets its queue pairs" : "destroys its queue pairs");
	if (e->e.same_qp)
		for (unsigned i = 0; i < e->e.lanes; i++) {
			modify(e, i, IBV_QPS_RESET, 0);
			e->lane[i] = (struct lane){.qp = e->lane[i].qp};
		}
	else
		free_qps(e);
	if (end_poll(e, &wc, &is_send))
		end_fail(e, "a %s completion of a queue pair that was %s: wr_id %#llx, status %d",
			is_send ? "send" : "receive", e->e.same_qp ? "reset" : "destroyed",
			(unsigned long long)wc.wr_id, wc.status);
	if (!e->e.same_qp)
		make_qps(e);
	return connect_all(e);
}

bool end_begin(struct end *e)
{
	end_does(e, "makes its objects");
	e->rnd = rnd_of(e->seed, e->link, e->epoch, 0x454e4400 + e->side);
	plan_epoch(&e->e, e->seed, e->link, e->epoch, board->apart >> e->link & 1);
	e->mine = (struct note){.life = words_life()};
	e->begun = false;
	e->wrecked = false;
	e->mw = NULL;
	e->words = NULL;
	e->xrcd = NULL;
	e->ah = NULL;
	e->bound = false;
	if (ibv_query_gid(e->ctx, 1, GID_INDEX, &e->mine.gid))
		end_fail(e, "ibv_query_gid: %m");
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd)
		end_fail(e, "ibv_alloc_pd: %m");
	make_memory(e);
	disturb_add(e);
	make_regions(e);
	make_queues(e);
	make_qps(e);
	return connect_all(e);
}

static void gone(struct end *e, int rc, const char *what)
{
	if (rc)
		end_fail(e, "%s: %s", what, strerror(rc));
}

void end_finish(struct end *e)
{
	end_does(e, "waits for who registers its memory");
	disturb_remove(e);
	end_does(e, "destroys its objects");
	if (e->mw)
		gone(e, ibv_dealloc_mw(e->mw), "ibv_dealloc_mw");
	free_qps(e);
	if (e->ah)
		gone(e, ibv_destroy_ah(e->ah), "ibv_destroy_ah");
	if (e->srq)
		gone(e, ibv_destroy_srq(e->srq), "ibv_destroy_srq");
	if (e->xrcd)
		gone(e, ibv_close_xrcd(e->xrcd), "ibv_close_xrcd");
	gone(e, ibv_destroy_cq(e->scq), "ibv_destroy_cq");
	if (e->rcq != e->scq)
		gone(e, ibv_destroy_cq(e->rcq), "ibv_destroy_cq");
	if (e->channel)
		gone(e, ibv_destroy_comp_channel(e->channel), "ibv_destroy_comp_channel");
	gone(e, ibv_dereg_mr(e->mr), "ibv_dereg_mr");
	if (e->own != e->mr)
		gone(e, ibv_dereg_mr(e->own), "ibv_dereg_mr");
	if (e->mute)
		gone(e, ibv_dereg_mr(e->mute), "ibv_dereg_mr");
	if (e->words)
		gone(e, ibv_dereg_mr(e->words), "ibv_dereg_mr");
	gone(e, ibv_dealloc_pd(e->pd), "ibv_dealloc_pd");
	memory_free(&e->mem);
	free(e->shadow);
}

/* ---- windows ---- */

static int post_bind(struct end *e, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED, .bind_info = *info};
	struct ibv_qp *qp = e->lane[0].qp;

	if (e->mw->type == IBV_MW_TYPE_1)
		return ibv_bind_mw(qp, e->mw, &bind);
	wr.bind_mw.mw = e->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(e->mw->rkey);
	wr.bind_mw.bind_info = *info;
	e->mw->rkey = wr.bind_mw.rkey;
	return ibv_post_send(qp, &wr, &bad);
}

void end_bind(struct end *e)
{
	struct ibv_mw_bind_info info = {
		.mr = e->mr, .addr = e->mine.base, .length = e->mem.len, .mw_access_flags = RIGHTS};
	struct ibv_wc wc;
	bool is_send;
	int rc;

	if (!e->mw || (e->bound && e->mw->type == IBV_MW_TYPE_2))
		return;
	end_does(e, "binds its window");
	rc = post_bind(e, &info);
	if (rc)
		end_fail(e, "binding: %s", strerror(rc));
	for (unsigned idle = 0; !end_poll(e, &wc, &is_send); idle++)
		end_rest(e, idle);
	if (!is_send || wc.status || wc.opcode != IBV_WC_BIND_MW)
		end_fail(e, "binding completed with status %d, opcode %d", wc.status, wc.opcode);
	e->bound = true;
	e->mine.rkey = e->mw->rkey;
}

/* ---- completions ---- */

bool end_poll(struct end *e, struct ibv_wc *wc, bool *is_send)
{
	unsigned first = rnd_below(&e->rnd, 2);

	for (unsigned i = 0; i < 2; i++) {
		struct ibv_cq *cq = i == first ? e->scq : e->rcq;
		int n = ibv_poll_cq(cq, 1, wc);

		if (n < 0)
			end_fail(e, "ibv_poll_cq: %d", n);
		if (n) {
			*is_send = !(wc->wr_id & WR_RECV);
			return true;
		}
	}
	return false;
}

static void take_event(struct end *e)
{
	struct ibv_cq *cq;
	void *cookie;

	if (ibv_get_cq_event(e->channel, &cq, &cookie))
		end_fail(e, "ibv_get_cq_event: %m");
	ibv_ack_cq_events(cq, 1);
}

void end_rest(struct end *e, unsigned idle)
{
	struct pollfd p = {.events = POLLIN};

	if (atomic_load(&board->failed))
		_exit(0);
	if (idle < SPINS)
		return;
	if (!e->channel) {
		usleep(REST_US);
		return;
	}
	/* Armed in one round of polling, asleep after the next. */
	if (idle % 2 == 0) {
		if (ibv_req_notify_cq(e->scq, 0) || ibv_req_notify_cq(e->rcq, 0))
			end_fail(e, "ibv_req_notify_cq: %m");
		return;
	}
	p.fd = e->channel->fd;
	if (poll(&p, 1, SLEEP_MS) == 1)
		take_event(e);
}
