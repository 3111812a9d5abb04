// SPDX-License-Identifier: BSD-3-Clause
/*
 * A requester and a responder on a wire that loses, repeats, delays and reorders packets, with a
 * clock of its own: random requests end in order, each carried out once, with the right bytes; and
 * what ends a connection does so with the right status, in the right time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "roce/proto/answers.h"
#include "roce/proto/req_timer.h"
#include "roce/proto/requester.h"
#include "roce/proto/responder.h"

enum {
	ENTRIES = 16,
	REQUESTS = 60,
	BYTES_MAX = 40000,
	CONST_BYTES = 1 << 16, /* what READs read */
	WORDS = 8,
	MTU = 1024,
	FLYING = 4096,
	QPN_REQ = 0x11,
	QPN_RESP = 0x12,
	RKEY = 0x77,
	DROP_NONE = -1,
};

struct flight {
	uint64_t when, order;
	bool to_responder;
	size_t len;
	uint8_t bytes[ROCE_HEADERS_MAX + MTU + 8];
};

struct trouble {
	unsigned lost, twice, late; /* of 1000 packets */
	unsigned full;              /* of 1000 sends, the socket is full */
	unsigned no_receive;        /* of 1000 looks for a receive */
	unsigned later;             /* of 1000 pieces, the memory is busy */
	long drop;                  /* that packet alone */
};

static struct world {
	uint64_t now, run, seed, order;
	struct trouble trouble;
	long packets;
	struct rc_requester req;
	struct rc_responder resp;
	struct flight *flying[FLYING];
	size_t n_flying;
	struct rc_request requests[REQUESTS];
	uint32_t posted, ended;
	enum ibv_wc_status last;
	uint8_t *got[REQUESTS]; /* of READs and atomics */
	/* the responder's side */
	uint8_t fixed[CONST_BYTES];
	uint64_t words[WORDS], model_words[WORDS];
	uint8_t message[BYTES_MAX];
	uint32_t carried_out; /* SENDs, WRITEs that have ended, atomics, flushes */
	uint32_t arrived;     /* SENDs and WRITEs */
	uint32_t fatal;
	enum resp_verdict refuse; /* what READs and WRITEs meet */
	bool gone;                /* the memory that READs are answered from */
} w;

/* More can be asked for on the command line. */
static long n_seeds = 400;

static uint32_t draw(uint32_t below)
{
	w.seed = w.seed * 6364136223846793005 + 1442695040888963407;
	return (w.seed >> 33) % below;
}

static bool chance(unsigned of_1000)
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

static enum resp_verdict resp_begin(void *arg, const struct roce_packet *p)
{
	(void)arg;
	if (p->op->act == ROCE_SEND && chance(w.trouble.no_receive))
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
	if (r->act == ROCE_WRITE && r->has_imm && chance(w.trouble.no_receive))
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

static void begin_world(uint64_t seed, const struct trouble *trouble, bool unreliable)
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
}

static void end_world(void)
{
	while (w.n_flying)
		free(w.flying[--w.n_flying]);
	for (int i = 0; i < REQUESTS; i++)
		free(w.got[i]);
	rc_req_end(&w.req);
	rc_resp_end(&w.resp);
}

static struct rc_request random_request(bool unreliable)
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

static void post(struct rc_request r)
{
	w.got[w.posted] = calloc(1, BYTES_MAX);
	assert_non_null(w.got[w.posted]);
	w.requests[w.posted++] = r;
}

static void take_request(const struct roce_packet *p, const uint8_t *bytes, size_t len)
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

/* Time goes on to whatever comes next; false: nothing will. */
static bool step(void)
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

/* What READs and atomics brought, against the requests in their order. */
static void check_results(void)
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

static void run_all(uint64_t most_ns)
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

