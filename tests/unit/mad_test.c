// SPDX-License-Identifier: BSD-3-Clause
/* The MAD layer: retries, transactions and whose they are, loopback; and deadlines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/mad_world.h"

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
		mad_run(&w.layer, 8);
		assert_int_equal(w.transmitted, 1 + (ms + 1) / 100);
		assert_int_equal(w.done, 0);
	}
	w.now += NSEC_PER_MSEC;
	mad_run(&w.layer, 8);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.status, -ETIMEDOUT);
	assert_int_equal(w.transmitted, 3);
	assert_int_equal(mad_next(&w.layer), 0);

	assert_int_equal(mad_send(&a, &peer, mad, 100, 0, false, &w, &s), 0);
	mad_extend(s, 1000);
	w.now += 500 * NSEC_PER_MSEC;
	mad_run(&w.layer, 8);
	assert_int_equal(w.done, 1);
	mad_cancel(s);
	w.now += 5 * NSEC_PER_SEC;
	mad_run(&w.layer, 8);
	assert_int_equal(w.done, 1);
	end();
}

/* However many time out at once, a turn sees to some of them, and the next ones to the rest. */
static void many_time_out(void **state)
{
	enum { MANY = 5 * MAD_TIMEOUTS / 2 };
	struct mad_agent a = agent_of(7, 2, MAD_SEND);
	struct mad_send *s;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	mad_register(&w.port, &a);
	for (unsigned i = 0; i < MANY; i++) {
		make(mad, 7, 2, MAD_SEND, mad_tid(&a, i));
		assert_int_equal(mad_send(&a, &peer, mad, 100, 0, false, &w, &s), 0);
	}
	w.now += 100 * NSEC_PER_MSEC;
	for (int want = MAD_TIMEOUTS; want < MANY; want += MAD_TIMEOUTS) {
		mad_run(&w.layer, 1);
		assert_int_equal(w.done, want);
		assert_true(mad_next(&w.layer) && mad_next(&w.layer) <= w.now);
	}
	mad_run(&w.layer, 1);
	assert_int_equal(w.done, MANY);
	assert_int_equal(mad_next(&w.layer), 0);
	end();
}

static void transactions(void **state)
{
	static const struct {
		uint8_t mgmt_class;
		uint32_t low;
		bool other_agent;
		enum mad_drop why;
	} wrong[] = {
		{3, 6, false, MAD_DROP_NO_REQUEST}, /* another transaction */
		{4, 5, false, MAD_DROP_NO_REQUEST}, /* another class */
		{3, 5, true, MAD_DROP_NO_REQUEST},  /* of somebody else */
		{3, 5, false, MAD_DROP_NO_REQUEST}, /* it has come already */
	};
	struct mad_agent a = agent_of(3, 2, MAD_GET), b = agent_of(3, 2, MAD_SET);
	struct mad_send *s;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &a), 0);
	assert_int_equal(mad_register(&w.port, &b), 0);
	make(mad, 3, 2, MAD_GET, mad_tid(&a, 5));
	assert_int_equal(mad_send(&a, &peer, mad, 100, 3, true, &w, &s), 0);
	for (unsigned i = 0; i < 4; i++) {
		const struct mad_agent *of = wrong[i].other_agent ? &b : &a;

		make(mad, wrong[i].mgmt_class, 2, MAD_GET_RESP, mad_tid(of, wrong[i].low));
		if (i == 3) {
			mad_receive(&w.port, &peer, mad);
			assert_int_equal(w.done, 1);
			assert_int_equal(w.status, 0);
			assert_true(w.answered);
		}
		mad_receive(&w.port, &peer, mad);
		assert_int_equal(w.done, i == 3);
		assert_int_equal(w.port.drops[wrong[i].why], i + 1);
	}
	make(mad, 3, 2, MAD_GET, mad_tid(&a, 9)); /* with another one's upper half: not found */
	assert_int_equal(mad_send(&b, &peer, mad, 100, 0, true, &w, &s), 0);
	make(mad, 3, 2, MAD_GET_RESP, mad_tid(&a, 9));
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUEST], 5);
	make(mad, 3, 2, MAD_GET_RESP, 5); /* of nobody */
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUESTER], 1);
	end();
}

