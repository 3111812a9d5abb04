// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/roce_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world w;

uint32_t draw(uint32_t below)
{
	w.seed = w.seed * 6364136223846793005 + 1442695040888963407;
	return (w.seed >> 33) % below;
}

bool chance(unsigned of_1000)
{
	return of_1000 && draw(1000) < of_1000;
}

/* The bytes of an entry's data. */
static uint8_t byte_of(uint32_t entry, uint64_t offset)
{
	return (entry * 131 + offset) * 2654435761u >> 23;
}

static void fly(bool to_responder, const uint8_t *bytes, size_t len)
{
	struct flight *f = malloc(sizeof *f);

	assert_non_null(f);
	assert_true(w.n_flying < FLYING);
	*f = (struct flight){
		.when = w.now + 5000, .order = w.order++, .to_responder = to_responder, .len = len};
	if (chance(w.trouble.late))
		f->when += draw(3000000);
	if (w.trouble.overtaken && w.packets == w.trouble.overtaken)
		f->when += 8000; /* a round trip takes 10000 */
	memcpy(f->bytes, bytes, len);
	w.flying[w.n_flying++] = f;
}

static void put_on_wire(bool to_responder, const struct roce_packet *head, const uint8_t *payload)
{
	uint8_t bytes[sizeof((struct flight *)0)->bytes] = {0};
	size_t len = roce_build(head, bytes);

	memcpy(bytes + len, payload, head->payload_len);
	len += head->payload_len + head->pad + ROCE_ICRC_LEN;
	if (w.packets++ == w.trouble.drop || chance(w.trouble.lost))
		return;
	fly(to_responder, bytes, len);
	if (chance(w.trouble.twice))
		fly(to_responder, bytes, len);
}

static bool req_request(void *arg, uint32_t entry, struct rc_request *r)
{
	(void)arg;
	if (entry >= w.posted)
		return false;
	*r = w.requests[entry];
	return true;
}

static bool req_send(
	void *arg, const struct roce_packet *head, uint32_t entry, uint64_t offset, size_t len)
{
	uint8_t payload[MTU];

	(void)arg;
	if (chance(w.trouble.full))
		return false;
	assert_true(len <= MTU);
	for (size_t i = 0; i < len; i++)
		payload[i] = byte_of(entry, offset + i);
	put_on_wire(true, head, payload);
	return true;
}

static int req_place(void *arg, uint32_t entry, uint64_t offset, const void *bytes, size_t len)
{
	(void)arg;
	assert_true(offset + len <= BYTES_MAX);
	memcpy(w.got[entry] + offset, bytes, len);
	w.placed++;
	return 0;
}

static void req_complete(void *arg, uint32_t entry, enum ibv_wc_status status)
{
	(void)arg;
	assert_int_equal(entry, w.ended);
	assert_int_equal(w.last, IBV_WC_SUCCESS);
	w.ended++;
	w.last = status;
}

static const struct rc_req_ops req_ops = {req_request, req_send, req_place, req_complete};

static bool no_receive(void)
{
	if (w.trouble.in_vain)
		return w.looks++ % (w.trouble.in_vain + 1) < w.trouble.in_vain;
	return chance(w.trouble.no_receive);
}

static enum resp_verdict resp_begin(void *arg, const struct roce_packet *p)
{
	(void)arg;
	if (p->op->act == ROCE_SEND && no_receive())
		return RESP_RNR;
	return p->op->act == ROCE_WRITE ? w.refuse : RESP_OK;
}

static enum resp_verdict resp_place(void *arg, uint64_t offset, const void *bytes, size_t len)
{
	(void)arg;
	if (chance(w.trouble.later))
		return RESP_LATER;
	assert_true(offset + len <= BYTES_MAX);
	memcpy(w.message + offset, bytes, len);
	return RESP_OK;
}

/* Messages come in the order of their entries: each is the next that is no READ. */
static const struct rc_request *next_message(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w.posted; i++)
		if (w.requests[i].act != ROCE_READ && n++ == w.carried_out)
			return &w.requests[i];
	fail_msg("a message that nobody sent");
	return NULL;
}

static enum resp_verdict resp_end(void *arg, const struct roce_packet *p, uint64_t length)
{
	/* of UC any message may be missing: it says itself which it is */
	const struct rc_request *r = w.req.conf.unreliable ? &w.requests[p->imm] : next_message();
	uint32_t entry = r - w.requests;

