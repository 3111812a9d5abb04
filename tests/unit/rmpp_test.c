// SPDX-License-Identifier: BSD-3-Clause
/* RMPP: messages of every length, both ways, whatever is lost; and what breaks the protocol. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "mad/agents.h"
#include "mad/dispatch.h"
#include "mad/loop.h"
#include "mad/rmpp.h"
#include "wire/rmpp.h"

enum { GET_TABLE = 0x12, GET_MULTI = 0x14, LONGEST = 60000, SA_DATA = 56, LOST_NONE = -1 };

/* One port that talks to itself: a client without methods, and a server of class SA. */
static struct {
	struct mad_layer layer;
	struct mad_port port;
	struct mad_agent client, server;
	uint64_t now;
	int sent, lose; /* the MAD with that number is lost */
	int requests, ended, status;
	size_t want, answer;
	bool right;
	uint8_t last[MAD_SIZE];
	uint8_t last_abort;
} w;

static const struct mad_addr to = {
	.qp = 1, .qpn = 1, .has_grh = true, .grh = {.local = {1}, .remote = {2}}};
static uint8_t message[LONGEST];

static uint64_t now(void *arg)
{
	(void)arg;
	return w.now;
}

static int transmit(void *arg, const struct mad_addr *addr, const uint8_t mad[MAD_SIZE])
{
	struct rmpp_hdr hdr;

	(void)arg;
	memcpy(w.last, mad, MAD_SIZE);
	wire_unpack(&rmpp_hdr_format, mad, &hdr);
	if (hdr.type == RMPP_ABORT || hdr.type == RMPP_STOP)
		w.last_abort = hdr.status;
	if (w.sent++ == w.lose)
		return 0;
	return mad_loopback(&w.port, addr, mad);
}

static void fill(uint8_t method, uint64_t tid, size_t len)
{
	const struct mad_hdr hdr = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_SA,
		.class_version = 2,
		.method = method,
		.tid = tid};

	memset(message, 0, SA_DATA);
	for (size_t i = 36; i < len; i++)
		message[i] = i * 7 + (i >> 8);
	wire_pack(&mad_hdr_format, &hdr, message);
}

/* All but the RMPP header, which is the layer's. */
static bool same(const uint8_t *msg, size_t len)
{
	for (size_t i = 36; i < len; i++)
		if (msg[i] != (uint8_t)(i * 7 + (i >> 8)))
			return false;
	return true;
}

static void on_request(
	struct mad_agent *a, const struct mad_addr *from, const uint8_t *msg, size_t len)
{
	struct mad_send *s;
	struct mad_hdr hdr;

	wire_unpack(&mad_hdr_format, msg, &hdr);
	assert_int_equal(len, w.want);
	assert_true(same(msg, len));
	w.requests++;
	if (!w.answer)
		return;
	fill(GET_MULTI | MAD_RESPONSE, hdr.tid, w.answer);
	assert_int_equal(mad_send_long(a, from, message, w.answer, 100, 5, false, NULL, &s), 0);
}

static void on_short(struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	on_request(a, from, mad, MAD_SIZE);
}

static void on_end(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	if (a == &w.server)
		return; /* its response has arrived */
	w.ended++;
	w.status = status;
	w.right = response ? s->response_len == w.answer && same(response, s->response_len)
			   : !w.answer;
}

static void begin(void)
{
	memset(&w, 0, sizeof w);
	w.now = NSEC_PER_SEC;
	w.lose = LOST_NONE;
	w.layer.now = now;
	mad_layer_init(&w.layer);
	w.port = (struct mad_port){.layer = &w.layer, .transmit = transmit};
	w.client = (struct mad_agent){.reg = {.qpn = 1,
					      .mgmt_class = MAD_CLASS_SA,
					      .class_version = 2,
					      .rmpp_version = 1},
		.receive = on_short,
		.receive_long = on_request,
		.done = on_end};
	w.server = w.client;
	w.server.reg.methods[0] = 1ull << GET_MULTI | 1ull << GET_TABLE;
	assert_int_equal(mad_register(&w.port, &w.client), 0);
	assert_int_equal(mad_register(&w.port, &w.server), 0);
}

static void end(void)
{
	mad_port_end(&w.port);
	for (int i = 0; i < MAD_RECV_BUCKETS; i++)
		assert_null(w.layer.recvs[i]);
	assert_int_equal(w.layer.n_recvs, 0);
	assert_int_equal(w.layer.n_done, 0);
	assert_int_equal(w.layer.n_sends, 0);
	mad_layer_end(&w.layer);
}

static void run(void)
{
	for (int i = 0; i < 4000 && !w.ended; i++) {
		uint64_t next = mad_next(&w.layer);

		if (!next)
			return;
		if (next > w.now)
			w.now = next;
		mad_run(&w.layer, 16);
	}
}

