// SPDX-License-Identifier: BSD-3-Clause
#include "pages/agent.h"

#include "base/futex.h"
#include "base/spin.h"
#include "pages/copy.h"

enum {
	SPIN_NS = 10 * NSEC_PER_USEC,
	NAP_MIN_NS = NSEC_PER_MSEC,
	NAP_MAX_NS = 8 * NSEC_PER_MSEC,
};
#define SLOW_NS (5 * (uint64_t)NSEC_PER_SEC)
/* The same for a disk, with a step of a flush. */
#define DISK_NS (10 * (uint64_t)NSEC_PER_SEC)

uint64_t agent_spin_ns(void)
{
	return spin_limit_ns(SPIN_NS);
}

/* A transfer under way. */
struct run {
	struct move *m;
	struct agent_call *c;
	struct agent_area *area;
	struct agent_slot *slot;
	unsigned index;
	unsigned posted; /* halves, of a flush */
	uint64_t since;  /* when the agent was last seen to do something */
	uint64_t nap_ns; /* grows while nothing happens */
};

static void made_progress(struct run *r)
{
	r->since = clock_ns();
	r->nap_ns = NAP_MIN_NS;
}

static void ring(struct run *r)
{
	if (agent_ring(r->c->bell))
		futex_wake_shared(&r->c->bell->rings);
}

/*
 * May the request, of which h (not NULL) is posted, end so?  One that begins anew is not served
 * later.
 */
static bool may_end(enum move_result rc, struct agent_half *h)
{
	return rc != MOVE_OK && (!h || rc != MOVE_ANEW || agent_cancel(h));
}

/* Sleeps a little while h is seen in that phase, or without one; MOVE_OK: look again. */
static enum move_result nap(struct run *r, struct agent_half *h, uint32_t seen)
{
	_Atomic uint32_t never = seen;
	bool disk = r->c->op == AGENT_PERSIST && seen == AGENT_SERVING;
	enum move_result rc;
	uint64_t waited;

	r->c->rest(r->c->arg);
	futex_wait_shared(h ? &h->phase : &never, seen, r->nap_ns);
	if (r->nap_ns < NAP_MAX_NS)
		r->nap_ns *= 2;
	rc = r->m->may_go_on(r->m->arg);
	if (may_end(rc, h))
		return rc;
	if (r->c->gone(r->c->arg))
		return MOVE_GONE;
	waited = clock_ns() - r->since;
	if (waited < r->c->patience_ns)
		return MOVE_OK;
	/* On a machine with more work than CPUs an agent may have to wait for its turn. */
	return r->area && waited < (disk ? DISK_NS : SLOW_NS) && r->c->slow(r->c->arg) ? MOVE_OK
										       : MOVE_LATE;
}

static bool take_slot(struct run *r)
{
	for (unsigned i = 0; i < AGENT_SLOTS; i++) {
		uint32_t used;

		if (!agent_take(&r->area->slot[i], r->c->owner))
			continue;
		used = atomic_load_explicit(&r->area->used, memory_order_relaxed);
		while (used < i + 1 && !atomic_compare_exchange_weak_explicit(&r->area->used, &used,
					       i + 1, memory_order_seq_cst, memory_order_relaxed))
			;
		r->index = i;
		r->slot = &r->area->slot[i];
		return true;
	}
	ring(r); /* it looks whether some belong to the dead */
	return false;
}

/* Waits for the agent to start, and for a slot. */
static enum move_result begin(struct run *r)
{
	enum move_result rc = MOVE_OK;

	made_progress(r);
	while (rc == MOVE_OK) {
		r->area = r->c->area(r->c->arg);
		if (r->area && take_slot(r))
			return MOVE_OK;
		rc = nap(r, NULL, 0);
	}
	return rc;
}

static void end(struct run *r)
{
	if (agent_leave(r->slot))
		ring(r);
}

static bool spin(struct agent_half *h)
{
	uint64_t patience = agent_spin_ns(), start = patience ? clock_ns() : 0;

	do {
		if (agent_collect(h))
			return true;
		cpu_relax();
	} while (patience && clock_ns() - start < patience);
	return false;
}

static enum move_result doze(struct run *r, struct agent_half *h, uint32_t seen)
{
	enum move_result rc = MOVE_OK;

	if (agent_sleeps(h, seen))
		rc = nap(r, h, seen);
	agent_woke(h);
	return rc;
}

/* Waits until half h was served; its result. */
static enum move_result await(struct run *r, struct agent_half *h)
{
	enum move_result rc = MOVE_OK;

	if (spin(h))
		goto served;
	while (!agent_collect(h)) {
		uint32_t seen = atomic_load_explicit(&h->phase, memory_order_relaxed);

		if (seen != AGENT_DONE)
			rc = doze(r, h, seen);
		if (rc != MOVE_OK)
			return rc;
	}
served:
	made_progress(r);
	/* What is not a result was never written by our agent. */
	return h->result <= MOVE_LATE ? (enum move_result)h->result : MOVE_REFUSED;
}

