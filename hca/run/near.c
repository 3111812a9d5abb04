// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/near.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/gid.h"
#include "base/log.h"
#include "hca/exec/resolve.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"
#include "hca/run/progress.h"
#include "hca/run/worker.h"
#include "hca/seg/token.h"

enum { FIND_AGAIN_NS = NSEC_PER_MSEC, FIND_TRIES = 50 };

static const struct budget own_budget = {
	.requests = UINT32_MAX, .bytes = UINT64_MAX, .large = WORKER_LARGE};
/* What a thread does for a peer, or for a QP that waited, before it goes on with its own. */
static const struct budget help_budget = {
	.requests = 64, .bytes = 256 * 1024, .large = WORKER_LARGE};
/* What the agent does of what peers have handed over. */
static const struct budget agent_budget = {.requests = 256, .bytes = 8 << 20, .large = UINT64_MAX};
static const struct budget whole_budget = {
	.requests = UINT32_MAX, .bytes = UINT64_MAX, .large = UINT64_MAX};

static struct end *peer_of(const struct hca_qp *qp)
{
	return atomic_load_explicit(&qp->peer, memory_order_acquire);
}

/* ---- finding it, and letting go of it ---- */

int near_prepare_channels(struct peer *process, const struct end *e)
{
	int rc = 0;

	if (e->send_cq.cq)
		rc = peer_prepare_channel(process, e->send_cq.cq->channel);
	if (!rc && e->recv_cq.cq)
		rc = peer_prepare_channel(process, e->recv_cq.cq->channel);
	return rc;
}

/*
 * A number alone does not make a connection: the path of each must lead to where the other's
 * begins, as packets of adapters are looked at.  Whichever goes to RTR later sees both paths, and
 * of two at once each shows its state before it looks at the other's.
 */
static bool is_meant(struct hca_qp *qp, const struct end *e)
{
	const struct seg_path *ours = &qp->me.qp->path, *theirs = &e->qp->path;
	enum near_meant meant = NEAR_NOT_SAID;

	if (end_receives(e))
		meant = gid_same(ours->dgid, theirs->sgid) && gid_same(ours->sgid, theirs->dgid)
				? NEAR_MEANT
				: NEAR_NOT_MEANT;
	near_note(qp, meant);
	return meant != NEAR_NOT_MEANT;
}

/* Takes process, with its reference, as the other end. */
static int take_peer(struct hca_qp *qp, struct peer *process, uint32_t index)
{
	struct end *e = malloc(sizeof *e);
	int rc = e ? end_init(e, &process->view, index) : -ENOMEM;

	if (!rc && !is_meant(qp, e))
		rc = -EXDEV;
	if (!rc)
		rc = near_prepare_channels(process, e);
	if (!rc && qp->process && qp->process != process) {
		log_line(LOG_LVL_WARN, "QP %#x: its peer %#x moved to another process", qp->me.qpn,
			e->qpn);
		rc = -EPROTO;
	}
	if (rc) {
		free(e);
		peer_put(process);
		return rc;
	}
	e->next = qp->ends;
	qp->ends = e;
	qp->process = process;
	qp->me.qp->peer_attach = process->view.attach;
	atomic_store_explicit(&qp->peer, e, memory_order_seq_cst);
	return 0;
}

static int find_peer(struct hca_qp *qp)
{
	struct peer *process;
	uint32_t index;
	int rc = peer_find(qp->me.qp->dest_qpn, &process, &index);

	qp->next_find_ns = clock_coarse_ns() + FIND_AGAIN_NS;
	if (rc == -EADDRNOTAVAIL)
		near_note(qp, NEAR_ELSEWHERE);
	return rc ? rc : take_peer(qp, process, index);
}

/* Looks for the other end if it is missing; rate limited.  With modify_lock. */
static void find_again(struct hca_qp *qp)
{
	if (qp_connects(qp) && clock_coarse_ns() >= qp->next_find_ns)
		find_peer(qp);
}

/* A weftd that has just started does not know all processes yet. */
static bool near_find(struct hca_qp *qp)
{
	const struct timespec nap = {.tv_nsec = FIND_AGAIN_NS};
	int saved = errno;

	if (!qp_connects(qp))
		return true;
	for (int i = 0; find_peer(qp) == -ENOENT && i < FIND_TRIES; i++)
		nanosleep(&nap, NULL);
	errno = saved;
	return peer_of(qp);
}

static void near_forget(struct hca_qp *qp, bool live)
{
	struct end *e = qp->ends;

	atomic_store_explicit(&qp->peer, NULL, memory_order_release);
	near_note(qp, NEAR_NOT_SAID);
	qp->ends = NULL;
	while (e) {
		struct end *next = e->next;

		free(e);
		if (live && qp->process)
			peer_put(qp->process);
		e = next;
	}
	qp->process = NULL;
}

/*
 * If the process of the other end is dead, frees what it held of qp; for where weftd, which does
 * the same, may be down.  Then our direction must be run (again).
 */
