// SPDX-License-Identifier: BSD-3-Clause
#include "storm_run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent_side.h"
#include "world.h"

enum {
	BOUND_MS = 10000, /* what hangs does so for ever; a busy machine takes a second or two */
	NOTICE_MS = 5000,
	WINDOW = 16,
	RECVS = AGENT_DEPTH / 2,
	NAP_US = 100,
	Q_NEXT = STORM_MAX, /* to the next survivor, in a second world of QPs */
	Q_BEFORE,
	PAIR_SENDS = 3,
};

struct life {
	struct storm_run *r;
	struct storm_slot *self;
	unsigned me;
	uint64_t rnd;
	struct side side;
};

static uint64_t next_random(struct life *l)
{
	l->rnd ^= l->rnd << 13;
	l->rnd ^= l->rnd >> 7;
	l->rnd ^= l->rnd << 17;
	return l->rnd;
}

static int bad(struct life *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int bad(struct life *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->self->text, STORM_TEXT, fmt, ap);
	va_end(ap);
	return -1;
}

static bool is_dead(const struct life *l, unsigned j)
{
	return atomic_load(&l->r->dead) == (int)j;
}

static bool is_connected(const struct life *l, unsigned j)
{
	return j != l->me && l->side.qp[j].peer.qpn;
}

static int refill(struct life *l, unsigned j, uint32_t want)
{
	const struct agent_counts *n = &l->side.qp[j].n;
	uint32_t left = n->recv_posted - n->recv_ok - n->recv_bad;

	return left < want ? side_post_recv(&l->side, j, want - left) : 0;
}

static int refill_all(struct life *l, uint32_t want)
{
	for (unsigned j = 0; j < l->r->n; j++) {
		int rc = is_connected(l, j) ? refill(l, j, want) : 0;

		if (rc)
			return bad(l, "post_recv: %s", strerror(-rc));
	}
	return 0;
}

/* Waits until all others are that far or dead. */
static int wait_others(struct life *l, enum storm_state state)
{
	uint64_t end = now_ns() + BOUND_MS * 1000000ull;

	for (unsigned j = 0; j < l->r->n; j++)
		while (atomic_load(&l->r->slot[j].state) < (int)state && !is_dead(l, j)) {
			if (now_ns() > end)
				return bad(l, "%u never came to state %d", j, state);
			side_poll(&l->side);
			/* Others may still send: they are not to wait for us. */
			if (state == STORM_STOPPED && refill_all(l, RECVS))
				return -1;
			nap_us(NAP_US);
		}
	return 0;
}

static int reach(struct life *l, enum storm_state state)
{
	atomic_store(&l->self->state, state);
	return wait_others(l, state);
}

/* ---- the first connections ---- */

static int publish(struct life *l)
{
	for (unsigned j = 0; j < l->r->n; j++) {
		int rc = j == l->me ? 0 : side_new_qp(&l->side, j, &l->self->addr[j]);

		if (rc)
			return bad(l, "create QP: %s", strerror(-rc));
	}
	return reach(l, STORM_PUBLISHED);
}

static int connect_all(struct life *l)
{
	for (unsigned j = 0; j < l->r->n; j++) {
		struct storm_slot *other = &l->r->slot[j];
		int rc;

		/* One that died early has no address: nothing to connect to. */
		if (j == l->me || atomic_load(&other->state) < STORM_PUBLISHED)
			continue;
		rc = side_post_recv(&l->side, j, RECVS);
		if (!rc)
			rc = side_connect(&l->side, j, &other->addr[l->me], agent_usual());
		if (rc)
			return bad(l, "connect to %u: %s", j, strerror(-rc));
	}
	return reach(l, STORM_CONNECTED);
}

/* ---- traffic ---- */

static uint32_t outstanding(const struct side_qp *q)
{
	return q->n.posted - q->n.send_ok - q->n.send_bad;
}

