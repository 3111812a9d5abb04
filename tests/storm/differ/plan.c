// SPDX-License-Identifier: BSD-3-Clause
#include "plan.h"

#include <string.h>

#include "tests/lib/pattern.h"

enum {
	LONG_SIZE = 1536 << 10,
	GAP = 40,
	UD_MAX = 1024, /* what a port carries whose link has an MTU of 1500 */
	DEVICE_MAX = 64 * 1024,
	CROWD_ROUNDS = 6,
	FEW = 60, /* requests of a round where atomics do not crowd */
};

static const char *const ops[] = {"SEND", "SEND_WITH_IMM", "SEND_WITH_INV", "RDMA_WRITE",
	"RDMA_WRITE_WITH_IMM", "RDMA_READ", "FETCH_AND_ADD", "CMP_AND_SWP", "ATOMIC_WRITE",
	"FLUSH"};
static const char *const faults[] = {"no fault", "bad rkey", "beyond the region",
	"without the right", "bad lkey", "receive too small", "receive with a bad lkey",
	"no receive"};
static const char *const regions[] = {
	"plain", "iova", "zero-based", "on-demand", "implicit", "window 1", "window 2"};

const char *op_name(enum op op)
{
	return ops[op];
}

const char *fault_name(enum fault fault)
{
	return faults[fault];
}

const char *region_name(enum region_kind kind)
{
	return regions[kind];
}

bool op_is_message(enum op op)
{
	return op <= DO_SEND_INV || op == DO_WRITE_IMM;
}

bool op_is_atomic(enum op op)
{
	return op == DO_ADD || op == DO_SWAP;
}

bool op_is_remote(enum op op)
{
	return op >= DO_WRITE;
}

bool is_reliable(const struct epoch *e)
{
	return e->type == IBV_QPT_RC || e->type == IBV_QPT_XRC_SEND;
}

static bool is_on_demand(enum region_kind kind)
{
	return kind == REGION_ON_DEMAND || kind == REGION_IMPLICIT;
}

static bool is_window(enum region_kind kind)
{
	return kind == REGION_WINDOW_1 || kind == REGION_WINDOW_2;
}

/* ---- epochs ---- */

/*
 * What a region on demand lets atomics at is not mapped for others, or they would be served in two
 * ways; so that pages do move beneath such regions, most are without that right.
 */
static void plan_rights(struct epoch *e, unsigned end, struct rnd *r)
{
	enum region_kind kind = e->end[end].region;

	e->end[end].no_atomics = is_on_demand(kind) && !rnd_once_in(r, 4);
}

static void plan_end(struct epoch *e, unsigned end, struct rnd *r)
{
	enum memory_kind kind = rnd_below(r, MEMORIES);
	bool windows = e->lanes == 1 && e->type == IBV_QPT_RC;

	if (kind == MEMORY_DEVICE && e->size > DEVICE_MAX)
		kind = MEMORY_PRIVATE;
	if (kind == MEMORY_STACK && e->size > 768 * 1024)
		kind = MEMORY_HEAP;
	e->end[end].memory = kind;
	e->end[end].region = rnd_below(r, windows ? REGIONS : REGION_WINDOW_1);
	if (kind == MEMORY_DEVICE)
		e->end[end].region = REGION_ZERO_BASED;
	e->end[end].two_regions =
		kind != MEMORY_DEVICE && !is_on_demand(e->end[end].region) && rnd_once_in(r, 2);
	e->end[end].srq =
		(rnd_once_in(r, 4) && e->type != IBV_QPT_UC) || e->type == IBV_QPT_XRC_SEND;
	e->end[end].one_cq = rnd_once_in(r, 2);
	e->end[end].sleeps = rnd_once_in(r, 3);
	e->end[end].words = rnd_once_in(r, 4)   ? REGION_ON_DEMAND
			    : rnd_once_in(r, 5) ? REGION_IMPLICIT
						: REGION_PLAIN;
	plan_rights(e, end, r);
}

