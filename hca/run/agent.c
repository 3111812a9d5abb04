// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/agent.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/sparse.h"
#include "base/thread.h"
#include "hca/api/hca.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/persist.h"
#include "hca/exec/resolve.h"
#include "hca/exec/word.h"
#include "hca/obj/mr.h"
#include "hca/obj/pd.h"
#include "hca/obj/qp.h"
#include "hca/proc/heap.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/run/handed.h"
#include "hca/run/own_bytes.h"
#include "hca/run/worker.h"
#include "hca/seg/token.h"
#include "include/weft/verbs_ext.h"
#include "pages/copy.h"
#include "pages/mapped.h"

static struct {
	pthread_mutex_t lock;
	unsigned holds;
	bool wanted; /* a hold of our own, for the rest of this attach */
	bool started;
	pthread_t thread;
	_Atomic bool stop;
	/* the thread alone */
	struct agent_turn turn[AGENT_SLOTS];
} agent = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A request, copied out of shared memory, checked piece by piece. */
struct request {
	enum agent_op op;
	uint32_t qp, n, len;
	uint64_t operand[2];
	struct agent_piece piece[AGENT_PIECES];
};

static bool is_atomic(enum agent_op op)
{
	return op == AGENT_ADD || op == AGENT_SWAP;
}

static bool read_request(const struct agent_half *h, struct request *r)
{
	uint64_t sum = 0;

	r->op = h->op;
	r->qp = h->qp & (SEG_QPS - 1);
	r->n = h->n;
	r->len = h->len;
	memcpy(r->operand, h->operand, sizeof r->operand);
	if (r->n > AGENT_PIECES ||
		r->len > (r->op == AGENT_PERSIST ? AGENT_PERSIST_BYTES : AGENT_HALF_BYTES))
		return false;
	memcpy(r->piece, h->piece, r->n * sizeof *r->piece);
	for (unsigned i = 0; i < r->n; i++)
		sum += r->piece[i].len;
	if (is_atomic(r->op) && (r->n != 1 || r->len != 8 || r->piece[0].addr % 8))
		return false;
	return sum == r->len && r->op <= AGENT_PERSIST;
}

/* The right that each piece must give, and for one-sided operations the QP, too. */
static unsigned right_of(enum agent_op op)
{
	switch (op) {
	case AGENT_FILL:
		return IBV_ACCESS_LOCAL_WRITE;
	case AGENT_PUT:
		return IBV_ACCESS_REMOTE_WRITE;
	case AGENT_GET:
		return IBV_ACCESS_REMOTE_READ;
	case AGENT_PERSIST:
		return IBV_ACCESS_FLUSH_PERSISTENT;
	default:
		return IBV_ACCESS_REMOTE_ATOMIC;
	}
}

/* Is it a request of the QP's own peer, and does the QP allow it now? */
static bool peer_may(const struct seg_qp *q, enum agent_op op, uint32_t attach)
{
	uint32_t word = atomic_load_explicit(&q->state, memory_order_acquire);
	uint32_t state = word & QPS_STATE_MASK;

	if (!(word & QPS_LIVE) || q->peer_attach != attach)
		return false;
	if (state < IBV_QPS_RTR || state > IBV_QPS_SQE)
		return false;
	return op == AGENT_FILL || q->access & right_of(op);
}

/* XRC names the shared receive queue: some target QP of its domain must allow it. */
static bool target_may(const struct seg_qp *srq, enum agent_op op, uint32_t attach)
{
	const struct seg *seg = proc_seg();
	uint32_t n = atomic_load_explicit(&seg->hdr.qps_used, memory_order_acquire);

	for (uint32_t i = 0; i < n && i < SEG_QPS; i++)
		if (seg->qp[i].type == IBV_QPT_XRC_RECV && seg->qp[i].xrcd == srq->xrcd &&
			peer_may(&seg->qp[i], op, attach))
			return true;
	return false;
}

/* *pd: the protection domain whose keys count. */
static bool qp_allows(const struct request *r, uint32_t attach, uint32_t *pd)
{
	const struct seg *seg = proc_seg();
	const struct seg_qp *q = &seg->qp[r->qp];

	*pd = q->pd;
	if (q->type == SEG_TYPE_XRC_SRQ)
		return target_may(q, r->op, attach);
	if (r->op == AGENT_FILL && q->srq)
		*pd = seg->qp[q->srq & (SEG_QPS - 1)].pd;
	return peer_may(q, r->op, attach);
}

