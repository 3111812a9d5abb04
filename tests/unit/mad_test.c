// SPDX-License-Identifier: BSD-3-Clause
/* The MAD layer: who gets what, retries, transactions, what nobody wants; and deadlines. */
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
#include "mad/mad.h"

static struct {
	struct mad_port port;
	uint64_t now;
	int transmitted, received, done, status;
	bool loop, answered;
	uint8_t last[MAD_SIZE];
} w;

static const struct mad_addr peer = {.has_grh = true, .grh = {.local = {1}, .remote = {2}}};

static uint64_t now(void *arg)
{
	(void)arg;
	return w.now;
}

static int transmit(void *arg, const struct mad_addr *to, const uint8_t mad[MAD_SIZE])
{
	(void)arg;
	w.transmitted++;
	memcpy(w.last, mad, MAD_SIZE);
	return w.loop ? mad_loopback(&w.port, to, mad) : 0;
}

static void receive(struct mad_agent *a, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	(void)a, (void)mad;
	if (w.loop) /* what we sent from 1 to 2 comes to 2 from 1 */
		assert_true(from->grh.local[0] == 2 && from->grh.remote[0] == 1);
	w.received++;
}

static void done(struct mad_agent *a, struct mad_send *s, int status, const uint8_t *response)
{
	(void)a;
	assert_ptr_equal(s->context, &w);
	w.done++;
	w.status = status;
	w.answered = response != NULL;
}

static struct mad_agent agent_of(uint8_t mgmt_class, uint8_t version, unsigned method)
{
	struct mad_agent a = {.mgmt_class = mgmt_class,
		.class_version = version,
		.receive = receive,
		.done = done};

	a.methods[method / 64] = 1ull << method % 64;
	return a;
}

static void begin(void)
{
	memset(&w, 0, sizeof w);
	w.now = NSEC_PER_SEC;
	w.port.transmit = transmit;
	w.port.now = now;
	mad_port_init(&w.port);
}

static void make(uint8_t *mad, uint8_t mgmt_class, uint8_t version, uint8_t method, uint64_t tid)
{
	struct mad_hdr h = {.base_version = 1,
		.mgmt_class = mgmt_class,
		.class_version = version,
		.method = method,
		.tid = tid};

	memset(mad, 0, MAD_SIZE);
	wire_pack(&mad_hdr_format, &h, mad);
}

static void dispatch(void **state)
{
	struct mad_agent cm = agent_of(7, 2, MAD_SEND), other = agent_of(7, 2, MAD_SEND);
	struct mad_agent newer = agent_of(7, 3, MAD_SEND);
	uint8_t mad[MAD_SIZE];
	struct mad_hdr h;

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &cm), 0);
	assert_int_equal(mad_register(&w.port, &other), -EEXIST);
	assert_int_equal(mad_register(&w.port, &newer), 0);
	make(mad, 7, 2, MAD_SEND, 1);
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.received, 1);
	make(mad, 7, 2, MAD_REPORT, 1); /* nobody's, and no question */
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.received, 1);
	assert_int_equal(w.transmitted, 0);
	make(mad, 4, 1, MAD_GET, 77); /* nobody's question */
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.transmitted, 1);
	wire_unpack(&mad_hdr_format, w.last, &h);
	assert_int_equal(h.method, MAD_GET_RESP);
	assert_int_equal(h.status, MAD_STATUS_UNSUPPORTED);
	assert_int_equal(h.tid, 77);
	assert_int_equal(w.port.drops[MAD_DROP_NO_AGENT], 2);
	mad[0] = 2;
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.port.drops[MAD_DROP_VERSION], 1);
	mad_unregister(&cm);
	assert_int_equal(mad_register(&w.port, &other), 0);
	mad_port_end(&w.port);
}

static void retries(void **state)
{
	struct mad_agent a = agent_of(7, 2, MAD_SEND);
	struct mad_send *s;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	mad_register(&w.port, &a);
	make(mad, 7, 2, MAD_SEND, mad_tid(&a, 5));
	assert_int_equal(mad_send(&a, &peer, mad, 100, 2, false, &w, &s), 0);
	for (int ms = 0; ms < 299; ms++) {
		w.now += NSEC_PER_MSEC;
		mad_run(&w.port, 8);
		assert_int_equal(w.transmitted, 1 + (ms + 1) / 100);
		assert_int_equal(w.done, 0);
	}
	w.now += NSEC_PER_MSEC;
	mad_run(&w.port, 8);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.status, -ETIMEDOUT);
	assert_int_equal(w.transmitted, 3);
	assert_int_equal(mad_next(&w.port), 0);

	assert_int_equal(mad_send(&a, &peer, mad, 100, 0, false, &w, &s), 0);
	mad_extend(s, 1000);
	w.now += 500 * NSEC_PER_MSEC;
	mad_run(&w.port, 8);
	assert_int_equal(w.done, 1);
	mad_cancel(s);
	w.now += 5 * NSEC_PER_SEC;
	mad_run(&w.port, 8);
	assert_int_equal(w.done, 1);
	mad_port_end(&w.port);
}

