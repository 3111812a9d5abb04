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
enum { OUI = 0x030a11 }; /* what fill() leaves there */

/* One port that talks to itself: a client that only sends, and a server of class SA or another. */
static struct {
	struct mad_layer layer;
	struct mad_port port;
	struct mad_agent client, server;
	uint64_t now;
	uint8_t mgmt_class;
	int sent, lose; /* the MAD with that number is lost */
	int requests, ended, status;
	size_t want, answer;
	bool right;
	struct rmpp_hdr first, final; /* segments of the request */
	uint8_t last_type, last_abort;
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
	wire_unpack(&rmpp_hdr_format, mad, &hdr);
	w.last_type = hdr.type;
	if (hdr.type == RMPP_ABORT || hdr.type == RMPP_STOP)
		w.last_abort = hdr.status;
	if (hdr.type == RMPP_DATA && hdr.segment == 1)
		w.first = hdr;
	if (hdr.type == RMPP_DATA && hdr.flags & RMPP_LAST)
		w.final = hdr;
	if (w.sent++ == w.lose)
		return 0;
	return mad_loopback(&w.port, addr, mad);
}

static void fill(uint8_t method, uint64_t tid, size_t len)
{
	const struct mad_hdr hdr = {.base_version = MAD_BASE_VERSION,
		.mgmt_class = w.mgmt_class,
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

static void begin_class(uint8_t mgmt_class)
{
	memset(&w, 0, sizeof w);
	w.now = NSEC_PER_SEC;
	w.lose = LOST_NONE;
	w.mgmt_class = mgmt_class;
	w.layer.now = now;
	mad_layer_init(&w.layer);
	w.port = (struct mad_port){.layer = &w.layer, .transmit = transmit};
	w.client = (struct mad_agent){.reg = {.qpn = 1, .rmpp_version = 1},
		.receive = on_short,
		.receive_long = on_request,
		.done = on_end};
	w.server = w.client;
	w.server.reg.mgmt_class = mgmt_class;
	w.server.reg.class_version = 2;
	w.server.reg.oui = OUI;
	w.server.reg.methods[0] = 1ull << GET_MULTI | 1ull << GET_TABLE;
	assert_int_equal(mad_register(&w.port, &w.client), 0);
	assert_int_equal(mad_register(&w.port, &w.server), 0);
}

static void begin(void)
{
	begin_class(MAD_CLASS_SA);
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

/* Every class with RMPP has its own place for the data, and so its own number of segments. */
static void payload_lengths(void **state)
{
	static const struct {
		uint8_t mgmt_class;
		size_t len;
		uint32_t segments, first, last;
	} c[] = {
		{MAD_CLASS_SA, 56, 1, 20, 20},
		{MAD_CLASS_SA, 168, 1, 132, 132},
		{MAD_CLASS_SA, 256, 1, 220, 220},
		{MAD_CLASS_SA, 257, 2, 241, 21},
		{MAD_CLASS_SA, 456, 2, 440, 220},
		{MAD_CLASS_SA, 20056, 100, 22000, 220},
		{MAD_CLASS_VENDOR2, 40, 1, 4, 4},
		{MAD_CLASS_VENDOR2, 256, 1, 220, 220},
		{MAD_CLASS_VENDOR2_END, 257, 2, 225, 5},
		{MAD_CLASS_VENDOR2_END, 472, 2, 440, 220},
		{MAD_CLASS_DEV_MGT, 64, 1, 28, 28},
		{MAD_CLASS_DEV_MGT, 256, 1, 220, 220},
		{MAD_CLASS_DEV_ADM, 257, 2, 249, 29},
		{MAD_CLASS_BIS, 448, 2, 440, 220},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		begin_class(c[i].mgmt_class);
		assert_int_equal(ask(c[i].len, 0, 0), 0);
		run();
		assert_int_equal(w.first.length, c[i].first);
		assert_true(w.first.flags & RMPP_FIRST);
		assert_int_equal(w.final.segment, c[i].segments);
		assert_int_equal(w.final.length, c[i].last);
		assert_int_equal(!(w.final.flags & RMPP_FIRST), c[i].segments > 1);
		assert_int_equal(w.requests, 1);
		assert_int_equal(w.status, 0);
		end();
	}
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
	assert_int_equal(w.last_abort, 0); /* as Linux: who is told nothing forgets it by itself */
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
		{RMPP_DATA, A, 0, RMPP_WINDOW + 2, 0, RMPP_SEGMENT_TOO_BIG},
		{RMPP_DATA, A, 0, UINT32_MAX, 0, RMPP_SEGMENT_TOO_BIG},
		{RMPP_DATA, A | L, 0, 2, 19, RMPP_BAD_LENGTH},
		{RMPP_DATA, A | L, 0, 2, 221, RMPP_BAD_LENGTH},
		{RMPP_DATA, A, 9, 2, 0, RMPP_BAD_STATUS},
		{RMPP_DATA, A, 9, 1, 0, RMPP_BAD_STATUS},
		{0, A, 0, 2, 0, RMPP_BAD_TYPE},
		{7, A, 0, 2, 0, RMPP_BAD_TYPE},
		{RMPP_STOP, A, RMPP_TOO_LONG, 0, 0, RMPP_BAD_STATUS},
		{RMPP_STOP, A, 0, 0, 0, RMPP_BAD_STATUS},
		{RMPP_ABORT, A, RMPP_NO_RESOURCES, 0, 0, RMPP_BAD_STATUS},
		{RMPP_ABORT, A, 117, 0, 0, RMPP_BAD_STATUS},
		{RMPP_ABORT, A, 128, 0, 0, RMPP_BAD_STATUS},
		/* what is no mistake is not answered */
		{RMPP_STOP, A, RMPP_NO_RESOURCES, 0, 0, 0},
		{RMPP_ABORT, A, RMPP_TOO_LONG, 0, 0, 0},
		{RMPP_ABORT, A, 127, 0, 0, 0},
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

/* What a receiver says of a message on its way, and what becomes of that. */
static void what_receivers_say(void **state)
{
	enum { GOES_ON, ENDS };

	static const struct {
		uint8_t type, version, status;
		uint32_t segment, window;
		uint8_t fate, answer; /* ABORT with that status; 0: none */
	} c[] = {
		{RMPP_ACK, 1, 0, 1, 65, GOES_ON, 0},
		{RMPP_ACK, 1, 0, 0, 1, GOES_ON, 0},
		{RMPP_ACK, 1, 0, 1, 0, ENDS, RMPP_WINDOW_TOO_SMALL},
		{RMPP_ACK, 1, 0, 0, 0, GOES_ON, 0}, /* an older one */
		{RMPP_ACK, 1, 0, 2, 1, ENDS, RMPP_WINDOW_TOO_SMALL},
		{RMPP_ACK, 1, 0, 50, 64, ENDS, RMPP_SEGMENT_TOO_BIG},
		{RMPP_ACK, 1, 5, 1, 64, ENDS, RMPP_BAD_STATUS},
		{RMPP_ACK, 2, 0, 1, 64, ENDS, RMPP_BAD_VERSION},
		{9, 1, 0, 1, 64, ENDS, RMPP_BAD_TYPE},
		{RMPP_STOP, 1, RMPP_NO_RESOURCES, 0, 0, ENDS, 0},
		{RMPP_STOP, 1, RMPP_TOO_LONG, 0, 0, ENDS, RMPP_BAD_STATUS},
		{RMPP_ABORT, 1, RMPP_TOO_LONG, 0, 0, ENDS, 0},
		{RMPP_ABORT, 1, 0, 0, 0, ENDS, RMPP_BAD_STATUS},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		const struct rmpp_hdr hdr = {.version = c[i].version,
			.type = c[i].type,
			.flags = RMPP_ACTIVE,
			.status = c[i].status,
			.segment = c[i].segment,
			.length = c[i].window};
		uint8_t mad[MAD_SIZE];

		begin();
		w.lose = 0; /* what is sent goes nowhere */
		assert_int_equal(ask(1000, 0, 3), 0);
		w.lose = w.sent;
		fill(GET_MULTI | MAD_RESPONSE, mad_tid(&w.client, 77), MAD_SIZE);
		memcpy(mad, message, MAD_SIZE);
		wire_pack(&rmpp_hdr_format, &hdr, mad);
		mad_receive(&w.port, &to, mad);
		assert_int_equal(w.ended, c[i].fate);
		assert_int_equal(w.status, c[i].fate == ENDS ? -ECONNABORTED : 0);
		assert_int_equal(w.last_abort, c[i].answer);
		end();
	}
}

/* Each segment of a response gives its request time again. */
static void slow_response(void **state)
{
	struct rmpp_hdr hdr = {.version = RMPP_VERSION, .type = RMPP_DATA, .flags = RMPP_ACTIVE};
	struct mad_send *s;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	w.lose = w.sent; /* all that goes out from here on: nobody else answers */
	fill(GET_MULTI, mad_tid(&w.client, 77), MAD_SIZE);
	assert_int_equal(mad_send(&w.client, &to, message, 100, 0, true, NULL, &s), 0);
	w.answer = SA_DATA + 5 * 200;
	fill(GET_MULTI | MAD_RESPONSE, mad_tid(&w.client, 77), w.answer);
	for (unsigned n = 1; n <= 5; n++) {
		w.lose = w.sent;
		w.now += 90 * NSEC_PER_MSEC;
		mad_run(&w.layer, 1);
		assert_int_equal(w.ended, 0);
		hdr.segment = n;
		hdr.flags = RMPP_ACTIVE | (n == 1 ? RMPP_FIRST : 0) | (n == 5 ? RMPP_LAST : 0);
		hdr.length = n == 5 ? 220 : 0;
		memcpy(mad, message, SA_DATA);
		memcpy(mad + SA_DATA, message + SA_DATA + (n - 1) * 200, 200);
		wire_pack(&rmpp_hdr_format, &hdr, mad);
		mad_receive(&w.port, &to, mad);
	}
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.status, 0);
	assert_true(w.right);
	end();
}

/* The same transaction id from another queue pair is another message. */
static void another_sender(void **state)
{
	const struct rmpp_hdr hdr = {
		.version = RMPP_VERSION, .type = RMPP_DATA, .flags = RMPP_ACTIVE, .segment = 2};
	struct mad_addr from = {
		.qp = 1, .qpn = 1, .has_grh = true, .grh = {.local = {2}, .remote = {1}}};

	(void)state;
	begin();
	come(RMPP_DATA, RMPP_ACTIVE | RMPP_FIRST, 1, 600, 0);
	fill(GET_MULTI, 5, MAD_SIZE);
	wire_pack(&rmpp_hdr_format, &hdr, message);
	from.qpn = 8;
	mad_receive(&w.port, &from, message);
	assert_int_equal(w.port.drops[MAD_DROP_RMPP], 1);
	from.qpn = 1;
	mad_receive(&w.port, &from, message);
	assert_int_equal(w.port.drops[MAD_DROP_RMPP], 1);
	end();
}

/* A response that nothing awaits is not assembled. */
static void unasked(void **state)
{
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = RMPP_DATA,
		.flags = RMPP_ACTIVE | RMPP_FIRST,
		.segment = 1};

	(void)state;
	begin();
	fill(GET_MULTI | MAD_RESPONSE, mad_tid(&w.client, 77), MAD_SIZE);
	wire_pack(&rmpp_hdr_format, &hdr, message);
	mad_receive(&w.port, &to, message);
	assert_int_equal(w.layer.n_recvs, 0);
	assert_int_equal(w.port.drops[MAD_DROP_RMPP], 1);
	assert_int_equal(w.sent, 0);
	end();
}

/* A class's own QP and OUI: what is cut for one server is put together for it alone. */
static void each_class(void **state)
{
	static const uint8_t classes[] = {MAD_CLASS_SA, MAD_CLASS_DEV_MGT, MAD_CLASS_DEV_ADM,
		MAD_CLASS_BIS, MAD_CLASS_VENDOR2, 0x37, MAD_CLASS_VENDOR2_END};

	(void)state;
	for (unsigned i = 0; i < sizeof classes; i++) {
		begin_class(classes[i]);
		assert_int_equal(ask(5000, 7000, 3), 0);
		run();
		assert_int_equal(w.requests, 1);
		assert_int_equal(w.status, 0);
		assert_true(w.right);
		end();
	}
	begin_class(MAD_CLASS_VENDOR2);
	mad_unregister(&w.server);
	w.server.reg.oui = OUI + 1;
	assert_int_equal(mad_register(&w.port, &w.server), 0);
	assert_int_equal(ask(5000, 0, 0), 0);
	run();
	assert_int_equal(w.requests, 0);
	assert_int_equal(w.status, -ETIMEDOUT);
	end();
}

/* Without a timeout: it is acknowledged in 2 s, and no response is awaited. */
static void without_timeout(void **state)
{
	struct mad_send *s;

	(void)state;
	begin();
	w.want = 1000;
	fill(GET_MULTI, mad_tid(&w.client, 77), 1000);
	assert_int_equal(mad_send_long(&w.client, &to, message, 1000, 0, 1, true, NULL, &s), 0);
	run();
	assert_int_equal(w.requests, 1);
	assert_int_equal(w.ended, 1);
	assert_int_equal(w.status, 0);
	end();
	begin();
	w.lose = 0;
	fill(GET_MULTI, mad_tid(&w.client, 77), 1000);
	assert_int_equal(mad_send_long(&w.client, &to, message, 1000, 0, 1, true, NULL, &s), 0);
	assert_int_equal(mad_next(&w.layer), w.now + RMPP_ACK_MS * NSEC_PER_MSEC);
	mad_cancel(s);
	end();
}

/* Messages that are complete do not keep others from coming; the oldest are forgotten. */
static void many_complete(void **state)
{
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = RMPP_DATA,
		.flags = RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST,
		.segment = 1,
		.length = 220};

	(void)state;
	begin();
	w.want = MAD_SIZE;
	for (int i = 0; i < RMPP_DONE_MAX + 10; i++) {
		w.lose = w.sent;
		w.now++;
		fill(GET_MULTI, 100 + i, MAD_SIZE);
		wire_pack(&rmpp_hdr_format, &hdr, message);
		mad_receive(&w.port, &to, message);
		assert_int_equal(w.requests, i + 1);
	}
	assert_int_equal(w.layer.n_recvs, 0);
	assert_int_equal(w.layer.n_done, RMPP_DONE_MAX);
	w.lose = w.sent;
	mad_receive(&w.port, &to, message); /* the last one again: known */
	assert_int_equal(w.last_type, RMPP_ACK);
	assert_int_equal(w.requests, RMPP_DONE_MAX + 10);
	w.now += (uint64_t)RMPP_DONE_MS * NSEC_PER_MSEC;
	mad_run(&w.layer, 1);
	assert_int_equal(w.layer.n_done, 0);
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

/* Messages from that sender whose first segments are sent; how many are coming then. */
static unsigned begin_from(const struct mad_addr *from, unsigned first, unsigned n)
{
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = RMPP_DATA,
		.flags = RMPP_ACTIVE | RMPP_FIRST,
		.segment = 1};

	for (unsigned i = 0; i < n; i++) {
		w.now++; /* their age */
		fill(GET_MULTI, first + i, MAD_SIZE);
		wire_pack(&rmpp_hdr_format, &hdr, message);
		mad_receive(&w.port, from, message);
	}
	return w.layer.n_recvs;
}

/*
 * One sender fills all places: another one gets its share, and its messages arrive.  False: both
 * have one count between them, by chance.
 */
static bool shares_with(uint16_t lid)
{
	struct mad_addr one = {
		.qp = 1, .qpn = 1, .has_grh = true, .grh = {.local = {2}, .remote = {1}}};
	struct mad_addr two = {.qp = 1, .qpn = 1, .lid = lid};
	bool apart;

	begin();
	assert_int_equal(begin_from(&one, 1000, 2 * RMPP_RECVS_MAX), RMPP_RECVS_MAX);
	w.port.drops[MAD_DROP_RMPP] = 0;
	assert_int_equal(begin_from(&two, 5000, RMPP_RECVS_MAX / 2), RMPP_RECVS_MAX);
	apart = w.port.drops[MAD_DROP_RMPP] == 0; /* all of them have begun */
	if (apart) {
		assert_int_equal(w.last_type, RMPP_ACK);
		begin_from(&two, 6000, 10);
		assert_int_equal(w.port.drops[MAD_DROP_RMPP], 10); /* half is its share */
		begin_from(&one, 7000, 10);
		assert_int_equal(w.port.drops[MAD_DROP_RMPP], 20);
		assert_int_equal(begin_from(&one, 1000 + RMPP_RECVS_MAX - 1, 1), RMPP_RECVS_MAX);
		/* the oldest gave way, not this */
		assert_int_equal(w.port.drops[MAD_DROP_RMPP], 20);
	}
	end();
	return apart;
}

static void shares(void **state)
{
	uint16_t lid = 7;

	(void)state;
	while (!shares_with(lid))
		assert_true(++lid < 12);
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
		cmocka_unit_test(each_class),
		cmocka_unit_test(without_timeout),
		cmocka_unit_test(what_receivers_say),
		cmocka_unit_test(unasked),
		cmocka_unit_test(slow_response),
		cmocka_unit_test(another_sender),
		cmocka_unit_test(many_complete),
		cmocka_unit_test(broken_segments),
		cmocka_unit_test(strays_and_stops),
		cmocka_unit_test(many_begin),
		cmocka_unit_test(shares),
		cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
