// SPDX-License-Identifier: BSD-3-Clause
/*
 * Connections between two hosts, each with its weftd, without a byte of traffic: a request that
 * nobody waits for, one that is refused, one that is accepted and ended, a host that goes; and
 * which queue pair takes datagrams.  By IPv4 and IPv6, and with faults.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/two_hosts.h"
#include "tests/lib/weftd_from_outside.h"

enum {
	NEAR = 1,
	FAR = 2,
	NO_LISTENER = 8, /* reasons of REJ */
	REFUSED = 28,
	SIDR_REFUSED = 2,
	NEAR_QPN = 77,
	FAR_QPN = 99,
	NEAR_WORD = 1234,
	FAR_WORD = 4321,
	TOS = 0x28, /* of the near host's packets */
};

/* What each asks for or grants: every number is another one. */
static const struct rdma_conn_param near_param = {.qp_num = NEAR_QPN,
	.retry_count = 3,
	.rnr_retry_count = 5,
	.responder_resources = 3,
	.initiator_depth = 2};
static const struct rdma_conn_param far_param = {.qp_num = FAR_QPN,
	.retry_count = 4,
	.rnr_retry_count = 6,
	.responder_resources = 7,
	.initiator_depth = 1};

/* What the far host does. */
enum act { LISTEN, ACCEPT, REFUSE, AWAIT_END, HANG_UP, STOP_LISTENING, LOSE_WEFTD, QUIT };

struct order {
	enum act act;
	int family;
	enum rdma_port_space ps;
};

/* What it has. */
struct far {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener, *id;
};

static struct rdma_conn_param with_word(const struct rdma_conn_param *param, const uint32_t *word)
{
	struct rdma_conn_param p = *param;

	p.private_data = word;
	p.private_data_len = sizeof *word;
	return p;
}

/* What a queue pair of the id's is to have, which the program brings up itself. */
static void check_attributes(struct rdma_cm_id *id, uint8_t rnr_retry, uint8_t reads)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask = 0;

	CHECK_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
	attr.qp_state = IBV_QPS_RTS;
	CHECK_EQ(rdma_init_qp_attr(id, &attr, &mask), 0);
	CHECK_EQ(attr.retry_cnt, near_param.retry_count);
	CHECK_EQ(attr.rnr_retry, rnr_retry);
	CHECK_EQ(attr.max_rd_atomic, reads);
	CHECK_EQ(attr.ah_attr.grh.traffic_class, TOS);
}

static void check_word(const void *data, uint32_t want)
{
	uint32_t got;

	if (!data)
		die("no private data came");
	memcpy(&got, data, sizeof got);
	CHECK_EQ(got, want);
}

/* ---- the far host ---- */

static uint16_t start_listening(struct far *f, const struct order *o)
{
	if (rdma_create_id(f->ch, &f->listener, NULL, o->ps))
		die("rdma_create_id");
	if (rdma_bind_addr(f->listener, host_addr(o->family, FAR, 0)) ||
		rdma_listen(f->listener, 0))
		die("cannot listen");
	return ntohs(rdma_get_src_port(f->listener));
}