/* What is a response to what, by method, class and attribute modifier. */
static void kinds_of_answer(void **state)
{
	static const struct {
		uint8_t mgmt_class, asked, answer;
		uint32_t attr_mod;
		bool fits;
	} kind[] = {
		{3, MAD_GET, MAD_GET_RESP, 0, true}, {3, MAD_SET, MAD_GET_RESP, 0, true},
		{3, 0x12, 0x92, 0, true}, {4, MAD_TRAP, MAD_TRAP_REPRESS, 0, true},
		{5, MAD_SEND, MAD_SEND, 1, true}, {5, MAD_SEND, MAD_SEND, 2, false},
		{4, MAD_SEND, MAD_SEND, 1, false},
		{4, MAD_GET_RESP, MAD_GET_RESP, 0, false}, /* a response has no response */
	};

	(void)state;
	for (unsigned i = 0; i < sizeof kind / sizeof *kind; i++) {
		struct mad_agent a = agent_of(0, 0, 0);
		struct mad_hdr h = {.base_version = 1, .mgmt_class = kind[i].mgmt_class};
		struct mad_send *s;
		uint8_t mad[MAD_SIZE] = {0};

		begin();
		a.reg.qpn = 1;
		assert_int_equal(mad_register(&w.port, &a), 0);
		h.tid = mad_tid(&a, i);
		h.method = kind[i].asked;
		wire_pack(&mad_hdr_format, &h, mad);
		assert_int_equal(mad_send(&a, &neighbour, mad, 100, 0, true, &w, &s), 0);
		h.method = kind[i].answer;
		h.attr_mod = kind[i].attr_mod;
		wire_pack(&mad_hdr_format, &h, mad);
		mad_receive(&w.port, &neighbour, mad);
		assert_int_equal(w.done, kind[i].fits);
		end();
	}
}

/* A response is known by which of our addresses it comes to, whatever the peer's is. */
static void peers(void **state)
{
	static const struct {
		uint8_t mgmt_class, lmc;
		struct mad_addr to, from;
		bool fits;
	} c[] = {
		{3, 0, {.qpn = 1, .lid = 5}, {.qp = 1, .lid = 5}, true},
		{3, 0, {.qpn = 1, .lid = 5}, {.qp = 1, .lid = 6}, true},
		{3, 0, {.qpn = 1, .path_bits = 1}, {.qp = 1, .path_bits = 2}, true},
		{3, 2, {.qpn = 1, .path_bits = 1}, {.qp = 1, .path_bits = 2}, false},
		{3, 2, {.qpn = 1, .path_bits = 1}, {.qp = 1, .path_bits = 5}, true},
		{3, 1, {.qpn = 1, .path_bits = 1}, {.qp = 1, .path_bits = 3}, true},
		{3, 0, {.qpn = 1, .has_grh = true, .grh = {.local = {1}, .remote = {2}}},
			{.qp = 1, .has_grh = true, .grh = {.local = {1}, .remote = {3}}}, true},
		{3, 0, {.qpn = 1, .has_grh = true, .grh = {.local = {1}, .remote = {2}}},
			{.qp = 1, .has_grh = true, .grh = {.local = {4}, .remote = {2}}}, false},
		{3, 0, {.qpn = 1, .lid = 5}, {.qp = 1, .lid = 5, .has_grh = true}, false},
		{3, 0, {.qpn = 1, .lid = 5, .has_grh = true}, {.qp = 1, .lid = 5}, false},
		{1, 2, {.path_bits = 1}, {.path_bits = 2}, false},
		/* directed routes: from anywhere */
		{0x81, 2, {.path_bits = 1}, {.path_bits = 2}, true},
		{0x81, 0, {.lid = 0xffff}, {.lid = 7}, true},
		{0x81, 0, {.lid = 0xffff}, {.lid = 7, .has_grh = true}, true},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct mad_agent a = agent_of(c[i].mgmt_class, 1, MAD_TRAP);
		struct mad_send *s;
		uint8_t mad[MAD_SIZE];

		begin();
		w.port.lmc = c[i].lmc;
		assert_int_equal(mad_register(&w.port, &a), 0);
		make(mad, c[i].mgmt_class, 1, MAD_GET, mad_tid(&a, 1));
		assert_int_equal(mad_send(&a, &c[i].to, mad, 1000, 0, true, &w, &s), 0);
		make(mad, c[i].mgmt_class, 1, MAD_GET_RESP, mad_tid(&a, 1));
		mad_receive(&w.port, &c[i].from, mad);
		assert_int_equal(w.done, c[i].fits);
		assert_int_equal(w.port.drops[MAD_DROP_NO_REQUEST], !c[i].fits);
		if (c[i].fits)
			assert_memory_equal(&w.came_from, &c[i].from, sizeof w.came_from);
		end();
	}
}

