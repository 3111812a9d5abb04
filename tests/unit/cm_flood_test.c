// SPDX-License-Identifier: BSD-3-Clause
/*
 * What stays in a communication manager: of requests by the thousand that come to nothing, of
 * connections that have ended, and of a host that leaves its requests half open.
 */
#include "tests/unit/cm_world.h"

enum { FLOOD = 5000, LIVES = 500, QPN = 0x100, LONGEST = 31 };

/* A REQ from side 0 or elsewhere, as its user pleases. */
static struct cm_msg forged_req(const uint8_t from[16], uint32_t comm, uint8_t ack_timeout)
{
	struct cm_msg m = {.hdr = {.attr = CM_REQ, .tid = 7ull << 32 | comm}};
	struct cm_ip_hdr ip = {.ip_version = 4, .src_port = 9};

	m.req.local_comm_id = comm;
	m.req.service_id = 0x01060000 | PORT;
	m.req.ca_guid = 0xdead000000000000 + comm;
	m.req.qpn = QPN + comm;
	m.req.remote_timeout = m.req.local_timeout = 20;
	m.req.primary.ack_timeout = ack_timeout;
	memcpy(ip.src + 12, from + 12, 4);
	memcpy(ip.dst + 12, world.side[1].gid + 12, 4);
	cm_ip_hdr_pack(&ip, m.req.priv);
	return m;
}

static uint32_t throw_req(const uint8_t from[16], uint32_t comm, uint8_t ack_timeout)
{
	struct side *victim = &world.side[1];
	struct cm_msg m = forged_req(from, comm, ack_timeout);

	victim->n_events = 0;
	throw_at(victim, from, &m);
	return victim->n_events ? victim->events[0].handle : 0;
}

static void reject(uint32_t handle)
{
	struct cm_reject_call c = {.handle = handle};

	assert_int_equal(cm_reject(world.side[1].cm, OWNER, &c), 0);
	assert_int_equal(cm_destroy(world.side[1].cm, OWNER, handle), 0);
}

static void begin_crowd(void)
{
	begin();
	world.crowded = world.moved = true;
}

/* Whether the program refuses them, or goes without a word, or nobody listens. */
static void nothing_stays_of_requests(void **state)
{
	enum { REFUSED, DESTROYED, NO_LISTENER, WAYS };
	const uint8_t *from = world.side[0].gid;

	(void)state;
	for (int way = 0; way < WAYS; way++) {
		struct cm *cm;

		begin_crowd();
		cm = world.side[1].cm;
		if (way != NO_LISTENER)
			listen_at(0);
		for (uint32_t i = 1; i <= FLOOD; i++) {
			uint32_t handle = throw_req(from, i, LONGEST);

			assert_int_equal(!handle, way == NO_LISTENER);
			if (way == REFUSED)
				reject(handle);
			else if (way == DESTROYED)
				cm_destroy(cm, OWNER, handle);
			fly();
		}
		assert_int_equal(cm->n_ids, way != NO_LISTENER);
		cm_destroy(cm, OWNER, LISTENER);
		wait_ms(20000);
		assert_false(cm_any(cm));
		assert_int_equal(cm_next(cm), 0);
		end();
	}
}

/* A request whose answer got lost comes again: it is answered, and no second one to the program. */
static void answered_again(void **state)
{
	const uint8_t *from = world.side[0].gid;
	struct cm *cm;
	int sent;

	(void)state;
	begin_crowd();
	cm = world.side[1].cm;
	listen_at(0);
	reject(throw_req(from, 77, 19));
	sent = world.sent;
	assert_int_equal(throw_req(from, 77, 19), 0);
	assert_int_equal(world.sent, sent + 1);
	assert_int_equal(world.head->next->mad[17], CM_REJ);
	assert_int_equal(cm->counts[CM_N_DUPLICATE], 1);
	wait_ms(20000); /* by then it is another one of the same number */
	assert_int_not_equal(throw_req(from, 77, 19), 0);
	end();
}

/* From request to end; how it was asked for, and the passive side's id, for who wants to repeat it.
 */
static uint32_t live_once(uint32_t active, struct cm_msg *req)
{
	struct cm_accept_call c;
	uint32_t passive, comm;

	assert_int_equal(connect_to(PORT, active), 0);
	assert_int_equal(cm_msg_unpack(world.head->mad, req), 0);
	fly();
	comm = world.side[1].events[0].local_comm;
	c = accept_call(passive = world.side[1].events[0].handle);
	c.param.qpn = 18;
	assert_int_equal(cm_accept(world.side[1].cm, OWNER, &c), 0);
	fly();
	assert_int_equal(cm_ready(world.side[0].cm, OWNER, active), 0);
	fly();
	assert_int_equal(cm_disconnect(world.side[0].cm, OWNER, active), 0);
	fly();
	assert_int_equal(cm_disconnect(world.side[1].cm, OWNER, passive), 0);
	fly();
	assert_int_equal(cm_destroy(world.side[0].cm, OWNER, active), 0);
	assert_int_equal(cm_destroy(world.side[1].cm, OWNER, passive), 0);
	return comm;
}

