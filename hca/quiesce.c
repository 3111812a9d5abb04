// SPDX-License-Identifier: BSD-3-Clause
#include "hca/quiesce.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "hca/peer.h"
#include "hca/proc.h"

enum { SPINS = 2000, NAP_NS = 50 * 1000 };

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = NAP_NS};
	int saved = errno;

	nanosleep(&ts, NULL);
	errno = saved;
}

static void count_wait(void)
{
	struct exec *x = exec_self();

	if (x)
		count_add(x, CTR_WAIT_STOPPED, 1);
}

/* What is waited for, and how long. */
struct wait {
	bool runs;
	uint64_t until; /* clock_ns(), 0: for ever */
};

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
			log_line(LOG_LVL_WARN,
				"waits for process %d, which was stopped while it used our memory",
				v->pid);
			count_wait();
			told = true;
		}
		nap();
	}
	return true;
}

/* Slots found busy in one pass over the peers; the wait itself holds no lock. */
enum { PASS_MAX = 64 };

struct pass {
	unsigned n;
	bool more;
	struct {
		struct peer *peer;
		_Atomic uint64_t *at;
		uint64_t word;
	} busy[PASS_MAX];
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

static void collect(struct peer *p, void *arg)
{
	struct pass *pass = arg;

	for (uint32_t i = 0; !view_dead(&p->view) && i < slots_of(p->view.seg); i++) {
		_Atomic uint64_t *at = &p->view.seg->slots[i].word;
		uint64_t word = slot_busy(at, proc_at()->attach_id);

		if (!word)
			continue;
		if (pass->n == PASS_MAX) {
			pass->more = true;
			return;
		}
		p->refs++;
		pass->busy[pass->n].peer = p;
		pass->busy[pass->n].at = at;
		pass->busy[pass->n++].word = word;
	}
}

/* *more: there were too many for one pass. */
static bool wait_for_peers(const struct wait *wait, bool *more)
{
	struct pass pass = {.n = 0};
	bool moved = true;

	peers_each(collect, &pass);
	for (unsigned i = 0; i < pass.n; i++) {
		struct peer *p = pass.busy[i].peer;

		moved = moved && wait_moved(&p->view, pass.busy[i].at, pass.busy[i].word, wait);
		peer_put(p);
	}
	*more = pass.more;
	return moved;
}

static bool wait_for_all(const struct wait *wait)
{
	const struct rdv_attach *at = proc_at();
	const struct view own = proc_view();
	const struct view hub = {.seg = at->hub,
		.attach = at->hub_id,
		.pid = at->hub->hdr.pid,
		.pidfd = OWN_FD_NONE};
	const struct wait step = {.until = wait->until};
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

bool quiesce_within(uint64_t ns)
{
	return wait_for_all(&(struct wait){.until = clock_ns() + ns});
}

void quiesce_runs(void)
{
	wait_for_all(&(struct wait){.runs = true});
}