static int post_something(struct life *l, unsigned j)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	static const uint32_t lengths[] = {20, 300, 900, 1024};
	uint64_t x = next_random(l);
	enum ibv_wr_opcode op = ops[x % 5];
	uint32_t len = lengths[x / 8 % 4];

	if (op == IBV_WR_SEND)
		l->self->sent[j]++;
	else if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		l->self->added[j]++;
	else if (x & 0x100000)
		len = AGENT_MSG;
	return side_post(&l->side, j, op, len, 1);
}

static bool never(const struct side_qp *q, uint64_t arg)
{
	(void)q;
	(void)arg;
	return false;
}

static int traffic(struct life *l)
{
	while (!atomic_load(&l->r->stop)) {
		bool posted = false;

		if (refill_all(l, RECVS))
			return -1;
		for (unsigned j = 0; j < l->r->n; j++) {
			struct side_qp *q = &l->side.qp[j];
			int rc;

			if (!is_connected(l, j) || q->n.send_bad || outstanding(q) >= WINDOW)
				continue;
			rc = post_something(l, j);
			if (rc)
				return bad(l, "post_send: %s", strerror(-rc));
			posted = true;
		}
		if (side_poll(&l->side) < 0)
			return bad(l, "the CQ was overrun");
		if (!posted)
			side_take(&l->side, never, NULL, 0, 1);
	}
	/* From here on all that is still under way finds a receive. */
	return reach(l, STORM_STOPPED) ? -1 : refill_all(l, AGENT_DEPTH);
}

/* ---- the end of the first connections ---- */

static bool sends_ended(const struct side_qp *q, uint64_t none)
{
	return outstanding(q) == none;
}

static bool recvs_came(const struct side_qp *q, uint64_t count)
{
	return q->n.recv_ok + q->n.recv_bad >= count;
}

static bool all_flushed(const struct side_qp *q, uint64_t none)
{
	return outstanding(q) == none && q->n.recv_posted == q->n.recv_ok + q->n.recv_bad;
}

/* Memory that is mapped takes the bytes of a request until the death is noticed, soon after. */
static int last_request(struct life *l, unsigned j)
{
	const struct side_qp *q = &l->side.qp[j];
	uint64_t end = now_ns() + NOTICE_MS * 1000000ull;
	int rc;

	do {
		rc = side_post(&l->side, j, IBV_WR_RDMA_WRITE, 8, 1);
		if (!rc)
			rc = side_take(&l->side, sends_ended, q, 0, BOUND_MS);
	} while (!rc && is_dead(l, j) && !q->n.send_bad && now_ns() < end);
	return rc;
}

/* A last request to each, which a dead one does not answer; then nothing may be left over. */
static int last_requests(struct life *l)
{
	for (unsigned j = 0; j < l->r->n; j++) {
		struct side_qp *q = &l->side.qp[j];
		int rc;

		if (!is_connected(l, j))
			continue;
		if (side_take(&l->side, sends_ended, q, 0, BOUND_MS))
			return bad(l, "requests to %u hang", j);
		rc = last_request(l, j);
		if (rc)
			return bad(l, "requests to %u do not end: %u of %u ended, %s%s", j,
				q->n.send_ok + q->n.send_bad, q->n.posted, strerror(-rc),
				is_dead(l, j) ? " (it was killed)" : "");
		if (is_dead(l, j) ? q->n.first_bad != IBV_WC_RETRY_EXC_ERR : q->n.send_bad)
			return bad(l,
				"requests to %u ended with status %u after %u of %u, %u received%s",
				j, q->n.first_bad, q->n.send_ok, q->n.posted, q->n.recv_ok,
				is_dead(l, j) ? " (it was killed)" : "");
	}
	return reach(l, STORM_QUIET);
}

