// SPDX-License-Identifier: BSD-3-Clause
#include "hca/carry.h"

#include "base/clock.h"
#include "hca/exec_agent.h"

enum { PID_TRUST_NS = 100 * NSEC_PER_MSEC, MAP_TRUST_NS = 1 };

void work_step(struct work *w)
{
	w->named = w->resp ? w->resp->view.attach : w->req->view.attach;
	slot_step(w->x->slot, w->req->view.attach, w->named);
}

struct guard {
	struct work *w;
	const struct held *held;
};

bool work_connected(const struct work *w)
{
	return end_state(w->req) == IBV_QPS_RTS && end_receives(w->resp) &&
	       (w->mem == w->resp || rxq_live(&w->mem->rx));
}

static bool still_valid(void *arg)
{
	const struct guard *g = arg;

	work_step(g->w);
	switch (held_check(g->held)) {
	case HELD_BUSY:
		g->w->busy = true;
		return false;
	case HELD_GONE:
		return false;
	case HELD_VALID:
		break;
	}
	return work_connected(g->w);
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

void carry_reach(const struct end *e, struct payload *p, const struct held *held)
{
	if (!p->here)
		p->mapped = p->here = resolve_mapped(&e->view, held, p->held_at, &p->l);
}

static enum seg_counter bytes_counter(
	const struct move *m, const struct payload *src, const struct payload *dst)
{
	if (m->pid)
		return CTR_CMA_BYTES;
	return src->mapped || dst->mapped ? CTR_MAP_BYTES : CTR_SELF_BYTES;
}

/* By cma, or by loads and stores. */
static enum move_result run_mover(
	struct work *w, struct move *m, const struct view *remote, enum seg_counter counter)
{
	enum move_result r;

	if (m->pid && !work_pid_valid(w, remote))
		return MOVE_GONE;
	r = mover_run(m);
	count_add(w->x, counter, m->moved);
	if (m->calls)
		count_add(w->x, CTR_CMA_OPS, m->calls);
	if (r != MOVE_REFUSED)
		return r;
	count_add(w->x, CTR_CMA_REFUSED, 1);
	return exec_agent_refused(remote) ? MOVE_LATER : r;
}

enum move_result carry_busy(struct work *w)
{
	w->busy = true;
	return MOVE_STOPPED;
}

enum move_result carry(struct work *w, struct payload *src, const struct end *at_src,
	struct payload *dst, const struct end *at_dst, const struct held *held)
{
	struct guard g = {.w = w, .held = held};
	struct move m = {.still_valid = still_valid, .arg = &g};
	const struct view *remote = src->here ? &at_dst->view : &at_src->view;
	enum move_result r;

	if (held->busy)
		return carry_busy(w);
	m.push = src->here;
	m.pid = !src->here ? at_src->view.pid : !dst->here ? at_dst->view.pid : 0;
	if (!src->here && !dst->here)
		return MOVE_REFUSED;
	if (src->mapped && !carry_alive(w, &at_src->view))
		return MOVE_GONE;
	if (dst->mapped && !carry_alive(w, &at_dst->view))
		return MOVE_GONE;
	m.local = m.push ? &src->l : &dst->l;
	m.remote = m.push ? &dst->l : &src->l;
	if (m.pid && view_by_agent(remote))
		r = exec_agent_move(w, &m, held, (m.push ? dst : src)->held_at);
	else
		r = run_mover(w, &m, remote, bytes_counter(&m, src, dst));
	w->moved += m.moved;
	return r;
}