static void bury(struct hca_qp *qp)
{
	struct end *peer = peer_of(qp);
	struct seg_qp *s = qp->me.qp;

	if (!peer || !peer->view.pid || !view_died(&peer->view))
		return;
	token_force(&s->token, peer->view.attach);
	token_force(&s->rq_token, peer->view.attach);
	token_force(&qp->me.view.seg->hdr.atomic_token, peer->view.attach);
}

/* The peer that we know is from before its last RESET: finds the present one. */
static bool found_anew(struct hca_qp *qp, const struct end *known)
{
	bool found;

	if (!known || !end_stale(known) || !lock_try(&qp->modify_lock))
		return false;
	find_again(qp);
	found = peer_of(qp) != known;
	lock_drop(&qp->modify_lock);
	return found;
}

/* Not found yet, or through RESET since. */
static bool is_missing(const struct hca_qp *qp)
{
	const struct end *peer = peer_of(qp);

	return !peer || end_stale(peer);
}

/* For a QP without one, to which requests were posted. */
static __attribute__((noinline)) struct end *find_to_post(struct hca_qp *qp)
{
	if (end_state(&qp->me) == IBV_QPS_ERR)
		return NULL;
	lock_take(&qp->modify_lock);
	if (!peer_of(qp))
		find_again(qp);
	lock_drop(&qp->modify_lock);
	return peer_of(qp);
}

/* ---- running ---- */

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

/* After a run of our direction that ended so: has it watched if it waits for something. */
static void watch_after(struct hca_qp *qp, enum run_end end)
{
	if (end == RUN_PARKED || kicked_another(qp, end))
		progress_watch(qp);
}

static bool is_left(enum run_end end)
{
	return end == RUN_BUDGET || end == RUN_BUSY;
}

/* A request of our peer that waits for a receive here, where none will be taken. */
static void rouse(struct hca_qp *qp)
{
	static const struct budget one = {.requests = 1, .bytes = 1, .large = UINT64_MAX};
	struct end *peer = peer_of(qp);
	struct exec *x;

	if (!peer || end_receives(&qp->me) ||
		!atomic_exchange_explicit(&qp->me.qp->park, 0, memory_order_seq_cst))
		return;
	x = exec_get();
	if (x)
		exec_run(x, peer, &qp->me, one);
	exec_put(x);
}

static void run_to(struct hca_qp *qp, struct end *peer)
{
	struct budget b = own_budget;
	struct exec *x = exec_self();
	enum run_end end;

	if (!x) {
		worker_add(qp, WORK_OUT);
		return;
	}
	b.one_sided = atomic_load_explicit(&qp->one_sided, memory_order_relaxed);
	end = exec_run(x, &qp->me, peer, b);
	if (end == RUN_PARKED && found_anew(qp, peer))
		end = exec_run(x, &qp->me, peer_of(qp), b);
	if (is_left(end))
		worker_add(qp, WORK_OUT);
	else
		watch_after(qp, end);
	if (end_state(&qp->me) == IBV_QPS_ERR)
		rouse(qp);
}

static void near_run_out(struct hca_qp *qp)
{
	run_to(qp, peer_of(qp));
}

static void near_posted(struct hca_qp *qp)
{
	struct end *peer = peer_of(qp);

	if (!peer && qp_connects(qp))
		peer = find_to_post(qp);
	run_to(qp, peer);
}

static void help(struct hca_qp *qp, const struct end *peer)
{
	struct exec *x = exec_self();

	if (!x) {
		worker_add(qp, WORK_IN);
		return;
	}
	count_add(x, CTR_HELPED, 1);
	if (is_left(exec_run(x, peer, &qp->me, help_budget)))
		worker_add(qp, WORK_IN);
}

/* The peer had not said whom it means when it was found; it is let go of if that is another. */
static bool stays_found(struct hca_qp *qp, const struct end *peer)
{
	if (atomic_load_explicit(&qp->meant, memory_order_relaxed) == NEAR_MEANT ||
		is_meant(qp, peer))
		return true;
	qp->me.qp->peer_attach = 0;
	atomic_store_explicit(&qp->peer, NULL, memory_order_seq_cst);
	return false;
}

static void near_run_in(struct hca_qp *qp)
{
	struct end *peer = peer_of(qp);

	if (!peer || !stays_found(qp, peer))
		return;
	help(qp, peer);
	if (end_state(peer) == IBV_QPS_ERR &&
		atomic_exchange_explicit(&peer->qp->park, 0, memory_order_seq_cst))
		near_run_out(qp);
}

/*
 * The agent looks for no process: who finds one may have to wait for the agent.  So it takes no
 * lock either under which one is found.
 */
void near_run_handed(struct exec *x, struct hca_qp *qp)
{
	struct end *peer = peer_of(qp);

	if (far_of(qp) != &near_ops)
		return;
	if (is_missing(qp) || is_left(exec_run(x, peer, &qp->me, agent_budget)))
		worker_add(qp, WORK_IN);
}

/* ---- in a worker ---- */

