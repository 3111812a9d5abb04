// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/proc.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/spin.h"
#include "hca/exec/crash_journal.h"
#include "hca/proc/heap.h"
#include "hca/proc/member.h"
#include "hca/proc/parts.h"
#include "hca/proc/peer.h"
#include "hca/proc/reach.h"
#include "hca/proc/tables.h"
#include "hca/proc/wake.h"
#include "hca/seg/token.h"

static struct {
	struct lock lock;
	const struct rdv_attach *at;
	_Atomic uint32_t epoch;
	pthread_key_t key; /* gives a thread's exec slot back at its end */
	pthread_once_t once;
} proc = {.once = PTHREAD_ONCE_INIT};

struct thread_exec {
	struct exec x;
	uint32_t epoch;
};

static __thread struct thread_exec self __attribute__((tls_model("initial-exec")));

static void thread_ends(void *arg)
{
	struct thread_exec *t = arg;

	if (t->epoch && t->epoch == proc_epoch())
		atomic_store_explicit(&t->x.slot->taken, 0, memory_order_release);
	t->epoch = 0;
}

/* Bad values are told of now, not where they would be used, which may be never. */
static void check_environment(void)
{
	const char *fault = secure_getenv("WEFT_FAULT");

	(void)spin_limit_ns(0);
	if (fault && *fault)
		log_line(LOG_LVL_WARN,
			"WEFT_FAULT=%.40s has no effect: faults cannot be injected yet; unset it",
			fault);
}

static void forked_child(void)
{
	/* Other threads of the parent, and what they held, do not exist here. */
	atomic_store_explicit(&proc.lock.word, 0, memory_order_relaxed);
	heap_forked_child();
	tables_forked_child();
	peers_forked_child();
	member_forked_child();
	crash_forked_child();
	for (const struct proc_part *const *at = proc_parts; *at; at++)
		if ((*at)->forked_child)
			(*at)->forked_child();
	/* Every object of the parent is stale from here on. */
	atomic_store_explicit(&proc.epoch, 0, memory_order_release);
	self.epoch = 0;
}

static void set_up_once(void)
{
	check_environment();
	pthread_key_create(&proc.key, thread_ends);
	pthread_atfork(peers_before_fork, peers_after_fork, forked_child);
}

static int attach_anew(void)
{
	int rc = rdv_attach(&proc.at);

	if (rc)
		return rc;
	if (rdv_epoch() == proc_epoch())
		return 0;
	heap_reset(proc.at->seg);
	tables_reset();
	atomic_store_explicit(&proc.at->seg->hdr.reach, reach_find_out(), memory_order_release);
	crash_attach(proc.at->seg);
	atomic_store_explicit(&proc.epoch, rdv_epoch(), memory_order_release);
	return 0;
}

int proc_attach(const struct rdv_attach **out)
{
	int rc = 0;

	pthread_once(&proc.once, set_up_once);
	lock_take(&proc.lock);
	if (!proc_epoch() || rdv_epoch() != proc_epoch())
		rc = attach_anew();
	lock_drop(&proc.lock);
	if (!rc && out)
		*out = proc.at;
	return rc;
}

const struct rdv_attach *proc_at(void)
{
	return proc.at;
}

struct seg *proc_seg(void)
{
	return proc.at->seg;
}

uint32_t proc_epoch(void)
{
	return atomic_load_explicit(&proc.epoch, memory_order_acquire);
}

struct view proc_view(void)
{
	return (struct view){
		.seg = proc.at->seg, .attach = proc.at->attach_id, .pidfd = OWN_FD_NONE};
}

static struct exec_slot *take_slot(uint32_t *index)
{
	struct seg *seg = proc_seg();

	for (uint32_t i = 0; i < SEG_SLOTS; i++) {
		uint32_t is_free = 0, used;

		if (!atomic_compare_exchange_strong_explicit(&seg->slots[i].taken, &is_free, 1,
			    memory_order_acq_rel, memory_order_relaxed))
			continue;
		used = atomic_load_explicit(&seg->hdr.slots_used, memory_order_relaxed);
		while (used < i + 1 &&
			!atomic_compare_exchange_weak_explicit(&seg->hdr.slots_used, &used, i + 1,
				memory_order_seq_cst, memory_order_relaxed))
			;
		*index = i;
		return &seg->slots[i];
	}
	return NULL;
}

static struct exec *exec_init(void)
{
	struct exec *x = &self.x;

	if (!proc_epoch())
		return NULL;
	x->slot = take_slot(&x->slot_index);
	if (!x->slot)
		return NULL;
	x->attach = proc.at->attach_id;
	x->owner = token_owner(x->attach, x->slot_index);
	x->counters = proc_seg()->counters[x->slot_index];
	x->fire = wake_fire;
	x->timer = wake_timer;
	x->datagram = proc_calls.datagram;
	x->find_srq = proc_calls.find_srq;
	x->arg = NULL;
	x->restarted_ns = &proc.at->fabric->restarted_ns;
	self.epoch = proc_epoch();
	pthread_setspecific(proc.key, &self);
	return x;
}

struct exec *exec_self(void)
{
	if (__builtin_expect(self.epoch == proc_epoch() && self.epoch, 1))
		return &self.x;
	return exec_init();
}
