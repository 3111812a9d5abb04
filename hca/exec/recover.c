// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/recover.h"

#include "base/clock.h"
#include "base/futex.h"
#include "hca/exec/exec.h"
#include "hca/exec/exec_agent.h"
#include "hca/exec/exec_rxq.h"
#include "hca/exec/flush.h"
#include "hca/seg/port_event.h"
#include "hca/seg/token.h"

/* Adapts weftd's callbacks to those of an executor. */
static bool fire(uint32_t attach, uint32_t channel, struct fired_note *note, void *arg)
{
	const struct recover_env *env = arg;

	fired_enter(note);
	env->fire(attach, channel, env->arg);
	return true;
}

static bool timer(uint32_t attach, uint32_t qp_index, uint64_t when, void *arg)
{
	const struct recover_env *env = arg;

	env->timer(attach, qp_index, when, env->arg);
	return true;
}

static struct exec exec_of(const struct recover_env *env)
{
	return (struct exec){
		.attach = env->hub_id,
		.slot = &env->hub->slots[0],
		.owner = token_owner(env->hub_id, 0),
		.counters = env->hub->counters[0],
		.fire = fire,
		.timer = timer,
		.arg = (void *)env,
	};
}

static struct view view_of(struct seg *seg, uint32_t attach)
{
	return (struct view){.seg = seg, .attach = attach, .pid = -1, .pidfd = OWN_FD_NONE};
}

static void wake_cq(
	const struct recover_env *env, struct seg *seg, uint32_t attach, const struct cq_ref *cq)
{
	struct exec x = exec_of(env);

	if (cq->cq)
		cq_fire(&x, seg, attach, cq->index, true);
}

/* Has the deadline passed?  If it is still to come, the timer is asked for again. */
static bool expired(
	const struct recover_env *env, struct seg_qp *q, uint32_t attach, uint32_t qp_index)
{
	uint64_t deadline = atomic_load_explicit(&q->deadline, memory_order_seq_cst);

	if (atomic_load_explicit(&q->park_reason, memory_order_seq_cst) == PARK_NONE || !deadline)
		return false;
	if (clock_ns() >= deadline)
		return true;
	atomic_store_explicit(&q->timer_ns, deadline, memory_order_relaxed);
	env->timer(attach, qp_index, deadline, env->arg);
	return false;
}

/* An event that waits for more completions: fires it if it is due. */
static void cq_timer(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, uint32_t index)
{
	const struct view v = view_of(seg, attach_id);
	struct seg_cq *cq = &seg->cq[index & (SEG_CQS - 1)];
	uint64_t due = atomic_load_explicit(&cq->due, memory_order_seq_cst);
	struct cq_ref ref;

	if (!due || !(atomic_load_explicit(&cq->live, memory_order_acquire) & 1))
		return;
	if (clock_ns() < due) {
		env->timer(attach_id, SEG_TIMER_CQ | (index & (SEG_CQS - 1)), due, env->arg);
		return;
	}
	atomic_store_explicit(&cq->due, 0, memory_order_relaxed);
	if (atomic_exchange_explicit(&cq->held, 0, memory_order_seq_cst) &&
		!cq_ref_init(&ref, &v, index))
		wake_cq(env, seg, attach_id, &ref);
}

/* What a channel's CQs say of its events. */
struct channel_state {
	bool pending;  /* some wait to be got */
	bool doubtful; /* some were given out that are not told yet */
};

static struct channel_state look_at_channel(struct seg *seg, uint32_t id)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.cqs_used, memory_order_acquire);
	struct channel_state s = {false, false};

	for (uint32_t i = 0; i < n && i < SEG_CQS; i++) {
		const struct seg_cq *cq = &seg->cq[i];
		uint32_t given, told;

		if (cq->channel != id ||
			!(atomic_load_explicit(&cq->live, memory_order_acquire) & 1))
			continue;
		given = atomic_load_explicit(&cq->given, memory_order_relaxed);
		told = atomic_load_explicit(&cq->told, memory_order_acquire);
		s.pending |= atomic_load_explicit(&cq->fired, memory_order_relaxed) != given;
		s.doubtful |= fired_ahead(given, told) != 0;
	}
	return s;
}

