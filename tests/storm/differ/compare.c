// SPDX-License-Identifier: BSD-3-Clause
#include "compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broken.h"
#include "include/weft/verbs_ext.h"
#include "post.h"
#include "seen.h"
#include "tests/storm/world.h"

enum { SHOWN = 8, PATIENCE_S = 40 };
/* For a datagram on its way, and for one that a process may have taken with it. */
#define LATE_NS 2000000000ull
#define LOST_NS 200000000ull

static const struct {
	enum ibv_wc_opcode send, recv;
} opcodes[] = {
	[DO_SEND] = {IBV_WC_SEND, IBV_WC_RECV},
	[DO_SEND_IMM] = {IBV_WC_SEND, IBV_WC_RECV},
	[DO_SEND_INV] = {IBV_WC_SEND, IBV_WC_RECV},
	[DO_WRITE] = {IBV_WC_RDMA_WRITE, 0},
	[DO_WRITE_IMM] = {IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM},
	[DO_READ] = {IBV_WC_RDMA_READ, 0},
	[DO_ADD] = {IBV_WC_FETCH_ADD, 0},
	[DO_SWAP] = {IBV_WC_COMP_SWAP, 0},
	[DO_ATOMIC_WRITE] = {IBV_WC_ATOMIC_WRITE, 0},
	[DO_FLUSH] = {IBV_WC_FLUSH, 0},
};

/* What the requester and the receive of a faulty request end with. */
static const struct {
	enum ibv_wc_status send, recv;
	bool ends_responder;
} outcomes[] = {
	[FAULT_RKEY] = {IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, true},
	[FAULT_RANGE] = {IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, true},
	[FAULT_RIGHT] = {IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, true},
	[FAULT_LKEY] = {IBV_WC_LOC_PROT_ERR, 0, false},
	[FAULT_SHORT] = {IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR, true},
	[FAULT_RECV_LKEY] = {IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, true},
	[FAULT_NO_RECV] = {IBV_WC_RNR_RETRY_EXC_ERR, 0, false},
};

/* ---- which requests take place ---- */

/* The faulty request before number index in its lane and direction, or NULL. */
static const struct request *fault_before(const struct end *e, unsigned index)
{
	const struct request *q = &e->r.r[index];

	for (unsigned i = 0; e->e.fault && i < index; i++) {
		const struct request *f = &e->r.r[i];

		if (f->fault && f->lane == q->lane && f->from == q->from)
			return f;
	}
	return NULL;
}

bool compare_takes_place(const struct end *e, unsigned index)
{
	return !e->r.r[index].fault && !fault_before(e, index);
}

static enum ibv_wc_status send_status(const struct end *e, unsigned index)
{
	const struct request *q = &e->r.r[index];

	if (q->fault)
		return outcomes[q->fault].send;
	return fault_before(e, index) ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
}

/* False: that message's receive never completes. */
static bool recv_status(const struct end *e, unsigned index, enum ibv_wc_status *status)
{
	const struct request *q = &e->r.r[index], *f = q->fault ? q : fault_before(e, index);

	*status = IBV_WC_SUCCESS;
	if (!f)
		return true;
	*status = q->fault ? outcomes[f->fault].recv : IBV_WC_WR_FLUSH_ERR;
	/* What is in a shared queue is not flushed. */
	return outcomes[f->fault].ends_responder && (!e->srq || f->fault >= FAULT_SHORT);
}

/* ---- data ---- */

static void put(struct end *e, uint32_t off, const void *from, uint32_t len)
{
	memcpy(e->shadow + off, from, len);
	memory_put(&e->mem, off, from, len);
}

uint8_t *compare_bytes(struct end *e, const struct request *q)
{
	uint8_t *p = malloc(q->len + 8);

	if (!p)
		end_fail(e, "no memory");
	plan_data(q, p);
	return p;
}

static void prepare_source(struct end *e, const struct request *q)
{
	uint8_t *p = compare_bytes(e, q), *from = p;

	for (unsigned i = 0; i < q->local.n; i++) {
		put(e, q->local.off[i], from, q->local.len[i]);
		from += q->local.len[i];
	}
	free(p);
}

static void prepare_target(struct end *e, const struct request *q)
{
	uint8_t *p = compare_bytes(e, q);

	put(e, q->remote, p, q->len);
	free(p);
}