static void take_request(struct far *f, const struct order *o)
{
	struct rdma_cm_event *e = cm_take(f->ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	const struct sockaddr *from = &e->id->route.addr.dst_addr;

	CHECK_EQ(from->sa_family, o->family);
	if (o->ps == RDMA_PS_TCP) {
		check_word(e->param.conn.private_data, NEAR_WORD);
		CHECK_EQ(e->param.conn.qp_num, NEAR_QPN);
		CHECK_EQ(e->param.conn.responder_resources, 2);
		CHECK_EQ(e->param.conn.initiator_depth, 3);
		CHECK_EQ(e->param.conn.retry_count, 3);
		CHECK_EQ(e->param.conn.rnr_retry_count, 5);
	} else {
		check_word(e->param.ud.private_data, NEAR_WORD);
	}
	f->id = e->id;
	rdma_ack_cm_event(e);
}

static void answer(struct far *f, const struct order *o)
{
	const uint32_t word = FAR_WORD;
	struct rdma_conn_param p = with_word(&far_param, &word);

	take_request(f, o);
	if (o->act == REFUSE) {
		if (rdma_reject(f->id, &word, sizeof word))
			die("rdma_reject");
		rdma_destroy_id(f->id);
	} else if (rdma_accept(f->id, &p)) {
		die("rdma_accept");
	} else if (o->ps == RDMA_PS_TCP) {
		check_attributes(f->id, near_param.rnr_retry_count, far_param.initiator_depth);
		cm_expect(f->ch, RDMA_CM_EVENT_ESTABLISHED);
	} else {
		rdma_destroy_id(f->id);
	}
}

/* The next one knows what the process tells it, as soon as that asks for anything. */
static void lose_weftd(struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id = cm_id(ch);

	weftd_kill(weftd_pid());
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	cm_end(id);
}

static uint16_t carry_out(struct far *f, const struct order *o)
{
	switch (o->act) {
	case LISTEN:
		return start_listening(f, o);
	case ACCEPT:
	case REFUSE:
		answer(f, o);
		break;
	case AWAIT_END:
		cm_expect(f->ch, RDMA_CM_EVENT_DISCONNECTED);
		if (rdma_disconnect(f->id))
			die("rdma_disconnect");
		rdma_destroy_id(f->id);
		break;
	case HANG_UP:
		rdma_destroy_id(f->id);
		break;
	case STOP_LISTENING:
		rdma_destroy_id(f->listener);
		break;
	case LOSE_WEFTD:
		lose_weftd(f->ch);
		break;
	case QUIT:
		break;
	}
	return 1;
}

static void live_far(int in, int out, void *arg)
{
	struct far f = {.ch = cm_channel()};
	struct order o;
	uint16_t done;

	(void)arg;
	do {
		t_hear(in, &o, sizeof o);
		done = carry_out(&f, &o);
		t_tell(out, &done, sizeof done);
	} while (o.act != QUIT);
	rdma_destroy_event_channel(f.ch);
	if (check_failures())
		exit(1);
}

/* ---- the near host ---- */

struct world {
	struct t_child far;
	struct rdma_event_channel *ch;
	struct order o; /* the family and port space of what follows */
};

static void order(struct world *w, enum act act)
{
	w->o.act = act;
	t_tell(w->far.to, &w->o, sizeof w->o);
}

static uint16_t done(struct world *w)
{
	uint16_t answer;

	t_hear(w->far.from, &answer, sizeof answer);
	return answer;
}

static uint16_t far_does(struct world *w, enum act act)
{
	order(w, act);
	return done(w);
}

static struct rdma_cm_id *ask(struct world *w, uint16_t port)
{
	static const uint32_t word = NEAR_WORD;
	struct rdma_conn_param p = with_word(&near_param, &word);
	const uint8_t tos = TOS;
	struct rdma_cm_id *id;

	if (rdma_create_id(w->ch, &id, NULL, w->o.ps))
		die("rdma_create_id");
	CHECK_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, (void *)&tos, 1), 0);
	if (rdma_resolve_addr(id, NULL, host_addr(w->o.family, FAR, port), CM_WAIT_MS))
		die("rdma_resolve_addr");
	cm_expect(w->ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, CM_WAIT_MS))
		die("rdma_resolve_route");
	cm_expect(w->ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	CHECK_EQ(id->route.path_rec->mtu, IBV_MTU_1024); /* of a link of 1,500 bytes */
	if (rdma_connect(id, &p))
		die("rdma_connect");
	return id;
}

static struct rdma_cm_id *connected(struct world *w, uint16_t port)
{
	struct rdma_cm_id *id;
	struct rdma_cm_event *e;

