// SPDX-License-Identifier: BSD-3-Clause
/*
 * The executor as it ships (hca/exec/exec.c, op*.c, complete.c, recover.c) on one QP pair: A
 * sends empty messages, B posts receives and helps, goes to ERR, and weftd watches deadlines and
 * deaths.  This file stands for the process-private parts (post.c, qp_modify.c, quiesce.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "hca/exec/exec.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/flush.h"
#include "hca/exec/journaled.h"
#include "hca/exec/owned.h"
#include "hca/exec/persist.h"
#include "hca/exec/recover.h"
#include "hca/exec/word.h"
#include "hca/seg/park.h"
#include "hca/seg/token.h"
#include "model_clock.h"
#include "models.h"
#include "pages/mapped.h"

enum { PROC_A, PROC_B, PROC_WEFTD };
enum { ID_A = 1, ID_B, ID_WEFTD, ID_NEW_WEFTD };
enum { WQES = 2, RQES = 2, TICKET_LOG = 2, EXECS = 5 };

#define LATER (6 * (uint64_t)NSEC_PER_SEC) /* behind all deadlines */

enum exec_mutant {
	PARK_WITHOUT_FENCE = 1,
	RECEIVE_WITHOUT_FENCE,
	PARK_NOT_LOOKED_AT,  /* by post_recv */
	ERR_NOT_LOOKED_AT,   /* by post_recv, after it */
	ERR_WITHOUT_FLUSH,   /* modify_qp leaves receives to nobody */
	ERR_WITHOUT_QUIESCE, /* modify_qp returns while a peer is in a receive */
	DEATH_UNNOTICED,
	DEATH_OF_PEERS_ONLY, /* frees tokens only of QPs that name the dead one as their peer */
	NO_TIMER,
	RUNG_BEFORE_ASKED,
	ASKED_BEFORE_DROP,   /* handed over while the token is held */
	NO_LAST_LOOK,        /* by an agent that ends */
	RECEIVE_BEFORE_SEND, /* who helps its peer completes its own receive first */
};

/* What a run of the model does: bits for the arguments of its threads. */
enum { TWO_SENDS = 1, FOREVER = 2, ONE_POSTED = 4, RESPONDER_IN_ERR = 8, OWNED = 16 };

static struct {
	struct seg_wqe sq[WQES];
	struct seg_rqe rq[RQES];
	struct seg_cq cq_a, cq_b;
	_Atomic uint64_t tickets_a[1 << TICKET_LOG], tickets_b[1 << TICKET_LOG];
	struct exec_slot slot[EXECS];
	_Atomic uint64_t now;   /* the clock */
	_Atomic uint32_t asked; /* weftd was asked for a timer */
	_Atomic uint32_t busy;  /* weftd has one thread; the model uses two for it */
	/* of B's agent */
	struct agent_bell bell;
	struct agent_serve serve;
	/* ghosts */
	uint8_t in_err;       /* modify_qp(ERR) has returned */
	uint8_t status[RQES]; /* of the completed receives + 1 */
	uint8_t carried;      /* requests to B's memory that were carried out */
} w;

static struct seg *seg_a, *seg_b, *hub, *new_hub;
static struct end end_a, end_b, far_of_b, far_of_a; /* the last two: A, as B sees it; B, as A */
static int options;

/* ---- what the explored files need from others ---- */

int model_clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){.tv_nsec = atomic_load_explicit(&w.now, memory_order_acquire)};
	return 0;
}

/* No CQ is resized here. */
int cq_ref_init(struct cq_ref *r, const struct view *v, uint32_t index)
{
	(void)r, (void)v, (void)index;
	abort();
}

int rxq_ref_init(struct rxq_ref *r, const struct view *v, uint32_t index)
{
	(void)r, (void)v, (void)index;
	abort();
}

int end_init(struct end *e, const struct view *v, uint32_t index)
{
	(void)index;
	*e = v->attach == ID_A ? end_a : end_b;
	e->view = *v;
	return 0;
}

bool view_died(const struct view *v)
{
	return view_dead(v);
}

bool mapped_populate(uint64_t addr, uint64_t len, bool write)
{
	(void)addr, (void)len, (void)write;
	abort();
}

enum move_result mover_run(struct move *m)
{
	(void)m;
	abort();
}

void copy_ordered(void *to, const void *from, uint64_t len)
{
	(void)to, (void)from, (void)len;
	abort();
}

