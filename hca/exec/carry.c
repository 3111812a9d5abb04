// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/carry.h"

#include "base/clock.h"
#include "hca/exec/exec_agent.h"

enum {
	PID_TRUST_NS = 100 * NSEC_PER_MSEC,
	MAP_TRUST_NS = 1,
};

void work_step(struct work *w)
{
	const struct end *from = w->req ? w->req : w->resp;

	w->named = w->resp ? w->resp->view.attach : from->view.attach;
	slot_step(w->x->slot, from->view.attach, w->named, w->way);
}

struct guard {
	struct work *w;
	const struct held *held;
};

bool work_connected(const struct work *w)
{
	if (!w->resp) /* an answer that came by another far end: no new request in SQD, but this */
		return end_state(w->req) == IBV_QPS_RTS || end_state(w->req) == IBV_QPS_SQD;
	return (!w->req || end_state(w->req) == IBV_QPS_RTS) && end_receives(w->resp) &&
	       (w->mem == w->resp || rxq_live(&w->mem->rxq));
}

enum move_result carry_goes_on(const struct work *w, const struct held *held)
{
	/* Looked at once: a region that is through with changing now was not a moment ago. */
	switch (held_check(held)) {
	case HELD_BUSY:
		if (work_connected(w) && !w->shared)
			return MOVE_ANEW;
		break;
	case HELD_GONE:
		return MOVE_TAKEN;
	case HELD_VALID:
		break;
	}
	return work_connected(w) ? MOVE_OK : MOVE_TAKEN;
}

/*
 * A receive of a shared queue, once begun, is filled by no other message: so the copy does not
 * begin anew.  Who changes a region waits for it, since the step does not end.
 */
static enum move_result may_go_on(void *arg)
{
	const struct guard *g = arg;

	if (!g->w->shared)
		work_step(g->w);
	return carry_goes_on(g->w, g->held);
}

/* Is the process alive, or was it at most so long ago? */
static bool seen_alive(struct work *w, const struct view *v, uint64_t trust_ns)
{
	struct seen_alive *seen = &w->x->seen[v->attach % ALIVE_CACHE];
	uint64_t now = clock_coarse_ns();

	if (seen->attach == v->attach && now - seen->ns < trust_ns)
		return !view_dead(v);
	if (view_died(v))
		return false;
	seen->attach = v->attach;
	seen->ns = now;
	return true;
}

bool work_pid_valid(struct work *w, const struct view *v)
{
	return seen_alive(w, v, PID_TRUST_NS);
}

bool carry_alive(struct work *w, const struct view *v)
{
	return seen_alive(w, v, MAP_TRUST_NS);
}

/* Tells in the exec slot by which ways memory is used from here on. */
static enum move_result change_way(struct work *w, enum slot_way way, const struct held *held)
{
	struct guard g = {.w = w, .held = held};

	w->way = way;
	return may_go_on(&g);
}

enum move_result carry_by_call(struct work *w, const struct held *held)
{
	w->x->copies = true;
	return w->way == SLOT_WAYS_ANY ? MOVE_OK : change_way(w, SLOT_WAYS_ANY, held);
}

enum move_result carry_arrived(const struct work *w, const struct held *held)
{
	w->x->copies = false;
	return slot_passed(w->x->slot) && held_check(held) == HELD_GONE ? MOVE_TAKEN : MOVE_OK;
}

enum move_result carry(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	const struct way *way = src->way->rank > dst->way->rank ? src->way : dst->way;

	return held->what & HELD_CHANGES ? MOVE_ANEW : way->move(w, src, dst, held);
}

/* What a way does with a move, one of whose lists is of far. */
typedef enum move_result (*run_fn)(
	struct work *w, struct move *m, const struct payload *far, const struct held *held);

/* Is it memory of a process that has died? */
static bool is_lost(struct work *w, const struct payload *p)
{
	return p->way->shared && !carry_alive(w, &p->at->view);
}

static enum move_result carry_by(run_fn run, struct work *w, struct payload *src,
	struct payload *dst, const struct held *held)
{
	struct guard g = {.w = w, .held = held};
	struct move m = {.may_go_on = may_go_on, .arg = &g, .push = src->way->here};
	const struct payload *far = m.push ? dst : src;
	enum move_result r;

	if (!m.push && !dst->way->here)
		return MOVE_REFUSED;
	if (is_lost(w, src) || is_lost(w, dst))
		return MOVE_GONE;
	m.pid = far->way->here ? 0 : far->at->view.pid;
	m.local = m.push ? &src->l : &dst->l;
	m.remote = m.push ? &dst->l : &src->l;
	r = run(w, &m, far, held);
	w->moved += m.moved;
	return r;
}

static enum move_result run_cma(
	struct work *w, struct move *m, const struct payload *far, const struct held *held)
{
	const struct view *remote = &far->at->view;
	enum move_result r;

	if (!work_pid_valid(w, remote))
		return MOVE_GONE;
	r = carry_by_call(w, held);
	if (r != MOVE_OK)
		return r;
	r = mover_run(m);
	count_add(w->x, CTR_CMA_BYTES, m->moved);
	count_add(w->x, CTR_CMA_OPS, m->calls);
	if (r != MOVE_REFUSED)
		return r;
	count_add(w->x, CTR_CMA_REFUSED, 1);
	return exec_agent_refused(remote) ? MOVE_LATER : r;
}

enum move_result carry_cma(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	return carry_by(run_cma, w, src, dst, held);
}

static enum move_result run_agent(
	struct work *w, struct move *m, const struct payload *far, const struct held *held)
{
	return exec_agent_move(w, m, held, far->held_at);
}

enum move_result carry_agent(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	return carry_by(run_agent, w, src, dst, held);
}

enum move_result carry_agent_io(struct work *w, const struct sgl_io *io, struct payload *far,
	bool push, const struct held *held)
{
	struct move m = {.push = push, .io = io, .remote = &far->l, .pid = far->at->view.pid};
	enum move_result r = exec_agent_move(w, &m, held, far->held_at);

	w->moved += m.moved;
	return r;
}

enum move_result carry_here(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	struct guard g = {.w = w, .held = held};
	struct move m = {.may_go_on = may_go_on,
		.arg = &g,
		.push = true,
		.local = &src->l,
		.remote = &dst->l};
	enum move_result r = mover_run(&m);

	w->moved += m.moved;
	count_add(w->x, CTR_SELF_BYTES, m.moved);
	return r;
}

static enum move_result run_shared(
	struct work *w, struct move *m, const struct payload *far, const struct held *held)
{
	enum move_result r = MOVE_OK;

	(void)far;
	if (w->way == SLOT_WAYS_ANY && op_is_one_sided(w->op) &&
		m->remote->left >= CARRY_PROMISE_MIN)
		r = change_way(w, SLOT_WAYS_MAPPED, held);
	if (r == MOVE_OK)
		r = mover_run(m);
	count_add(w->x, CTR_MAP_BYTES, m->moved);
	return r == MOVE_OK ? carry_arrived(w, held) : r;
}

enum move_result carry_shared(
	struct work *w, struct payload *src, struct payload *dst, const struct held *held)
{
	return carry_by(run_shared, w, src, dst, held);
}