static void transactions(void **state)
{
	struct mad_agent a = agent_of(3, 2, MAD_GET);
	struct mad_addr stranger = peer;
	struct mad_send *s;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	mad_register(&w.port, &a);
	make(mad, 3, 2, MAD_GET, mad_tid(&a, 5));
	assert_int_equal(mad_send(&a, &peer, mad, 100, 3, true, &w, &s), 0);
	make(mad, 3, 2, MAD_GET_RESP, mad_tid(&a, 6)); /* another transaction */
	mad_receive(&w.port, &peer, mad);
	make(mad, 4, 2, MAD_GET_RESP, mad_tid(&a, 5)); /* another class */
	mad_receive(&w.port, &peer, mad);
	make(mad, 3, 2, MAD_GET_RESP, mad_tid(&a, 5));
	stranger.grh.remote[0] = 9; /* another peer */
	mad_receive(&w.port, &stranger, mad);
	assert_int_equal(w.done, 0);
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.status, 0);
	assert_true(w.answered);
	mad_receive(&w.port, &peer, mad); /* once */
	assert_int_equal(w.done, 1);
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUEST], 4);
	mad_port_end(&w.port);
}

static void loopback(void **state)
{
	struct mad_agent a = agent_of(7, 2, MAD_SEND);
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	w.loop = true;
	mad_register(&w.port, &a);
	make(mad, 7, 2, MAD_SEND, 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(mad_post(&a, &peer, mad), 0);
	assert_int_equal(w.received, 0); /* never from within the sender */
	mad_run(&w.port, 4);
	assert_int_equal(w.received, 4);
	assert_int_equal(mad_next(&w.port), 1);
	mad_run(&w.port, 100);
	assert_int_equal(w.received, 10);
	assert_int_equal(mad_next(&w.port), 0);
	mad_post(&a, &peer, mad); /* left behind: freed with the port */
	mad_port_end(&w.port);
}

static void deadlines(void **state)
{
	enum { N = 300 };
	struct deadlines h = {0};
	static struct deadline d[N];
	uint64_t last = 0;
	unsigned seed = 1;
	int n = 0;

	(void)state;
	for (int round = 0; round < 3; round++) /* moved as well as set */
		for (int i = 0; i < N; i++)
			assert_int_equal(
				deadline_set(&h, &d[i], 1 + (seed = seed * 69069 + 1) % 1000), 0);
	for (int i = 0; i < N; i += 3)
		deadline_clear(&h, &d[i]);
	deadline_clear(&h, &d[0]); /* again: nothing */
	assert_int_equal(h.count, N - N / 3);
	assert_null(deadline_pop(&h, 0));
	for (struct deadline *x; (x = deadline_pop(&h, 1000)); n++) {
		assert_true(x->when >= last);
		assert_int_equal(x->pos, 0);
		last = x->when;
	}
	assert_int_equal(n, N - N / 3);
	assert_int_equal(deadline_next(&h), 0);
	deadlines_free(&h);
}

/* So many at a time that the table grows; each answer finds its own request. */
static void many(void **state)
{
	enum { N = 1000, PEERS = 3 };
	static struct mad_send *s[N];
	struct mad_agent a = agent_of(7, 2, MAD_SEND), b = agent_of(8, 1, MAD_SEND);
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &a), 0);
	assert_int_equal(mad_register(&w.port, &b), 0);
	for (unsigned round = 0; round < 2; round++) {
		w.done = 0;
		for (unsigned i = 0; i < N; i++) {
			struct mad_addr to = peer;

			to.grh.remote[0] = 2 + i % PEERS; /* the same TIDs for different peers */
			make(mad, i % 2 ? 7 : 8, i % 2 ? 2 : 1, MAD_SEND, i / 6);
			assert_int_equal(
				mad_send(i % 2 ? &a : &b, &to, mad, 1000, 0, true, &w, &s[i]), 0);
		}
		assert_int_equal(w.port.n_sends, N);
		assert_int_equal(w.port.n_spare, 0);
		for (unsigned k = 0; k < N; k++) {
			unsigned i = (k * 7 + 3) % N;
			struct mad_addr from = s[i]->addr;

			make(mad, i % 2 ? 7 : 8, i % 2 ? 2 : 1, MAD_SEND | MAD_RESPONSE, i / 6);
			from.lid = 9; /* says nothing where there are GIDs */
			mad_receive(&w.port, &from, mad);
			assert_int_equal(w.done, k + 1);
		}
		assert_int_equal(w.port.n_sends, 0);
		assert_int_equal(w.port.n_spare, N); /* used again in the second round */
	}
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUEST], 0);
	for (unsigned i = 0; i < N; i++) {
		make(mad, 7, 2, MAD_SEND, i);
		assert_int_equal(mad_send(&a, &peer, mad, 1000, 0, true, &w, &s[i]), 0);
	}
	w.done = 0;
	mad_unregister(&a); /* ends them without a word */
	assert_int_equal(w.port.n_sends, 0);
	assert_int_equal(w.done, 0);
	mad_port_end(&w.port);
}

/* Without a GRH it is the LID that says who the other side is. */
static void by_lid(void **state)
{
	struct mad_agent a = agent_of(7, 2, MAD_SEND);
	const struct mad_addr to = {.lid = 5}, other = {.lid = 6};
	struct mad_addr routed = peer;
	struct mad_send *s;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &a), 0);
	make(mad, 7, 2, MAD_SEND, 1);
	assert_int_equal(mad_send(&a, &to, mad, 1000, 0, true, &w, &s), 0);
	make(mad, 7, 2, MAD_SEND | MAD_RESPONSE, 1);
	mad_receive(&w.port, &other, mad);
	routed.lid = 5;
	mad_receive(&w.port, &routed, mad);
	assert_int_equal(w.done, 0);
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUEST], 2);
	mad_receive(&w.port, &to, mad);
	assert_int_equal(w.done, 1);
	mad_port_end(&w.port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dispatch),
		cmocka_unit_test(retries),
		cmocka_unit_test(transactions),
		cmocka_unit_test(many),
		cmocka_unit_test(by_lid),
		cmocka_unit_test(loopback),
		cmocka_unit_test(deadlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
