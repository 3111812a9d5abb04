// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two communication managers on a wire that loses what it is told to, with a clock of its own:
 * a connection is made and ended, and whichever message is lost on the way, both sides see the
 * same events, once, in the same order.
 */
#include "tests/unit/cm_world.h"

enum { MRA_MS = 100000 }; /* between what tries alone last, and what they do with an MRA */

/* The whole of a connection's life, by the active side's will or the passive side's. */
static void one_life(int who_ends)
{
	const struct cm_event *e;
	uint32_t handle[SIDES];

	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	settle();
	e = event(1, 0, EV_REQUEST);
	assert_int_equal(e->listen_handle, LISTENER);
	assert_int_equal(e->param.qpn, 17);
	assert_int_equal(e->param.responder_resources, 2); /* what the other one initiates */
	assert_int_equal(e->param.initiator_depth, 3);
	assert_int_equal(e->param.retry_count, 5);
	assert_int_equal(e->param.rnr_retry, 4);
	assert_int_equal(e->param.flow_control, 1);
	assert_int_equal(e->param.srq, 0);
	assert_int_equal(e->param.tclass, 0x28);
	assert_int_equal(e->param.flow_label, 0x12345);
	assert_int_equal(e->param.ack_timeout, 18);
	assert_int_equal(e->param.priv_len, 56);
	assert_memory_equal(e->priv, "hi\0", 3);
	assert_int_equal(e->src.port, PORT);
	accept_it();
	settle();
	e = event(0, 0, EV_RESPONSE);
	assert_int_equal(e->param.qpn, 18);
	assert_int_equal(e->param.responder_resources, 6); /* what the other one initiates */
	assert_int_equal(e->param.initiator_depth, 7);
	assert_int_equal(e->param.rnr_retry, 1);
	assert_int_equal(e->param.flow_control, 0);
	assert_int_equal(e->param.srq, 1);
	assert_int_equal(e->param.ack_timeout, 18);
	assert_int_equal(e->param.priv_len, 196);
	assert_memory_equal(e->priv, "you\0", 4);
	assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
	settle();
	event(1, 1, EV_ESTABLISHED);
	handle[0] = ACTIVE;
	handle[1] = passive_handle();
	assert_int_equal(cm_disconnect(world.side[who_ends].cm, OWNER, handle[who_ends]), 0);
	settle();
	event(!who_ends, who_ends ? 1 : 2, EV_DISCONNECTED);
	assert_int_equal(cm_disconnect(world.side[!who_ends].cm, OWNER, handle[!who_ends]), 0);
	settle();
	event(0, 1, EV_DISCONNECTED);
	event(1, 2, EV_DISCONNECTED);
	wait_ms(10000);
	event(0, 2, EV_TIMEWAIT);
	event(1, 3, EV_TIMEWAIT);
	assert_int_equal(world.side[0].n_events, 3);
	assert_int_equal(world.side[1].n_events, 4);
}

static void life(void **state)
{
	(void)state;
	for (int who = 0; who < SIDES; who++) {
		begin();
		one_life(who);
		assert_int_equal(world.sent, 5); /* REQ REP RTU DREQ DREP */
		end();
	}
}

/* Each message in turn is lost, once and twice; the next try makes up for it. */
static void losses(void **state)
{
	(void)state;
	for (int who = 0; who < SIDES; who++)
		for (int lose = 0; lose < 5; lose++) {
			begin();
			world.lose = lose;
			world.times = 1;
			one_life(who);
			assert_true(world.sent > 5);
			end();
		}
}

static void nobody_answers(void **state)
{
	(void)state;
	begin();
	world.lose = 0;
	world.times = 1000;
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	wait_ms(60000);
	assert_int_equal(world.side[0].n_events, 0);
	wait_ms(10000);
	assert_int_equal(event(0, 0, EV_UNREACHABLE)->status, -ETIMEDOUT);
	assert_int_equal(world.sent, 1 + CM_RETRIES + 1); /* and a REJ */
	end();
}

static void no_listener(void **state)
{
	(void)state;
	begin();
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(world.side[0].n_events, 1);
	end();
}