/* Sent with no timeout: once, and no response fits. */
static void without_timeout(void **state)
{
	struct mad_agent a = agent_of(3, 2, MAD_GET);
	struct mad_send *s = (void *)&w;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &a), 0);
	make(mad, 3, 2, MAD_GET, mad_tid(&a, 1));
	assert_int_equal(mad_send(&a, &peer, mad, 0, 5, true, &w, &s), 0);
	assert_null(s);
	assert_int_equal(w.transmitted, 1);
	assert_int_equal(w.layer.n_sends, 0);
	assert_int_equal(mad_next(&w.layer), 0);
	make(mad, 3, 2, MAD_GET_RESP, mad_tid(&a, 1));
	mad_receive(&w.port, &peer, mad);
	assert_int_equal(w.done, 0);
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUEST], 1);
	end();
}

/* The upper half is the layer's, but not of a response. */
static void own_tids(void **state)
{
	static const struct {
		uint8_t mgmt_class, method;
		bool keeps;
	} kind[] = {
		{3, MAD_GET, false},
		{3, MAD_TRAP, false},
		{3, MAD_GET_RESP, true},
		{4, MAD_TRAP_REPRESS, true},
	};
	const uint64_t tid = 0xabcdef0123456789ull;
	struct mad_agent a = agent_of(3, 2, MAD_GET);
	uint8_t mad[MAD_SIZE];
	struct mad_hdr h;

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &a), 0);
	for (unsigned i = 0; i < sizeof kind / sizeof *kind; i++) {
		make(mad, kind[i].mgmt_class, 2, kind[i].method, tid);
		mad_own_tid(&a, mad);
		wire_unpack(&mad_hdr_format, mad, &h);
		assert_int_equal(h.tid, kind[i].keeps ? tid : mad_tid(&a, 0x23456789));
	}
	end();
}

/* Agents come and go: the upper halves have 24 bits, and no two that are there have the same. */
static void upper_halves(void **state)
{
	struct mad_agent a = agent_of(3, 2, MAD_GET), b = agent_of(4, 1, MAD_GET);
	struct mad_agent c = agent_of(6, 1, MAD_GET);

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &a), 0);
	assert_int_equal(a.hi_tid, 1);
	w.layer.last_hi_tid = 0xfffffe;
	assert_int_equal(mad_register(&w.port, &b), 0);
	assert_int_equal(b.hi_tid, 0xffffff);
	assert_int_equal(mad_register(&w.port, &c), 0);
	assert_int_equal(c.hi_tid, 2); /* 0 is nobody's, 1 is taken */
	end();
}

static void duplicates(void **state)
{
	enum { NONE, SAME_FILE, SAME_AGENT };

	static const struct {
		uint8_t first, second;
		uint8_t mgmt_class, who;
		uint16_t lid; /* the first goes to 5 */
		uint8_t low;  /* the first has 1 */
		int ret;
	} c[] = {
		{MAD_GET, MAD_GET, 3, SAME_AGENT, 5, 1, -EINVAL},
		{MAD_GET, MAD_SET, 3, SAME_AGENT, 5, 1, -EINVAL},
		{MAD_GET, MAD_GET, 3, SAME_AGENT, 6, 1, -EINVAL}, /* wherever it goes */
		{MAD_GET, MAD_GET, 3, SAME_AGENT, 5, 2, 0},
		{MAD_GET, MAD_GET, 4, SAME_AGENT, 5, 1, 0},
		{MAD_GET, MAD_GET_RESP, 3, SAME_AGENT, 5, 1, 0},
		{MAD_GET_RESP, MAD_GET, 3, SAME_AGENT, 5, 1, 0},
		{MAD_GET_RESP, MAD_GET_RESP, 3, SAME_AGENT, 5, 1, -EINVAL},
		{MAD_GET_RESP, MAD_GET_RESP, 3, SAME_AGENT, 6, 1, 0},
		{MAD_GET_RESP, MAD_GET_RESP, 3, SAME_FILE, 5, 1, -EINVAL},
		{MAD_GET_RESP, MAD_GET_RESP, 3, NONE, 5, 1, 0},
	};
	int file;

	(void)state;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		struct mad_agent a = agent_of(0, 0, 0), b = a, other = a;
		struct mad_agent *who[] = {&other, &b, &a};
		struct mad_addr to = neighbour;
		struct mad_send *s;
		uint8_t mad[MAD_SIZE];

		begin();
		a.file = b.file = &file;
		a.reg.qpn = b.reg.qpn = other.reg.qpn = 1;
		assert_int_equal(mad_register(&w.port, &a), 0);
		assert_int_equal(mad_register(&w.port, &b), 0);
		assert_int_equal(mad_register(&w.port, &other), 0);
		make(mad, 3, 2, c[i].first, mad_tid(&a, 1));
		assert_int_equal(mad_check_duplicate(&a, &to, mad), 0);
		assert_int_equal(mad_send(&a, &to, mad, 100, 0, true, &w, &s), 0);
		make(mad, c[i].mgmt_class, 2, c[i].second, mad_tid(&a, c[i].low));
		to.lid = c[i].lid;
		assert_int_equal(mad_check_duplicate(who[c[i].who], &to, mad), c[i].ret);
		mad_cancel(s);
		assert_int_equal(mad_check_duplicate(who[c[i].who], &to, mad), 0);
		end();
	}
}