static int ask(size_t len, size_t answer, uint32_t retries)
{
	struct mad_send *s;

	w.want = len;
	w.answer = answer;
	fill(GET_MULTI, mad_tid(&w.client, 77), len);
	return mad_send_long(&w.client, &to, message, len, 200, retries, answer != 0, NULL, &s);
}

static void lengths(void **state)
{
	static const size_t length[] = {SA_DATA, 57, 255, 256, 257, 456, 457, 64 * 200 + SA_DATA,
		64 * 200 + 57, 128 * 200 + SA_DATA, LONGEST};
	enum { N = sizeof length / sizeof *length };

	(void)state;
	for (unsigned i = 0; i < N; i++)
		for (unsigned j = 0; j <= N; j++) {
			begin();
			assert_int_equal(ask(length[i], j < N ? length[j] : 0, 3), 0);
			run();
			assert_int_equal(w.requests, 1);
			assert_int_equal(w.ended, 1);
			assert_int_equal(w.status, 0);
			assert_true(w.right);
			assert_int_equal(w.port.resent, 0);
			end();
		}
}

static void payload_lengths(void **state)
{
	struct rmpp_hdr hdr;

	(void)state;
	begin(); /* 400 bytes of data: two segments, each with 20 of the class */
	assert_int_equal(ask(456, 0, 0), 0);
	wire_unpack(&rmpp_hdr_format, w.last, &hdr);
	assert_int_equal(hdr.length, 440);
	assert_int_equal(hdr.flags, RMPP_ACTIVE | RMPP_FIRST);
	mad_run(&w.layer, 2); /* the segment, its ACK */
	wire_unpack(&rmpp_hdr_format, w.last, &hdr);
	assert_int_equal(hdr.segment, 2);
	assert_int_equal(hdr.length, 220);
	assert_int_equal(hdr.flags, RMPP_ACTIVE | RMPP_LAST);
	run();
	end();
	begin();
	assert_int_equal(ask(20056, 0, 0), 0);
	wire_unpack(&rmpp_hdr_format, w.last, &hdr);
	assert_int_equal(hdr.length, 22000);
	run();
	end();
}

static void each_loss(void **state)
{
	int total;

	(void)state;
	begin();
	assert_int_equal(ask(70 * 200, 3 * 200, 3), 0);
	run();
	total = w.sent;
	end();
	assert_true(total > 70);
	for (int lose = 0; lose < total; lose++) {
		begin();
		w.lose = lose;
		assert_int_equal(ask(70 * 200, 3 * 200, 3), 0);
		run();
		assert_int_equal(w.requests, 1);
		assert_int_equal(w.status, 0);
		assert_int_equal(w.ended, 1);
		assert_true(w.right);
		end();
	}
}

static void nobody_answers(void **state)
{
	(void)state;
	begin();
	mad_unregister(&w.server);
	assert_int_equal(ask(1000, 0, 2), 0);
	run();
	assert_int_equal(w.status, -ETIMEDOUT);
	assert_int_equal(w.last_abort, RMPP_TOO_MANY_TRIES);
	assert_int_equal(w.port.resent, 2);
	end();
	begin(); /* it has the request, and does not answer */
	assert_int_equal(ask(1000, 100, 2), 0);
	w.answer = 0;
	run();
	assert_int_equal(w.requests, 1);
	assert_int_equal(w.status, -ETIMEDOUT);
	end();
}

static void refused(void **state)
{
	struct mad_send *s;

	(void)state;
	begin();
	fill(GET_MULTI, 1, 100);
	assert_int_equal(
		mad_send_long(&w.client, &to, message, 55, 1, 1, false, NULL, &s), -EINVAL);
	message[1] = MAD_CLASS_PERF;
	assert_int_equal(
		mad_send_long(&w.client, &to, message, 100, 1, 1, false, NULL, &s), -EINVAL);
	end();
}

/* A segment of tid, as it comes from the other side. */
static void come(uint8_t type, uint8_t flags, uint32_t segment, uint32_t length, uint8_t status)
{
	const struct mad_addr from = {
		.qp = 1, .qpn = 1, .has_grh = true, .grh = {.local = {2}, .remote = {1}}};
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = type,
		.flags = flags,
		.status = status,
		.segment = segment,
		.length = length};
	uint8_t mad[MAD_SIZE];

	fill(GET_MULTI, 5, MAD_SIZE);
	memcpy(mad, message, MAD_SIZE);
	wire_pack(&rmpp_hdr_format, &hdr, mad);
	mad_receive(&w.port, &from, mad);
}