static bool covers(uint64_t base, uint64_t length, const struct agent_piece *p)
{
	return p->addr >= base && p->addr - base <= length && p->len <= length - (p->addr - base);
}

/* Our own table is asked, which nobody else can write. */
static struct hca_mr *region_of(uint32_t key, uint32_t pd)
{
	struct hca_mr *mr = table_mr(key_index(key));

	return mr && key && mr->key == key && mr->pd->handle == pd ? mr : NULL;
}

/*
 * A window is bound by whoever executes, in the segment; its region bounds what that can mean.  One
 * that was bound while that was deregistered leads nowhere.
 */
static struct hca_mr *window_allows(
	const struct seg_mr *s, const struct agent_piece *p, uint32_t pd, unsigned right)
{
	const uint32_t under = s->under;
	const bool stands = mr_has_key(seg_mr_of(proc_seg(), under), under);
	struct hca_mr *mr = stands ? region_of(under, pd) : NULL;
	bool ok = s->flags & MR_WINDOW && mr && mr->access & IBV_ACCESS_MW_BIND &&
		  s->access & right && covers(s->addr, s->length, p) &&
		  covers(mr->addr, mr->length, p);

	return ok ? mr : NULL;
}

/*
 * The region of ours that covers the piece, or of which a window does; NULL: none.  Its key is
 * looked at first: while that stands, who deregisters waits for this step before the region is
 * freed; else it may be gone.
 */
static struct hca_mr *mr_allows(const struct agent_piece *p, uint32_t pd, unsigned right)
{
	const struct seg_mr *s = seg_mr_of(proc_seg(), p->key);
	struct hca_mr *mr;
	bool ok;

	if (!p->key || atomic_load_explicit(&s->key, memory_order_acquire) != p->key)
		return NULL;
	mr = region_of(p->key, pd);
	if (!mr)
		return window_allows(s, p, pd, right);
	ok = mr->access & right &&
	     (mr->kind->swallows ? covers((uintptr_t)mr->of, 1ull << HCA_MAX_MSG_LOG, p)
				 : covers(mr->addr, mr->length, p));
	return ok ? mr : NULL;
}

/* Makes the pages present; what functions reach has none. */
static bool populate_pieces(const struct request *r, struct hca_mr *const *mr)
{
	for (unsigned i = 0; i < r->n; i++)
		if (!mr[i]->kind->io &&
			!mapped_populate(r->piece[i].addr, r->piece[i].len, r->op != AGENT_GET))
			return false;
	return true;
}

static int copy_piece(const struct agent_piece *p, struct hca_mr *mr, uint8_t *bounce, bool is_read)
{
	void *mine = (void *)(uintptr_t)p->addr;

	if (mr->kind->io)
		return is_read ? own_read(mr, p->addr, bounce, p->len)
			       : own_write(mr, p->addr, bounce, p->len);
	copy_ordered(is_read ? bounce : mine, is_read ? mine : bounce, p->len);
	return 0;
}

static enum move_result copy_pieces(
	const struct request *r, struct hca_mr *const *mr, uint8_t *bounce)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (copy_piece(&r->piece[i], mr[i], bounce, r->op == AGENT_GET))
			return MOVE_FAULT_LOCAL;
		bounce += r->piece[i].len;
	}
	return MOVE_OK;
}

static void update_word(const struct request *r, uint64_t *before)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)(uintptr_t)r->piece[0].addr;

	if (r->op == AGENT_ADD) {
		*before = atomic_fetch_add_explicit(word, r->operand[0], memory_order_seq_cst);
	} else {
		*before = r->operand[0];
		atomic_compare_exchange_strong_explicit(
			word, before, r->operand[1], memory_order_seq_cst, memory_order_seq_cst);
	}
}

/* Peers that use cma update words of ours under our atomic word: so does the agent. */
static enum move_result update(
	struct exec *x, const struct request *r, struct hca_mr *mr, uint64_t *before)
{
	int rc = 0;

	if (!word_lock(x, proc_seg()))
		return MOVE_BUSY;
	if (mr->kind->io)
		rc = own_update(mr, r->piece[0].addr, r->op == AGENT_ADD, r->operand[0],
			r->operand[1], before);
	else
		update_word(r, before);
	word_unlock(x, proc_seg());
	return rc ? MOVE_FAULT_LOCAL : MOVE_OK;
}

/* Windows give no right to flushes: the keys are those of regions. */
static enum move_result persist_pieces(const struct request *r)
{
	enum move_result rc = MOVE_OK;

