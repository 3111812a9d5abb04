// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/proc.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/at_open.h"
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

enum { RESERVED_SLOT = SEG_SLOTS - 1 };

static struct {
	struct lock lock;
	const struct rdv_attach *at;
	_Atomic uint32_t epoch;
	pthread_key_t key; /* gives a thread's exec slot back at its end */
	pthread_once_t once;
} proc AT_OPEN_DATA = {.once = PTHREAD_ONCE_INIT};

struct thread_exec {
	struct exec x;
	uint32_t epoch;
};

static __thread struct thread_exec self __attribute__((tls_model("initial-exec")));

/* The last slot, for threads that got none. */
static struct {
	struct lock lock;
	struct exec x;
} reserve;

static __thread unsigned has_reserve __attribute__((tls_model("initial-exec")));

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
	spin_check();
}

static void forked_child(void)
{
	/* Other threads of the parent, and what they held, do not exist here. */
	atomic_store_explicit(&proc.lock.word, 0, memory_order_relaxed);
	atomic_store_explicit(&reserve.lock.word, 0, memory_order_relaxed);
	has_reserve = 0;
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

/* From now on all look at that slot. */
static void show_slot(uint32_t index)
{
	struct seg_header *h = &proc_seg()->hdr;
	uint32_t used = atomic_load_explicit(&h->slots_used, memory_order_relaxed);

	while (used < index + 1 && !atomic_compare_exchange_weak_explicit(&h->slots_used, &used,
					   index + 1, memory_order_seq_cst, memory_order_relaxed))
		;
}

static struct exec_slot *take_slot(uint32_t *index)
{
	struct seg *seg = proc_seg();

	for (uint32_t i = 0; i < RESERVED_SLOT; i++) {
		uint32_t is_free = 0;

		if (!atomic_compare_exchange_strong_explicit(&seg->slots[i].taken, &is_free, 1,
			    memory_order_acq_rel, memory_order_relaxed))
			continue;
		show_slot(i);
		*index = i;
		return &seg->slots[i];
	}
	return NULL;
}

static void fill_exec(struct exec *x, struct exec_slot *slot, uint32_t index)
{
	x->slot = slot;
	x->slot_index = index;
	x->attach = proc.at->attach_id;
	x->owner = token_owner(x->attach, x->slot_index);
	x->counters = proc_seg()->counters[x->slot_index];
	x->fire = wake_fire;
	x->timer = wake_timer;
	x->datagram = proc_calls.datagram;
	x->owned = proc_calls.owned;
	x->find_srq = proc_calls.find_srq;
	x->arg = NULL;
	x->restarted_ns = &proc.at->fabric->restarted_ns;
}

static struct exec *exec_init(void)
{
	struct exec_slot *slot;
	uint32_t index = 0;

	slot = proc_epoch() ? take_slot(&index) : NULL;
	if (!slot)
		return NULL;
	fill_exec(&self.x, slot, index);
	self.epoch = proc_epoch();
	pthread_setspecific(proc.key, &self);
	return &self.x;
}

struct exec *exec_self(void)
{
	if (__builtin_expect(self.epoch == proc_epoch() && self.epoch, 1))
		return &self.x;
	return exec_init();
}

struct exec *exec_get(void)
{
	struct exec *x = exec_self();

	if (x || !proc_epoch())
		return x;
	if (!has_reserve++) {
		lock_take(&reserve.lock);
		reserve.x = (struct exec){0};
		show_slot(RESERVED_SLOT);
		fill_exec(&reserve.x, &proc_seg()->slots[RESERVED_SLOT], RESERVED_SLOT);
	}
	return &reserve.x;
}

void exec_put(struct exec *x)
{
	if (x == &reserve.x && !--has_reserve)
		lock_drop(&reserve.lock);
}
