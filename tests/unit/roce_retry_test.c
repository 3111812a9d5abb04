// SPDX-License-Identifier: BSD-3-Clause
/*
 * When a requester gives up: after the times that were asked for, but not while the answer lies
 * unread in our own socket.  With a clock of its own, and no other end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "roce/proto/answers.h"
#include "roce/proto/req_timer.h"
#include "roce/proto/requester.h"
#include "tests/unit/rnr_times.h"

enum { TIMEOUT_NS = 60000000, RETRIES = 7, MTU = 1024, PSN = 77, LENGTH = 15 * MTU };

static struct world {
	uint64_t now;
	struct rc_requester req;
	uint32_t posted, ended, sent;
	bool full;
	enum ibv_wc_status last;
} w;

static bool on_request(void *arg, uint32_t entry, struct rc_request *r)
{
	(void)arg;
	*r = (struct rc_request){.act = ROCE_SEND, .length = LENGTH};
	return entry < w.posted;
}

static bool on_send(
	void *arg, const struct roce_packet *head, uint32_t entry, uint64_t offset, size_t len)
{
	(void)arg, (void)head, (void)entry, (void)offset, (void)len;
	w.sent += !w.full;
	return !w.full;
}

static void on_complete(void *arg, uint32_t entry, enum ibv_wc_status status)
{
	(void)arg, (void)entry;
	w.ended++;
	w.last = status;
}

static const struct rc_req_ops ops = {
	.request = on_request, .send = on_send, .complete = on_complete};

static void post(void)
{
	w.posted++;
	rc_req_run(&w.req, w.now);
}

static int begin(void **state)
{
	const struct rc_req_config conf = {.mtu = MTU,
		.psn = PSN,
		.timeout = TIMEOUT_NS,
		.retry_cnt = RETRIES,
		.entries = 16,
		.max_reads = 1};

	(void)state;
	w = (struct world){.now = NSEC_PER_SEC};
	return rc_req_start(&w.req, &conf, &ops, NULL);
}

static int end(void **state)
{
	(void)state;
	rc_req_end(&w.req);
	return 0;
}

static void answer(uint32_t psn, uint8_t syndrome)
{
	const struct roce_packet p = {
		.op = roce_op(0x11), .opcode = 0x11, .psn = psn, .syndrome = syndrome};

	rc_req_answer(&w.req, &p, w.now);
	rc_req_run(&w.req, w.now);
}

/* The other end has all that was sent. */
static void acknowledge(void)
{
	answer(roce_psn_add(w.req.sent, -1), ROCE_ACK_NO_CREDITS);
}

static void next_deadline(void)
{
	w.now = rc_req_deadline(&w.req);
	rc_req_expire(&w.req, w.now);
	rc_req_run(&w.req, w.now);
}

static void nobody_answers(void **state)
{
	uint64_t began = w.now;

	(void)state;
	post();
	while (!w.ended)
		next_deadline();
	assert_int_equal(w.last, IBV_WC_RETRY_EXC_ERR);
	/* the first try and its retries, each for the queue pair's timeout */
	assert_in_range(
		w.now - began, (RETRIES + 1ull) * TIMEOUT_NS, (RETRIES + 2ull) * TIMEOUT_NS);
}

/* A program that waits for its CPU is asked all the while, and answers in the last moment. */
static void no_cpu_for_long(void **state)
{
	uint64_t end = w.now + (RETRIES + 1ull) * TIMEOUT_NS - 1;
	uint32_t sent;

	(void)state;
	post();
	sent = w.sent;
	while (rc_req_deadline(&w.req) < end)
		next_deadline();
	w.now = end;
	assert_int_equal(w.ended, 0);
	assert_true(w.sent - sent > RETRIES);
	acknowledge();
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.last, IBV_WC_SUCCESS);
}

/*
 * Where there is no room for the packet that is to be sent again, as where only a worker may read
 * its bytes, it is sent as soon as there is.
 */
static void no_room_for_what_is_asked_again(void **state)
{
	uint32_t sent;

	(void)state;
	post();
	sent = w.sent;
	w.full = true;
	next_deadline();
	assert_int_equal(w.req.probes, 1);
	w.full = false;
	rc_req_run(&w.req, w.now);
	assert_int_equal(w.sent, sent + 1);
	rc_req_run(&w.req, w.now);
	assert_int_equal(w.sent, sent + 1);
	w.full = true;
	next_deadline();
	acknowledge();
	w.full = false;
	rc_req_run(&w.req, w.now);
	assert_int_equal(w.sent, sent + 1);
	assert_int_equal(w.ended, 1);
}

/* Who had no CPU itself, and posts before it reads: the answer came meanwhile. */
static void posts_before_it_reads(void **state)
{
	(void)state;
	w.req.conf.retry_cnt = w.req.retries = 0;
	post();
	w.now += NSEC_PER_SEC;
	post();
	assert_int_equal(w.ended, 0);
	acknowledge();
	rc_req_expire(&w.req, w.now);
	assert_true(w.ended > 0);
	assert_int_equal(w.last, IBV_WC_SUCCESS);
	assert_int_equal(w.req.timeouts, 0);
}

/* What an RNR NAK asks for is waited, neither less nor more; code 0 is the longest of all. */
static void times_of_rnr(void **state)
{
	uint32_t sent;

	(void)state;
	w.req.conf.rnr_retry = w.req.rnr_tries = RNR_RETRY_FOR_EVER;
	post();
	for (unsigned code = 0; code < 32; code++) {
		assert_int_equal(rc_rnr_time(code), rnr_ns(code));
		answer(PSN, ROCE_RNR_NAK | code);
		assert_int_equal(rc_req_deadline(&w.req), w.now + rnr_ns(code));
		sent = w.sent;
		w.now += rnr_ns(code) - 1;
		rc_req_expire(&w.req, w.now);
		rc_req_run(&w.req, w.now);
		assert_int_equal(w.sent, sent);
		w.now++;
		rc_req_expire(&w.req, w.now);
		rc_req_run(&w.req, w.now);
		assert_true(w.sent > sent);
	}
	assert_int_equal(w.ended, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_answers, begin, end),
		cmocka_unit_test_setup_teardown(no_cpu_for_long, begin, end),
		cmocka_unit_test_setup_teardown(no_room_for_what_is_asked_again, begin, end),
		cmocka_unit_test_setup_teardown(posts_before_it_reads, begin, end),
		cmocka_unit_test_setup_teardown(times_of_rnr, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
