// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/quiesce.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"

enum { SPINS = 2000, NAP_NS = 50 * 1000, GRACE_NS = 100 * NSEC_PER_MSEC };

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = NAP_NS};
	int saved = errno;

	nanosleep(&ts, NULL);
	errno = saved;
}

static void count_one(enum seg_counter which)
{
	struct exec *x = exec_self();

	if (x)
		count_add(x, which, 1);
}

/* What is waited for, and how long. */
struct wait {
	bool runs;
	bool copies;       /* not for peers that use mapped memory alone */
	uint64_t until;    /* clock_ns(), 0: for ever */
	struct late *late; /* not NULL: who of those has not moved by grace */
	uint64_t grace;
};

static void tell(const struct view *v)
{
	if (v->pid == getpid())
		log_line(LOG_LVL_WARN, "waits for a thread of this process, which is carrying out "
				       "a request: perhaps in a function of a peer client");
	else
		log_line(LOG_LVL_WARN,
			"waits for process %d, which uses our memory and does not go on: stopped, "
			"or in a function of a peer client",
			v->pid);
	count_one(CTR_WAIT_STOPPED);
}

/* False: it did not move in time. */
static bool wait_moved(
	const struct view *v, _Atomic uint64_t *at, uint64_t word, const struct wait *wait)
{
	uint64_t start = 0;
	bool told = false;

	for (unsigned n = 0; atomic_load_explicit(at, memory_order_acquire) == word; n++) {
		if (n < SPINS) {
			cpu_relax();
			continue;
		}
		if (!start)
			start = clock_ns();
		if (v->pid && view_died(v))
			return true;
		if (wait->until && clock_ns() > wait->until)
			return false;
		if (!told && clock_ns() - start > NSEC_PER_SEC) {
			tell(v);
			told = true;
		}
		nap();
	}
	return true;
}

/* Slots found busy in one pass over the peers; the wait itself holds no lock. */
enum { PASS_MAX = 64 };

struct pass {
	const struct wait *wait;
	unsigned n;
	bool more;
	struct late_slot busy[PASS_MAX];
};

static uint32_t slots_of(const struct seg *seg)
{
	uint32_t n = atomic_load_explicit(&seg->hdr.slots_used, memory_order_acquire);

	return n < SEG_SLOTS ? n : SEG_SLOTS;
}

static bool wait_for(const struct view *v, const struct wait *wait)
{
	for (uint32_t i = 0; i < slots_of(v->seg); i++) {
		struct exec_slot *s = &v->seg->slots[i];
		_Atomic uint64_t *at = wait->runs ? &s->run : &s->word;
		uint64_t word = slot_busy(at, proc_at()->attach_id);

		if (word && !wait_moved(v, at, word, wait))
			return false;
	}
	return true;
}

static bool is_late(const struct late *late, const struct exec_slot *slot, uint64_t word)
{
	for (unsigned i = 0; late && i < late->n; i++)
		if (late->at[i].slot == slot && late->at[i].word == word)
			return true;
	return false;
}

static void collect(struct peer *p, void *arg)
{
	struct pass *pass = arg;

	for (uint32_t i = 0; !view_dead(&p->view) && i < slots_of(p->view.seg); i++) {
		struct exec_slot *s = &p->view.seg->slots[i];
		uint64_t word = slot_busy(&s->word, proc_at()->attach_id);

		if (!word || (pass->wait->copies && word & SLOT_MAPPED) ||
			is_late(pass->wait->late, s, word))
			continue;
		if (pass->n == PASS_MAX) {
			pass->more = true;
			return;
		}
		p->refs++;
		pass->busy[pass->n++] = (struct late_slot){p, s, word};
	}
}

/* True if the slot need not be waited for any more; if it is late, *wait->late takes it over. */
static bool wait_or_pass(struct late_slot *b, const struct wait *wait)
{
	struct wait brief = *wait;

	if (!wait->late || !(b->word & SLOT_MAPPED) || wait->late->n == LATE_MAX)
		return wait_moved(&b->peer->view, &b->slot->word, b->word, wait);
	/* Who was passed before is not waited for again. */
	brief.until = atomic_load_explicit(&b->slot->passed, memory_order_relaxed) == b->word
			      ? 1
			      : wait->grace;
	if (!wait_moved(&b->peer->view, &b->slot->word, b->word, &brief)) {
		wait->late->at[wait->late->n++] = *b;
		b->peer = NULL;
	}
	return true;
}

/* *more: there were too many for one pass. */
static bool wait_for_peers(const struct wait *wait, bool *more)
{
	struct pass pass = {.wait = wait};
	bool moved = true;

	peers_each(collect, &pass);
	for (unsigned i = 0; i < pass.n; i++) {
		moved = moved && wait_or_pass(&pass.busy[i], wait);
		if (pass.busy[i].peer)
			peer_put(pass.busy[i].peer);
	}
	*more = pass.more;
	return moved;
}

static bool wait_for_all(const struct wait *wait)
{
	const struct rdv_attach *at = proc_at();
	const struct view own = proc_view();
	const struct view hub = {.seg = at->hub,
		.attach = atomic_load_explicit(&at->hub_id, memory_order_relaxed),
		.pid = at->hub->hdr.pid,
		.pidfd = OWN_FD_NONE};
	const struct wait step = {.copies = wait->copies,
		.until = wait->until,
		.late = wait->late,
		.grace = wait->grace};
	bool more = true;

	atomic_thread_fence(memory_order_seq_cst);
	peers_meet_guests();
	if (!wait_for(&own, wait) || !wait_for(&hub, &step))
		return false;
	while (more)
		if (!wait_for_peers(&step, &more))
			return false;
	return true;
}

void quiesce(void)
{
	wait_for_all(&(struct wait){.runs = false});
}

bool quiesce_within(uint64_t ns, bool copies)
{
	return wait_for_all(&(struct wait){.until = clock_ns() + ns, .copies = copies});
}

bool quiesce_own_within(uint64_t ns)
{
	const struct view own = proc_view();

	atomic_thread_fence(memory_order_seq_cst);
	return wait_for(&own, &(struct wait){.until = clock_ns() + ns});
}

/* ---- not waiting ---- */

static bool is_over(const struct late_slot *s)
{
	return atomic_load_explicit(&s->slot->word, memory_order_acquire) != s->word ||
	       view_died(&s->peer->view);
}

bool late_over(const struct late *late)
{
	for (unsigned i = 0; i < late->n; i++)
		if (!is_over(&late->at[i]))
			return false;
	return true;
}

void late_put(struct late *late)
{
	for (unsigned i = 0; i < late->n; i++)
		peer_put(late->at[i].peer);
	late->n = 0;
}

void quiesce_but_late(struct late *late)
{
	late->n = 0;
	wait_for_all(&(struct wait){.late = late, .grace = clock_ns() + GRACE_NS});
	if (!late->n)
		return;
	for (unsigned i = 0; i < late->n; i++)
		atomic_store_explicit(
			&late->at[i].slot->passed, late->at[i].word, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	/* Who looked just before has finished: let its last stores arrive. */
	nap();
	if (late_over(late))
		late_put(late);
	else
		count_one(CTR_PASS_STOPPED);
}

void quiesce_runs(void)
{
	wait_for_all(&(struct wait){.runs = true});
}