/* Long copies into pages that move meanwhile: private memory, where on-demand regions alone lie. */
static void plan_long_copies(struct epoch *e, struct rnd *r)
{
	if (!is_reliable(e))
		return;
	e->size = LONG_SIZE;
	e->lanes = LANES;
	for (unsigned end = 0; end < 2; end++) {
		e->end[end].srq |= rnd_once_in(r, 2);
		e->end[end].memory = MEMORY_PRIVATE;
		e->end[end].region = rnd_once_in(r, 2) ? REGION_IMPLICIT : REGION_ON_DEMAND;
		e->end[end].two_regions = false;
		plan_rights(e, end, r);
	}
}

/* Atomics on the same words by all who can, by loads and stores and by copies, as each may. */
static void plan_crowd(struct epoch *e, struct rnd *r)
{
	static const enum region_kind kinds[] = {
		REGION_PLAIN, REGION_PLAIN, REGION_ON_DEMAND, REGION_IMPLICIT};

	if (!is_reliable(e))
		return;
	e->common = true;
	e->crowds = true;
	e->rounds = CROWD_ROUNDS;
	for (unsigned end = 0; end < 2; end++)
		e->end[end].words = kinds[rnd_below(r, 4)];
}

/* Can the link connect anew in the middle of an epoch?  Nothing else may be left of a round. */
static bool may_reconnect(const struct epoch *e)
{
	return !e->end[0].srq && !e->end[1].srq && !is_window(e->end[0].region) &&
	       !is_window(e->end[1].region);
}

/* Of requests that are refused. */
static void plan_fault(struct epoch *e, struct rnd *r)
{
	e->rnr_retry = 7;
	/* who fails answers nothing more, so of packets nobody knows what was taken before */
	if (!is_reliable(e) || e->apart || !rnd_once_in(r, 2))
		return;
	/* XRC has no receives of its own to be wrong. */
	e->fault = rnd_range(r, FAULT_RKEY, e->type == IBV_QPT_RC ? FAULTS - 1 : FAULT_SHORT - 1);
	e->fault_from = rnd_below(r, 2);
	if (e->fault == FAULT_NO_RECV)
		e->rnr_retry = 1;
	if (e->fault >= FAULT_SHORT)
		e->end[!e->fault_from].srq = false;
	/* What lies behind the memory is in that region, too. */
	if (e->fault == FAULT_RANGE && e->end[!e->fault_from].region == REGION_IMPLICIT)
		e->end[!e->fault_from].region = REGION_ON_DEMAND;
}

/* What a lost datagram leaves of a round is taken away by connecting anew. */
static void plan_losses(struct epoch *e)
{
	if (e->type != IBV_QPT_UD)
		return;
	e->reconnects = may_reconnect(e);
	if (!e->reconnects)
		e->rounds = 1;
}

void plan_epoch(struct epoch *e, uint64_t seed, unsigned link, unsigned number, bool apart)
{
	static const uint32_t sizes[] = {
		24 << 10, 48 << 10, 96 << 10, 192 << 10, 768 << 10, 3 << 20};
	struct rnd r = rnd_of(seed, link, number, 0x45504f43);
	uint32_t type = rnd_below(&r, 8);

	memset(e, 0, sizeof *e);
	e->type = type == 0   ? IBV_QPT_UD
		  : type == 1 ? IBV_QPT_UC
		  : type == 2 ? IBV_QPT_XRC_SEND
			      : IBV_QPT_RC;
	e->apart = apart;
	if (apart && e->type != IBV_QPT_UD)
		e->type = IBV_QPT_RC;
	e->lanes = rnd_range(&r, 1, LANES);
	e->rounds = rnd_range(&r, 1, 6);
	e->size = sizes[rnd_below(&r, rnd_once_in(&r, 4) ? 6 : 3)];
	e->same_qp = rnd_once_in(&r, 3);
	e->common = is_reliable(e) && rnd_once_in(&r, 2);
	plan_end(e, 0, &r);
	plan_end(e, 1, &r);
	switch (rnd_below(&r, 5)) {
	case 0:
		plan_long_copies(e, &r);
		break;
	case 1:
		plan_crowd(e, &r);
	}
	plan_fault(e, &r);
	e->fault_round = may_reconnect(e) ? rnd_below(&r, e->rounds) : e->rounds - 1;
	e->reconnects = may_reconnect(e) && rnd_once_in(&r, 3);
	plan_losses(e);
}