	(void)arg;
	assert_true(entry >= w.carried_out);
	if (r->act == ROCE_WRITE && r->has_imm && no_receive())
		return RESP_RNR;
	assert_int_equal(p->op->act, r->act);
	assert_int_equal(length, r->length);
	if (r->has_imm)
		assert_int_equal(p->imm, r->imm);
	if (r->has_inv)
		assert_int_equal(p->invalidate, r->imm);
	assert_int_equal(p->solicited, r->solicited);
	for (uint64_t i = 0; i < length; i++)
		if (w.message[i] != byte_of(entry, i))
			fail_msg("entry %u: byte %zu is wrong", entry, (size_t)i);
	w.carried_out = w.req.conf.unreliable ? entry + 1 : w.carried_out + 1;
	w.arrived++;
	return RESP_OK;
}

static void resp_drop(void *arg)
{
	(void)arg;
}

static enum resp_verdict resp_read(void *arg, const struct roce_packet *p)
{
	(void)arg;
	assert_true(p->va + p->length <= CONST_BYTES);
	return w.refuse;
}

static uint64_t act_on(uint64_t *word, uint8_t act, uint64_t swap_add, uint64_t compare)
{
	uint64_t old = *word;

	if (act == ROCE_FETCH_ADD)
		*word += swap_add;
	else if (old == compare)
		*word = swap_add;
	return old;
}

static enum resp_verdict resp_word(void *arg, const struct roce_packet *p, uint64_t *old)
{
	(void)arg;
	if (chance(w.trouble.later))
		return RESP_LATER;
	assert_int_equal(next_message()->act, p->op->act);
	w.carried_out++;
	if (p->op->act == ROCE_COMPARE_SWAP || p->op->act == ROCE_FETCH_ADD)
		*old = act_on(&w.words[p->va], p->op->act, p->swap_add, p->compare);
	return RESP_OK;
}

static int resp_send(void *arg, const struct roce_packet *head, uint64_t va, uint32_t rkey,
	size_t len, bool again)
{
	(void)arg, (void)again;
	if (len && w.gone)
		return -1;
	if (chance(w.trouble.full))
		return 0;
	assert_true(!len || rkey == RKEY);
	put_on_wire(false, head, w.fixed + (len ? va : 0));
	return 1;
}

static void resp_fatal(void *arg, enum resp_verdict why)
{
	(void)arg;
	(void)why;
	w.fatal++;
}

static const struct rc_resp_ops resp_ops = {
	resp_begin, resp_place, resp_end, resp_drop, resp_read, resp_word, resp_send, resp_fatal};

void begin_world(uint64_t seed, const struct trouble *trouble, bool unreliable)
{
	struct rc_req_config req = {.unreliable = unreliable,
		.mtu = MTU,
		.dest_qpn = QPN_RESP,
		.timeout = 60 * NSEC_PER_MSEC,
		.retry_cnt = 7,
		.rnr_retry = RNR_RETRY_FOR_EVER,
		.entries = ENTRIES,
		.max_reads = 1 + seed % 4};
	struct rc_resp_config resp = {.unreliable = unreliable,
		.mtu = MTU,
		.dest_qpn = QPN_REQ,
		.max_reads = req.max_reads,
		.min_rnr_timer = 1};

	memset(&w, 0, sizeof w);
	w.run = seed;
	w.seed = seed * 7919 + 1;
	w.now = NSEC_PER_SEC;
	w.trouble = *trouble;
	req.psn = resp.psn = seed % 3 ? draw(0x1000000) : 0xfffff0;
	for (int i = 0; i < CONST_BYTES; i++)
		w.fixed[i] = i * 31 + i / 256;
	assert_int_equal(rc_req_start(&w.req, &req, &req_ops, NULL), 0);
	assert_int_equal(rc_resp_start(&w.resp, &resp, &resp_ops, NULL), 0);
	w.req.other_is_weft = w.resp.weft = !trouble->strangers;
}

void end_world(void)
{
	while (w.n_flying)
		free(w.flying[--w.n_flying]);
	for (int i = 0; i < REQUESTS; i++)
		free(w.got[i]);
	rc_req_end(&w.req);
	rc_resp_end(&w.resp);
}

struct rc_request random_request(bool unreliable)
{
	static const uint8_t acts[] = {ROCE_SEND, ROCE_WRITE, ROCE_READ, ROCE_COMPARE_SWAP,
		ROCE_FETCH_ADD, ROCE_FLUSH, ROCE_ATOMIC_WRITE};
	struct rc_request r = {.act = acts[draw(unreliable ? 2 : 7)], .rkey = RKEY};