void compare_prepare(struct end *e)
{
	for (unsigned i = 0; i < e->r.n; i++) {
		const struct request *q = &e->r.r[i];
		bool finds = q->op == DO_READ || op_is_atomic(q->op);

		if (q->from == e->side && !finds && q->op != DO_FLUSH)
			prepare_source(e, q);
		else if (q->from != e->side && finds && !q->common)
			prepare_target(e, q);
	}
	words_prepare(e);
	memset(e->got, 0, sizeof e->got);
	for (unsigned i = 0; i < e->e.lanes; i++)
		e->lane[i] = (struct lane){.qp = e->lane[i].qp,
			.target = e->lane[i].target,
			.failed_at = {UINT32_MAX, UINT32_MAX}};
}

/* Into the shadow's pieces, behind skip bytes. */
static void scatter(
	uint8_t *to, const struct pieces *p, uint32_t skip, const uint8_t *from, uint32_t len)
{
	for (unsigned i = 0; i < p->n && len; i++) {
		uint32_t at = skip < p->len[i] ? skip : p->len[i];
		uint32_t n = p->len[i] - at < len ? p->len[i] - at : len;

		skip -= at;
		memcpy(to + p->off[i] + at, from, n);
		from += n;
		len -= n;
	}
}

/* What nobody says: as it is. */
static void accept(struct end *e, const struct pieces *p, uint32_t len)
{
	for (unsigned i = 0; i < p->n && len; i++) {
		uint32_t n = p->len[i] < len ? p->len[i] : len;

		memory_get(&e->mem, p->off[i], e->shadow + p->off[i], n);
		len -= n;
	}
}

static uint64_t after(const struct request *q)
{
	if (q->op == DO_ADD)
		return q->before + q->operand;
	return q->compare == q->before ? q->operand : q->before;
}

/* What this request of the other end changed here. */
static void apply_here(struct end *e, const struct request *q, uint8_t *to)
{
	uint64_t word = after(q);
	uint8_t *p;

	if (q->common)
		return;
	if (op_is_atomic(q->op)) {
		memcpy(to + q->remote, &word, sizeof word);
	} else if (q->op == DO_WRITE || q->op == DO_WRITE_IMM || q->op == DO_ATOMIC_WRITE) {
		p = compare_bytes(e, q);
		memcpy(to + q->remote, p, q->len);
		free(p);
	}
}

/* What our request brought here, unless it is what nobody knows. */
static void apply_brought(struct end *e, const struct request *q, uint8_t *to)
{
	uint8_t *p;

	if (q->common)
		return;
	if (op_is_atomic(q->op)) {
		memcpy(to + q->local.off[0], &q->before, sizeof q->before);
	} else if (q->op == DO_READ) {
		p = compare_bytes(e, q);
		scatter(to, &q->local, 0, p, q->len);
		free(p);
	}
}

void compare_apply_to(struct end *e, const struct request *q, uint8_t *to)
{
	if (q->from == e->side)
		apply_brought(e, q, to);
	else
		apply_here(e, q, to);
}

void compare_apply(struct end *e, const struct request *q)
{
	uint64_t found;

	compare_apply_to(e, q, e->shadow);
	if (!q->common || q->from != e->side)
		return;
	accept(e, &q->local, sizeof found);
	memcpy(&found, e->shadow + q->local.off[0], sizeof found);
	words_count(e, q, found);
}

/* ---- completions ---- */

static unsigned lane_of(struct end *e, const struct ibv_wc *wc, bool is_send)
{
	for (unsigned i = 0; i < e->e.lanes; i++) {
		const struct lane *l = &e->lane[i];

		if ((l->target && !is_send ? l->target : l->qp)->qp_num == wc->qp_num)
			return i;
	}
	end_fail(e, "a completion of queue pair %#x, which is none of ours: wr_id %#llx, status %d",
		wc->qp_num, (unsigned long long)wc->wr_id, wc->status);
}

/* The next request of that lane and poster that completes, from *at on. */
bool compare_next_send(const struct end *e, unsigned lane, unsigned poster, uint32_t *at)
{
	for (; *at < e->r.n; ++*at) {
		const struct request *q = &e->r.r[*at];

		if (q->from == e->side && q->lane == lane && q->poster == poster &&
			(q->signaled || send_status(e, *at) != IBV_WC_SUCCESS))
			return true;
	}
	return false;
}

bool compare_next_recv(const struct end *e, unsigned lane, unsigned poster, uint32_t *at)
{
	enum ibv_wc_status status;

	for (; *at < e->r.n; ++*at) {
		const struct request *q = &e->r.r[*at];

		if (q->from == e->side || q->lane != lane || q->poster != poster ||
			!op_is_message(q->op))
			continue;
		if (recv_status(e, *at, &status))
			return true;
	}
	return false;
}