/* The word that holds up atomics of that direction may be held by a process that died. */
static void free_atomics(struct hca_qp *qp, unsigned direction)
{
	struct end *target = direction == WORK_OUT ? peer_of(qp) : &qp->me;

	if (target)
		peer_free_token(&target->view.seg->hdr.atomic_token);
}

/*
 * Requests of the other end have come, which we do not know, or not since its RESET.  False: it is
 * to be looked for again, soon.
 */
static bool find_who_asks(struct hca_qp *qp)
{
	bool looked;

	if (!end_receives(&qp->me))
		return true;
	if (!lock_try(&qp->modify_lock))
		return false;
	looked = !is_missing(qp) || clock_coarse_ns() >= qp->next_find_ns;
	if (is_missing(qp))
		find_again(qp);
	lock_drop(&qp->modify_lock);
	return looked;
}

static enum run_end near_work(struct exec *x, struct hca_qp *qp, unsigned direction)
{
	struct end *peer;
	struct budget b = whole_budget;
	enum run_end end = RUN_IDLE;

	if (direction == WORK_IN && is_missing(qp) && !find_who_asks(qp))
		return RUN_BUSY;
	peer = peer_of(qp);
	if (direction == WORK_OUT) {
		b.one_sided = exec_one_sided(&qp->me);
		end = exec_run(x, &qp->me, peer, b);
	} else if (peer) {
		end = exec_run(x, peer, &qp->me, b);
	}
	if (end == RUN_BUSY)
		free_atomics(qp, direction);
	else if (direction == WORK_OUT && !is_left(end))
		watch_after(qp, end);
	return end;
}

/*
 * Of its peer's process, if only that one's agent can serve us, or if flushes between us wait for a
 * disk.
 */
static struct worker *near_lane(const struct hca_qp *qp, bool now)
{
	struct end *peer = peer_of(qp);

	if (now)
		return peer && view_may_block(&peer->view) ? peer->view.path->lane : NULL;
	return qp->process ? qp->process->path.lane : NULL; /* we ourselves have none */
}

/* ---- looking after it ---- */

/* Runs our direction; unlike near_run_out() it leaves the watch list alone, which is held. */
static void run_watched(struct hca_qp *qp)
{
	struct exec *x = exec_self();

	if (!x || is_left(exec_run(x, &qp->me, peer_of(qp), help_budget)))
		worker_add(qp, WORK_OUT);
	else if (end_state(&qp->me) == IBV_QPS_ERR)
		rouse(qp);
}

static bool look_for_it(struct hca_qp *qp)
{
	const struct end *peer;

	if (!lock_try(&qp->modify_lock))
		return true;
	if (is_missing(qp))
		find_again(qp);
	lock_drop(&qp->modify_lock);
	peer = peer_of(qp);
	if (peer)
		help(qp, peer);
	run_watched(qp);
	return true;
}

static bool near_look(struct hca_qp *qp)
{
	struct seg_qp *s = qp->me.qp;
	uint32_t state = end_state(&qp->me);

	if (state == IBV_QPS_ERR)
		run_watched(qp); /* flushes */
	if (state == IBV_QPS_ERR || state == IBV_QPS_RESET)
		return false;
	if (!peer_of(qp))
		return look_for_it(qp);
	if (atomic_load_explicit(&s->sq_head, memory_order_acquire) ==
		atomic_load_explicit(&s->sq_tail, memory_order_acquire))
		return false;
	bury(qp);
	if (is_missing(qp))
		return look_for_it(qp);
	run_watched(qp); /* fails the head if its deadline has passed */
	return true;
}

static void near_stop(struct hca_qp *qp)
{
	if (end_state(&qp->me) == IBV_QPS_ERR)
		bury(qp);
	rouse(qp);
}

/* ---- what is asked about it ---- */

static int near_rkey_access(const struct hca_qp *qp, uint32_t rkey, unsigned *access)
{
	const struct end *peer = peer_of(qp);

	if (!peer)
		return -EOPNOTSUPP;
	return resolve_access(&peer->view, rkey, access) ? 0 : -ENOENT;
}

static uint32_t packets_of(const struct end *e)
{
	return e ? atomic_load_explicit(&e->qp->packets, memory_order_relaxed) : 0;
}

static void near_psn(const struct hca_qp *qp, uint32_t *sent, uint32_t *expected)
{
	const struct seg_qp *s = qp->me.qp;

	*sent = s->sq_psn + packets_of(&qp->me);
	*expected = s->rq_psn + packets_of(peer_of(qp));
}

static const struct end *near_end(const struct hca_qp *qp)
{
	return peer_of(qp);
}

const struct far_ops near_ops = {
	.name = "near",
	.find = near_find,
	.posted = near_posted,
	.run_out = near_run_out,
	.run_in = near_run_in,
	.work = near_work,
	.lane = near_lane,
	.look = near_look,
	.stop = near_stop,
	.forget = near_forget,
	.rkey_access = near_rkey_access,
	.psn = near_psn,
	.end = near_end,
};