	r.length = chance(300) ? draw(BYTES_MAX) : draw(3 * MTU);
	if (chance(100))
		r.length = MTU * draw(3);
	r.solicited = r.act == ROCE_SEND && chance(300);
	r.has_imm = (r.act == ROCE_SEND || r.act == ROCE_WRITE) && chance(300);
	r.has_inv = !unreliable && r.act == ROCE_SEND && !r.has_imm && chance(300);
	r.imm = draw(1 << 30);
	r.fence = chance(100);
	r.swap_add = draw(4);
	r.compare = draw(4);
	if (r.act == ROCE_READ)
		r.va = draw(CONST_BYTES - BYTES_MAX);
	if (r.act == ROCE_COMPARE_SWAP || r.act == ROCE_FETCH_ADD) {
		r.va = draw(WORDS);
		r.length = 8;
	}
	return r;
}

void post(struct rc_request r)
{
	w.got[w.posted] = calloc(1, BYTES_MAX);
	assert_non_null(w.got[w.posted]);
	w.requests[w.posted++] = r;
}

void take_request(const struct roce_packet *p, const uint8_t *bytes, size_t len)
{
	struct roce_packet kept;
	uint8_t *next;

	rc_resp_keep(&w.resp, p, bytes, len);
	rc_resp_request(&w.resp, p);
	while ((next = rc_resp_next_kept(&w.resp, &len))) {
		assert_int_equal(roce_parse(next, len, &kept), ROCE_GOOD);
		rc_resp_request(&w.resp, &kept);
		ahead_free(next);
	}
}

static void arrive(struct flight *f)
{
	uint8_t *exact = malloc(f->len);
	struct roce_packet p;

	assert_non_null(exact);
	memcpy(exact, f->bytes, f->len);
	assert_int_equal(roce_parse(exact, f->len, &p), ROCE_GOOD);
	assert_int_equal(p.dest_qpn, f->to_responder ? QPN_RESP : QPN_REQ);
	assert_int_equal(roce_is_response(p.op), !f->to_responder);
	if (f->to_responder)
		take_request(&p, exact, f->len);
	else
		rc_req_answer(&w.req, &p, w.now);
	free(exact);
	free(f);
}

static struct flight **earliest(void)
{
	struct flight **best = NULL;

	for (size_t i = 0; i < w.n_flying; i++)
		if (!best || w.flying[i]->when < (*best)->when ||
			(w.flying[i]->when == (*best)->when && w.flying[i]->order < (*best)->order))
			best = &w.flying[i];
	return best;
}

static void arrive_next(struct flight **at)
{
	struct flight *f = *at;

	*at = w.flying[--w.n_flying];
	arrive(f);
}

bool step(void)
{
	struct flight **f;
	uint64_t due;
	bool more;

	rc_req_expire(&w.req, w.now);
	rc_req_run(&w.req, w.now);
	more = rc_resp_run(&w.resp, 1 + draw(64 << 10), chance(700) || !w.n_flying);
	due = rc_req_deadline(&w.req);
	if (more || chance(w.trouble.full))
		due = w.now + 10000;
	f = earliest();
	if (f && (!due || (*f)->when <= due)) {
		w.now = (*f)->when > w.now ? (*f)->when : w.now;
		arrive_next(f);
		return true;
	}
	if (due)
		w.now = due > w.now ? due : w.now + 1;
	else if (w.trouble.full)
		w.now += 10000;
	return due || w.trouble.full;
}

void check_results(void)
{
	for (uint32_t i = 0; i < w.posted; i++) {
		const struct rc_request *r = &w.requests[i];
		uint64_t old;

		if (r->act == ROCE_READ)
			assert_memory_equal(w.got[i], w.fixed + r->va, r->length);
		if (r->act != ROCE_COMPARE_SWAP && r->act != ROCE_FETCH_ADD)
			continue;
		old = act_on(&w.model_words[r->va], r->act, r->swap_add, r->compare);
		assert_memory_equal(w.got[i], &old, sizeof old);
	}
	assert_memory_equal(w.words, w.model_words, sizeof w.words);
}

void run_all(uint64_t most_ns)
{
	uint64_t until = w.now + most_ns;

	while (w.ended < w.posted && w.last == IBV_WC_SUCCESS) {
		if (!step() && w.ended < w.posted && w.last == IBV_WC_SUCCESS)
			fail_msg("nothing goes on after %u of %u (seed %zu)", w.ended, w.posted,
				(size_t)w.run);
		if (w.now > until)
			fail_msg("not done in time: %u of %u (seed %zu)", w.ended, w.posted,
				(size_t)w.run);
	}
}

void lose_all(void)
{
	while (w.n_flying)
		free(w.flying[--w.n_flying]);
}