static void random_run(uint64_t seed, const struct trouble *trouble)
{
	uint32_t n = 0;

	begin_world(seed, trouble, false);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		post(random_request(false));
		n += w.requests[i].act != ROCE_READ;
		while (chance(500))
			step();
	}
	run_all(600 * NSEC_PER_SEC);
	if (w.last != IBV_WC_SUCCESS)
		fail_msg("seed %zu: entry %u ended in %d", (size_t)seed, w.ended - 1, w.last);
	assert_int_equal(w.carried_out, n);
	assert_int_equal(w.fatal, 0);
	assert_int_equal(w.req.reads.came, 0);
	check_results();
	end_world();
}

static void random_requests(void **state)
{
	static const struct trouble troubles[] = {
		{.drop = DROP_NONE},
		{.lost = 10, .drop = DROP_NONE},
		{.lost = 100, .drop = DROP_NONE},
		{.twice = 100, .late = 50, .drop = DROP_NONE},
		{.late = 300, .drop = DROP_NONE},
		{.full = 300, .drop = DROP_NONE},
		{.no_receive = 300, .later = 20, .drop = DROP_NONE},
		{.lost = 50,
			.twice = 50,
			.late = 50,
			.full = 50,
			.no_receive = 50,
			.later = 5,
			.drop = DROP_NONE},
	};

	(void)state;
	for (uint64_t seed = 0; seed < (uint64_t)n_seeds; seed++)
		random_run(seed, &troubles[seed % (sizeof troubles / sizeof troubles[0])]);
}

