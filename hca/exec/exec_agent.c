// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/exec_agent.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "hca/exec/carry.h"
#include "hca/exec/qp_timers.h"

enum { MIN_PATIENCE_NS = 200 * NSEC_PER_MSEC };

struct agent_area *agent_area(struct seg *seg)
{
	uint64_t off = atomic_load_explicit(&seg->hdr.agent_off, memory_order_acquire);

	if (off < offsetof(struct seg, heap) || off % 4096 ||
		off > SEG_SIZE - sizeof(struct agent_area))
		return NULL;
	return (struct agent_area *)((char *)seg + off);
}

static struct agent_area *find_area(void *arg)
{
	const struct work *w = arg;

	return agent_area(w->mem->view.seg);
}

static bool gone(void *arg)
{
	const struct work *w = arg;

	return view_died(&w->mem->view);
}

static bool slow(void *arg)
{
	const struct work *w = arg;

	return !view_stopped(&w->mem->view);
}

static void rest(void *arg)
{
	const struct work *w = arg;

	slot_rest(w->x->slot);
}

struct guard {
	struct work *w;
	const struct held *held;
};

static enum move_result may_go_on(void *arg)
{
	const struct guard *g = arg;
	uint32_t own = g->w->x->attach;

	slot_step(g->w->x->slot, own, own, SLOT_WAYS_ANY);
	return carry_goes_on(g->w, g->held);
}

/*
 * How long the agent, which is a thread that must be scheduled, may take where an adapter's
 * acknowledgement would be due at once.
 */
static uint64_t patience(const struct seg_qp *q)
{
	uint64_t ns = ack_patience_ns(q);

	return ns < MIN_PATIENCE_NS ? MIN_PATIENCE_NS : ns;
}

static struct agent_call call_of(struct work *w, enum agent_op op, const uint32_t *key)
{
	return (struct agent_call){
		.owner = w->x->owner,
		.qp = w->req->type == IBV_QPT_XRC_SEND ? w->mem->index : w->resp->index,
		.op = op,
		.key = key,
		.bell = &w->mem->view.seg->hdr.agent_bell,
		.patience_ns = patience(w->req->qp),
		.area = find_area,
		.gone = gone,
		.slow = slow,
		.rest = rest,
		.arg = w,
	};
}

bool exec_agent_later(const struct work *w)
{
	return w->req->view.pid || !w->x->may_wait;
}

/* A lane is a QP's peer's: there is none for what only an SRQ of XRC has in a third process. */
static bool has_lane(const struct work *w)
{
	return !end_is_here(w->req) || !end_is_here(w->resp);
}

enum move_result exec_agent_lane(const struct work *w)
{
	const struct view *other = end_is_here(w->req) ? &w->resp->view : &w->req->view;

	if (other->pid && other->path)
		atomic_store_explicit(&other->path->blocks, 1, memory_order_relaxed);
	return MOVE_LATER;
}

static enum move_result run(
	struct work *w, struct move *m, struct agent_call *c, const struct held *held)
{
	struct guard g = {.w = w, .held = held};
	enum move_result r;

	m->agent = c;
	m->may_go_on = may_go_on;
	m->arg = &g;
	r = may_go_on(&g);
	if (r == MOVE_OK)
		r = mover_run(m);
	/* Now the responder's queues again. */
	work_step(w);
	if (!work_connected(w))
		r = MOVE_TAKEN;
	count_add(w->x, CTR_AGENT_OPS, m->calls);
	count_add(w->x, CTR_AGENT_BYTES, m->moved);
	if (r == MOVE_LATE) {
		count_add(w->x, CTR_AGENT_LATE, 1);
		log_line(LOG_LVL_WARN,
			"the agent of process %d does not answer: stopped, or in a function of a "
			"peer client; the request fails",
			w->mem->view.pid);
	}
	return r;
}

enum move_result exec_agent_move(
	struct work *w, struct move *m, const struct held *held, unsigned first)
{
	enum agent_op op = w->op->kind == OP_SEND ? AGENT_FILL : m->push ? AGENT_PUT : AGENT_GET;
	uint32_t key[SGL_MAX];
	struct agent_call c;

	if (exec_agent_later(w))
		return has_lane(w) ? MOVE_LATER : MOVE_REFUSED;
	for (unsigned i = 0; i < m->remote->n; i++)
		key[i] = held->mr[first + i].key;
	c = call_of(w, op, key);
	return run(w, m, &c, held);
}

enum move_result exec_agent_atomic(
	struct work *w, struct move *m, const struct held *held, uint64_t *before)
{
	struct agent_call c = call_of(w, w->fetch_add ? AGENT_ADD : AGENT_SWAP, &w->rkey);
	enum move_result r;

	if (exec_agent_later(w))
		return MOVE_LATER;
	c.operand[0] = w->compare_add;
	c.operand[1] = w->swap;
	r = run(w, m, &c, held);
	*before = c.before;
	return r;
}

enum move_result exec_agent_persist(struct work *w, struct payload *range, const struct held *held)
{
	struct move m = {.pid = w->mem->view.pid, .remote = &range->l};
	struct agent_call c = call_of(w, AGENT_PERSIST, &w->rkey);

	return exec_agent_later(w) ? MOVE_LATER : run(w, &m, &c, held);
}

bool exec_agent_refused(const struct view *v)
{
	if (!v->path || v->path->never_agent)
		return false;
	if (atomic_exchange_explicit(&v->path->by_agent, 1, memory_order_relaxed))
		return true;
	atomic_store_explicit(&v->seg->hdr.agent_wanted, 1, memory_order_release);
	log_line(LOG_LVL_WARN,
		"the kernel refuses process_vm_readv and process_vm_writev to process %d; its "
		"agent is asked instead, which is slower; weft doctor tells more",
		v->pid);
	return true;
}

bool exec_agent_hand_back(const struct end *req)
{
	struct seg *seg = req->view.seg;
	struct agent_area *a = agent_area(seg);

	if (!a)
		return false;
	atomic_fetch_or_explicit(
		&a->run[req->index / 64], 1ull << req->index % 64, memory_order_release);
	atomic_store_explicit(&a->run_any, 1, memory_order_release);
	if (agent_ring(&seg->hdr.agent_bell))
		futex_wake_shared(&seg->hdr.agent_bell.rings);
	return atomic_load_explicit(&a->serve.there, memory_order_seq_cst);
}

bool exec_agent_hand_over(const struct end *resp)
{
	struct seg *seg = resp->view.seg;
	struct agent_area *a = agent_area(seg);
	bool asleep, there;

	if (!a)
		return false;
	there = agent_serve_ask(&a->serve, &seg->hdr.agent_bell, resp->index, &asleep);
	if (asleep)
		futex_wake_shared(&seg->hdr.agent_bell.rings);
	return there;
}