	order(w, ACCEPT);
	id = ask(w, port);
	e = cm_take(w->ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	check_word(e->param.conn.private_data, FAR_WORD);
	CHECK_EQ(e->param.conn.qp_num, FAR_QPN);
	CHECK_EQ(e->param.conn.responder_resources, 1); /* what the other one initiates */
	CHECK_EQ(e->param.conn.initiator_depth, 7);
	CHECK_EQ(e->param.conn.rnr_retry_count, 6);
	rdma_ack_cm_event(e);
	check_attributes(id, far_param.rnr_retry_count, far_param.responder_resources);
	if (rdma_establish(id))
		die("rdma_establish");
	(void)done(w);
	return id;
}

static void refused(struct world *w, uint16_t port)
{
	struct rdma_cm_id *id;
	struct rdma_cm_event *e;

	order(w, REFUSE);
	id = ask(w, port);
	e = cm_take(w->ch, RDMA_CM_EVENT_REJECTED);
	CHECK_EQ(e->status, REFUSED);
	check_word(e->param.conn.private_data, FAR_WORD);
	rdma_ack_cm_event(e);
	rdma_destroy_id(id);
	(void)done(w);
}

static void ends(struct world *w, uint16_t port)
{
	struct rdma_cm_id *id = connected(w, port);

	order(w, AWAIT_END);
	if (rdma_disconnect(id))
		die("rdma_disconnect");
	cm_expect(w->ch, RDMA_CM_EVENT_DISCONNECTED);
	(void)done(w);
	rdma_destroy_id(id);
	id = connected(w, port);
	order(w, HANG_UP);
	cm_expect(w->ch, RDMA_CM_EVENT_DISCONNECTED);
	(void)done(w);
	rdma_destroy_id(id);
}

static void connections(struct world *w, int family)
{
	struct rdma_cm_id *id;
	uint16_t port;

	w->o = (struct order){.family = family, .ps = RDMA_PS_TCP};
	port = far_does(w, LISTEN);
	refused(w, port);
	ends(w, port);
	far_does(w, STOP_LISTENING);
	/* Not the same port: at one whose listener has just gone a request waits a little. */
	id = ask(w, port - 1);
	CHECK_EQ(cm_expect(w->ch, RDMA_CM_EVENT_REJECTED), NO_LISTENER);
	rdma_destroy_id(id);
}

/* Connections stand while either host's weftd is another one, and end as ever. */
static void weftd_dies(struct world *w)
{
	struct rdma_cm_id *id;
	uint16_t port;

	w->o = (struct order){.family = AF_INET, .ps = RDMA_PS_TCP};
	port = far_does(w, LISTEN);
	for (int far = 0; far < 2; far++) {
		check_case("the %s weftd is killed", far ? "far" : "near");
		id = connected(w, port);
		if (far)
			far_does(w, LOSE_WEFTD);
		else
			lose_weftd(w->ch);
		CHECK(!cm_readable(w->ch, 0));
		order(w, AWAIT_END);
		CHECK_EQ(rdma_disconnect(id), 0);
		cm_expect(w->ch, RDMA_CM_EVENT_DISCONNECTED);
		(void)done(w);
		rdma_destroy_id(id);
	}
	far_does(w, STOP_LISTENING);
}

static void datagrams(struct world *w, int family)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	uint16_t port;

	w->o = (struct order){.family = family, .ps = RDMA_PS_UDP};
	port = far_does(w, LISTEN);
	order(w, ACCEPT);
	id = ask(w, port);
	e = cm_take(w->ch, RDMA_CM_EVENT_ESTABLISHED);
	CHECK_EQ(e->param.ud.qp_num, FAR_QPN);
	CHECK_EQ(e->param.ud.qkey, RDMA_UDP_QKEY);
	CHECK(!memcmp(&e->param.ud.ah_attr.grh.dgid, &id->route.addr.addr.ibaddr.dgid, 16));
	check_word(e->param.ud.private_data, FAR_WORD);
	rdma_ack_cm_event(e);
	rdma_destroy_id(id);
	(void)done(w);
	order(w, REFUSE);
	id = ask(w, port);
	CHECK_EQ(cm_expect(w->ch, RDMA_CM_EVENT_UNREACHABLE), SIDR_REFUSED);
	rdma_destroy_id(id);
	(void)done(w);
	far_does(w, STOP_LISTENING);
}

/* Rules of weft fault are for the messages of connections, too. */
static void with_faults(struct world *w)
{
	check_case("each message comes twice");
	host_do("${WEFT_DAEMON%%d} fault set duplicate >/dev/null");
	connections(w, AF_INET);
	host_do("${WEFT_DAEMON%%d} status --json | grep -q '\"faulted\": [1-9]'");
	host_do("${WEFT_DAEMON%%d} fault clear >/dev/null");
}

int main(void)
{
	struct world w = {0};

	t_start(60);
	two_hosts(&w.far, live_far);
	w.ch = cm_channel();
	connections(&w, AF_INET);
	connections(&w, AF_INET6);
	with_faults(&w);
	datagrams(&w, AF_INET);
	datagrams(&w, AF_INET6);
	weftd_dies(&w);
	far_does(&w, QUIT);
	rdma_destroy_event_channel(w.ch);
	T_EQUAL(t_wait(&w.far), 0);
	return check_result();
}