void compare_wrong(struct end *e, const struct ibv_wc *wc, unsigned lane, const char *kind,
	int index, enum ibv_wc_status status, const char *what)
{
	const struct request *q = index >= 0 ? &e->r.r[index] : NULL;

	end_fail(e,
		"a %s completion of lane %u is wrong: %s\n"
		"  got: wr_id %#llx, %s, opcode %d, byte_len %u, imm %#x, wc_flags %#x, vendor_err "
		"%#x\n"
		"  next in order: request %d, %s of %u bytes%s%s, %s, remote offset %u, %s",
		kind, lane, what, (unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status),
		wc->opcode, wc->byte_len, wc->imm_data, wc->wc_flags, wc->vendor_err, index,
		q ? op_name(q->op) : "none", q ? q->len : 0, q && q->inlined ? " inline" : "",
		q && q->by_wr ? " by ibv_wr" : "", q ? fault_name(q->fault) : "", q ? q->remote : 0,
		ibv_wc_status_str(status));
}

/* Which thread posted what has completed, as its wr_id says. */
static unsigned sender_of(const struct end *e, const struct ibv_wc *wc)
{
	uint32_t index = (uint32_t)wc->wr_id;

	return index < e->r.n ? e->r.r[index].poster : 0;
}

static void check_send(struct end *e, const struct ibv_wc *wc, unsigned lane)
{
	unsigned poster = sender_of(e, wc);
	uint32_t *next = &e->lane[lane].next_send[poster];
	bool any = compare_next_send(e, lane, poster, next);
	unsigned index = *next;
	const struct request *q = &e->r.r[index];
	enum ibv_wc_status status = any ? send_status(e, index) : 0;

	if (!any)
		compare_wrong(e, wc, lane, "send", -1, 0, "no more was to come");
	if (wc->wr_id != wr_id_of(e, index))
		compare_wrong(e, wc, lane, "send", index, status, "wr_id");
	if (wc->status != status)
		compare_wrong(e, wc, lane, "send", index, status, "status");
	if (!status && wc->opcode != opcodes[q->op].send)
		compare_wrong(e, wc, lane, "send", index, status, "opcode");
	if (!status && (q->op == DO_READ || op_is_atomic(q->op)) && wc->byte_len != q->len)
		compare_wrong(e, wc, lane, "send", index, status, "byte_len");
	++*next;
}

static const char *wrong_recv(const struct end *e, const struct ibv_wc *wc, const struct request *q)
{
	bool ud = e->e.type == IBV_QPT_UD;
	bool imm = q->op == DO_SEND_IMM || q->op == DO_WRITE_IMM;
	unsigned flags = (imm                           ? IBV_WC_WITH_IMM
				 : q->op == DO_SEND_INV ? IBV_WC_WITH_INV
							: 0) |
			 (ud ? IBV_WC_GRH : 0);

	if (wc->opcode != opcodes[q->op].recv)
		return "opcode";
	if (wc->byte_len != q->len + (ud ? GRH : 0))
		return "byte_len";
	if ((wc->wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV | IBV_WC_GRH)) != flags)
		return "wc_flags";
	if (imm && wc->imm_data != q->imm)
		return "imm";
	if (q->op == DO_SEND_INV && wc->invalidated_rkey != e->mine.rkey)
		return "invalidated_rkey";
	if (ud && wc->src_qp != e->peer.qpn[q->lane])
		return "src_qp";
	return NULL;
}

/* A datagram has no reliable way: weftd tells where its receiver is, and may be dead. */
static bool may_lose(const struct end *e)
{
	return e->e.type == IBV_QPT_UD && atomic_load(&board->kills);
}

/* Are the bytes of that receive those of q? */
static bool has_bytes(struct end *e, unsigned slot, const struct request *q)
{
	struct pieces p = plan_receive(&e->r, e->side, slot);
	uint8_t *want = compare_bytes(e, q), *got = malloc(e->r.recv_len[e->side]), *at = got;
	bool same;

	for (unsigned i = 0; got && i < p.n; i++) {
		memory_get(&e->mem, p.off[i], at, p.len[i]);
		at += p.len[i];
	}
	same = got && !memcmp(got + GRH, want, q->len);
	free(got);
	free(want);
	return same;
}

/* Passes over datagrams that were lost. */
static void skip_lost(struct end *e, const struct ibv_wc *wc, struct lane *l, unsigned lane)
{
	uint32_t at = l->next_recv[0], lost = 0;

	for (; compare_next_recv(e, lane, 0, &at); at++, lost++)
		if (!wrong_recv(e, wc, &e->r.r[at]) &&
			has_bytes(e, (uint32_t)wc->wr_id, &e->r.r[at])) {
			l->next_recv[0] = at;
			atomic_fetch_add(&board->lost, lost);
			return;
		}
}

