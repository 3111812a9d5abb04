// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/run.h"

#include "hca/proc/proc.h"
#include "hca/run/other_end.h"
#include "hca/run/progress.h"
#include "hca/run/worker.h"
#include "hca/seg/token.h"

static const struct budget own_budget = {
	.requests = UINT32_MAX, .bytes = UINT64_MAX, .large = WORKER_LARGE};
static const struct budget agent_budget = {.requests = 256, .bytes = 8 << 20, .large = UINT64_MAX};
const struct budget help_budget = {.requests = 64, .bytes = 256 * 1024, .large = WORKER_LARGE};

/*
 * Somebody else runs our direction.  weftd holds tokens for an instant to fail a queue, and cannot
 * answer a kick by executing; a peer that helps us may die on the way.
 */
static bool kicked_another(const struct hca_qp *qp, enum run_end end)
{
	uint64_t token;

	if (end != RUN_KICKED)
		return false;
	token = atomic_load_explicit(&qp->me.qp->token, memory_order_relaxed);
	return token_attach(token) != qp->me.view.attach;
}

void qp_watch_after(struct hca_qp *qp, enum run_end end)
{
	if (end == RUN_PARKED || kicked_another(qp, end))
		progress_watch(qp);
}

static void after_run(struct hca_qp *qp, enum run_end end, unsigned direction)
{
	if (end == RUN_BUDGET || end == RUN_BUSY)
		worker_add(qp, direction);
	else if (direction == WORK_OUT)
		qp_watch_after(qp, end);
}

void qp_rouse_peer(struct hca_qp *qp)
{
	static const struct budget one = {.requests = 1, .bytes = 1, .large = UINT64_MAX};
	struct end *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	struct exec *x;

	if (!peer || end_receives(&qp->me) ||
		!atomic_exchange_explicit(&qp->me.qp->park, 0, memory_order_seq_cst))
		return;
	x = exec_get();
	if (x)
		exec_run(x, peer, &qp->me, one);
	exec_put(x);
}

/* The peer that we know is from before its last RESET: finds the present one. */
static bool found_anew(struct hca_qp *qp, const struct end *known)
{
	bool found;

	if (!known || !end_stale(known) || !lock_try(&qp->modify_lock))
		return false;
	qp_find_peer(qp);
	found = atomic_load_explicit(&qp->peer, memory_order_relaxed) != known;
	lock_drop(&qp->modify_lock);
	return found;
}

void qp_run_out(struct hca_qp *qp)
{
	struct budget b = own_budget;
	struct end *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	struct exec *x = exec_self();
	enum run_end end;

	if (!x) {
		worker_add(qp, WORK_OUT);
		return;
	}
	b.one_sided = atomic_load_explicit(&qp->one_sided, memory_order_relaxed);
	end = exec_run(x, &qp->me, peer, b);
	if (end == RUN_PARKED && found_anew(qp, peer)) {
		peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
		end = exec_run(x, &qp->me, peer, b);
	}
	after_run(qp, end, WORK_OUT);
	if (end_state(&qp->me) == IBV_QPS_ERR)
		qp_rouse_peer(qp);
}

void qp_run_in(struct hca_qp *qp)
{
	struct end *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);
	struct exec *x = exec_self();

	if (!peer)
		return;
	if (!x) {
		worker_add(qp, WORK_IN);
		return;
	}
	count_add(x, CTR_HELPED, 1);
	after_run(qp, exec_run(x, peer, &qp->me, help_budget), WORK_IN);
	if (end_state(peer) == IBV_QPS_ERR &&
		atomic_exchange_explicit(&peer->qp->park, 0, memory_order_seq_cst))
		qp_run_out(qp);
}

/* The agent looks for no process: who finds one may have to wait for the agent. */
void qp_run_handed(struct exec *x, struct hca_qp *qp)
{
	struct end *peer = atomic_load_explicit(&qp->peer, memory_order_acquire);

	if (!peer || end_stale(peer))
		progress_watch(qp);
	else
		after_run(qp, exec_run(x, peer, &qp->me, agent_budget), WORK_IN);
}
