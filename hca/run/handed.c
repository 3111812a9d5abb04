// SPDX-License-Identifier: BSD-3-Clause
#include "hca/run/handed.h"

#include <pthread.h>

#include "hca/obj/qp.h"
#include "hca/proc/proc.h"
#include "hca/proc/tables.h"
#include "hca/run/run.h"
#include "hca/run/worker.h"
#include "pages/agent_slot.h"

/* The QP whose peer the agent runs, or NULL: who takes it away waits until it is another. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct hca_qp *qp;
} serving = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

/* QP index of ours; NULL: there is none, or it is going. */
static struct hca_qp *find(uint32_t index)
{
	uint32_t word = atomic_load_explicit(&proc_seg()->qp[index].state, memory_order_acquire);
	struct hca_qp *qp = word & QPS_LIVE ? table_qp(index) : NULL;

	return qp && end_state(&qp->me) != IBV_QPS_RESET ? qp : NULL;
}

/*
 * The exec slot keeps it from going away meanwhile: its state is left before its struct.
 */
static void give_to_worker(struct exec *x, uint32_t index)
{
	struct hca_qp *qp;

	slot_enter(x->slot, x->attach, x->attach);
	atomic_thread_fence(memory_order_seq_cst);
	qp = find(index);
	if (qp)
		worker_add(qp, WORK_OUT);
	slot_leave(x->slot);
}

static void serve(struct exec *x, uint32_t index)
{
	struct hca_qp *qp;

	pthread_mutex_lock(&serving.lock);
	serving.qp = qp = find(index);
	pthread_mutex_unlock(&serving.lock);
	if (!qp)
		return;
	count_add(x, CTR_AGENT_RUNS, 1);
	qp_run_handed(x, qp);
	pthread_mutex_lock(&serving.lock);
	serving.qp = NULL;
	pthread_cond_broadcast(&serving.done);
	pthread_mutex_unlock(&serving.lock);
}

void handed_forget(struct hca_qp *qp)
{
	pthread_mutex_lock(&serving.lock);
	while (serving.qp == qp)
		pthread_cond_wait(&serving.done, &serving.lock);
	pthread_mutex_unlock(&serving.lock);
}

/* Our own, that came back. */
static bool run_back(struct exec *x, struct agent_area *a)
{
	if (!atomic_exchange_explicit(&a->run_any, 0, memory_order_seq_cst))
		return false;
	for (unsigned i = 0; i < AGENT_MAP_WORDS; i++) {
		uint64_t bits = 0;

		if (atomic_load_explicit(&a->run[i], memory_order_acquire))
			bits = atomic_exchange_explicit(&a->run[i], 0, memory_order_acq_rel);
		for (; bits; bits &= bits - 1)
			give_to_worker(x, i * 64 + __builtin_ctzll(bits));
	}
	return true;
}

bool handed_run(struct exec *x, struct agent_area *a)
{
	bool any = run_back(x, a);

	if (!agent_serve_any(&a->serve))
		return any;
	for (unsigned i = 0; i < AGENT_MAP_WORDS; i++)
		for (uint64_t bits = agent_serve_take(&a->serve, i); bits; bits &= bits - 1)
			serve(x, i * 64 + __builtin_ctzll(bits));
	return true;
}

void handed_forked_child(void)
{
	pthread_mutex_init(&serving.lock, NULL);
	pthread_cond_init(&serving.done, NULL);
	serving.qp = NULL;
}
