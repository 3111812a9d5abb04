// SPDX-License-Identifier: BSD-3-Clause
/*
 * Messages that are not the peer's: each part that an answer has to have right is wrong in turn,
 * and nothing comes of it; with all of them right it does what it says.
 */
#include "tests/unit/cm_world.h"

/* A peer may ask for hours. */
#define MRA_MOST_NS (70 * NSEC_PER_SEC)

enum { ACTIVE_QPN = 17, PASSIVE_QPN = 18, GUESSES = 12000, IDS = 200, FAR_APART = 1000 };

/* What a message may have to have right. */
enum part {
	OURS = 1 << 0,   /* the receiver's id */
	THEIRS = 1 << 1, /* the sender's */
	TRANSACTION = 1 << 2,
	NUMBER = 1 << 3, /* of the receiver's queue pair */
	GUID = 1 << 4,   /* of the sender's adapter */
	ADDRESS = 1 << 5,
	NOBODY = 1 << 6, /* as a sender that has no id: beside others */
	BOTH = OURS | THEIRS | ADDRESS,
	FIRST = OURS | TRANSACTION | ADDRESS, /* before the receiver knows the sender's id */
};

static const uint8_t parts[] = {OURS, THEIRS, TRANSACTION, NUMBER, GUID, ADDRESS};

enum { PARTS = sizeof parts };

/* A message for whom it finds in some state, on the active side or the passive one. */
static const struct row {
	int side;
	enum cm_state at;
	uint16_t attr;
	uint8_t about;
	uint16_t reason;
	uint8_t needs; /* of enum part; 0: it does nothing whatever it has right */
	enum cm_state becomes;
} rows[] = {
	{0, CM_REQ_SENT, CM_REP, 0, 0, FIRST, CM_REP_RCVD},
	{0, CM_REQ_SENT, CM_REJ, CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, FIRST, CM_ENDED},
	{0, CM_REQ_SENT, CM_REJ, CM_ABOUT_OTHER, CM_REJ_CONSUMER_DEFINED, FIRST, CM_ENDED},
	{0, CM_REQ_SENT, CM_REJ, CM_ABOUT_REQ, CM_REJ_STALE_CONN, FIRST, CM_TIMEWAIT},
	{0, CM_REQ_SENT, CM_REJ, CM_ABOUT_REP, CM_REJ_TIMEOUT, FIRST, CM_ENDED},
	{0, CM_REQ_SENT, CM_MRA, CM_ABOUT_REQ, 0, FIRST, CM_REQ_SENT},
	{0, CM_REQ_SENT, CM_MRA, CM_ABOUT_REP, 0, 0, CM_REQ_SENT},
	{0, CM_REQ_SENT, CM_RTU, 0, 0, 0, CM_REQ_SENT},
	{0, CM_REQ_SENT, CM_DREQ, 0, 0, 0, CM_REQ_SENT},
	{0, CM_REQ_SENT, CM_DREP, 0, 0, 0, CM_REQ_SENT},
	{0, CM_REQ_SENT, CM_SIDR_REP, 0, 0, 0, CM_REQ_SENT},
	{0, CM_REP_RCVD, CM_REJ, CM_ABOUT_OTHER, CM_REJ_CONSUMER_DEFINED, BOTH, CM_TIMEWAIT},
	{0, CM_REP_RCVD, CM_REJ, CM_ABOUT_REP, CM_REJ_TIMEOUT, BOTH, CM_TIMEWAIT},
	{0, CM_REP_RCVD, CM_REJ, CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, 0, CM_REP_RCVD},
	{0, CM_REP_RCVD, CM_DREQ, 0, 0, BOTH | NUMBER, CM_DREQ_RCVD},
	{0, CM_ESTABLISHED, CM_DREQ, 0, 0, BOTH | NUMBER, CM_DREQ_RCVD},
	{0, CM_ESTABLISHED, CM_REJ, CM_ABOUT_OTHER, CM_REJ_CONSUMER_DEFINED, BOTH, CM_TIMEWAIT},
	{0, CM_ESTABLISHED, CM_REJ, CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_MRA, CM_ABOUT_REQ, 0, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_MRA, CM_ABOUT_OTHER, 0, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_REP, 0, 0, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_RTU, 0, 0, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_DREP, 0, 0, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_SIDR_REP, 0, 0, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_LAP, 0, 0, 0, CM_ESTABLISHED},
	{0, CM_ESTABLISHED, CM_APR, 0, 0, 0, CM_ESTABLISHED},
	{0, CM_DREQ_SENT, CM_DREP, 0, 0, BOTH, CM_TIMEWAIT},
	{0, CM_DREQ_SENT, CM_DREQ, 0, 0, BOTH | NUMBER, CM_TIMEWAIT},
	{0, CM_DREQ_SENT, CM_REJ, CM_ABOUT_OTHER, CM_REJ_INVALID_COMM_ID, BOTH, CM_TIMEWAIT},
	{1, CM_REQ_RCVD, CM_REJ, CM_ABOUT_REQ, CM_REJ_TIMEOUT, THEIRS | GUID | ADDRESS, CM_ENDED},
	{1, CM_REQ_RCVD, CM_REJ, CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, 0, CM_REQ_RCVD},
	{1, CM_REQ_RCVD, CM_RTU, 0, 0, 0, CM_REQ_RCVD},
	{1, CM_REP_SENT, CM_RTU, 0, 0, BOTH, CM_ESTABLISHED},
	{1, CM_REP_SENT, CM_REJ, CM_ABOUT_REP, CM_REJ_CONSUMER_DEFINED, BOTH, CM_ENDED},
	{1, CM_REP_SENT, CM_REJ, CM_ABOUT_REQ, CM_REJ_TIMEOUT, THEIRS | GUID | ADDRESS, CM_ENDED},
	{1, CM_REP_SENT, CM_MRA, CM_ABOUT_REP, 0, BOTH, CM_REP_SENT},
	{1, CM_REP_SENT, CM_DREQ, 0, 0, BOTH | NUMBER, CM_DREQ_RCVD},
	{1, CM_ESTABLISHED, CM_DREQ, 0, 0, BOTH | NUMBER, CM_DREQ_RCVD},
	{1, CM_ESTABLISHED, CM_REJ, CM_ABOUT_REP, CM_REJ_CONSUMER_DEFINED, BOTH, CM_TIMEWAIT},
	{1, CM_ESTABLISHED, CM_REJ, CM_ABOUT_REQ, CM_REJ_CONSUMER_DEFINED, 0, CM_ESTABLISHED},
	{1, CM_DREQ_RCVD, CM_DREP, 0, 0, 0, CM_DREQ_RCVD},
	{1, CM_DREQ_RCVD, CM_RTU, 0, 0, 0, CM_DREQ_RCVD},
	{1, CM_DREQ_RCVD, CM_REJ, CM_ABOUT_REP, CM_REJ_CONSUMER_DEFINED, 0, CM_DREQ_RCVD},
};