/* Who listened when an earlier weftd was killed has not published that yet. */
static void too_early_for_successor(void **state)
{
	(void)state;
	begin();
	world.side[1].cm->took_over = true;
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	assert_int_equal(world.side[0].n_events, 0);
	listen_at(0);
	event(1, 0, EV_REQUEST);
	cm_destroy(world.side[1].cm, OWNER, LISTENER);
	wait_ms(5000);
	world.side[0].n_events = 0;
	assert_int_equal(connect_to(PORT, ACTIVE + 1), 0);
	fly();
	assert_int_equal(
		world.side[0].events[world.side[0].n_events - 1].status, CM_REJ_INVALID_SERVICE_ID);
	end();
}

/* A request that comes while its server listens anew waits a little, and no longer. */
static void too_early(void **state)
{
	struct cm_bind_call c;

	(void)state;
	begin();
	listen_at(0);
	cm_destroy(world.side[1].cm, OWNER, LISTENER);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	assert_int_equal(world.side[0].n_events, 0);
	listen_at(0);
	passive_handle();
	cm_destroy(world.side[1].cm, OWNER, LISTENER);
	assert_int_equal(connect_to(PORT, ACTIVE + 1), 0);
	cm_destroy(world.side[0].cm, OWNER, ACTIVE + 1); /* gives up before */
	fly();
	listen_at(0);
	assert_int_equal(world.side[1].n_events, 1);
	cm_destroy(world.side[1].cm, OWNER, LISTENER);
	wait_ms(5000);
	c = bind_call(1, LISTENER, PORT); /* bound alone */
	assert_int_equal(do_bind(1, &c), 0);
	assert_int_equal(connect_to(PORT, ACTIVE + 2), 0);
	fly();
	assert_int_equal(world.side[0].n_events, 0);
	wait_ms(2500);
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
	end();
}

/*
 * A server that has no CPU for a while may listen anew seconds later: a request waits for it, but
 * its requester never sends it again; for one that died a request waits a moment alone.
 */
static void late_listener(void **state)
{
	enum { SLOW, DIES, DIED, WAYS };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		begin();
		listen_at(0);
		if (way == DIED)
			cm_owner_gone(world.side[1].cm, OWNER);
		else
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		wait_ms(way == DIED ? 500 : 3500);
		assert_int_equal(connect_to(PORT, ACTIVE), 0);
		fly();
		if (way == DIES)
			cm_owner_gone(world.side[1].cm, OWNER);
		if (way == SLOW) {
			wait_ms(1800);
			listen_at(0);
			passive_handle();
			assert_int_equal(world.sent, 1);
		} else {
			wait_ms(400);
			assert_int_equal(
				event(0, 0, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
		}
		end();
	}
}

static void backlog(void **state)
{
	(void)state;
	begin();
	listen_at(2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(connect_to(PORT, ACTIVE + i), 0);
	fly();
	assert_int_equal(world.side[1].n_events, 2);
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_CONSUMER_DEFINED);
	cm_taken(world.side[1].cm, OWNER, passive_handle());
	assert_int_equal(connect_to(PORT, ACTIVE + 3), 0);
	fly();
	assert_int_equal(world.side[1].n_events, 3);
	end();
}

/* One end listens, and the other's request has come. */
static void ask(void)
{
	begin();
	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
}

/*
 * A server that accepts late, and a client that makes its queue pair ready late: an MRA stretches
 * the time, which is over after 69 s without it; nothing is seen twice.
 */
static void slow_consumer(void **state)
{
	(void)state;
	for (int client = 0; client < 2; client++) {
		ask();
		if (!client)
			wait_ms(MRA_MS);
		assert_int_equal(world.side[1].n_events, 1);
		assert_int_equal(world.side[0].n_events, 0);
		accept_it();
		fly();
		event(0, 0, EV_RESPONSE);
		if (client)
			wait_ms(MRA_MS);
		assert_int_equal(world.side[1].n_events, 1);
		assert_int_equal(world.side[0].n_events, 1);
		assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
		fly();
		event(1, 1, EV_ESTABLISHED);
		end();
	}
}

/* Stretched once, and not for ever. */
static void slower_consumer(void **state)
{
	(void)state;
	for (int client = 0; client < 2; client++) {
		ask();
		if (client) {
			accept_it();
			fly();
		}
		wait_ms(2 * MRA_MS);
		event(client, client, EV_UNREACHABLE);
		end();
	}
}

static void rejected(void **state)
{
	struct cm_reject_call c = {.priv_len = 2, .priv = "no"};
	struct cm_accept_call accept;

	(void)state;
	begin();
	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	c.handle = passive_handle();
	assert_int_equal(cm_reject(world.side[1].cm, OWNER, &c), 0);
	fly();
	assert_int_equal(event(0, 0, EV_REJECTED)->status, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(world.side[0].events[0].param.priv_len, 148);
	assert_memory_equal(world.side[0].events[0].priv, "no\0", 3);
	accept = accept_call(c.handle);
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &accept), -EINVAL);
	assert_int_equal(cm_reject(world.side[1].cm, OWNER, &c), -EINVAL);
	end();
}