enum move_result exec_agent_move(
	struct work *work, struct move *m, const struct held *held, unsigned first)
{
	(void)work;
	(void)m;
	(void)held;
	(void)first;
	abort();
}

enum move_result exec_agent_atomic(
	struct work *work, struct move *m, const struct held *held, uint64_t *before)
{
	(void)held;
	(void)work;
	(void)m;
	(void)before;
	abort();
}

/* All messages are empty: nothing is reached in any way. */
enum move_result word_update_here(
	struct work *work, struct payload *target, const struct held *held, uint64_t *before)
{
	(void)work, (void)target, (void)held, (void)before;
	abort();
}

__typeof__(word_update_here) word_update_shared __attribute__((alias("word_update_here")));
__typeof__(word_update_here) word_update_cma __attribute__((alias("word_update_here")));
__typeof__(word_update_here) word_update_agent __attribute__((alias("word_update_here")));
__typeof__(word_update_here) journaled_update __attribute__((alias("word_update_here")));
__typeof__(word_update_here) owned_update __attribute__((alias("word_update_here")));
__typeof__(word_update_here) owner_update __attribute__((alias("word_update_here")));

enum move_result word_store_here(
	struct work *work, struct payload *target, const struct held *held, uint64_t word)
{
	(void)work, (void)target, (void)held, (void)word;
	abort();
}

__typeof__(word_store_here) word_store_shared __attribute__((alias("word_store_here")));
__typeof__(word_store_here) word_store_cma __attribute__((alias("word_store_here")));
__typeof__(word_store_here) word_store_agent __attribute__((alias("word_store_here")));
__typeof__(word_store_here) journaled_store __attribute__((alias("word_store_here")));
__typeof__(word_store_here) owned_store __attribute__((alias("word_store_here")));
__typeof__(word_store_here) owner_store __attribute__((alias("word_store_here")));

enum move_result persist_here(
	struct work *work, struct payload *range, const struct held *held, enum durability kind)
{
	(void)work, (void)range, (void)held, (void)kind;
	abort();
}

__typeof__(persist_here) persist_shared __attribute__((alias("persist_here")));
__typeof__(persist_here) persist_by_owner __attribute__((alias("persist_here")));
__typeof__(persist_here) owned_persist __attribute__((alias("persist_here")));

static bool ask_agent(void)
{
	bool asleep;

	if (model_mutant == RUNG_BEFORE_ASKED) {
		agent_ring(&w.bell);
		atomic_store_explicit(&w.serve.map[0], 1, memory_order_release);
		atomic_store_explicit(&w.serve.any, 1, memory_order_release);
		return true;
	}
	return agent_serve_ask(&w.serve, &w.bell, 0, &asleep);
}

/* Stands for any request to memory that only B reaches, or A's lane by asking B's agent. */
enum move_result persist_range(struct work *work, struct payload *range, const struct held *held)
{
	(void)range, (void)held;
	if (options & OWNED && work->x->attach == ID_A && !work->x->may_wait) {
		work->for_owner = true;
		if (model_mutant == ASKED_BEFORE_DROP)
			ask_agent();
		return MOVE_LATER;
	}
	w.carried++;
	return MOVE_OK;
}

enum move_result journaled_move(
	struct work *work, struct payload *src, struct payload *dst, const struct held *held)
{
	(void)work, (void)src, (void)dst, (void)held;
	abort();
}

__typeof__(journaled_move) owned_move __attribute__((alias("journaled_move")));
__typeof__(journaled_move) owner_move __attribute__((alias("journaled_move")));

void journaled_pushed(struct work *work)
{
	(void)work;
	abort();
}

bool owned_later(struct work *work, const struct payload *p, const struct held *held)
{
	(void)work;
	(void)p;
	(void)held;
	return false;
}

__typeof__(owned_later) owner_later __attribute__((alias("owned_later")));

bool exec_agent_later(const struct work *work)
{
	(void)work;
	abort();
}

bool exec_agent_refused(const struct view *v)
{
	(void)v;
	abort();
}

bool view_stopped(const struct view *v)
{
	(void)v;
	return false;
}

bool exec_agent_hand_over(const struct end *resp)
{
	(void)resp;
	return model_mutant == ASKED_BEFORE_DROP || ask_agent();
}

bool exec_agent_hand_back(const struct end *req)
{
	(void)req;
	abort();
}