/* ---- rounds ---- */

/* What has been given away of an end's memory. */
struct zones {
	struct rnd *rnd;
	const struct epoch *e;
	uint32_t third;
	uint32_t local[2], remote[2]; /* next free */
	uint32_t messages[2], longest[2];
};

static bool take(struct zones *z, uint32_t *next, uint32_t limit, uint32_t len, uint32_t align,
	uint32_t *off)
{
	uint32_t at = *next + rnd_below(z->rnd, GAP);

	at = (at + align - 1) / align * align;
	if (at + len > limit)
		return false;
	*off = at;
	*next = at + len;
	return true;
}

static bool take_local(struct zones *z, struct request *q)
{
	unsigned n = !q->len ? 0 : q->len < PIECES ? 1 : rnd_range(z->rnd, 1, PIECES);
	uint32_t left = q->len;

	if (op_is_atomic(q->op) || q->op == DO_ATOMIC_WRITE)
		n = 1;
	q->local.n = n;
	for (unsigned i = 0; i < n; i++) {
		uint32_t len = i + 1 == n ? left : rnd_range(z->rnd, 1, left - (n - 1 - i));

		q->local.len[i] = len;
		left -= len;
		if (!take(z, &z->local[q->from], z->e->size - GUARD, len, 1, &q->local.off[i]))
			return false;
	}
	return true;
}

static bool take_remote(struct zones *z, struct request *q)
{
	bool word = op_is_atomic(q->op) || q->op == DO_ATOMIC_WRITE;

	return !op_is_remote(q->op) || q->common ||
	       take(z, &z->remote[!q->from], 2 * z->third, q->len, word ? 8 : 1, &q->remote);
}

static bool take_receive(struct zones *z, const struct request *q)
{
	unsigned to = !q->from;
	uint32_t longest =
		q->op != DO_WRITE_IMM && q->len > z->longest[to] ? q->len : z->longest[to];

	if (!op_is_message(q->op))
		return true;
	if ((z->messages[to] + 1) * (longest + 2 * GUARD + GRH) > z->third - GUARD)
		return false;
	z->messages[to]++;
	z->longest[to] = longest;
	return true;
}

static uint32_t pick_length(struct rnd *r, const struct epoch *e)
{
	uint32_t most = e->type == IBV_QPT_UD  ? UD_MAX
			: e->size == LONG_SIZE ? e->size / 4
					       : e->size / 6;

	switch (e->size == LONG_SIZE ? rnd_range(r, 5, 12) : rnd_below(r, 8)) {
	case 0:
		return rnd_below(r, 2) * 8;
	case 1:
		return rnd_range(r, 1, 36);
	case 2:
		return rnd_range(r, 1, 192);
	case 3:
	case 4:
		return rnd_range(r, 1, most < 4096 ? most : 4096);
	case 5:
	case 6:
		return rnd_range(r, 1, most < 8192 ? most : 8192);
	default:
		return rnd_range(r, 1, most);
	}
}

static bool may_flush(const struct epoch *e, unsigned end)
{
	return !is_window(e->end[end].region) && e->end[end].memory != MEMORY_DEVICE;
}

static enum op pick_op(struct rnd *r, const struct epoch *e, unsigned to)
{
	static const enum op any[] = {DO_SEND, DO_SEND, DO_SEND_IMM, DO_WRITE, DO_WRITE,
		DO_WRITE_IMM, DO_READ, DO_READ, DO_ADD, DO_ADD, DO_SWAP, DO_ATOMIC_WRITE, DO_FLUSH};
	static const enum op uc[] = {DO_SEND, DO_SEND_IMM, DO_WRITE, DO_WRITE_IMM};
	enum op op;

	if (e->type == IBV_QPT_UD)
		return rnd_below(r, 2) ? DO_SEND : DO_SEND_IMM;
	if (e->type == IBV_QPT_UC)
		return uc[rnd_below(r, 4)];
	/* Windows and device memory have no right to be flushed. */
	op = any[rnd_below(r, may_flush(e, to) ? 13 : 12)];
	return op_is_atomic(op) && e->end[to].no_atomics ? DO_WRITE : op;
}