/*
 * At each step of a connect the owner of one side dies: the other is told once, and at once; but
 * not of a request that it has not accepted.
 */
static void deaths(void **state)
{
	(void)state;
	for (int victim = 0; victim < SIDES; victim++)
		for (int step = 0; step < 3; step++) {
			unsigned before;

			begin();
			listen_at(0);
			assert_int_equal(connect_to(PORT, ACTIVE), 0);
			fly();
			if (step > 0) {
				accept_it();
				fly();
			}
			if (step > 1) {
				assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
				fly();
			}
			before = world.side[!victim].n_events;
			cm_owner_gone(world.side[victim].cm, OWNER);
			fly();
			if (victim == 0 && step == 0) {
				assert_int_equal(world.side[1].n_events, before);
			} else {
				assert_int_equal(world.side[!victim].n_events, before + 1);
				event(!victim, before, step == 2 ? EV_DISCONNECTED : EV_REJECTED);
			}
			end();
		}
}

/* Of a request that nobody has accepted no event comes, however it ends; the accept fails. */
static void unaccepted(void **state)
{
	enum { TIMES_OUT, GIVES_UP, REFUSED, LISTENER_GONE, WAYS };

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct cm_reject_call reject = {0};
		struct cm_accept_call accept;

		ask();
		reject.handle = passive_handle();
		accept = accept_call(reject.handle);
		if (way == TIMES_OUT) {
			wait_ms(300000); /* an MRA stretches it */
			event(0, 0, EV_UNREACHABLE);
			cm_destroy(world.side[0].cm, OWNER, ACTIVE);
		} else if (way == GIVES_UP) {
			cm_destroy(world.side[0].cm, OWNER, ACTIVE);
		} else if (way == REFUSED) {
			assert_int_equal(cm_reject(world.side[1].cm, OWNER, &reject), 0);
		} else {
			cm_destroy(world.side[1].cm, OWNER, LISTENER);
		}
		fly();
		if (way == LISTENER_GONE) {
			accept_it(); /* the request is the program's already */
			fly();
			event(0, 0, EV_RESPONSE);
		} else {
			wait_ms(60000);
			assert_int_equal(cm_accept(world.side[1].cm, OWNER, &accept), -EINVAL);
		}
		assert_int_equal(world.side[1].n_events, 1);
		end();
	}
}

static int32_t backlog_left(void)
{
	const struct cm_id *id = world.side[1].cm->ids;

	while (id && id->state != CM_LISTEN)
		id = id->next;
	assert_non_null(id);
	return id->backlog;
}

static void connect_client(unsigned request)
{
	struct cm_accept_call c = accept_call(0);

	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	c.handle = event(1, request, EV_REQUEST)->handle;
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
	fly();
	assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
	fly();
	event(1, request + 1, EV_ESTABLISHED);
}

/* Two clients that have GUID and QP number in common, but not the address, are two. */
static void clones(void **state)
{
	struct side *client = &world.side[0];

	(void)state;
	begin();
	listen_at(0);
	connect_client(0);
	lose_side(client);
	client->gid[14] = 1;
	world.moved = true;
	start_side(client, 100);
	connect_client(2);
	assert_int_equal(world.side[1].n_events, 4);
	assert_int_equal(world.side[1].cm->counts[CM_N_STALE], 0);
	end();
}