/* All but a listener. */
static struct cm_id *id_of_side(int side)
{
	struct cm_id *id = world.side[side].cm->ids;

	while (id && id->state == CM_LISTEN)
		id = id->next;
	assert_non_null(id);
	return id;
}

static void connect_active(void)
{
	struct cm_connect_call c = connect_call(ACTIVE, PORT);

	c.param.qpn = ACTIVE_QPN;
	assert_int_equal(do_connect(&c), 0);
	fly();
}

/* Both sides, as far as that one has to be; what is under way then gets lost. */
static void reach(int side, enum cm_state state)
{
	begin();
	listen_at(0);
	connect_active();
	if (state == CM_REQ_SENT || state == CM_REQ_RCVD)
		return;
	accept_it(); /* PASSIVE_QPN */
	if (side == 1 && state == CM_REP_SENT)
		return;
	fly();
	if (state == CM_REP_RCVD)
		return;
	assert_int_equal(cm_ready(world.side[0].cm, OWNER, ACTIVE), 0);
	fly();
	if (state == CM_DREQ_SENT || state == CM_DREQ_RCVD)
		assert_int_equal(cm_disconnect(world.side[0].cm, OWNER, ACTIVE), 0);
	if (state == CM_DREQ_RCVD)
		fly();
	assert_int_equal(id_of_side(side)->state, state);
}

/* As the peer would say it, but for what is wrong. */
static struct cm_msg message(const struct row *r, uint8_t wrong)
{
	const struct cm_id *victim = id_of_side(r->side), *peer = id_of_side(!r->side);
	uint64_t guid = world.side[!r->side].cm->ca_guid ^ !!(wrong & GUID);
	struct cm_msg m = {.hdr = {.attr = r->attr, .tid = victim->tid}};
	uint32_t bit = 1u << world.randoms++ % 32;

	if (wrong & TRANSACTION)
		m.hdr.tid ^= bit;
	if (r->attr == CM_SIDR_REP) {
		m.sidr_rep.request_id = victim->local_comm;
		return m;
	}
	m.rtu.local_comm_id = peer->local_comm ^ (wrong & THEIRS ? bit : 0);
	if (wrong & NOBODY)
		m.rtu.local_comm_id = 0;
	m.rtu.remote_comm_id = victim->local_comm ^ (wrong & OURS ? bit : 0);
	if (r->attr == CM_DREQ)
		m.dreq.remote_qpn = victim->qpn ^ !!(wrong & NUMBER);
	if (r->attr == CM_MRA) {
		m.mra.about = r->about;
		m.mra.service_timeout = 31;
	}
	if (r->attr == CM_REP)
		m.rep.qpn = PASSIVE_QPN;
	if (r->attr != CM_REJ)
		return m;
	m.rej.about = r->about;
	m.rej.reason = r->reason;
	m.rej.ari_length = 8;
	for (int i = 0; i < 8; i++)
		m.rej.ari[i] = guid >> (56 - 8 * i);
	return m;
}

