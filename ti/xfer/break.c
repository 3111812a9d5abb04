// SPDX-License-Identifier: BSD-3-Clause
#include "ti/xfer/break.h"

#include "ti/core/fork.h"
#include "ti/core/trace.h"
#include "ti/xfer/drain.h"

/* ---- breaking ---- */

void conn_to_error(struct conn *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	lock_take(&c->error_lock);
	if (c->qp)
		(void)ibv_modify_qp(c->qp, &attr, IBV_QP_STATE);
	lock_drop(&c->error_lock);
}

/*
 * A receive of nobody's behind all others: its completion, after the flush of those, is an event
 * that the completion thread sees whoever polls.  False: the queue pair is not that far.
 */
static bool post_marker(struct conn *c)
{
	struct ibv_recv_wr wr = {0}, *bad;

	return !ibv_post_recv(c->qp, &wr, &bad);
}

bool conn_flush(struct conn *c)
{
	conn_to_error(c);
	drain_arm(c);
	return post_marker(c);
}

static void run_error(struct job *job)
{
	struct conn *c = CONN_OF(job, error_job);
	ti_err_rec_t rec = {.code = c->broken, .context = c->comp.p_err_context};
	unsigned forks = fork_count();

	c->comp.pfn_err_cb(&rec);
	fork_called_back(forks);
	conn_put(c);
}

/* A peer may go; a queue pair that cannot be used any more is an adapter's. */
static enum log_level severity(ti_status_t why)
{
	return why == TI_CANCELED   ? LOG_LVL_INFO
	       : why == TI_CQ_ERROR ? LOG_LVL_FATAL
				    : LOG_LVL_ERROR;
}

/* True for one caller. */
static bool leave_live(struct conn *c)
{
	uint32_t live = CONN_LIVE;

	return atomic_compare_exchange_strong_explicit(
		&c->state, &live, CONN_BROKEN, memory_order_acq_rel, memory_order_relaxed);
}

/* Under lock. */
static void stop_accept(struct conn *c)
{
	if (conn_state(c) != CONN_ACCEPTING)
		return;
	c->result = TI_CANCELED;
	atomic_store_explicit(&c->state, CONN_FAILED, memory_order_release);
	pthread_cond_broadcast(&c->changed);
}

void conn_halt(struct conn *c)
{
	pthread_mutex_lock(&c->lock); /* who did not see the end has done what it was about to do */
	stop_accept(c);
	pthread_mutex_unlock(&c->lock);
	if (leave_live(c))
		(void)conn_flush(c);
}

void conn_break(struct conn *c, ti_status_t why)
{
	if (!leave_live(c))
		return;
	c->broken = why;
	log_line(severity(why), "ti: connection %p is broken: %s", (void *)c->m.obj.handle,
		why == TI_CANCELED ? "the peer ended it" : ti_status_2_str(why));
	(void)conn_flush(c);
	if (!c->comp.pfn_err_cb)
		return;
	object_hold(&c->m.obj);
	c->error_job.run = run_error;
	system_post(&c->error_job);
}

/* ---- the end ---- */

void conn_finish(struct conn *c)
{
	if (atomic_exchange_explicit(&c->finishing, true, memory_order_acq_rel))
		return;
	system_post(&c->finish_job);
}

void conn_try_finish(struct conn *c)
{
	if (atomic_load_explicit(&c->may_finish, memory_order_acquire) && !flow_open(&c->in) &&
		!flow_open(&c->out))
		conn_finish(c);
}
