// SPDX-License-Identifier: BSD-3-Clause
/*
 * A requester and a responder on a wire that loses, repeats, delays and reorders packets, with a
 * clock of its own: random requests end in order, each carried out once, with the right bytes; and
 * what ends a connection does so with the right status, in the right time.
 */
#include "tests/unit/roce_world.h"

#include <stdlib.h>
#include <string.h>

/* More can be asked for on the command line. */
static long n_seeds = 400;

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
	for (uint64_t seed = 0; seed < (uint64_t)n_seeds; seed++) {
		struct trouble trouble = troubles[seed % (sizeof troubles / sizeof troubles[0])];

		trouble.strangers = seed % 3 == 0;
		random_run(seed, &trouble);
	}
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

/* The same of the responses of READs. */
static void only_lost_is_asked_for_again(void **state)
{
	static const struct trouble trouble = {.lost = 10, .drop = DROP_NONE};
	uint64_t resent = 0;
	long packets = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		begin_world(seed, &trouble, false);
		for (int i = 0; i < REQUESTS; i++)
			post((struct rc_request){
				.act = ROCE_READ, .length = BYTES_MAX, .rkey = RKEY});
		run_all(NSEC_PER_SEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		resent += w.req.resent;
		packets += w.packets;
		end_world();
	}
	assert_true(resent < (uint64_t)packets / 40);
}