	for (unsigned i = 0; i < r->n && rc == MOVE_OK; i++) {
		const struct hca_mr *mr = table_mr(key_index(r->piece[i].key));

		rc = mr ? persist_own(mr->durability, r->piece[i].addr, r->piece[i].len)
			: MOVE_DENIED;
	}
	return rc;
}

static enum move_result perform(
	struct exec *x, const struct request *r, uint32_t attach, uint8_t *bounce, uint64_t *before)
{
	struct hca_mr *mr[AGENT_PIECES];
	uint32_t pd;

	if (!qp_allows(r, attach, &pd))
		return MOVE_DENIED;
	for (unsigned i = 0; i < r->n; i++) {
		mr[i] = mr_allows(&r->piece[i], pd, right_of(r->op));
		if (!mr[i])
			return MOVE_DENIED;
	}
	if (r->op == AGENT_PERSIST)
		return persist_pieces(r);
	if (!populate_pieces(r, mr))
		return MOVE_FAULT_REMOTE;
	return is_atomic(r->op) ? update(x, r, mr[0], before) : copy_pieces(r, mr, bounce);
}

/*
 * Pages cannot be reached while they change over: so a fault is believed the fourth time, and while
 * the region says that it changes over only after 100 ms.
 */
enum { FAULTS_DOUBTED = 3, FAULTS_MAX = 2000, FAULT_NAP_NS = 50 * 1000 };

static bool changes_over(const struct request *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct seg_mr *s = seg_mr_of(proc_seg(), r->piece[i].key);

		if (atomic_load_explicit(&s->share, memory_order_acquire) == MR_BUSY)
			return true;
	}
	return false;
}

/* The exec slot names ourselves: who takes memory or a QP away waits for this step. */
static enum move_result try_once(
	struct exec *x, const struct request *r, uint32_t attach, uint8_t *bounce, uint64_t *before)
{
	enum move_result result;

	slot_enter(x->slot, x->attach, x->attach);
	atomic_thread_fence(memory_order_seq_cst);
	result = perform(x, r, attach, bounce, before);
	slot_leave(x->slot);
	return result;
}

static void serve(struct exec *x, struct agent_half *h, uint32_t attach, uint8_t *bounce)
{
	const struct timespec nap = {.tv_nsec = FAULT_NAP_NS};
	enum move_result result = MOVE_DENIED;
	struct request r;
	uint64_t before = 0;
	bool again = read_request(h, &r);

	for (unsigned n = 0; again; n++) {
		result = try_once(x, &r, attach, bounce, &before);
		again = result == MOVE_FAULT_REMOTE &&
			(n < FAULTS_DOUBTED || (n < FAULTS_MAX && changes_over(&r)));
		if (again)
			nanosleep(&nap, NULL);
	}
	count_add(x, result == MOVE_DENIED ? CTR_AGENT_DENIED : CTR_AGENT_SERVED, 1);
	/* (What functions refused was not tried again, and is a fault of the peer's all the same.)
	 */
	h->result = result == MOVE_FAULT_LOCAL ? MOVE_FAULT_REMOTE : result;
	h->before = before;
}

/* Serves what is posted in slot i, in order.  True if there was something. */
static bool serve_slot(struct exec *x, struct agent_area *a, unsigned i)
{
	struct agent_turn *t = &agent.turn[i];
	struct agent_slot *s = &a->slot[i];
	_Atomic uint32_t *phase;
	enum agent_found found;
	bool any = false;

	while ((found = agent_look_at(s, t)) == AGENT_CLAIMED) {
		serve(x, &s->half[t->half], token_attach(t->word), a->bounce[i][t->half]);
		if (agent_served(s, t, &phase))
			futex_wake_shared(phase);
		any = true;
	}
	return any || found == AGENT_AGAIN;
}

static unsigned used(const struct agent_area *a)
{
	uint32_t n = atomic_load_explicit(&a->used, memory_order_acquire);

	return n < AGENT_SLOTS ? n : AGENT_SLOTS;
}

static bool serve_all(struct exec *x, struct agent_area *a)
{
	bool any = false;

	for (unsigned i = 0; i < used(a); i++)
		any |= serve_slot(x, a, i);
	return any;
}

/* Slots of the dead; weftd marks them, too, where it runs. */
static void free_dead(struct agent_area *a)
{
	for (unsigned i = 0; i < used(a); i++) {
		struct agent_slot *s = &a->slot[i];
		uint32_t attach =
			token_attach(atomic_load_explicit(&s->word, memory_order_acquire));

		if (attach && peer_is_dead(attach) && agent_orphan(s, attach))
			agent_reclaim(s);
	}
}

