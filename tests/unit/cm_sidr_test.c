// SPDX-License-Identifier: BSD-3-Clause
/*
 * Requests to datagram services, between two communication managers; and what requests of both
 * kinds look like, and must.
 */
#include "tests/unit/cm_world.h"

/* The passive side's, for datagrams: bound, and to be listened at. */
static struct cm_bind_call bind_datagrams(uint32_t handle)
{
	struct cm_bind_call c = bind_call(1, handle, PORT);

	c.ps = 0x0111;
	c.flags = CM_F_DATAGRAM;
	assert_int_equal(do_bind(1, &c), 0);
	return c;
}

static void listen_for_datagrams(uint32_t handle)
{
	struct cm_bind_call c = bind_datagrams(handle);

	assert_int_equal(do_listen(1, &c, 0), 0);
}

static void ask_for_datagrams(void)
{
	struct cm_connect_call c = connect_call(ACTIVE, PORT);

	c.ps = 0x0111;
	c.flags = CM_F_DATAGRAM;
	assert_int_equal(do_connect(&c), 0);
	fly();
}

static void datagrams(void **state)
{
	const struct cm_event *e;
	struct cm_accept_call c;

	(void)state;
	begin();
	listen_for_datagrams(LISTENER);
	ask_for_datagrams();
	c = accept_call(passive_handle());
	c.param.qpn = 99;
	c.param.qkey = 0x01234567;
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
	fly();
	e = event(0, 0, EV_ESTABLISHED);
	assert_int_equal(e->param.qpn, 99);
	assert_int_equal(e->param.qkey, 0x01234567);
	assert_int_equal(e->param.priv_len, 136);
	assert_int_equal(event(1, 0, EV_REQUEST)->param.priv_len, 180);
	assert_int_equal(world.side[1].n_events, 1); /* to accept is enough */
	end();
}

/* Over the wire an answer may get lost: the request comes again, and so does the answer. */
static void datagram_answer_lost(void **state)
{
	struct cm_accept_call c;

	(void)state;
	for (int gone = 0; gone < 2; gone++) {
		begin();
		listen_for_datagrams(LISTENER);
		ask_for_datagrams();
		world.lose = world.sent;
		world.times = 1;
		c = accept_call(passive_handle());
		c.param.qpn = 99;
		assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
		if (gone) /* and its id meanwhile, too */
			cm_destroy(world.side[1].cm, OWNER, c.handle);
		fly();
		assert_int_equal(world.side[0].n_events, 0);
		wait_ms(5000);
		assert_int_equal(event(0, 0, EV_ESTABLISHED)->param.qpn, 99);
		assert_int_equal(world.side[1].n_events, 1);
		end();
	}
}

/* The bytes of a REQ as the Linux kernel's look, numbers of one connection aside. */
static void request_bytes(void **state)
{
	static const uint8_t head[] = {1, 7, 2, 3}, timeouts[] = {0, 0, 0, 0xa0};
	static const uint8_t mtu[] = {0xff, 0xff, 0x37, 0xf0, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t ip[] = {0, 0x40};
	struct cm_connect_call c;
	const uint8_t *mad;

	(void)state;
	begin();
	c = connect_call(ACTIVE, PORT);
	c.src.port = 48475;
	c.param = (struct cm_params){.qpn = 17,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry = 7,
		.mtu = 3,
		.flow_label = 0xb2868};
	assert_int_equal(do_connect(&c), 0);
	mad = world.head->mad;
	assert_memory_equal(mad, head, sizeof head);
	assert_int_equal(mad[17], 0x10);
	assert_int_equal(mad[36] << 8 | mad[37], 0x0106); /* the TCP port space */
	assert_memory_equal(mad + 64, timeouts, sizeof timeouts);
	assert_int_equal(mad[71], 20 << 3 | 7);
	assert_memory_equal(mad + 72, mtu, sizeof mtu);
	assert_memory_equal(mad + 80, world.side[0].gid, 16);
	assert_memory_equal(mad + 96, world.side[1].gid, 16);
	assert_int_equal(mad[112] << 12 | mad[113] << 4 | mad[114] >> 4, 0xb2868);
	assert_int_equal(mad[117], 64);
	assert_int_equal(mad[119], 0x98);
	assert_memory_equal(mad + 164, ip, sizeof ip);
	assert_int_equal(mad[166] << 8 | mad[167], 48475);
	assert_memory_equal(mad + 180, world.side[0].gid + 12, 4);
	assert_memory_equal(mad + 196, world.side[1].gid + 12, 4);
	end();
}

/* A request whose IP header says that it is from elsewhere, or for another. */
static void wrong_addresses(void **state)
{
	struct cm_connect_call c;

	(void)state;
	for (int at = 180; at <= 196; at += 16) {
		begin();
		listen_at(1);
		c = connect_call(ACTIVE, PORT);
		assert_int_equal(do_connect(&c), 0);
		world.head->mad[at + 3] ^= 0x40;
		fly();
		assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_GID);
		assert_int_equal(world.side[1].n_events, 0);
		assert_int_equal(world.side[1].cm->counts[CM_N_WRONG_ADDRESS], 1);
		end();
	}
}

/* As unaccepted(): the request is refused, and nothing comes of it on its side. */
static void datagram_unaccepted(void **state)
{
	(void)state;
	for (int gives_up = 0; gives_up < 2; gives_up++) {
		begin();
		listen_for_datagrams(LISTENER);
		ask_for_datagrams();
		if (gives_up)
			cm_destroy(world.side[0].cm, OWNER, ACTIVE);
		else /* as weftd does with what its listener never took */
			cm_destroy(world.side[1].cm, OWNER, passive_handle());
		fly();
		wait_ms(60000);
		assert_int_equal(world.side[1].n_events, 1);
		if (gives_up)
			assert_int_equal(world.side[0].n_events, 0);
		else
			assert_int_equal(event(0, 0, EV_UNREACHABLE)->status, 2);
		end();
	}
}

/*
 * perftest tells of itself at a port of the one space, leaves it, and listens there in the other:
 * a request that comes before is held, too.
 */
static void other_space_before(void **state)
{
	(void)state;
	for (int step = 0; step < 2; step++) {
		begin();
		listen_at(0);
		if (step == 0)
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		ask_for_datagrams();
		assert_int_equal(world.side[0].n_events, 0);
		if (step == 1)
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		listen_for_datagrams(LISTENER + 8);
		event(1, 0, EV_REQUEST);
		end();
	}
}

/* As too_early(), for datagrams. */
static void datagram_too_early(void **state)
{
	struct cm_bind_call listener;

	(void)state;
	for (int listens = 0; listens < 2; listens++) {
		begin();
		listener = bind_datagrams(LISTENER);
		ask_for_datagrams();
		assert_int_equal(world.side[0].n_events, 0);
		if (listens) {
			assert_int_equal(do_listen(1, &listener, 0), 0);
			event(1, 0, EV_REQUEST);
		} else {
			wait_ms(2500);
			assert_int_equal(event(0, 0, EV_UNREACHABLE)->status, 1);
		}
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams),
		cmocka_unit_test(datagram_answer_lost),
		cmocka_unit_test(request_bytes),
		cmocka_unit_test(wrong_addresses),
		cmocka_unit_test(datagram_unaccepted),
		cmocka_unit_test(other_space_before),
		cmocka_unit_test(datagram_too_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