/* A message came into that receive. */
static void apply_receive(
	struct end *e, const struct ibv_wc *wc, unsigned slot, const struct request *q)
{
	struct pieces p = plan_receive(&e->r, e->side, slot);
	bool ud = e->e.type == IBV_QPT_UD;
	uint8_t *bytes;

	if (wc->status) {
		accept(e, &p, UINT32_MAX);
		return;
	}
	if (q->op == DO_WRITE_IMM)
		return;
	if (ud)
		accept(e, &p, GRH);
	bytes = compare_bytes(e, q);
	scatter(e->shadow, &p, ud ? GRH : 0, bytes, q->len);
	free(bytes);
	if (q->op == DO_SEND_INV)
		e->bound = false;
}

/* Of which poster is the message that came?  0 if of none: the next of that one is missed. */
static unsigned poster_of(const struct end *e, const struct ibv_wc *wc, unsigned lane)
{
	for (unsigned poster = 0; poster < POSTERS; poster++) {
		uint32_t at = e->lane[lane].next_recv[poster];

		if (compare_next_recv(e, lane, poster, &at) && !wrong_recv(e, wc, &e->r.r[at]))
			return poster;
	}
	return 0;
}

static void check_recv(struct end *e, const struct ibv_wc *wc, unsigned lane)
{
	struct lane *l = &e->lane[lane];
	unsigned index, poster, slot = (uint32_t)wc->wr_id;
	enum ibv_wc_status status = 0;
	const char *what;
	bool any;

	if (may_lose(e) && slot < e->r.recvs[e->side][0] + e->r.recvs[e->side][1])
		skip_lost(e, wc, l, lane);
	poster = poster_of(e, wc, lane);
	any = compare_next_recv(e, lane, poster, &l->next_recv[poster]);
	index = l->next_recv[poster];
	if (!any)
		compare_wrong(e, wc, lane, "receive", -1, 0, "no more was to come");
	recv_status(e, index, &status);
	if (!status && !wc->status)
		seen_note(e, lane, poster, index, slot);
	if (!e->srq && wc->wr_id != (WR_RECV | wr_id_of(e, plan_first_slot(&e->r, e->side, lane) +
								   l->recvs_done)))
		compare_wrong(e, wc, lane, "receive", index, status, "wr_id");
	if (slot >= e->r.recvs[e->side][0] + e->r.recvs[e->side][1])
		compare_wrong(
			e, wc, lane, "receive", index, status, "wr_id is none that was posted");
	if (wc->status != status)
		compare_wrong(e, wc, lane, "receive", index, status, "status");
	what = status ? NULL : wrong_recv(e, wc, &e->r.r[index]);
	if (what)
		compare_wrong(e, wc, lane, "receive", index, status, what);
	apply_receive(e, wc, slot, &e->r.r[index]);
	broken_note_slot(e, slot);
	l->recvs_done++;
	l->recvs_good++;
	l->next_recv[poster]++;
}

void compare_completion(struct end *e, const struct ibv_wc *wc, bool is_send)
{
	unsigned lane = lane_of(e, wc, is_send);

	if (broken_completion(e, wc, lane, is_send))
		return;
	if (is_send)
		check_send(e, wc, lane);
	else
		check_recv(e, wc, lane);
}

static unsigned missing_of(
	struct end *e, unsigned lane, unsigned poster, bool recv, char *text, size_t size)
{
	const struct lane *l = &e->lane[lane];
	uint32_t at = recv ? l->next_recv[poster] : l->next_send[poster];
	unsigned n = 0;

	for (; recv ? compare_next_recv(e, lane, poster, &at)
		    : compare_next_send(e, lane, poster, &at);
		at++) {
		const struct request *q = &e->r.r[at];

		if (!n++ && text)
			snprintf(text, size, "%s of request %u of lane %u, %s of %u bytes, %s",
				recv ? "the receive" : "the completion", at, lane, op_name(q->op),
				q->len, fault_name(q->fault));
	}
	return n;
}

unsigned compare_missing(struct end *e, char *text, size_t size)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 2 * POSTERS * e->e.lanes; i++) {
		unsigned recv = i % 2, poster = i / 2 % POSTERS, lane = i / 2 / POSTERS;

		if (recv && e->e.type == IBV_QPT_UD)
			continue; /* what has arrived is there when its sender is through */
		n += missing_of(e, lane, poster, recv, n ? NULL : text, size);
	}
	return n;
}