static bool op_may_be_inline(enum op op)
{
	return op <= DO_WRITE_IMM;
}

static void pick_ways(struct request *q, const struct epoch *e, struct rnd *r)
{
	q->signaled = rnd_below(r, 3);
	q->inlined = op_may_be_inline(q->op) && q->len <= INLINE_MAX && rnd_once_in(r, 2);
	q->fenced = is_reliable(e) && rnd_once_in(r, 8);
	/* of packets a response that was lost is asked for again, when the key is gone */
	q->fenced |= e->apart && q->op == DO_SEND_INV;
	q->solicited = rnd_once_in(r, 4);
	q->by_wr = q->op == DO_FLUSH || rnd_once_in(r, 2);
	q->chained = rnd_below(r, 3);
	q->imm = rnd_next(r);
	q->pattern = rnd_next(r);
	q->before = rnd_next(r);
	q->operand = rnd_next(r);
	q->compare = rnd_once_in(r, 2) ? q->before : rnd_next(r);
}

static bool add_request(struct zones *z, struct round *rd, struct request *q)
{
	struct zones was = *z;

	if (op_is_atomic(q->op) || q->op == DO_ATOMIC_WRITE)
		q->len = 8;
	if (!take_local(z, q) || !take_remote(z, q) || !take_receive(z, q)) {
		*z = was;
		return false;
	}
	pick_ways(q, z->e, z->rnd);
	rd->r[rd->n++] = *q;
	if (op_is_message(q->op))
		rd->recvs[!q->from][q->lane]++;
	return true;
}

/* An atomic on a word of the other process; the first one is the most wanted. */
static void pick_word(struct request *q, struct rnd *r)
{
	q->common = true;
	q->word = rnd_below(r, rnd_below(r, 2) ? WORDS : 1);
	q->op = rnd_once_in(r, 4) ? DO_SWAP : DO_ADD;
}

static void plan_requests(struct zones *z, struct round *rd, bool faulty)
{
	struct rnd *r = z->rnd;
	bool common = z->e->common && !faulty;
	bool alone = common && (z->e->crowds || rnd_once_in(r, 2));
	unsigned most = z->e->crowds && alone ? REQUESTS - 4 : FEW;
	unsigned n = rnd_range(r, 2, alone || rnd_once_in(r, 3) ? most : 16);
	unsigned per[2] = {0, 0};

	for (unsigned i = 0; i < n; i++) {
		struct request q = {.from = rnd_below(r, 2), .lane = rnd_below(r, z->e->lanes)};

		/* Lane 0 has the faulty request, and nothing in the other direction. */
		if (faulty && !q.lane && q.from != z->e->fault_from)
			continue;
		q.op = pick_op(r, z->e, !q.from);
		if (alone || (common && rnd_once_in(r, 4)))
			pick_word(&q, r);
		q.len = pick_length(r, z->e);
		if (per[q.from] < most / 2 && add_request(z, rd, &q))
			per[q.from]++;
	}
}

static enum op op_for(enum fault fault, struct rnd *r)
{
	static const enum op remote[] = {
		DO_WRITE, DO_READ, DO_WRITE_IMM, DO_ADD, DO_SWAP, DO_ATOMIC_WRITE};

	if (fault <= FAULT_RIGHT)
		return remote[rnd_below(r, 6)];
	return fault == FAULT_LKEY && rnd_once_in(r, 2) ? DO_WRITE : DO_SEND;
}

/* Adds the faulty one, in lane 0, at any place among the others. */
static void plan_faulty(struct zones *z, struct round *rd)
{
	const struct epoch *e = z->e;
	struct request q = {.from = e->fault_from, .fault = e->fault}, last;
	unsigned at;

	q.op = op_for(e->fault, z->rnd);
	q.len = rnd_range(z->rnd, 8, 64);
	if (!add_request(z, rd, &q))
		return;
	last = rd->r[rd->n - 1];
	last.inlined = last.inlined && e->fault != FAULT_LKEY;
	at = rnd_below(z->rnd, rd->n);
	for (unsigned i = rd->n - 1; i > at; i--)
		rd->r[i] = rd->r[i - 1];
	rd->r[at] = last;
}