struct agent_area *agent_area(struct seg *s)
{
	(void)s;
	return NULL;
}

void *arena_map(struct arena *a, uint64_t offset)
{
	(void)a;
	(void)offset;
	abort();
}

void *view_backing_reach(const struct view *v, uint32_t id, uint64_t offset, uint64_t len)
{
	(void)v;
	(void)id;
	(void)offset;
	(void)len;
	abort();
}

static bool fire(uint32_t attach, uint32_t channel, struct fired_note *note, void *arg)
{
	(void)attach, (void)channel, (void)note, (void)arg;
	return true;
}

static void fire_of_weftd(uint32_t attach, uint32_t channel, void *arg)
{
	fire(attach, channel, NULL, arg);
}

static bool ask_timer(uint32_t attach, uint32_t index, uint64_t when, void *arg)
{
	(void)attach;
	(void)index;
	(void)when;
	(void)arg;
	if (model_mutant != NO_TIMER)
		atomic_fetch_add_explicit(&w.asked, 1, memory_order_seq_cst);
	return true;
}

static void ask_timer_again(uint32_t attach, uint32_t index, uint64_t when, void *arg)
{
	ask_timer(attach, index, when, arg);
}

static struct exec exec_of(int thread, uint32_t attach)
{
	return (struct exec){.attach = attach,
		.slot_index = thread,
		.slot = &w.slot[thread],
		.owner = token_owner(attach, thread),
		.counters = seg_a->counters[0],
		.fire = fire,
		.timer = ask_timer};
}

static const struct budget budget = {.requests = 64, .bytes = 1 << 18, .large = 1 << 23};

/* ---- the program on either side ---- */

/* near.c, watch_after(): who kicked weftd, which cannot execute, looks again later. */
static void run_out(struct exec *x, uint32_t pos)
{
	while (exec_run(x, &end_a, &far_of_a, budget) == RUN_KICKED) {
		uint64_t tok = atomic_load_explicit(&end_a.qp->token, memory_order_relaxed);
		uint32_t holder = token_attach(tok);

		if (holder == ID_A || holder == ID_B)
			return;
		for (; token_attach(tok) == holder && holder; mc_forget(30 + pos, tok)) {
			mc_wait_change(&end_a.qp->token, sizeof(tok), tok);
			tok = atomic_load_explicit(&end_a.qp->token, memory_order_relaxed);
		}
	}
}

static void requester(int arg)
{
	struct exec x = exec_of(mc_self(), ID_A);
	uint32_t n = arg & TWO_SENDS ? 2 : 1;

	for (uint32_t pos = 0; pos < n; pos++) {
		atomic_store_explicit(&end_a.qp->sq_tail, pos + 1, memory_order_release);
		run_out(&x, pos);
		mc_forget(1, pos);
	}
}

static bool publish(uint32_t pos)
{
	bool parked = park_publish(&w.rq[pos].posted, pos + 1, &end_b.qp->park);

	return parked && model_mutant != PARK_NOT_LOOKED_AT;
}

/* Posts the receive at position arg, as hca_post_recv() does. */
static void responder(int arg)
{
	struct exec x = exec_of(mc_self(), ID_B);

	bool parked = publish(arg);

	mc_forget(3, parked);
	if (parked)
		exec_run(&x, &far_of_b, &end_b, budget);
	mc_forget(1, 0);
	if (model_mutant != ERR_NOT_LOOKED_AT && end_state(&end_b) == IBV_QPS_ERR) {
		slot_enter(x.slot, ID_B, ID_B);
		qp_flush_recv(&x, &end_b);
		slot_leave(x.slot);
	}
}

/* ---- memory of B that only its functions reach ---- */

/* The program of A; what comes back goes to its lane. */
static void owner_requester(int arg)
{
	struct exec x = exec_of(mc_self(), ID_A);
	uint32_t n = arg & TWO_SENDS ? 2 : 1;

	for (uint32_t pos = 0; pos < n; pos++) {
		atomic_store_explicit(&end_a.qp->sq_tail, pos + 1, memory_order_release);
		x.may_wait = false;
		if (exec_run(&x, &end_a, &far_of_a, budget) == RUN_BUDGET) {
			x.may_wait = true;
			exec_run(&x, &end_a, &far_of_a, budget);
		}
		mc_forget(1, pos);
	}
}