static void nothing_stays_of_connections(void **state)
{
	struct cm_msg req;

	(void)state;
	begin_crowd();
	listen_at(0);
	for (int i = 0; i < LIVES; i++) {
		live_once(ACTIVE + i, &req);
		assert_int_equal(world.side[0].cm->n_ids, 0);
		assert_int_equal(world.side[1].cm->n_ids, 1);
		world.now += NSEC_PER_MSEC;
	}
	end();
}

/* An ended connection's request that the network repeats is none; its DREQ is answered. */
static void repeated_after_the_end(void **state)
{
	struct side *passive = &world.side[1];
	struct cm_msg req, dreq = {.hdr = {.attr = CM_DREQ}};

	(void)state;
	begin_crowd();
	listen_at(0);
	dreq.dreq.remote_comm_id = live_once(ACTIVE, &req);
	dreq.dreq.local_comm_id = req.req.local_comm_id;
	passive->n_events = 0;
	throw_at(passive, world.side[0].gid, &req);
	assert_int_equal(passive->n_events, 0);
	assert_int_equal(world.head->mad[17], CM_REJ);
	assert_int_equal(world.head->mad[35], CM_REJ_STALE_CONN);
	fly();
	throw_at(passive, world.side[0].gid, &dreq);
	assert_int_equal(world.head->mad[17], CM_DREP);
	cm_destroy(passive->cm, OWNER, LISTENER);
	wait_ms(5000);
	assert_true(cm_any(passive->cm)); /* it would still be answered */
	wait_ms(5000);
	assert_false(cm_any(passive->cm));
	end();
}

/* So many requests of one host may be half open; more of its own wait, those of others do not. */
static void one_host_leaves_room(void **state)
{
	const uint8_t *from = world.side[0].gid;
	uint8_t other[16];
	uint32_t first = 0, handle, n;
	struct cm *cm;

	(void)state;
	begin_crowd();
	cm = world.side[1].cm;
	listen_at(0);
	for (n = 0; n < CM_HALF_OPEN_MAX; n++) {
		handle = throw_req(from, n + 1, LONGEST);
		assert_int_not_equal(handle, 0);
		cm_taken(cm, OWNER, handle);
		first = first ? first : handle;
	}
	assert_int_equal(throw_req(from, n + 1, LONGEST), 0);
	assert_int_equal(cm->counts[CM_N_TOO_MANY], 1);
	assert_int_equal(cm->n_ids, CM_HALF_OPEN_MAX + 1);
	memcpy(other, from, sizeof other);
	other[15] = 77;
	assert_int_not_equal(throw_req(other, 1, LONGEST), 0);
	reject(first);
	assert_int_not_equal(throw_req(from, n + 1, LONGEST), 0);
	assert_int_equal(throw_req(from, n + 2, LONGEST), 0);
	cm_owner_gone(cm, OWNER);
	assert_int_equal(cm->n_ids, 0);
	assert_int_equal(cm->n_peers, 0);
	end();
}

/* Whoever says how long, nobody waits longer than seconds. */
static void time_wait_is_short(void **state)
{
	static const struct {
		uint8_t ack_timeout;
		uint64_t from_ms, to_ms;
	} rows[] = {{0, 1900, 2200}, {8, 0, 200}, {19, 1900, 2200}, {LONGEST, 3900, 4300}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cm_connect_call c = connect_call(ACTIVE, PORT);
		uint32_t passive;

		begin();
		c = connect_call(ACTIVE, PORT);
		c.param.ack_timeout = rows[i].ack_timeout;
		listen_at(0);
		assert_int_equal(do_connect(&c), 0);
		fly();
		passive = passive_handle();
		accept_it();
		fly();
		assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
		fly();
		assert_int_equal(cm_disconnect(world.side[0].cm, OWNER, ACTIVE), 0);
		fly();
		assert_int_equal(cm_disconnect(world.side[1].cm, OWNER, passive), 0);
		fly();
		wait_ms(rows[i].from_ms);
		if (rows[i].from_ms)
			assert_int_equal(world.side[0].n_events, 2);
		wait_ms(rows[i].to_ms - rows[i].from_ms);
		event(0, 2, EV_TIMEWAIT);
		event(1, 3, EV_TIMEWAIT);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_stays_of_requests),
		cmocka_unit_test(answered_again),
		cmocka_unit_test(nothing_stays_of_connections),
		cmocka_unit_test(repeated_after_the_end),
		cmocka_unit_test(one_host_leaves_room),
		cmocka_unit_test(time_wait_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