/* A packet that others overtook has come by itself when it is sent again: the rest is asked for. */
static void overtaken_is_not_lost(void **state)
{
	static const struct trouble trouble = {.drop = DROP_NONE, .overtaken = 4};

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin_world(3, &trouble, false);
		w.req.other_keeps = true;
		post((struct rc_request){
			.act = i ? ROCE_READ : ROCE_SEND, .length = 9 * MTU, .rkey = RKEY});
		run_all(NSEC_PER_MSEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		assert_int_equal(w.req.probes, 0);
		assert_in_range(w.req.resent, 1, 3);
		check_results();
		end_world();
	}
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

enum { READ = 0x0c, SWAP = 0x13, ADD = 0x14, FLUSH = 0x1c, ATOMIC_WRITE = 0x1d };

/* A request, one that comes when it was answered, and by how much that differs from it. */
static const struct again {
	uint8_t opcode, again;
	int psn;
	int64_t va;
	uint32_t rkey;
	int32_t length;
	uint32_t packets; /* of the answer; 0: none */
} agains[] = {
	{READ, READ, 0, 0, 0, 0, 3},
	{READ, READ, 0, 0, 0, -MTU, 2},
	{READ, READ, 1, MTU, 0, -MTU, 2},
	{READ, READ, 2, 2 * MTU, 0, -2 * MTU, 1},
	{READ, READ, 0, 8, 0, 0, 0},
	{READ, READ, 0, 3 * MTU, 0, 0, 0},
	{READ, READ, 0, -8, 0, 0, 0},
	{READ, READ, 0, -4 * MTU, 0, -2 * MTU, 0},
	{READ, READ, 0, 8, 0, -8, 0},
	{READ, READ, 1, 0, 0, -MTU, 0},
	{READ, READ, 1, MTU + 8, 0, -MTU - 8, 0},
	{READ, READ, 0, 0, 1, 0, 0},
	{READ, READ, 0, 0, 0, 1, 0},
	{READ, READ, 0, 0, 0, MTU, 0},
	{READ, READ, 1, MTU, 0, 0, 0},
	{READ, READ, -1, 0, 0, 0, 0},
	{READ, READ, -1, -MTU, 0, 0, 0},
	{READ, ADD, 0, 0, 0, 0, 0},
	{ADD, ADD, 0, 0, 0, 0, 1},
	{ADD, ADD, 0, 1, 0, 0, 0},
	{ADD, ADD, 0, 0, 1, 0, 0},
	{ADD, ADD, -1, 0, 0, 0, 0},
	{ADD, SWAP, 0, 0, 0, 0, 0},
	{ADD, READ, 0, 0, 0, 8, 0},
	{SWAP, SWAP, 0, 0, 0, 0, 1},
	{SWAP, SWAP, 0, 1, 0, 0, 0},
	{SWAP, SWAP, 0, 0, 1, 0, 0},
	{SWAP, ADD, 0, 0, 0, 0, 0},
	{FLUSH, FLUSH, 0, 0, 0, 0, 1},
	{FLUSH, FLUSH, 0, 8, 0, 0, 0},
	{FLUSH, FLUSH, 0, 0, 1, 0, 0},
	{ATOMIC_WRITE, ATOMIC_WRITE, 0, 0, 0, 0, 1},
	{ATOMIC_WRITE, ATOMIC_WRITE, 0, 8, 0, 0, 0},
	{ATOMIC_WRITE, ATOMIC_WRITE, 0, 0, 1, 0, 0},
};

static struct roce_packet first_of(const struct again *a)
{
	static const uint8_t eight[8];
	const struct roce_op *op = roce_op(a->opcode);
	bool word = op->act == ROCE_COMPARE_SWAP || op->act == ROCE_FETCH_ADD;

	return (struct roce_packet){.op = op,
		.opcode = a->opcode,
		.psn = w.resp.expected,
		.va = word ? 3 : 8 * MTU,
		.rkey = RKEY,
		.length = op->act == ROCE_READ ? 3 * MTU : 0,
		.payload = eight,
		.payload_len = op->act == ROCE_ATOMIC_WRITE ? sizeof eight : 0,
		.swap_add = 5};
}

static void respond(const struct roce_packet *p)
{
	rc_resp_request(&w.resp, p);
	while (rc_resp_run(&w.resp, 1 << 20, true))
		;
}

/*
 * Who asks again for what was answered is answered again, in whole or in part; who asks for
 * anything else by the same PSNs gets nothing, and changes nothing: it might be memory that the
 * first one was not allowed.
 */
static void asked_again_otherwise(void **state)
{
	static const struct trouble none = {.drop = DROP_NONE};

	(void)state;
	for (size_t i = 0; i < sizeof agains / sizeof agains[0]; i++) {
		const struct again *a = &agains[i];
		struct roce_packet p;
		uint64_t words[WORDS];

		begin_world(1, &none, false);
		p = first_of(a);
		post((struct rc_request){.act = p.op->act, .length = p.length, .rkey = RKEY});
		respond(&p);
		assert_int_equal(w.n_flying, p.op->act == ROCE_READ ? 3 : 1);
		lose_all();
		memcpy(words, w.words, sizeof words);
		p.op = roce_op(a->again);
		p.opcode = a->again;
		p.psn = roce_psn_add(p.psn, a->psn);
		p.va += a->va;
		p.rkey += a->rkey;
		p.length += a->length;
		respond(&p);
		if (w.n_flying != a->packets)
			fail_msg("row %zu: %zu packets, not %u", i, w.n_flying, a->packets);
		assert_int_equal(w.resp.duplicates, 1);
		assert_int_equal(w.resp.dropped, !a->packets);
		assert_int_equal(w.fatal, 0);
		assert_memory_equal(w.words, words, sizeof words);
		end_world();
	}
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

/*
 * RNR NAKs in a row count: each request may meet as many as rnr_retry says, however many there were
 * before it, and whatever told that those before were carried out.
 */
static void receives_come_late(void **state)
{
	static const struct {
		struct rc_request first, second;
	} rows[] = {
		{{.act = ROCE_SEND, .length = 100}, {.act = ROCE_SEND, .length = 3000}},
		{{.act = ROCE_SEND, .length = 3000, .has_imm = true},
			{.act = ROCE_WRITE, .length = 3000, .rkey = RKEY, .has_imm = true}},
		{{.act = ROCE_SEND, .length = 100},
			{.act = ROCE_READ, .length = 3000, .rkey = RKEY}},
		{{.act = ROCE_WRITE, .length = 0, .rkey = RKEY, .has_imm = true},
			{.act = ROCE_FETCH_ADD, .length = 8, .rkey = RKEY, .swap_add = 1}},
	};

	(void)state;
	for (unsigned tries = 1; tries <= 3; tries++)
		for (unsigned i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
			struct trouble late = {.in_vain = tries, .drop = DROP_NONE};

			begin_world(1, &late, false);
			w.req.conf.rnr_retry = w.req.rnr_tries = tries;
			for (int n = 0; n < 5; n++) {
				post(rows[i / 2].first);
				post(rows[i / 2].second);
				if (i & 1) /* else all are posted at once */
					run_all(NSEC_PER_SEC);
			}
			run_all(NSEC_PER_SEC);
			if (w.last != IBV_WC_SUCCESS)
				fail_msg("row %u, rnr_retry %u: request %u of 10 ended in %d", i,
					tries, w.ended, w.last);
			assert_int_equal(w.ended, 10);
			assert_true(w.resp.rnr_naks >= 5 * tries);
			check_results();
			end_world();
		}
}

/* Until so many timeouts were counted, all is lost. */
static void lose_until(uint64_t timeouts)
{
	w.trouble.lost = 1000;
	lose_all();
	while (w.req.timeouts < timeouts && w.last == IBV_WC_SUCCESS)
		step();
	w.trouble.lost = 0;
}

/*
 * Timeouts in a row count: a link that dies again and again, and carries something in between, ends
 * no connection, whatever the other end answered by.
 */
static void timeouts_with_progress_between(void **state)
{
	static const struct rc_request requests[] = {
		{.act = ROCE_SEND, .length = 3000},
		{.act = ROCE_WRITE, .length = 3000, .rkey = RKEY},
		{.act = ROCE_READ, .length = 3000, .rkey = RKEY},
		{.act = ROCE_FETCH_ADD, .length = 8, .rkey = RKEY, .swap_add = 3},
		{.act = ROCE_COMPARE_SWAP, .length = 8, .rkey = RKEY, .swap_add = 9},
		{.act = ROCE_FLUSH, .rkey = RKEY},
		{.act = ROCE_ATOMIC_WRITE, .length = 8, .rkey = RKEY},
	};
	static const struct trouble none = {.drop = DROP_NONE};

	(void)state;
	for (unsigned tries = 1; tries <= 2; tries++)
		for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
			begin_world(1, &none, false);
			w.req.conf.retry_cnt = w.req.retries = tries;
			for (unsigned n = 1; n <= 4; n++) {
				post(requests[i]);
				lose_until(n * tries);
				run_all(NSEC_PER_SEC);
				if (w.last != IBV_WC_SUCCESS || w.ended != n)
					fail_msg("row %zu, retry_cnt %u: %u of %u, status %d", i,
						tries, w.ended, n, w.last);
			}
			assert_int_equal(w.req.timeouts, 4 * tries);
			check_results();
			post(requests[i]);
			lose_until(5 * tries + 1);
			assert_int_equal(w.last, IBV_WC_RETRY_EXC_ERR);
			end_world();
		}
}

/* The same within one long READ and one long WRITE: a part of them is progress, too. */
static void timeouts_within_a_message(void **state)
{
	static const struct trouble none = {.drop = DROP_NONE};

	(void)state;
	for (int read = 0; read < 2; read++) {
		begin_world(1, &none, false);
		w.req.conf.retry_cnt = w.req.retries = 1;
		post((struct rc_request){
			.act = read ? ROCE_READ : ROCE_WRITE, .length = BYTES_MAX, .rkey = RKEY});
		for (unsigned n = 1; n <= 3; n++) {
			uint32_t una = w.req.una, placed = w.placed;

			lose_until(n);
			while (w.req.una == una && w.placed == placed && w.last == IBV_WC_SUCCESS)
				assert_true(step());
			assert_int_equal(w.ended, 0);
		}
		run_all(NSEC_PER_SEC);
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		assert_int_equal(w.req.timeouts, 3);
		check_results();
		end_world();
	}
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
		cmocka_unit_test(only_lost_is_asked_for_again),
		cmocka_unit_test(overtaken_is_not_lost),
		cmocka_unit_test(refused),
		cmocka_unit_test(done_and_gone),
		cmocka_unit_test(asked_again_otherwise),
		cmocka_unit_test(lost_and_gone),
		cmocka_unit_test(too_many_reads),
		cmocka_unit_test(too_long),
		cmocka_unit_test(late_is_not_lost),
		cmocka_unit_test(never_a_receive),
		cmocka_unit_test(receives_come_late),
		cmocka_unit_test(timeouts_with_progress_between),
		cmocka_unit_test(timeouts_within_a_message),
		cmocka_unit_test(unreliable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