static bool serve(struct exec *x)
{
	if (!agent_serve_any(&w.serve))
		return false;
	if (agent_serve_take(&w.serve, 0))
		exec_run(x, &far_of_b, &end_b, budget);
	return true;
}

/* The agent of B, as hca/run/agent.c has it.  arg: the rounds until it is told to end; 0: never. */
static void agent(int arg)
{
	struct exec x = exec_of(mc_self(), ID_B);

	for (int round = 0; !arg || round < arg; round++) {
		uint32_t seen = atomic_load_explicit(&w.bell.rings, memory_order_seq_cst);

		mc_forget(40, seen);
		if (serve(&x))
			continue;
		if (agent_may_sleep(&w.bell, seen) && !arg)
			mc_wait_change(&w.bell.rings, sizeof(w.bell.rings), seen);
		agent_awake(&w.bell);
	}
	agent_serve_end(&w.serve);
	if (model_mutant != NO_LAST_LOOK)
		serve(&x);
}

static void quiesce(uint32_t attach, int self)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < EXECS; i++) {
		uint64_t busy = i == self ? 0 : slot_busy(&w.slot[i].word, attach);

		if (busy)
			mc_wait_change(&w.slot[i].word, sizeof(w.slot[i].word), busy);
	}
}

/* modify_qp(ERR) of B. */
static void to_error(int arg)
{
	struct exec x = exec_of(mc_self(), ID_B);

	(void)arg;
	qp_set_error(&end_b);
	if (model_mutant != ERR_WITHOUT_FLUSH) {
		slot_enter(x.slot, ID_B, ID_B);
		qp_flush(&x, &end_b, false);
		slot_leave(x.slot);
	}
	if (model_mutant != ERR_WITHOUT_QUIESCE)
		quiesce(ID_B, mc_self());
	w.in_err = 1;
}

/* ---- weftd ---- */

static void weftd_lock(void)
{
	uint32_t unlocked = 0;

	while (!atomic_compare_exchange_strong_explicit(
		&w.busy, &unlocked, 1, memory_order_seq_cst, memory_order_seq_cst)) {
		mc_wait_change(&w.busy, sizeof(w.busy), 1);
		unlocked = 0;
	}
}

static void weftd_unlock(void)
{
	atomic_exchange_explicit(&w.busy, 0, memory_order_seq_cst);
}

static struct recover_env env_of(struct seg *h, uint32_t id)
{
	return (struct recover_env){
		.hub = h, .hub_id = id, .fire = fire_of_weftd, .timer = ask_timer_again};
}

/* Serves one timer, its round-th; seen: how often weftd was asked before. */
static uint32_t expire(struct seg *h, uint32_t id, uint32_t round, uint32_t seen)
{
	const struct recover_env env = env_of(h, id);

	mc_wait_change(&w.asked, sizeof(w.asked), seen);
	weftd_lock();
	seen = atomic_load_explicit(&w.asked, memory_order_relaxed);
	mc_forget(10 + round, seen);
	atomic_fetch_add_explicit(&w.now, LATER, memory_order_seq_cst);
	recover_timer(&env, seg_a, ID_A, 0);
	mc_forget(20 + round, seen);
	weftd_unlock();
	return seen;
}

static void weftd(int arg)
{
	(void)arg;
	expire(hub, ID_WEFTD, 0, 0);
}

/* What recover_death() was at first: only QPs whose peer is the dead process. */
static bool skips(struct seg *seg, uint32_t dead)
{
	return model_mutant == DEATH_OF_PEERS_ONLY && seg->qp[0].peer_attach != dead;
}

/* weftd after a death, or the weftd that follows a dead one. */
static void survivor(int arg)
{
	static const uint32_t ids[] = {ID_A, ID_B, ID_WEFTD};
	bool anew = mc_dead() == PROC_WEFTD;
	struct seg *h = anew ? new_hub : hub;
	const struct recover_env env = env_of(h, anew ? ID_NEW_WEFTD : ID_WEFTD);
	uint32_t dead = ids[mc_dead()];

	(void)arg;
	if (model_mutant == DEATH_UNNOTICED)
		return;
	if (anew)
		atomic_exchange_explicit(&w.busy, 0, memory_order_seq_cst);
	weftd_lock();
	if (dead == ID_A)
		atomic_store_explicit(&seg_a->hdr.dead, 1, memory_order_seq_cst);
	if (dead == ID_B)
		atomic_store_explicit(&seg_b->hdr.dead, 1, memory_order_seq_cst);
	if (dead != ID_A && !skips(seg_a, dead))
		recover_death(&env, seg_a, ID_A, dead);
	mc_forget(4, 0);
	if (dead != ID_B && !skips(seg_b, dead))
		recover_death(&env, seg_b, ID_B, dead);
	mc_forget(5, 0);
	for (int i = 0; i < mc_current_model()->n_threads; i++)
		if (mc_current_model()->threads[i].proc == mc_dead())
			atomic_exchange_explicit(&w.slot[i].word, 0, memory_order_seq_cst);
	if (anew)
		recover_adopt(&env, seg_a, ID_A);
	mc_forget(6, 0);
	weftd_unlock();
	expire(h, env.hub_id, 1, expire(h, env.hub_id, 0, 0));
}