/*
 * An event was given out whose count had not come, and others waited: the producer may be stopped
 * since.  (The owner looks at doubt_ns after `given`: one of us sees the other.)
 */
static void channel_timer(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, uint32_t id)
{
	_Atomic uint64_t *doubt_ns = &seg->channel[id % SEG_CHANNELS].doubt_ns;
	uint64_t due = atomic_load_explicit(doubt_ns, memory_order_seq_cst), now = clock_ns();
	struct channel_state s;

	if (!due)
		return;
	if (now >= due) {
		atomic_store_explicit(doubt_ns, 0, memory_order_seq_cst);
		atomic_thread_fence(memory_order_seq_cst);
		s = look_at_channel(seg, id);
		if (s.pending && !env->unread(attach_id, id, env->arg))
			env->fire(attach_id, id, env->arg);
		if (!s.pending || !s.doubtful)
			return;
		due = now + FIRED_DOUBT_NS;
		atomic_store_explicit(doubt_ns, due, memory_order_seq_cst);
	}
	env->timer(attach_id, SEG_TIMER_CHANNEL | id, due, env->arg);
}

void recover_timer(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, uint32_t qp_index)
{
	const struct view v = view_of(seg, attach_id);
	struct exec x = exec_of(env);
	struct end e;

	if (qp_index & SEG_TIMER_CQ) {
		cq_timer(env, seg, attach_id, qp_index & ~SEG_TIMER_CQ);
		return;
	}
	if (qp_index & SEG_TIMER_CHANNEL) {
		channel_timer(env, seg, attach_id, qp_index & ~SEG_TIMER_CHANNEL);
		return;
	}
	qp_index &= SEG_QPS - 1;
	atomic_store_explicit(&seg->qp[qp_index].timer_ns, 0, memory_order_seq_cst);
	if (end_init(&e, &v, qp_index))
		return;
	if (expired(env, e.qp, attach_id, qp_index) && exec_expire(&x, &e))
		wake_cq(env, seg, attach_id, &e.send_cq);
}

/* What the dead process left half done: completions not announced, a flush. */
static void tidy_up(struct exec *x, const struct end *e)
{
	slot_enter(x->slot, e->view.attach, e->view.attach);
	if (end_state(e) == IBV_QPS_ERR)
		qp_flush(x, e, false);
	else
		qp_flush_recv(x, e);
	slot_leave(x->slot);
}

/* Frees what the dead process held of a QP.  True if it held something. */
static bool free_tokens(const struct end *e, uint32_t dead_id)
{
	bool held = token_force(&e->qp->token, dead_id);

	return token_force(&e->qp->rq_token, dead_id) || held;
}

/* Requests that the dead process made to this one's agent: it gives their slots back. */
static void orphan_requests(struct seg *seg, uint32_t dead_id)
{
	struct agent_area *a = agent_area(seg);
	uint32_t n = a ? atomic_load_explicit(&a->used, memory_order_acquire) : 0;
	bool any = false;

	for (uint32_t i = 0; i < n && i < AGENT_SLOTS; i++)
		any |= agent_orphan(&a->slot[i], dead_id);
	if (any && agent_ring(&seg->hdr.agent_bell))
		futex_wake_shared(&seg->hdr.agent_bell.rings);
}

/* It may have completed something and died before it told. */
static void wake_owner(const struct recover_env *env, const struct end *e)
{
	wake_cq(env, e->view.seg, e->view.attach, &e->send_cq);
	wake_cq(env, e->view.seg, e->view.attach, &e->recv_cq);
}

