// SPDX-License-Identifier: BSD-3-Clause
/*
 * What comes ahead of what is awaited: kept for a while, in the same memory, and not taken where
 * somebody else sent it.
 */
#include "tests/unit/roce_world.h"

#include <stdlib.h>
#include <string.h>

/* Makes a packet of that opcode arrive, MTU bytes that nobody else sent. */
static void forge(uint8_t opcode, uint32_t psn)
{
	uint8_t bytes[ROCE_HEADERS_MAX + MTU + ROCE_ICRC_LEN] = {0};
	struct roce_packet p = {.op = roce_op(opcode),
		.opcode = opcode,
		.psn = psn,
		.again = chance(500),
		.rkey = RKEY,
		.syndrome = ROCE_ACK_NO_CREDITS};
	size_t len;

	p.payload_len = p.op->act == ROCE_READ ? 0 : MTU;
	p.dest_qpn = roce_is_response(p.op) ? QPN_REQ : QPN_RESP;
	len = roce_build(&p, bytes);
	memset(bytes + len, 'X', p.payload_len);
	assert_int_equal(roce_parse(bytes, len + p.payload_len + ROCE_ICRC_LEN, &p), ROCE_GOOD);
	if (roce_is_response(p.op))
		rc_req_answer(&w.req, &p, w.now);
	else
		take_request(&p, bytes, len + p.payload_len + ROCE_ICRC_LEN);
}

/* A packet with one of the 255 PSNs behind the one that is awaited. */
static void forge_some(void)
{
	static const uint8_t requests[] = {0x00, 0x01, 0x02, 0x04, 0x0c},
			     responses[] = {0x0d, 0x0e, 0x0f, 0x10};
	uint32_t i = 1 + draw(255), came = w.req.reads.came;

	if (chance(500))
		forge(requests[draw(sizeof requests)], roce_psn_add(w.resp.expected, i));
	else if (w.req.reads.count)
		forge(responses[draw(sizeof responses)],
			roce_psn_add(reads_turn(&w.req.reads), 1 + i % 64));
	if (!w.trouble.strangers)
		return;
	assert_false(w.resp.ahead.used);
	assert_int_equal(w.req.reads.came, came);
}

/*
 * Who does not know which PSN is awaited puts nothing into the messages of others, nor into what
 * they read, and takes nothing away, as long as nothing is lost.
 */
static void forged_ahead(void **state)
{
	struct trouble trouble = {.drop = DROP_NONE};
	uint64_t passed = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		trouble.strangers = seed % 4 == 0;
		begin_world(seed, &trouble, false);
		for (uint32_t i = 0; i < REQUESTS; i++)
			post(random_request(false));
		while (w.ended < w.posted) {
			assert_true(step());
			if (chance(100))
				forge_some();
		}
		assert_int_equal(w.last, IBV_WC_SUCCESS);
		check_results();
		passed += w.resp.ahead.passed;
		end_world();
	}
	assert_true(passed > 200); /* they were kept, and not taken */
}

/* Two that came ahead with one PSN: one is forged, and nobody knows which. */
static void forged_beside_a_true_one(void **state)
{
	struct ahead a = {0};
	uint8_t one[64] = {0}, other[64] = {0};
	size_t n;

	(void)state;
	one[4] = 0x40, one[8] = 0xc0; /* a mark of the network; asked for again */
	one[63] = 1;                  /* so its ICRC is another one */
	assert_true(ahead_put(&a, 3, 5, one, sizeof one));
	assert_true(ahead_put(&a, 3, 5, other, sizeof other));
	assert_int_equal(a.passed, 0);
	other[20] = 1;
	assert_false(ahead_put(&a, 3, 5, other, sizeof other));
	assert_int_equal(a.passed, 2);
	assert_null(ahead_take(&a, 5, &n));
	ahead_clear(&a);
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
	ahead_expect(&a, 6);
	assert_int_equal(a.passed, 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forged_ahead),
		cmocka_unit_test(forged_beside_a_true_one),
		cmocka_unit_test(too_long_is_not_kept),
		cmocka_unit_test(kept_no_longer_than_ahead),
		cmocka_unit_test(kept_in_the_same_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