static void broken_segments(void **state)
{
	enum { A = RMPP_ACTIVE, F = RMPP_FIRST, L = RMPP_LAST };

	static const struct {
		uint8_t type, flags, status;
		uint32_t segment, length;
		uint8_t why;
	} bad[] = {
		{RMPP_DATA, A, 0, 1, 0, RMPP_BAD_SEGMENT},
		{RMPP_DATA, A | F, 0, 2, 0, RMPP_BAD_SEGMENT},
		{RMPP_DATA, A, 0, 0, 0, RMPP_BAD_SEGMENT},
		{RMPP_DATA, A, 0, RMPP_WINDOW + 1, 0, RMPP_SEGMENT_TOO_BIG},
		{RMPP_DATA, A, 0, UINT32_MAX, 0, RMPP_SEGMENT_TOO_BIG},
		{RMPP_DATA, A | L, 0, 2, 19, RMPP_BAD_LENGTH},
		{RMPP_DATA, A | L, 0, 2, 221, RMPP_BAD_LENGTH},
		{RMPP_DATA, A, 9, 2, 0, RMPP_BAD_STATUS},
		{7, A, 0, 2, 0, RMPP_BAD_TYPE},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		begin();
		w.lose = 0;
		come(RMPP_DATA, A | F, 1, 600, 0);
		assert_int_equal(w.layer.n_recvs, 1);
		come(bad[i].type, bad[i].flags, bad[i].segment, bad[i].length, bad[i].status);
		assert_int_equal(w.last_abort, bad[i].why);
		assert_int_equal(w.layer.n_recvs, 0);
		assert_int_equal(w.requests, 0);
		end();
	}
}

static void strays_and_stops(void **state)
{
	(void)state;
	begin();
	come(RMPP_ACK, RMPP_ACTIVE, 1, 64, 0);
	come(RMPP_ABORT, RMPP_ACTIVE, 0, 0, RMPP_TOO_LONG);
	come(RMPP_DATA, RMPP_ACTIVE, 2, 0, 0);
	assert_int_equal(w.port.drops[MAD_DROP_RMPP], 3);
	come(RMPP_DATA, RMPP_ACTIVE | RMPP_FIRST, 1, 600, 0);
	come(RMPP_STOP, RMPP_ACTIVE, 0, 0, RMPP_NO_RESOURCES);
	assert_int_equal(w.layer.n_recvs, 0);
	come(RMPP_DATA, RMPP_ACTIVE | RMPP_FIRST, 1, 600, 0);
	w.now += (uint64_t)RMPP_RECV_MS * NSEC_PER_MSEC;
	mad_run(&w.layer, 100); /* the rest never came */
	assert_int_equal(w.last_abort, RMPP_TOO_LONG);
	assert_int_equal(w.layer.n_recvs, 0);
	end();
}

/* No more than so many at a time, however many begin. */
static void many_begin(void **state)
{
	const struct mad_addr from = {
		.qp = 1, .qpn = 1, .has_grh = true, .grh = {.local = {2}, .remote = {1}}};
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = RMPP_DATA,
		.flags = RMPP_ACTIVE | RMPP_FIRST,
		.segment = 1};

	(void)state;
	begin();
	for (int i = 0; i < 2 * RMPP_RECVS_MAX; i++) {
		fill(GET_MULTI, 100 + i, MAD_SIZE);
		wire_pack(&rmpp_hdr_format, &hdr, message);
		mad_receive(&w.port, &from, message);
	}
	assert_int_equal(w.layer.n_recvs, RMPP_RECVS_MAX);
	assert_int_equal(w.port.drops[MAD_DROP_RMPP], RMPP_RECVS_MAX);
	end();
}

/* Headers of any kind, beside a transfer that is under way. */
static void anything(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 200; round++) {
		begin();
		w.want = 0;
		fill(GET_MULTI, mad_tid(&w.client, 77), 5000);
		struct mad_send *s;
		const struct mad_addr from = {
			.qp = 1, .qpn = 1, .has_grh = true, .grh = {.local = {1}, .remote = {2}}};

		w.lose = 0;
		(void)mad_send_long(&w.client, &to, message, 5000, 200, 1, true, NULL, &s);
		/* nothing is delivered that we would check */
		mad_unregister(&w.server);
		w.server.reg.methods[0] = 0;
		assert_int_equal(mad_register(&w.port, &w.server), 0);
		for (int i = 0; i < 50; i++) {
			uint8_t mad[MAD_SIZE];
			struct rmpp_hdr hdr = {.version = RMPP_VERSION + !(rand() % 20),
				.type = rand() % 6,
				.flags = RMPP_ACTIVE | (rand() & 6),
				.status = rand() % 10 ? 0 : rand(),
				.segment = rand() % 4 ? rand() % 30 : rand(),
				.length = rand() % 2 ? rand() % 300 : rand()};

			fill(GET_MULTI | (rand() % 2 ? MAD_RESPONSE : 0), mad_tid(&w.client, 77),
				MAD_SIZE);
			memcpy(mad, message, MAD_SIZE);
			wire_pack(&rmpp_hdr_format, &hdr, mad);
			mad_receive(&w.port, &from, mad);
		}
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(payload_lengths),
		cmocka_unit_test(each_loss),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(refused),
		cmocka_unit_test(broken_segments),
		cmocka_unit_test(strays_and_stops),
		cmocka_unit_test(many_begin),
		cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