/* ---- the scene ---- */

static struct seg *map_seg(struct seg *seg)
{
	if (!seg)
		seg = mmap(NULL, sizeof(*seg), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (seg == MAP_FAILED)
		abort();
	memset(&seg->hdr, 0, sizeof(seg->hdr));
	memset(&seg->qp[0], 0, sizeof(seg->qp[0]));
	memset(&seg->slots[0], 0, sizeof(seg->slots[0]));
	return seg;
}

static struct end make_end(
	struct seg *seg, uint32_t attach, struct seg_cq *cq, _Atomic uint64_t *tickets)
{
	const struct cq_ref ref = {.cq = cq,
		.ring = &cq->ring[0],
		.slots = tickets,
		.log_size = TICKET_LOG,
		.limit = 1 << TICKET_LOG};
	struct end e = {.view = {.seg = seg, .attach = attach}, .gen = 1};

	e.qp = &seg->qp[0];
	e.index = 0;
	e.qpn = attach;
	e.sq = (uint8_t *)w.sq;
	e.rq = (uint8_t *)w.rq;
	e.sq_mask = WQES - 1;
	e.rq_mask = RQES - 1;
	e.sq_stride = sizeof(w.sq[0]);
	e.rq_stride = sizeof(w.rq[0]);
	e.send_cq = e.recv_cq = ref;
	return e;
}

static void fill_qp(struct seg_qp *q, uint32_t qpn, uint32_t peer)
{
	q->state = 1 << QPS_GEN_SHIFT | QPS_LIVE | IBV_QPS_RTS;
	q->qpn = qpn;
	q->dest_qpn = peer;
	q->peer_attach = peer;
	q->type = IBV_QPT_RC;
	q->timeout = 1;
	q->rnr_retry = options & FOREVER ? 7 : 1;
	q->rnr_timer = 1;
	mc_ignore(&q->packets, sizeof(q->packets));
}

/* Of no bytes, so that no region is looked at. */
static void fill_flush(struct seg_wqe *s)
{
	s->flush = IBV_FLUSH_PERSISTENT | (uint64_t)IBV_FLUSH_RANGE << FLUSH_LEVEL_SHIFT;
	end_a.qp->max_rd_atomic = end_b.qp->max_dest_rd_atomic = 1;
	end_b.qp->access = IBV_ACCESS_FLUSH_PERSISTENT;
}

static void fill_queues(void)
{
	for (int i = 0; i < WQES; i++) {
		w.sq[i].opcode = options & OWNED ? IBV_WR_FLUSH : IBV_WR_SEND;
		w.sq[i].flags = WQE_SIGNALED;
		if (options & OWNED)
			fill_flush(&w.sq[i]);
	}
	w.serve.there = 1;
	if (options & ONE_POSTED)
		w.rq[0].posted = 1;
	w.now = 1;
}

static void init(void)
{
	seg_a = map_seg(seg_a);
	seg_b = map_seg(seg_b);
	hub = map_seg(hub);
	new_hub = map_seg(new_hub);
	end_a = make_end(seg_a, ID_A, &w.cq_a, w.tickets_a);
	end_b = make_end(seg_b, ID_B, &w.cq_b, w.tickets_b);
	end_a.rq = NULL; /* B sends nothing */
	far_of_a = end_b;
	far_of_b = end_a;
	far_of_a.view.pid = ID_B;
	far_of_b.view.pid = model_mutant == RECEIVE_BEFORE_SEND ? 0 : ID_A;
	fill_qp(end_a.qp, ID_A, ID_B);
	fill_qp(end_b.qp, ID_B, ID_A);
	seg_a->hdr.qps_used = seg_b->hdr.qps_used = 1;
	fill_queues();
	mc_ignore(seg_a->counters[0], sizeof(seg_a->counters[0]));
	mc_ignore(hub->counters[0], sizeof(hub->counters[0]));
	mc_ignore(new_hub->counters[0], sizeof(new_hub->counters[0]));
	mc_ignore(&w.cq_a.arm, sizeof(w.cq_a.arm)); /* m_arm.c */
	mc_ignore(&w.cq_b.arm, sizeof(w.cq_b.arm));
	mc_add_region(&seg_a->hdr, sizeof(seg_a->hdr));
	mc_add_region(&seg_b->hdr, sizeof(seg_b->hdr));
	mc_add_region(&seg_a->qp[0], sizeof(seg_a->qp[0]));
	mc_add_region(&seg_b->qp[0], sizeof(seg_b->qp[0]));
	mc_add_region(&hub->slots[0], sizeof(hub->slots[0]));
	mc_add_region(&new_hub->slots[0], sizeof(new_hub->slots[0]));
	if (model_mutant == PARK_WITHOUT_FENCE)
		mc_weaken(&end_b.qp->park);
	if (model_mutant == RECEIVE_WITHOUT_FENCE)
		mc_weaken(&w.rq[0].posted);
}

static void init_forever(void)
{
	options = FOREVER;
	init();
}

static void init_deadline(void)
{
	options = 0;
	init();
}

static void init_owned(void)
{
	options = OWNED;
	init();
}

static void init_posted(void)
{
	options = FOREVER | ONE_POSTED;
	init();
}

/* ---- checks ---- */

/* After each step: no receive completes twice, or in success after modify_qp(ERR) returned. */
static void every(void)
{
	for (int i = 0; i < RQES; i++) {
		if (!w.rq[i].done)
			continue;
		if (!w.status[i]) {
			mc_check(w.rq[i].status || !w.in_err,
				"a receive was filled after modify_qp(ERR) had returned");
			w.status[i] = w.rq[i].status + 1;
		}
		mc_check(w.status[i] == w.rq[i].status + 1, "a receive completed twice");
		mc_check(w.rq[i].done == i + 1u, "a receive completed at a wrong position");
	}
}

static int gone_id(void)
{
	static const int ids[] = {ID_A, ID_B, ID_WEFTD};

	return mc_stopped() >= 0 ? ids[mc_stopped()] : 0;
}

/* Nobody who lives and has gone home holds the token. */
static void check_token(uint64_t token)
{
	int holder = token_attach(token);

	mc_check(!holder || holder == gone_id(), "a token is held by nobody alive");
}

static uint32_t in_ring(const struct seg_cq *cq, const _Atomic uint64_t *tickets)
{
	uint64_t t = cq->ring[0].tail;

	return t + (tickets[t & 3] >> TICKET_LAP_SHIFT == ticket_lap(t, TICKET_LOG));
}

static void check_counts(void)
{
	uint32_t received = !!w.rq[0].done + !!w.rq[1].done;
	uint32_t sent = !!w.sq[0].done + !!w.sq[1].done;
	bool surplus = mc_dead() >= 0;

	mc_check(in_ring(&w.cq_b, w.tickets_b) >= received || gone_id() || mc_dead() == PROC_B,
		"a receive completed without a ticket");
	mc_check(in_ring(&w.cq_b, w.tickets_b) <= received || surplus, "surplus tickets at B");
	mc_check(in_ring(&w.cq_a, w.tickets_a) >= sent || gone_id() || mc_dead() == PROC_A,
		"a send completed without a ticket");
	mc_check(in_ring(&w.cq_a, w.tickets_a) <= sent || surplus, "surplus tickets at A");
	mc_check(end_a.qp->sq_head <= end_a.qp->sq_tail, "a send completed that nobody posted");
	mc_check(sent <= end_a.qp->sq_tail, "a send completed that nobody posted");
}

/* A and B both run: their sends and receives have met. */
static void check_met(void)
{
	uint32_t head = end_a.qp->sq_head, rq = end_b.qp->rq_head;
	bool pending = head != end_a.qp->sq_tail && mc_finished(0);
	bool posted = w.rq[rq & 1].posted == rq + 1 && mc_finished(1);

	if (end_state(&end_b) == IBV_QPS_RTS)
		mc_check(!pending || !posted, "a parked send and a posted receive do not meet");
	if (!(options & FOREVER))
		mc_check(!pending, "the deadline passed and the send is still parked");
}

/* Receives complete in order, as sends do: what B's program may have seen is no error to A. */
static void check_received(void)
{
	for (int i = 0; i < RQES; i++)
		mc_check(!w.rq[i].done || w.rq[i].status || (w.sq[i].done && !w.sq[i].status),
			"a message that was received is no success for its sender");
}

static void final(void)
{
	bool token_stuck =
		gone_id() && (token_attach(end_a.qp->token) == (uint32_t)gone_id() ||
				     token_attach(end_b.qp->rq_token) == (uint32_t)gone_id());

	if (mc_dead() != PROC_A)
		check_token(end_a.qp->token);
	if (mc_dead() != PROC_B)
		check_token(end_b.qp->rq_token);
	check_counts();
	if (mc_dead() < 0 && !token_stuck && mc_stopped() < 0)
		check_met();
	if (mc_dead() == PROC_B && mc_finished(0))
		mc_check(end_a.qp->sq_head == end_a.qp->sq_tail,
			"a send to a dead process never completes");
	if (mc_dead() != PROC_A && mc_stopped() < 0)
		check_received();
	if (mc_dead() == PROC_WEFTD && mc_finished(0) && mc_finished(1))
		check_met();
}

static unsigned succeeded(void)
{
	return (w.sq[0].done && !w.sq[0].status) + (w.sq[1].done && !w.sq[1].status);
}

/* What was handed over was carried out, or failed because B died. */
static void final_owned(void)
{
	bool pending = end_a.qp->sq_head != end_a.qp->sq_tail;

	if (mc_dead() != PROC_A)
		check_token(end_a.qp->token);
	if (mc_stopped() >= 0 || mc_dead() == PROC_A || !mc_finished(0))
		return;
	mc_check(!pending, "a request that was handed over is never carried out");
	mc_check(mc_dead() >= 0 || w.carried == succeeded(), "a request was not carried out once");
}

static void final_flush(void)
{
	final();
	if (mc_stopped() >= 0 || mc_dead() == PROC_B)
		return;
	mc_check(w.in_err, "modify_qp(ERR) waits for nobody");
	for (int i = 0; i < RQES; i++)
		mc_check(!w.rq[i].posted || w.rq[i].done, "a receive is never flushed");
}

static const struct mc_thread meet[] = {
	{.name = "requester", .run = requester, .arg = 0, .proc = PROC_A},
	{.name = "responder", .run = responder, .arg = 0, .proc = PROC_B},
};
static const struct mc_thread deadline[] = {
	{.name = "requester", .run = requester, .arg = 0, .proc = PROC_A},
	{.name = "responder", .run = responder, .arg = 0, .proc = PROC_B},
	{.name = "weftd", .run = weftd, .proc = PROC_WEFTD},
	{.name = "survivor", .run = survivor, .proc = 5, .recovery = true},
};
static const struct mc_thread mortal[] = {
	{.name = "requester", .run = requester, .arg = 0, .proc = PROC_A},
	{.name = "responder", .run = responder, .arg = 0, .proc = PROC_B},
	{.name = "survivor", .run = survivor, .proc = 5, .recovery = true},
};
static const struct mc_thread no_receive[] = {
	{.name = "requester", .run = requester, .arg = TWO_SENDS, .proc = PROC_A},
	{.name = "weftd", .run = weftd, .proc = PROC_WEFTD},
};
static const struct mc_thread flush_two[] = {
	{.name = "requester", .run = requester, .arg = TWO_SENDS, .proc = PROC_A},
	{.name = "responder", .run = responder, .arg = 1, .proc = PROC_B},
	{.name = "modify", .run = to_error, .proc = PROC_B},
};
static const struct mc_thread flush[] = {
	{.name = "requester", .run = requester, .arg = 0, .proc = PROC_A},
	{.name = "responder", .run = responder, .arg = 1, .proc = PROC_B},
	{.name = "modify", .run = to_error, .proc = PROC_B},
	{.name = "survivor", .run = survivor, .proc = 5, .recovery = true},
};

static const struct mc_thread owner[] = {
	{.name = "requester", .run = owner_requester, .arg = TWO_SENDS, .proc = PROC_A},
	{.name = "agent", .run = agent, .arg = 0, .proc = PROC_B},
};
static const struct mc_thread owner_leaves[] = {
	{.name = "requester", .run = owner_requester, .arg = 0, .proc = PROC_A},
	{.name = "agent", .run = agent, .arg = 1, .proc = PROC_B},
};
static const struct mc_thread owner_mortal[] = {
	{.name = "requester", .run = owner_requester, .arg = 0, .proc = PROC_A},
	{.name = "agent", .run = agent, .arg = 0, .proc = PROC_B},
	{.name = "survivor", .run = survivor, .proc = 5, .recovery = true},
};
static const struct mc_thread owner_stands[] = {
	{.name = "requester", .run = owner_requester, .arg = 0, .proc = PROC_A},
	{.name = "weftd", .run = weftd, .proc = PROC_WEFTD},
};

#define MODEL(t, start, check, stop, die)                                                          \
	{                                                                                          \
		.name = "exec", .state = &w, .size = sizeof(w), .memory = MC_TSO, .init = (start), \
		.every = every, .final = (check), .threads = (t),                                  \
		.n_threads = sizeof(t) / sizeof((t)[0]), .may_stop = (stop), .may_die = (die),     \
		.may_block = true, .max_steps = 400, .max_states = 12000000,                       \
	}

const struct model_case exec_cases[] = {
	{"a send and a receive meet", MODEL(meet, init_forever, final, 3, 0)},
	{"park without a fence", MODEL(meet, init_forever, final, 0, 0), PARK_WITHOUT_FENCE},
	{"receive without a fence", MODEL(meet, init_forever, final, 0, 0), RECEIVE_WITHOUT_FENCE},
	{"park not looked at", MODEL(meet, init_forever, final, 0, 0), PARK_NOT_LOOKED_AT},
	{"deadline", MODEL(deadline, init_deadline, final, 0, 0)},
	{"deadline, no receive", MODEL(no_receive, init_deadline, final, 0, 0)},
	{"no timer", MODEL(no_receive, init_deadline, final, 0, 0), NO_TIMER},
	{"the responder dies", MODEL(mortal, init_deadline, final, 0, 2)},
	{"the receive before the send", MODEL(mortal, init_deadline, final, 0, 2),
		RECEIVE_BEFORE_SEND},
	{"the requester dies", MODEL(mortal, init_deadline, final, 0, 1)},
	{"the responder dies, with a timer", MODEL(deadline, init_deadline, final, 0, 2),
		.slow = true},
	{"weftd dies", MODEL(deadline, init_deadline, final, 0, 4), .slow = true},
	{"death unnoticed", MODEL(mortal, init_deadline, final, 0, 2), DEATH_UNNOTICED},
	{"death of peers only", MODEL(deadline, init_deadline, final, 0, 4), DEATH_OF_PEERS_ONLY},
	{"ERR against a send and a receive", MODEL(flush, init_posted, final_flush, 0, 0)},
	{"ERR against two sends", MODEL(flush_two, init_posted, final_flush, 0, 0), .slow = true},
	{"ERR, and the requester dies", MODEL(flush, init_posted, final_flush, 0, 1), .slow = true},
	{"ERR not looked at", MODEL(flush, init_posted, final_flush, 0, 0), ERR_NOT_LOOKED_AT},
	{"ERR without a flush", MODEL(flush, init_posted, final_flush, 0, 0), ERR_WITHOUT_FLUSH},
	{"ERR without waiting", MODEL(flush, init_posted, final_flush, 0, 0), ERR_WITHOUT_QUIESCE},
	{"handed over", MODEL(owner, init_owned, final_owned, 3, 0)},
	{"handed over after the bell", MODEL(owner, init_owned, final_owned, 0, 0),
		RUNG_BEFORE_ASKED},
	{"handed over with the token", MODEL(owner, init_owned, final_owned, 0, 0),
		ASKED_BEFORE_DROP},
	{"handed over, the agent ends", MODEL(owner_leaves, init_owned, final_owned, 0, 0)},
	{"the agent ends without a last look", MODEL(owner_leaves, init_owned, final_owned, 0, 0),
		NO_LAST_LOOK},
	{"handed over, the owner dies", MODEL(owner_mortal, init_owned, final_owned, 0, 2)},
	{"handed over, nobody comes", MODEL(owner_stands, init_owned, final_owned, 0, 0)},
	{0},
};