/* What a MAD carries besides itself arrives, on either side of a port that talks to itself. */
static void addresses(void **state)
{
	const struct mad_addr to = {.qpn = 1,
		.lid = 0x42,
		.path_bits = 1,
		.sl = 3,
		.pkey_index = 7,
		.qkey = 0x80010000,
		.has_grh = true,
		.grh = {.local = {1}, .remote = {2}, .flow_label = 5, .hop_limit = 9}};
	const struct mad_addr wrong_qp = {.qpn = 2};
	struct mad_agent a = agent_of(4, 1, MAD_GET);
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	w.loop = true;
	w.port.lid = 0x40;
	w.port.lmc = 2;
	assert_int_equal(mad_register(&w.port, &a), 0);
	make(mad, 4, 1, MAD_GET, 1);
	assert_int_equal(mad_post(&a, &to, mad), 0);
	assert_int_equal(w.last_to.qp, 1);
	mad_run(&w.layer, 1);
	assert_int_equal(w.received, 1);
	assert_int_equal(w.came_from.lid, 0x41);
	assert_int_equal(w.came_from.path_bits, 2);
	assert_int_equal(w.came_from.sl, 3);
	assert_int_equal(w.came_from.pkey_index, 7);
	assert_int_equal(w.came_from.qp, 1);
	assert_int_equal(w.came_from.qpn, 1);
	assert_int_equal(w.came_from.grh.local[0], 2);
	assert_int_equal(w.came_from.grh.remote[0], 1);
	assert_int_equal(w.came_from.grh.flow_label, 5);
	assert_int_equal(mad_post(&a, &wrong_qp, mad), 0);
	assert_int_equal(w.port.drops[MAD_DROP_QP], 1);
	assert_int_equal(mad_next(&w.layer), 0);
	end();
}

/* Ethernet carries less: what the sender writes of LIDs does not arrive. */
static void by_ethernet(void **state)
{
	const struct mad_addr to = {.qpn = 1,
		.lid = 0x42,
		.path_bits = 1,
		.sl = 3,
		.has_grh = true,
		.grh = {.remote = {2}, .flow_label = 5, .traffic_class = 6, .hop_limit = 9}};
	struct mad_agent a = agent_of(4, 1, MAD_GET);
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	w.loop = true;
	w.port.ethernet = true;
	assert_int_equal(mad_register(&w.port, &a), 0);
	make(mad, 4, 1, MAD_GET, 1);
	assert_int_equal(mad_post(&a, &to, mad), 0);
	mad_run(&w.layer, 1);
	assert_int_equal(w.received, 1);
	assert_int_equal(w.came_from.lid | w.came_from.path_bits | w.came_from.sl, 0);
	assert_int_equal(w.came_from.grh.local[0], 2);
	assert_int_equal(w.came_from.grh.flow_label, 0);
	assert_int_equal(w.came_from.grh.traffic_class, 6);
	assert_int_equal(w.came_from.grh.hop_limit, MAD_HOPS);
	end();
}

/* Nobody receives: what is queued has an end. */
static void full_queue(void **state)
{
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	make(mad, 4, 1, MAD_SEND, 1);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MAD_LOOPS_MAX; i++)
			assert_int_equal(mad_queue(&w.port, &peer, mad), 0);
		assert_int_equal(mad_queue(&w.port, &peer, mad), -ENOBUFS);
		assert_int_equal(w.port.drops[MAD_DROP_QUEUE], round + 1);
		mad_run(&w.layer, MAD_LOOPS_MAX);
		assert_int_equal(mad_next(&w.layer), 0);
	}
	end();
}