static void sleep_until_rung(struct agent_area *a, struct agent_bell *b, uint32_t seen)
{
	uint64_t patience = agent_spin_ns(), start = patience ? clock_ns() : 0;

	while (patience && clock_ns() - start < patience) {
		if (atomic_load_explicit(&b->rings, memory_order_acquire) != seen)
			return;
		cpu_relax();
	}
	free_dead(a);
	if (agent_may_sleep(b, seen))
		futex_wait_shared(&b->rings, seen, 0);
	agent_awake(b);
}

static void *agent_main(void *arg)
{
	struct agent_bell *bell = &proc_seg()->hdr.agent_bell;
	struct agent_area *a = arg;
	struct exec *x;

	while (!(x = exec_self())) /* all exec slots are taken: some thread will end */
		nanosleep(&(struct timespec){.tv_nsec = NSEC_PER_MSEC}, NULL);
	x->is_worker = true;
	for (;;) {
		/* Before the look at what the bell may have been rung for. */
		uint32_t seen = atomic_load_explicit(&bell->rings, memory_order_seq_cst);
		bool any;

		if (atomic_load_explicit(&agent.stop, memory_order_acquire))
			break;
		any = handed_run(x, a);
		if (!serve_all(x, a) && !any)
			sleep_until_rung(a, bell, seen);
	}
	/* Whoever hands something over later sees this, and does not count on us. */
	agent_serve_end(&a->serve);
	handed_run(x, a);
	return NULL;
}

/* ---- starting and stopping ---- */

/* The area stays for the rest of the attach: a stopped peer may still write to it. */
static struct agent_area *make_area(void)
{
	struct seg *seg = proc_seg();
	uint64_t off;

	if (!agent_area(seg)) {
		if (heap_alloc(sizeof(struct agent_area), &off))
			return NULL;
		atomic_store_explicit(&seg->hdr.agent_off, off, memory_order_release);
	}
	return agent_area(seg);
}

static void start(void)
{
	struct agent_area *a = make_area();
	int rc = a ? 0 : ENOMEM;

	atomic_store_explicit(&agent.stop, false, memory_order_relaxed);
	if (a)
		atomic_store_explicit(&a->serve.there, 1, memory_order_seq_cst);
	if (!rc)
		rc = thread_start(&agent.thread, "weft-agent", THREAD_SMALL, agent_main, a);
	if (rc)
		log_line(LOG_LVL_ERROR,
			"cannot start the agent thread (%s): peers that may not call "
			"process_vm_readv on this process cannot reach its memory",
			strerror(rc));
	agent.started = !rc;
	if (a && rc)
		atomic_store_explicit(&a->serve.there, 0, memory_order_seq_cst);
}

static void stop(void)
{
	struct agent_bell *bell = &proc_seg()->hdr.agent_bell;
	struct agent_area *a = agent_area(proc_seg());

	atomic_store_explicit(&agent.stop, true, memory_order_release);
	agent_ring(bell);
	futex_wake_shared(&bell->rings);
	pthread_join(agent.thread, NULL);
	agent.started = false;
	/* What the bounce buffers took goes back; who still copies into one gets a new page. */
	if (a)
		sparse_empty(a->bounce, sizeof a->bounce);
}

void agent_hold(void)
{
	pthread_mutex_lock(&agent.lock);
	agent.holds++;
	if (!agent.started)
		start();
	pthread_mutex_unlock(&agent.lock);
}

void agent_drop(void)
{
	pthread_mutex_lock(&agent.lock);
	if (agent.holds && !--agent.holds && agent.started)
		stop();
	pthread_mutex_unlock(&agent.lock);
}

static void look(void)
{
	bool first;

	pthread_mutex_lock(&agent.lock);
	first = !agent.wanted;
	agent.wanted = true;
	pthread_mutex_unlock(&agent.lock);
	if (first)
		agent_hold();
}

void agent_look(void)
{
	if (proc_epoch() &&
		atomic_load_explicit(&proc_seg()->hdr.agent_wanted, memory_order_acquire))
		look();
}

void agent_forked_child(void)
{
	pthread_mutex_init(&agent.lock, NULL);
	handed_forked_child();
	agent.holds = 0;
	agent.wanted = agent.started = false;
	memset(agent.turn, 0, sizeof agent.turn);
}