/* A process that may have touched this one as a guest does not any more. */
static void forget_guest(struct seg *seg, uint32_t dead_id)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.guests_used, memory_order_acquire);

	for (uint32_t i = 0; i < n && i < SEG_GUESTS; i++)
		if ((atomic_load_explicit(&seg->guest[i], memory_order_relaxed) &
			    SLOT_ATTACH_MASK) == dead_id)
			atomic_store_explicit(&seg->guest[i], 0, memory_order_release);
}

/* Its mappings went with it. */
static void forget_imports(struct seg *seg, uint32_t dead_id)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.imports_used, memory_order_acquire);

	for (uint32_t i = 0; i < n && i < SEG_IMPORTS; i++)
		if ((atomic_load_explicit(&seg->import[i], memory_order_relaxed) &
			    SLOT_ATTACH_MASK) == dead_id)
			atomic_store_explicit(&seg->import[i], 0, memory_order_release);
}

/*
 * Async events may be marked and not counted.  (Without a count, the owner would find nothing and
 * sleep.)  It sees to it that there are as many of these as of those.
 */
static void recount_async(const struct recover_env *env, struct seg *seg, uint32_t attach_id)
{
	if (!has_async_event(seg))
		return;
	atomic_store_explicit(&seg->hdr.async_doubt, 1, memory_order_seq_cst);
	if (!env->unread(attach_id, 0, env->arg))
		env->fire(attach_id, 0, env->arg);
}

/* Receives that the dead process had taken of entry i's own queue.  True if there were any. */
static bool recover_receives(struct exec *x, const struct view *v, uint32_t i, uint32_t dead_id)
{
	bool any;
	struct end e;

	slot_enter(x->slot, v->attach, v->attach);
	atomic_thread_fence(memory_order_seq_cst);
	any = !end_init(&e, v, i) && end_owns_rxq(&e) && exec_rxq_recover(x, &e, dead_id);
	slot_leave(x->slot);
	return any;
}

void recover_death(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, uint32_t dead_id)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.qps_used, memory_order_acquire);
	const struct view v = view_of(seg, attach_id);
	struct exec x = exec_of(env);
	bool touched = false;
	struct end e;

	token_force(&seg->hdr.atomic_token, dead_id);
	forget_guest(seg, dead_id);
	forget_imports(seg, dead_id);
	orphan_requests(seg, dead_id);
	for (uint32_t i = 0; i < n && i < SEG_QPS; i++) {
		bool peer_died = seg->qp[i].peer_attach == dead_id, held;

		if (recover_receives(&x, &v, i, dead_id))
			touched = true;
		if (end_init(&e, &v, i))
			continue;
		/* Also one that does not know its peer yet, or whose peer is not the dead one: it
		 * may have helped before that, and a weftd is nobody's peer. */
		held = free_tokens(&e, dead_id);
		if (!held && !peer_died)
			continue;
		if (peer_died && e.type != IBV_QPT_UD)
			exec_peer_died(&x, &e);
		tidy_up(&x, &e);
		if (held)
			wake_owner(env, &e);
		touched = true;
	}
	if (touched)
		recount_async(env, seg, attach_id);
}

void recover_adopt(const struct recover_env *env, struct seg *seg, uint32_t attach_id)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.qps_used, memory_order_acquire);
	const struct view v = view_of(seg, attach_id);
	struct end e;

	for (uint32_t i = 0; i < n && i < SEG_QPS; i++) {
		if (end_init(&e, &v, i))
			continue;
		recover_timer(env, seg, attach_id, i);
	}
	n = atomic_load_explicit(&seg->hdr.cqs_used, memory_order_acquire);
	for (uint32_t i = 0; i < n && i < SEG_CQS; i++) {
		cq_timer(env, seg, attach_id, i);
		if (seg->cq[i].channel)
			channel_timer(env, seg, attach_id, seg->cq[i].channel % SEG_CHANNELS);
	}
}

void recover_port_event(
	const struct recover_env *env, struct seg *seg, uint32_t attach_id, unsigned type)
{
	if (port_event_add(&seg->hdr.port_events, type))
		env->fire(attach_id, 0, env->arg);
}