/* The last of each lane, direction and poster tells that all are done. */
static void signal_last(struct round *rd)
{
	bool seen[2][LANES][POSTERS] = {{{false}}};

	for (unsigned i = rd->n; i-- > 0;) {
		struct request *q = &rd->r[i];

		q->signaled |= !seen[q->from][q->lane][q->poster];
		seen[q->from][q->lane][q->poster] = true;
	}
}

static void plan_receives(struct zones *z, struct round *rd)
{
	for (unsigned end = 0; end < 2; end++) {
		unsigned n = rd->recvs[end][0] + rd->recvs[end][1];
		bool rc = is_reliable(z->e) && z->e->rnr_retry == 7;

		rd->recv_len[end] = z->longest[end] + rnd_below(z->rnd, GUARD) +
				    (z->e->type == IBV_QPT_UD ? GRH : 0);
		rd->recv_step[end] = rd->recv_len[end] + rnd_below(z->rnd, GUARD);
		rd->late[end] = rc && rnd_once_in(z->rnd, 3) ? rnd_below(z->rnd, n + 1) : 0;
	}
}

/*
 * Threads post in no order, so nothing may depend on it: the end of a window, a fault, or which
 * datagram is lost.  Immediate data tell which message came; short ones look alike.
 */
static void plan_posters(struct round *rd, const struct epoch *e, bool faulty, struct rnd *r)
{
	rd->two_post = e->type != IBV_QPT_UD && !faulty && !rd->invalidates[0] &&
		       !rd->invalidates[1] && rnd_once_in(r, 3);
	for (unsigned i = 0; rd->two_post && i < rd->n; i++) {
		struct request *q = &rd->r[i];

		q->poster = rnd_below(r, POSTERS);
		q->op = q->op == DO_SEND ? DO_SEND_IMM : q->op;
	}
	signal_last(rd);
}

void plan_round(struct round *rd, const struct epoch *e, uint64_t seed, unsigned link,
	unsigned epoch, unsigned number)
{
	struct rnd r = rnd_of(seed, link, epoch, 0x524f554e + number);
	bool faulty = e->fault && number == e->fault_round;
	uint32_t third = e->size / 3 & ~63u;
	struct zones z = {.rnd = &r,
		.e = e,
		.third = third,
		.local = {2 * third, 2 * third},
		.remote = {third, third}};

	memset(rd, 0, sizeof *rd);
	plan_requests(&z, rd, faulty);
	if (faulty)
		plan_faulty(&z, rd);
	for (unsigned end = 0; end < 2 && !faulty; end++) {
		struct request q = {.op = DO_SEND_INV, .from = !end, .len = 16};

		if (e->end[end].region == REGION_WINDOW_2 && e->type == IBV_QPT_RC &&
			rnd_once_in(&r, 2))
			rd->invalidates[end] = add_request(&z, rd, &q);
	}
	plan_receives(&z, rd);
	plan_posters(rd, e, faulty, &r);
}

unsigned plan_first_slot(const struct round *rd, unsigned end, unsigned lane)
{
	unsigned n = 0;

	for (unsigned i = 0; i < lane; i++)
		n += rd->recvs[end][i];
	return n;
}

struct pieces plan_receive(const struct round *rd, unsigned end, unsigned slot)
{
	uint32_t at = GUARD + slot * rd->recv_step[end], left = rd->recv_len[end];
	struct pieces p = {.n = !left ? 0 : left < PIECES ? 1 : 1 + slot % (PIECES - 1)};

	for (unsigned i = 0; i < p.n; i++) {
		p.off[i] = at;
		p.len[i] = i + 1 == p.n ? left : left / (p.n - i);
		at += p.len[i];
		left -= p.len[i];
	}
	return p;
}

void plan_data(const struct request *q, uint8_t *to)
{
	if (op_is_atomic(q->op))
		memcpy(to, &q->before, sizeof q->before);
	else if (q->op == DO_ATOMIC_WRITE)
		memcpy(to, &q->operand, sizeof q->operand);
	else
		pattern_fill(to, q->len, q->pattern);
}