void compare_patience(struct end *e, uint64_t since)
{
	char first[160] = "";
	unsigned n;

	if (now_ns() - since < PATIENCE_S * 1000000000ull)
		return;
	n = compare_missing(e, first, sizeof first);
	end_fail(e, "nothing has completed for %d s; %u completions are missing, the first %s",
		PATIENCE_S, n, first);
}

bool compare_awaits(struct end *e, uint64_t since)
{
	uint64_t patience = may_lose(e) ? LOST_NS : LATE_NS;
	uint32_t at;

	for (unsigned lane = 0; e->e.type == IBV_QPT_UD && lane < e->e.lanes; lane++) {
		at = e->lane[lane].next_recv[0];
		if (compare_next_recv(e, lane, 0, &at))
			return now_ns() - since < patience;
	}
	return false;
}

void compare_arrived(struct end *e)
{
	uint32_t at;

	for (unsigned lane = 0; lane < e->e.lanes; lane++) {
		at = e->lane[lane].next_recv[0];
		if (e->e.type != IBV_QPT_UD || !compare_next_recv(e, lane, 0, &at))
			continue;
		if (!may_lose(e))
			end_fail(e, "a datagram was lost: request %u of lane %u, %s of %u bytes",
				at, lane, op_name(e->r.r[at].op), e->r.r[at].len);
		atomic_fetch_add(&board->lost, 1);
	}
}

/* ---- memory ---- */

static bool within(const struct pieces *p, uint32_t off)
{
	for (unsigned i = 0; i < p->n; i++)
		if (off >= p->off[i] && off - p->off[i] < p->len[i])
			return true;
	return false;
}

/* Whose byte that is. */
static void owner_of(const struct end *e, uint32_t off, char *text, size_t size)
{
	snprintf(text, size, "nobody's");
	for (unsigned i = 0; i < e->r.n; i++) {
		const struct request *q = &e->r.r[i];
		bool local = q->from == e->side;

		if (local ? within(&q->local, off)
			  : op_is_remote(q->op) && !q->common && off >= q->remote &&
					off - q->remote < q->len)
			snprintf(text, size, "%s request %u: %s of %u bytes, lane %u%s%s, %s",
				local ? "our" : "the other end's", i, op_name(q->op), q->len,
				q->lane, q->inlined ? ", inline" : "",
				q->by_wr ? ", by ibv_wr" : "", fault_name(q->fault));
	}
	for (unsigned slot = 0; slot < e->r.recvs[e->side][0] + e->r.recvs[e->side][1]; slot++) {
		struct pieces p = plan_receive(&e->r, e->side, slot);

		if (within(&p, off))
			snprintf(text, size, "receive %u's (lane 1 from %u on)", slot,
				e->r.recvs[e->side][0]);
	}
}

static void differs(struct end *e, const uint8_t *is)
{
	char owner[200], got[3 * SHOWN + 1] = "", want[3 * SHOWN + 1] = "";
	uint32_t at = 0, last = e->mem.len, n = 0;

	while (is[at] == e->shadow[at])
		at++;
	while (is[last - 1] == e->shadow[last - 1])
		last--;
	for (uint32_t i = at; i < last; i++)
		n += is[i] != e->shadow[i];
	for (unsigned i = 0; i < SHOWN && at + i < e->mem.len; i++) {
		sprintf(got + 3 * i, " %02x", is[at + i]);
		sprintf(want + 3 * i, " %02x", e->shadow[at + i]);
	}
	owner_of(e, at, owner, sizeof owner);
	end_fail(e,
		"memory at %p: %u bytes differ between offsets %u and %u\n"
		"  got%s ..., expected%s ...\n  the first is %s",
		(void *)e->mem.at, n, at, last, got, want, owner);
}

void compare_shadow(struct end *e)
{
	uint8_t *copy;

	if (e->mem.at && !memcmp(e->mem.at, e->shadow, e->mem.len))
		return;
	copy = malloc(e->mem.len);
	if (!copy)
		end_fail(e, "no memory");
	memory_get(&e->mem, 0, copy, e->mem.len);
	if (memcmp(copy, e->shadow, e->mem.len))
		differs(e, copy);
	free(copy);
}

void compare_memory(struct end *e)
{
	for (unsigned i = 0; i < e->r.n; i++)
		if (compare_takes_place(e, i))
			compare_apply(e, &e->r.r[i]);
	compare_shadow(e);
}