/* What survivors sent has arrived, once and in order. */
static int check_received(struct life *l)
{
	for (unsigned j = 0; j < l->r->n; j++) {
		const struct storm_slot *other = &l->r->slot[j];
		struct side_qp *q = &l->side.qp[j];
		uint64_t word;

		if (!is_connected(l, j))
			continue;
		if (q->n.wrong)
			return bad(l, "%u messages of %u were wrong", q->n.wrong, j);
		if (is_dead(l, j))
			continue;
		if (side_take(&l->side, recvs_came, q, other->sent[l->me], BOUND_MS) ||
			q->n.recv_ok != other->sent[l->me])
			return bad(l, "got %u of %u messages of %u", q->n.recv_ok,
				other->sent[l->me], j);
		memcpy(&word, q->area + AREA_ATOMIC, sizeof word);
		if (word != other->added[l->me])
			return bad(l, "%u added %u times, it counts %u", j,
				(unsigned)other->added[l->me], (unsigned)word);
	}
	return 0;
}

static int flush_all(struct life *l)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	for (unsigned j = 0; j < l->r->n; j++) {
		struct side_qp *q = &l->side.qp[j];

		if (!is_connected(l, j))
			continue;
		if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE))
			return bad(l, "cannot move the QP to %u to ERR", j);
		if (side_take(&l->side, all_flushed, q, 0, BOUND_MS))
			return bad(l, "receives from %u are not flushed: %u of %u", j,
				q->n.recv_ok + q->n.recv_bad, q->n.recv_posted);
	}
	return 0;
}

/* ---- new connections among those that are left ---- */

static unsigned neighbour(const struct life *l, unsigned step)
{
	unsigned j = l->me;

	do
		j = (j + step) % l->r->n;
	while (is_dead(l, j));
	return j;
}

static int exchange(struct life *l)
{
	struct side_qp *from = &l->side.qp[Q_BEFORE], *to = &l->side.qp[Q_NEXT];
	int rc = side_post(&l->side, Q_NEXT, IBV_WR_SEND, 500, PAIR_SENDS);

	if (!rc)
		rc = side_take(&l->side, sends_ended, to, 0, BOUND_MS);
	if (!rc)
		rc = side_take(&l->side, recvs_came, from, PAIR_SENDS, BOUND_MS);
	if (rc || to->n.send_bad || from->n.recv_bad || from->n.wrong)
		return bad(l, "a new pair does not work: %s, status %u, %u wrong", strerror(-rc),
			to->n.first_bad, from->n.wrong);
	return reach(l, STORM_DONE);
}

static int new_pairs(struct life *l)
{
	unsigned next = neighbour(l, 1), before = neighbour(l, l->r->n - 1);
	struct storm_slot *slots = l->r->slot;
	int rc;

	if (next == l->me)
		return reach(l, STORM_DONE);
	rc = side_new_qp(&l->side, Q_NEXT, &l->self->pair[0]);
	if (!rc)
		rc = side_new_qp(&l->side, Q_BEFORE, &l->self->pair[1]);
	if (rc)
		return bad(l, "create a new QP: %s", strerror(-rc));
	if (reach(l, STORM_PAIR))
		return -1;
	rc = side_post_recv(&l->side, Q_BEFORE, PAIR_SENDS);
	if (!rc)
		rc = side_connect(&l->side, Q_NEXT, &slots[next].pair[1], agent_usual());
	if (!rc)
		rc = side_connect(&l->side, Q_BEFORE, &slots[before].pair[0], agent_usual());
	if (rc)
		return bad(l, "connect a new pair: %s", strerror(-rc));
	return reach(l, STORM_PAIRED) ? -1 : exchange(l);
}

int storm_live(struct storm_run *r, unsigned me, bool polls)
{
	struct life l = {.r = r,
		.self = &r->slot[me],
		.me = me,
		.rnd = r->seed * 77 + me + 1,
		.side = {.polls = polls, .sleeps_inside = r->kills_weftd}};
	int rc = side_open(&l.side);

	if (rc) {
		bad(&l, "open: %s", strerror(-rc));
		return 1;
	}
	if (publish(&l) || connect_all(&l) || traffic(&l) || last_requests(&l) ||
		check_received(&l) || flush_all(&l) || new_pairs(&l))
		return 1;
	if (side_close(&l.side)) {
		bad(&l, "cannot close everything");
		return 1;
	}
	return 0;
}