/* Describes the next want bytes of the peer's list as pieces of h; consumes them. */
static void describe(struct run *r, struct agent_half *h, uint64_t want)
{
	struct sgl *l = r->m->remote;

	h->op = r->c->op;
	h->qp = r->c->qp;
	h->operand[0] = r->c->operand[0];
	h->operand[1] = r->c->operand[1];
	h->len = want;
	h->n = 0;
	while (want) {
		const struct iovec *v = &l->v[l->at];
		uint64_t step = v->iov_len < want ? v->iov_len : want;
		struct agent_piece *p = &h->piece[h->n++];

		p->addr = (uintptr_t)v->iov_base;
		p->len = step;
		p->key = r->c->key[l->at];
		sgl_consume(l, step);
		want -= step;
	}
}

/* Copies between the bounce buffer and our list or functions; consumes it. */
static enum move_result copy_bounce(struct move *m, uint8_t *bounce, uint64_t len, bool out)
{
	struct sgl *l = m->local;

	if (m->io)
		return m->io->copy(m->io->arg, bounce, len, !out);
	while (len) {
		struct iovec *v = &l->v[l->at];
		uint64_t step = v->iov_len < len ? v->iov_len : len;

		copy_ordered(out ? v->iov_base : bounce, out ? bounce : v->iov_base, step);
		bounce += step;
		len -= step;
		sgl_consume(l, step);
	}
	return MOVE_OK;
}

static void post(struct run *r, struct agent_half *h, uint64_t len)
{
	describe(r, h, len);
	agent_post(h);
	ring(r);
	r->m->calls++;
}

/* Halves in turn, of which one is filled or emptied while the other is served. */
struct turns {
	unsigned posted, finished;
	uint64_t len[2];
};

static enum move_result post_next(struct run *r, struct turns *t)
{
	struct move *m = r->m;
	const uint64_t left = m->remote->left;
	const unsigned i = t->posted & 1;
	enum move_result rc = MOVE_OK;

	t->len[i] = left < AGENT_HALF_BYTES ? left : AGENT_HALF_BYTES;
	if (m->push)
		rc = copy_bounce(m, r->area->bounce[r->index][i], t->len[i], false);
	if (rc != MOVE_OK)
		return rc;
	post(r, &r->slot->half[i], t->len[i]);
	t->posted++;
	return MOVE_OK;
}

static enum move_result finish_next(struct run *r, struct turns *t)
{
	struct move *m = r->m;
	const unsigned i = t->finished & 1;
	enum move_result rc = await(r, &r->slot->half[i]);

	if (rc == MOVE_OK && !m->push)
		rc = copy_bounce(m, r->area->bounce[r->index][i], t->len[i], true);
	if (rc != MOVE_OK)
		return rc;
	m->moved += t->len[i];
	t->finished++;
	return m->remote->left ? m->may_go_on(m->arg) : MOVE_OK;
}

static enum move_result carry(struct run *r)
{
	struct turns t = {0};
	enum move_result rc = MOVE_OK;

	while (rc == MOVE_OK && (r->m->remote->left || t.finished != t.posted))
		rc = r->m->remote->left && t.posted - t.finished < 2 ? post_next(r, &t)
								     : finish_next(r, &t);
	return rc;
}

static enum move_result update(struct run *r)
{
	struct agent_half *h = &r->slot->half[0];
	enum move_result rc;

	post(r, h, r->m->remote->left);
	rc = await(r, h);
	r->c->before = h->before;
	return rc;
}

/* In steps that the disk is through with soon; nothing is copied. */
static enum move_result persist(struct run *r)
{
	struct move *m = r->m;

	while (m->remote->left) {
		uint64_t piece = m->remote->v[m->remote->at].iov_len;
		enum move_result rc;

		post(r, &r->slot->half[r->posted & 1],
			piece < AGENT_PERSIST_BYTES ? piece : AGENT_PERSIST_BYTES);
		rc = await(r, &r->slot->half[r->posted & 1]);
		if (rc != MOVE_OK)
			return rc;
		r->posted++;
		rc = m->remote->left ? m->may_go_on(m->arg) : MOVE_OK;
		if (rc != MOVE_OK)
			return rc;
	}
	return MOVE_OK;
}

static enum move_result perform(struct run *r)
{
	switch (r->c->op) {
	case AGENT_ADD:
	case AGENT_SWAP:
		return update(r);
	case AGENT_PERSIST:
		return persist(r);
	default:
		return carry(r);
	}
}

/* The request begins anew: nothing of it may arrive behind that. */
static enum move_result settle(struct run *r)
{
	for (unsigned i = 0; i < 2; i++) {
		struct agent_half *h = &r->slot->half[i];
		enum move_result rc = MOVE_OK;

		while (rc == MOVE_OK && agent_take_back(h) == AGENT_SERVING)
			rc = doze(r, h, AGENT_SERVING);
		if (rc != MOVE_OK && rc != MOVE_ANEW)
			return rc;
	}
	return MOVE_ANEW;
}

enum move_result agent_run(struct move *m)
{
	struct run r = {.m = m, .c = m->agent};
	enum move_result rc = begin(&r);

	if (rc != MOVE_OK)
		return rc;
	rc = perform(&r);
	if (rc == MOVE_ANEW)
		rc = settle(&r);
	end(&r);
	return rc;
}