/* Each packet of one of each operation is lost once; nothing has to wait for the long timeout. */
static void each_lost_once(void **state)
{
	static const struct rc_request requests[] = {
		{.act = ROCE_SEND, .length = 3000, .has_imm = true, .imm = 5},
		{.act = ROCE_WRITE, .length = 5000, .rkey = RKEY},
		{.act = ROCE_READ, .length = 9000, .rkey = RKEY},
		{.act = ROCE_FETCH_ADD, .length = 8, .rkey = RKEY, .swap_add = 3},
		{.act = ROCE_COMPARE_SWAP, .length = 8, .rkey = RKEY, .compare = 3, .swap_add = 9},
		{.act = ROCE_FLUSH, .rkey = RKEY},
		{.act = ROCE_ATOMIC_WRITE, .length = 8, .rkey = RKEY},
		{.act = ROCE_SEND, .length = 0},
	};
	struct trouble trouble = {0};
	long packets = 1;

	(void)state;
	for (trouble.drop = 0; trouble.drop < packets; trouble.drop++) {
		begin_world(3, &trouble, false);
		for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
			post(requests[i]);
		run_all(NSEC_PER_SEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		assert_int_equal(w.req.timeouts, 0);
		check_results();
		packets = w.packets;
		end_world();
	}
	assert_true(packets > 20);
}

/* READs measure the round trip, too: one lost response of them does not stop the rest for long. */
static void reads_ask_again_soon(void **state)
{
	struct trouble trouble = {.drop = 0};

	(void)state;
	for (trouble.drop = 14; trouble.drop < 30; trouble.drop++) {
		begin_world(3, &trouble, false);
		for (int i = 0; i < 8; i++)
			post((struct rc_request){.act = ROCE_READ, .length = 9000, .rkey = RKEY});
		run_all(5 * NSEC_PER_MSEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		check_results();
		end_world();
	}
}

/* One response that is missing keeps no room in the window but its own. */
static void more_is_read_behind_a_hole(void **state)
{
	static const struct trouble trouble = {.drop = 2}; /* the first response */
	uint32_t first;

	(void)state;
	begin_world(3, &trouble, false);
	first = w.req.una;
	for (int i = 0; i < 3; i++) /* of which two fill the window */
		post((struct rc_request){.act = ROCE_READ, .length = 9 * MTU, .rkey = RKEY});
	while (roce_psn_diff(w.req.next, first) <= 18)
		assert_true(step());
	assert_int_equal(w.req.una, first);
	run_all(NSEC_PER_SEC);
	assert_int_equal(w.last, IBV_WC_SUCCESS);
	assert_int_equal(w.req.reads.came, 0);
	check_results();
	end_world();
}

/*
 * A READ behind a lost packet waits for that: how long says nothing about the wire, or who waits
 * for lost packets would wait ever longer.
 */
static void losses_are_no_round_trips(void **state)
{
	static const struct trouble trouble = {.lost = 100, .drop = DROP_NONE};

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		begin_world(seed, &trouble, false);
		for (int i = 0; i < REQUESTS; i++)
			post((struct rc_request){.act = i % 2 ? ROCE_READ : ROCE_WRITE,
				.length = MTU,
				.rkey = RKEY});
		run_all(NSEC_PER_SEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		assert_true(w.req.window.rtt < 50 * NSEC_PER_USEC);
		end_world();
	}
}

/* What came ahead of a lost packet is kept: once that has shown, lost ones alone are sent again. */
static void only_lost_is_sent_again(void **state)
{
	static const struct trouble trouble = {.lost = 10, .drop = DROP_NONE};
	uint64_t resent = 0;
	long packets = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		begin_world(seed, &trouble, false);
		for (int i = 0; i < REQUESTS; i++)
			post((struct rc_request){
				.act = ROCE_WRITE, .length = BYTES_MAX, .rkey = RKEY});
		run_all(NSEC_PER_SEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		assert_true(w.req.other_keeps);
		resent += w.req.resent;
		packets += w.packets;
		end_world();
	}
	/* the window that the first loss sends again is up to 256; one in 100 is lost */
	assert_true(resent < 10 * 256 + (uint64_t)packets / 20);
}

/* Whoever sends what does not fit the path gets no memory for it. */
static void too_long_is_not_kept(void **state)
{
	static const struct trouble trouble = {.drop = DROP_NONE};
	static const uint8_t bytes[ROCE_HEADERS_MAX + 2 * MTU];
	struct roce_packet p = {.op = roce_op(roce_opcode(ROCE_RC, ROCE_SEND, ROCE_ONLY, 0))};

	(void)state;
	begin_world(1, &trouble, false);
	p.psn = roce_psn_add(w.resp.expected, 2);
	p.payload_len = MTU + 1;
	rc_resp_keep(&w.resp, &p, bytes, sizeof bytes);
	assert_false(ahead_beyond(&w.resp.ahead, w.resp.expected));
	p.payload_len = MTU;
	rc_resp_keep(&w.resp, &p, bytes, ROCE_HEADERS_MAX + MTU);
	assert_true(ahead_beyond(&w.resp.ahead, w.resp.expected));
	end_world();
}

/* One that came in another way meanwhile would be a request of today when PSNs come round. */
static void kept_no_longer_than_ahead(void **state)
{
	struct ahead a = {0};
	const uint8_t byte = 1;
	size_t n;

	(void)state;
	assert_true(ahead_put(&a, 3, 5, &byte, sizeof byte));
	assert_true(ahead_beyond(&a, 3));
	assert_null(ahead_take(&a, 4, &n));
	assert_null(ahead_take(&a, 6, &n));
	assert_false(ahead_beyond(&a, 3));
	assert_null(ahead_take(&a, 5, &n));
	ahead_clear(&a);
}

/* Small and large ones; what the next loss needs is not asked of the kernel each time. */
static void kept_in_the_same_memory(void **state)
{
	static const uint8_t bytes[4096 + ROCE_HEADERS_MAX];
	static const size_t sizes[] = {1, 1024 + ROCE_HEADERS_MAX, sizeof bytes};
	enum { SMALL_BLOCK = 1160, LARGE_BLOCK = 4232 }; /* as ahead.c asks malloc() for */
	struct ahead a = {0};
	void *volatile other; /* or the compiler leaves it out */

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint8_t *first = NULL, *again = NULL;
		size_t n;

		assert_true(ahead_put(&a, 3, 5, bytes, sizes[i]));
		first = ahead_take(&a, 5, &n);
		assert_int_equal(n, sizes[i]);
		assert_memory_equal(first, bytes, n);
		ahead_free(first);
		/* what free() had got would be its caller's now */
		other = malloc(i < 2 ? SMALL_BLOCK : LARGE_BLOCK);
		assert_true(ahead_put(&a, 3, 6, bytes, sizes[i]));
		again = ahead_take(&a, 6, &n);
		assert_ptr_equal(again, first);
		ahead_free(again);
		free(other);
	}
	ahead_clear(&a);
}

/* What ends a connection: status, and when. */
static void refused(void **state)
{
	static const struct {
		enum resp_verdict verdict;
		enum ibv_wc_status status;
	} rows[] = {{RESP_INVALID, IBV_WC_REM_INV_REQ_ERR}, {RESP_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{RESP_OPERATION, IBV_WC_REM_OP_ERR}};
	static const struct trouble none = {.drop = DROP_NONE};

	(void)state;
	for (int i = 0; i < 6; i++) {
		begin_world(i, &none, false);
		post((struct rc_request){.act = ROCE_SEND, .length = 100});
		post((struct rc_request){
			.act = i & 1 ? ROCE_READ : ROCE_WRITE, .length = 5000, .rkey = RKEY});
		post((struct rc_request){.act = ROCE_SEND, .length = 100});
		w.refuse = rows[i / 2].verdict;
		run_all(NSEC_PER_SEC);
		assert_int_equal(w.ended, 2);
		assert_int_equal(w.last, rows[i / 2].status);
		assert_int_equal(w.fatal, 1);
		end_world();
	}
}

static void lose_all(void)
{
	while (w.n_flying)
		free(w.flying[--w.n_flying]);
}

/* A READ that comes again when it is done, and its memory no more there, does no harm. */
static void done_and_gone(void **state)
{
	static const struct trouble none = {.drop = DROP_NONE};
	struct roce_packet again = {
		.op = roce_op(0x0c), .opcode = 0x0c, .rkey = RKEY, .length = 3 * MTU};

	(void)state;
	begin_world(1, &none, false);
	again.psn = w.resp.expected;
	post((struct rc_request){.act = ROCE_READ, .length = 3 * MTU, .rkey = RKEY});
	run_all(NSEC_PER_SEC);
	w.gone = true;
	rc_resp_request(&w.resp, &again);
	post((struct rc_request){.act = ROCE_SEND, .length = 100});
	run_all(NSEC_PER_SEC);
	assert_int_equal(w.last, IBV_WC_SUCCESS);
	assert_int_equal(w.resp.duplicates, 1);
	assert_int_equal(w.fatal, 0);
	end_world();
}

/* Whose answer was lost learns why there is no other. */
static void lost_and_gone(void **state)
{
	static const struct trouble none = {.drop = DROP_NONE};

	(void)state;
	begin_world(1, &none, false);
	post((struct rc_request){.act = ROCE_READ, .length = 3 * MTU, .rkey = RKEY});
	while (!w.resp.replay.done.count || replay_next(&w.resp.replay))
		step();
	lose_all();
	w.gone = true;
	run_all(NSEC_PER_SEC);
	assert_int_equal(w.last, IBV_WC_REM_ACCESS_ERR);
	end_world();
}

/* More READs at a time than were granted: the one too many is refused; those before are answered.
 */
static void too_many_reads(void **state)
{
	static const struct trouble none = {.drop = DROP_NONE};

	(void)state;
	for (uint32_t granted = 1; granted <= 4; granted++) {
		struct roce_packet p = {
			.op = roce_op(0x0c), .opcode = 0x0c, .rkey = RKEY, .length = 2 * MTU};

		begin_world(granted - 1, &none, false);
		assert_int_equal(w.resp.conf.max_reads, granted);
		p.psn = w.resp.expected;
		for (uint32_t i = 0; i < granted; i++, p.psn = roce_psn_add(p.psn, 2))
			rc_resp_request(&w.resp, &p);
		p.psn = roce_psn_add(p.psn, -2); /* that one is no other: it came again */
		rc_resp_request(&w.resp, &p);
		assert_int_equal(w.fatal, 0);
		while (rc_resp_run(&w.resp, 1, true) && w.resp.replay.queue.count > granted)
			;
		p.psn = roce_psn_add(p.psn, 2);
		rc_resp_request(&w.resp, &p); /* the first has been answered */
		assert_int_equal(w.fatal, 0);
		p.psn = roce_psn_add(p.psn, 2);
		rc_resp_request(&w.resp, &p);
		assert_int_equal(w.fatal, 1);
		assert_int_equal(w.resp.nak, ROCE_NAK_INVALID_REQUEST);
		assert_int_equal(w.resp.nak_psn, p.psn);
		end_world();
	}
}

/* No adapter asks for more than 2 GiB, and PSNs would come round within it. */
static void too_long(void **state)
{
	static const struct trouble none = {.drop = DROP_NONE};
	static const uint8_t zeros[MTU], opcodes[] = {0x0c, 0x06};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct roce_packet p = {.op = roce_op(opcodes[i]),
			.opcode = opcodes[i],
			.rkey = RKEY,
			.length = ROCE_MESSAGE_MAX + 1,
			.payload = zeros,
			.payload_len = opcodes[i] == 0x06 ? MTU : 0};

		begin_world(1, &none, false);
		p.psn = w.resp.expected;
		rc_resp_request(&w.resp, &p);
		assert_int_equal(w.fatal, 1);
		assert_int_equal(w.resp.nak, ROCE_NAK_INVALID_REQUEST);
		assert_int_equal(w.resp.expected, p.psn);
		end_world();
	}
}

/* A responder that had no CPU for a while has got all: the probe alone was sent twice. */
static void late_is_not_lost(void **state)
{
	static const struct trouble none = {.drop = DROP_NONE};

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		begin_world(seed, &none, false);
		post((struct rc_request){.act = ROCE_SEND, .length = 15 * MTU});
		rc_req_run(&w.req, w.now);
		w.now = rc_req_deadline(&w.req);
		rc_req_expire(&w.req, w.now);
		assert_int_equal(w.req.probes, 1);
		run_all(NSEC_PER_SEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		assert_int_equal(w.req.resent, 1);
		end_world();
	}
}

static void never_a_receive(void **state)
{
	static const struct trouble none = {.no_receive = 1000, .drop = DROP_NONE};

	(void)state;
	begin_world(1, &none, false);
	w.req.conf.rnr_retry = w.req.rnr_tries = 3;
	post((struct rc_request){.act = ROCE_SEND, .length = 3000});
	run_all(NSEC_PER_SEC);
	assert_int_equal(w.last, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(w.req.rnr_naks, 4);
	end_world();
}

/* UC: what arrives is whole and in order; what was lost is lost. */
static void unreliable(void **state)
{
	uint32_t arrived = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct trouble trouble = {.lost = 30, .drop = DROP_NONE};

		begin_world(seed, &trouble, true);
		for (uint32_t i = 0; i < REQUESTS; i++) {
			struct rc_request r = random_request(true);

			r.has_imm = true;
			r.imm = i;
			post(r);
		}
		rc_req_run(&w.req, w.now);
		assert_int_equal(w.ended, REQUESTS);
		while (w.n_flying)
			step();
		arrived += w.arrived;
		end_world();
	}
	assert_in_range(arrived, 50 * REQUESTS / 2, 50 * REQUESTS - 1);
}

int main(int argc, char **argv)
{
	n_seeds = argc > 1 ? atol(argv[1]) : n_seeds;

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_requests),
		cmocka_unit_test(each_lost_once),
		cmocka_unit_test(reads_ask_again_soon),
		cmocka_unit_test(more_is_read_behind_a_hole),
		cmocka_unit_test(losses_are_no_round_trips),
		cmocka_unit_test(only_lost_is_sent_again),
		cmocka_unit_test(too_long_is_not_kept),
		cmocka_unit_test(kept_no_longer_than_ahead),
		cmocka_unit_test(kept_in_the_same_memory),
		cmocka_unit_test(refused),
		cmocka_unit_test(done_and_gone),
		cmocka_unit_test(lost_and_gone),
		cmocka_unit_test(too_many_reads),
		cmocka_unit_test(too_long),
		cmocka_unit_test(late_is_not_lost),
		cmocka_unit_test(never_a_receive),
		cmocka_unit_test(unreliable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