static void throw_row(const struct row *r, uint8_t wrong)
{
	struct cm_msg m = message(r, wrong);
	uint8_t gid[16];

	memcpy(gid, world.side[!r->side].gid, sizeof gid);
	gid[14] ^= !!(wrong & ADDRESS);
	world.moved = true; /* what is said to others gets lost */
	throw_at(&world.side[r->side], gid, &m);
}

static void each_part_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		struct side *side = &world.side[r->side];
		struct cm_id *id;
		unsigned events;

		print_message("row %zu: attribute 0x%x in state %d\n", i, r->attr, r->at);
		reach(r->side, r->at);
		id = id_of_side(r->side);
		events = side->n_events;
		for (int p = 0; p < PARTS; p++) {
			if (!(r->needs & parts[p]))
				continue;
			throw_row(r, parts[p]);
			throw_row(r, parts[p] | NOBODY);
			assert_int_equal(id->state, r->at);
			assert_int_equal(id->late, 0);
			assert_int_equal(side->n_events, events);
		}
		throw_row(r, 0);
		assert_int_equal(id->state, r->becomes);
		if (!r->needs)
			assert_int_equal(side->n_events, events);
		if (r->attr == CM_MRA && r->needs) {
			assert_int_equal(id->late, 1);
			assert_true(id->pending->deadline.when - world.now < MRA_MOST_NS);
		}
		end();
	}
}

/* What was done to hosts: REJs about all ids that a counter may have given. */
static void guessed(void **state)
{
	static const uint8_t abouts[] = {CM_ABOUT_REQ, CM_ABOUT_REP, CM_ABOUT_OTHER};
	static const uint16_t reasons[] = {
		CM_REJ_CONSUMER_DEFINED, CM_REJ_TIMEOUT, CM_REJ_INVALID_COMM_ID};

	(void)state;
	for (int side = 0; side < SIDES; side++) {
		struct cm_id *id;

		reach(side, CM_ESTABLISHED);
		id = id_of_side(side);
		world.moved = true;
		for (uint32_t i = 0; i < GUESSES; i++) {
			struct cm_msg m = {.hdr = {.attr = CM_REJ, .tid = 77}};

			m.rej.local_comm_id = 0xbad0000;
			m.rej.remote_comm_id = 3u << 24 | i;
			m.rej.about = abouts[i % 3];
			m.rej.reason = reasons[i / 3 % 3];
			throw_at(&world.side[side], world.side[!side].gid, &m);
		}
		assert_int_equal(id->state, CM_ESTABLISHED);
		end();
	}
}

/* From one id nothing follows about the next one. */
static void ids_tell_nothing(void **state)
{
	uint32_t last = 0;

	(void)state;
	begin();
	world.crowded = world.moved = true;
	for (uint32_t i = 0; i < IDS; i++) {
		struct cm_connect_call c = connect_call(ACTIVE + i, PORT);
		uint32_t comm, apart;
		uint16_t port;

		assert_int_equal(cm_connect(world.side[0].cm, OWNER, &c, &comm, &port), 0);
		apart = comm - last;
		assert_true(apart > FAR_APART && -apart > FAR_APART);
		last = comm;
	}
	end();
}

/* A message about a request that is no answer to it does not become one by the request's id. */
static void another_request_of_the_same_id(void **state)
{
	struct side *victim = &world.side[1];
	struct cm_msg req, other;

	(void)state;
	for (int established = 0; established < 2; established++) {
		reach(1, established ? CM_ESTABLISHED : CM_REQ_RCVD);
		req = (struct cm_msg){.hdr = {.attr = CM_REQ, .tid = id_of_side(1)->tid}};
		req.req.local_comm_id = id_of_side(0)->local_comm;
		req.req.ca_guid = world.side[0].cm->ca_guid;
		req.req.qpn = ACTIVE_QPN;
		other = req;
		other.hdr.tid++;
		victim->n_events = 0;
		throw_at(victim, world.side[0].gid, &other);
		other = req;
		other.req.qpn++;
		throw_at(victim, world.side[0].gid, &other);
		other = req;
		other.req.ca_guid++;
		throw_at(victim, world.side[0].gid, &other);
		assert_int_equal(victim->cm->counts[CM_N_DUPLICATE], 0);
		throw_at(victim, world.side[0].gid, &req);
		assert_int_equal(victim->cm->counts[CM_N_DUPLICATE], 1);
		fly(); /* who lives says so */
		wait_ms(20000);
		assert_int_equal(victim->n_events, 0);
		assert_int_equal(id_of_side(1)->state, established ? CM_ESTABLISHED : CM_REQ_RCVD);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_counts),
		cmocka_unit_test(guessed),
		cmocka_unit_test(ids_tell_nothing),
		cmocka_unit_test(another_request_of_the_same_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