/*
 * A client's host was started anew and connects from a QP that we hold for connected, whether its
 * GUID is another or, by chance, ours: the request is refused, the old connection ends once the
 * client was asked, or does not answer, and the next request is as any.
 */
static void stale(void **state)
{
	struct side *client = &world.side[0], *server = &world.side[1];

	(void)state;
	for (uint64_t guid = 100; guid < 102; guid++)
		for (int silent = 0; silent < 2; silent++) {
			int32_t left;

			begin();
			lose_side(client);
			start_side(client, guid);
			listen_at(0);
			connect_client(0);
			left = backlog_left();
			lose_side(client);
			start_side(client, guid);
			assert_int_equal(connect_to(PORT, ACTIVE), 0);
			world.lose = world.sent; /* the question */
			world.times = silent ? 1 : 0;
			fly();
			assert_int_equal(backlog_left(), left);
			assert_int_equal(server->cm->counts[CM_N_STALE], 1);
			if (silent) {
				world.times = 1000;
				wait_ms(9000);
				world.times = 0;
			}
			event(1, 2, EV_DISCONNECTED);
			if (!silent)
				assert_int_equal(
					event(0, 0, EV_REJECTED)->status, CM_REJ_STALE_CONN);
			client->n_events = 0;
			assert_int_equal(connect_to(PORT, ACTIVE + 1), 0);
			fly();
			assert_int_equal(client->n_events, 0);
			end();
		}
}

/* Somebody on the client's host says so: the client knows better, and its connection stands. */
static void stale_by_hearsay(void **state)
{
	(void)state;
	begin();
	listen_at(0);
	connect_client(0);
	assert_int_equal(connect_to(PORT, ACTIVE + 1), 0); /* the same QP number */
	fly();
	assert_int_equal(event(0, 1, EV_REJECTED)->status, CM_REJ_STALE_CONN);
	wait_ms(20000);
	assert_int_equal(world.side[1].n_events, 2);
	assert_int_equal(world.side[1].cm->counts[CM_N_STALE], 1);
	assert_int_equal(cm_disconnect(world.side[0].cm, OWNER, ACTIVE), 0);
	fly();
	event(1, 2, EV_DISCONNECTED);
	end();
}

/* The same on the side that asked, of a server that asks it from the queue pair of their
 * connection. */
static void stale_server(void **state)
{
	struct side *client = &world.side[0], *server = &world.side[1];

	(void)state;
	for (int anew = 0; anew < 2; anew++) {
		struct cm_bind_call listener;
		struct cm_connect_call c;
		uint32_t comm;
		uint16_t port;

		begin();
		listen_at(0);
		connect_client(0);
		listener = bind_call(0, LISTENER, PORT);
		assert_int_equal(do_bind(0, &listener), 0);
		assert_int_equal(do_listen(0, &listener, 0), 0);
		if (anew) {
			lose_side(server);
			start_side(server, 101);
		}
		c = connect_call(ACTIVE + 5, PORT);
		from_to(&c.src, &c.dst, 1);
		c.dst.port = PORT;
		assert_int_equal(cm_connect(server->cm, OWNER, &c, &comm, &port), 0);
		fly();
		assert_int_equal(client->cm->counts[CM_N_STALE], 1);
		wait_ms(500);
		assert_int_equal(client->n_events, 1 + anew);
		if (anew)
			event(0, 1, EV_DISCONNECTED);
		end();
	}
}

/* An id that has ended may connect again; nothing of its first peer stays. */
static void used_again(void **state)
{
	struct cm_connect_call c;

	(void)state;
	begin();
	listen_at(0);
	assert_int_equal(connect_to(PORT, ACTIVE), 0);
	fly();
	accept_it();
	fly();
	event(0, 0, EV_RESPONSE);
	cm_owner_gone(world.side[1].cm, OWNER);
	fly();
	event(0, 1, EV_REJECTED);
	wait_ms(20000);
	event(0, 2, EV_TIMEWAIT);
	c = connect_call(ACTIVE, PORT);
	assert_int_equal(do_connect(&c), 0);
	fly();
	assert_int_equal(event(0, 3, EV_REJECTED)->status, CM_REJ_INVALID_SERVICE_ID);
	end();
}