/* Two ports of one layer: each has its own agents, and what waits for one that goes is gone. */
static void two_ports(void **state)
{
	struct mad_port other;
	struct mad_agent a = agent_of(4, 1, MAD_GET), b = a;
	struct mad_send *s;
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	other = w.port;
	assert_int_equal(mad_register(&w.port, &a), 0);
	assert_int_equal(mad_register(&other, &b), 0);
	assert_int_not_equal(a.hi_tid, b.hi_tid);
	make(mad, 4, 1, MAD_GET, 1);
	assert_int_equal(mad_queue(&other, &peer, mad), 0);
	assert_int_equal(mad_queue(&w.port, &peer, mad), 0);
	assert_int_equal(mad_queue(&other, &peer, mad), 0);
	make(mad, 4, 1, MAD_GET, mad_tid(&b, 1));
	assert_int_equal(mad_send(&b, &peer, mad, 100, 0, true, &w, &s), 0);
	make(mad, 4, 1, MAD_GET_RESP, mad_tid(&b, 1));
	mad_receive(&w.port, &peer, mad); /* at the other one's */
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUESTER], 1);
	mad_port_end(&other);
	make(mad, 4, 1, MAD_GET, 1);
	assert_int_equal(mad_queue(&w.port, &peer, mad), 0);
	mad_run(&w.layer, 10);
	assert_int_equal(w.received, 2);
	assert_ptr_equal(w.to, &a);
	assert_int_equal(w.done, 0);
	assert_int_equal(mad_queue(&w.port, &peer, mad), 0);
	end();
}

/* So many at a time that the table grows; each answer finds its own request. */
static void many(void **state)
{
	enum { N = 1000, PEERS = 3 };
	static struct mad_send *s[N];
	struct mad_agent a = agent_of(3, 2, MAD_GET), b = agent_of(8, 1, MAD_GET);
	uint8_t mad[MAD_SIZE];

	(void)state;
	begin();
	assert_int_equal(mad_register(&w.port, &a), 0);
	assert_int_equal(mad_register(&w.port, &b), 0);
	for (unsigned round = 0; round < 2; round++) {
		w.done = 0;
		for (unsigned i = 0; i < N; i++) {
			struct mad_addr to = peer;

			to.grh.local[0] = 2 + i % PEERS; /* the same TIDs from different GIDs */
			make(mad, i % 2 ? 3 : 8, i % 2 ? 2 : 1, MAD_GET,
				mad_tid(i % 2 ? &a : &b, i / 6));
			assert_int_equal(
				mad_send(i % 2 ? &a : &b, &to, mad, 1000, 0, true, &w, &s[i]), 0);
		}
		assert_int_equal(w.layer.n_sends, N);
		assert_int_equal(w.layer.spare_sends.n, 0);
		for (unsigned k = 0; k < N; k++) {
			unsigned i = (k * 7 + 3) % N;
			struct mad_addr from = s[i]->addr;

			make(mad, i % 2 ? 3 : 8, i % 2 ? 2 : 1, MAD_GET_RESP, s[i]->tid);
			from.lid = 9; /* says nothing where there are GIDs */
			mad_receive(&w.port, &from, mad);
			assert_int_equal(w.done, k + 1);
		}
		assert_int_equal(w.layer.n_sends, 0);
		assert_int_equal(w.layer.spare_sends.n, N); /* used again in the second round */
	}
	assert_int_equal(w.port.drops[MAD_DROP_NO_REQUEST], 0);
	for (unsigned i = 0; i < N; i++) {
		make(mad, 3, 2, MAD_GET, mad_tid(&a, i));
		assert_int_equal(mad_send(&a, &peer, mad, 1000, 0, true, &w, &s[i]), 0);
	}
	w.done = 0;
	mad_unregister(&a); /* ends them without a word */
	assert_int_equal(w.layer.n_sends, 0);
	assert_int_equal(w.done, 0);
	end();
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
	mad_run(&w.layer, 4);
	assert_int_equal(w.received, 4);
	/* What went from 1 to 2 comes to 2 from 1. */
	assert_true(w.came_from.grh.local[0] == 2 && w.came_from.grh.remote[0] == 1);
	assert_int_equal(mad_next(&w.layer), 1);
	mad_run(&w.layer, 100);
	assert_int_equal(w.received, 10);
	assert_int_equal(mad_next(&w.layer), 0);
	mad_post(&a, &peer, mad); /* left behind: freed with the port */
	end();
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retries),
		cmocka_unit_test(transactions),
		cmocka_unit_test(kinds_of_answer),
		cmocka_unit_test(peers),
		cmocka_unit_test(without_timeout),
		cmocka_unit_test(own_tids),
		cmocka_unit_test(upper_halves),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(many),
		cmocka_unit_test(loopback),
		cmocka_unit_test(addresses),
		cmocka_unit_test(by_ethernet),
		cmocka_unit_test(many_time_out),
		cmocka_unit_test(full_queue),
		cmocka_unit_test(two_ports),
		cmocka_unit_test(deadlines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