static void ports(void **state)
{
	struct cm_bind_call a, b;

	(void)state;
	begin();
	a = bind_call(0, 10, PORT);
	b = bind_call(0, 11, PORT);
	assert_int_equal(do_bind(0, &a), 0);
	assert_int_equal(do_bind(0, &a), -EINVAL);
	assert_int_equal(do_bind(0, &b), -EADDRINUSE);
	b.ps = 0x0111; /* another port space */
	assert_int_equal(do_bind(0, &b), 0);
	cm_destroy(world.side[0].cm, OWNER, 10);
	cm_destroy(world.side[0].cm, OWNER, 11);
	a.flags = b.flags = CM_F_REUSEADDR;
	b.ps = a.ps;
	assert_int_equal(do_bind(0, &a), 0);
	assert_int_equal(do_bind(0, &b), 0);
	assert_int_equal(do_listen(0, &a, 0), -EADDRINUSE);
	cm_destroy(world.side[0].cm, OWNER, 11);
	assert_int_equal(do_listen(0, &a, 0), 0);
	assert_int_equal(do_bind(0, &b), -EADDRINUSE);
	end();
}

/* Ports that one process has borrowed are nobody else's, and its own only if it says so. */
static void lent_ports(void **state)
{
	struct cm_bind_call a, b;
	struct cm_connect_call c;
	struct cm *cm;
	uint16_t first, second, port;
	uint32_t comm;

	(void)state;
	begin();
	cm = world.side[0].cm;
	assert_int_equal(cm_lend(cm, OWNER, &first), 0);
	assert_int_equal(cm_lend(cm, OWNER + 1, &second), 0);
	assert_true(second >= first + CM_LOAN || first >= second + CM_LOAN);
	a = bind_call(0, 10, first);
	b = bind_call(0, 11, second);
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), -EADDRINUSE);
	a.flags = b.flags = CM_F_LENT;
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), 0);
	assert_int_equal(cm_bind(cm, OWNER, &b, &port), -EADDRINUSE);
	/* A connect is bound to its borrowed port on the way; one of another's is refused. */
	c = connect_call(12, 0);
	c.src.port = first + 1;
	assert_int_equal(cm_connect(cm, OWNER, &c, &comm, &port), 0);
	assert_int_equal(port, first + 1);
	c = connect_call(13, 0);
	c.src.port = second;
	assert_int_equal(cm_connect(cm, OWNER, &c, &comm, &port), -EADDRINUSE);
	/* All ports that are left, and no one of those that are lent. */
	for (int i = 0; i < CM_LOANS - 2; i++)
		assert_int_equal(cm_lend(cm, OWNER, &port), 0);
	assert_int_equal(cm_lend(cm, OWNER, &port), -EADDRNOTAVAIL);
	a = bind_call(0, 14, 0);
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), -EADDRNOTAVAIL);
	cm_owner_gone(cm, OWNER + 1);
	assert_int_equal(cm_bind(cm, OWNER, &a, &port), 0);
	assert_true(port >= second && port < second + CM_LOAN);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(life),
		cmocka_unit_test(losses),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(no_listener),
		cmocka_unit_test(too_early),
		cmocka_unit_test(too_early_for_successor),
		cmocka_unit_test(late_listener),
		cmocka_unit_test(backlog),
		cmocka_unit_test(slow_consumer),
		cmocka_unit_test(slower_consumer),
		cmocka_unit_test(rejected),
		cmocka_unit_test(deaths),
		cmocka_unit_test(unaccepted),
		cmocka_unit_test(stale),
		cmocka_unit_test(stale_by_hearsay),
		cmocka_unit_test(stale_server),
		cmocka_unit_test(clones),
		cmocka_unit_test(used_again),
		cmocka_unit_test(ports),
		cmocka_unit_test(lent_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
