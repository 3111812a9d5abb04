// SPDX-License-Identifier: BSD-3-Clause
/*
 * What an ordinary user of the other host can do to connections, with a UDP socket and right ICRCs:
 * flood it with requests, guess ids for each message there is, say that a client was started anew.
 * On both sides the connections that stand go on, new ones come about, and nothing is left behind.
 *
 * usage: cm_attack [REQUESTS [CONNECTS]]: of the flood; timed before and after it
 */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/cm_forge.h"
#include "tests/lib/share_status.h"
#include "tests/lib/two_hosts.h"
#include "tests/lib/weftd_from_outside.h"

enum {
	NEAR = 1,
	FAR = 2,
	HELD = 50,
	REJECTS = 12000,  /* what once ended them all */
	OF_EACH = 1000,   /* other message */
	REQUESTS = 10000, /* of the flood */
	CONNECTS = 20,
	BURST = 100, /* packets, then a moment for who receives them */
	BURST_US = 1000,
	NEAR_QPN = 1000, /* the first */
	FAR_QPN = 2000,
	GROWTH_KB = 8192,
};

/* What a client wants of the server, and what it is told: the first byte of private data. */
enum wish { FORGED, HOLD, END };

/* What the far host does. */
enum act { WHICH, GUESS, RESTART, SEE, QUIT };

struct order {
	enum act act;
	uint64_t guid; /* RESTART: of the host that is attacked */
};

/* What it answers. */
struct answer {
	uint64_t guid, received, unexpected, stale;
	int64_t ids, kb;
	uint16_t port, flooded; /* where clients connect; where nobody does but the attacker */
	uint16_t ended;         /* of those held */
};

static unsigned long requests = REQUESTS, connects = CONNECTS;

/* ---- what both hosts do to the other ---- */

static struct in_addr addr_of(int host)
{
	return ((struct sockaddr_in *)host_addr(AF_INET, host, 0))->sin_addr;
}

static void pace(const struct forger *f)
{
	if (f->sent % BURST == 0)
		usleep(BURST_US);
}

/* A message to an id that a counter might have given, about whatever it is about. */
static struct cm_msg guess(uint16_t attr, uint32_t i)
{
	static const uint16_t reasons[] = {
		CM_REJ_CONSUMER_DEFINED, CM_REJ_INVALID_COMM_ID, CM_REJ_TIMEOUT};
	struct cm_msg m = {.hdr = {.attr = attr, .tid = 1ull << 32 | i}};
	uint32_t ours = (1 + i % 2) << 24 | i / 2;

	if (attr == CM_SIDR_REP) {
		m.sidr_rep.request_id = ours;
		return m;
	}
	m.rtu.local_comm_id = i % 3 ? 0xbad0000 : ours;
	m.rtu.remote_comm_id = ours;
	if (attr == CM_REJ) {
		m.rej.about = i % 3;
		m.rej.reason = reasons[i / 3 % 3];
	}
	if (attr == CM_MRA)
		m.mra.service_timeout = 31;
	return m;
}

static void guess_all(struct forger *f)
{
	static const uint16_t attrs[] = {
		CM_MRA, CM_REP, CM_RTU, CM_DREQ, CM_DREP, CM_SIDR_REP, CM_LAP, CM_APR};

	for (uint32_t i = 0; i < REJECTS; i++, pace(f)) {
		struct cm_msg m = guess(CM_REJ, i);

		forge(f, &m);
	}
	for (size_t a = 0; a < sizeof attrs / sizeof *attrs; a++)
		for (uint32_t i = 0; i < OF_EACH; i++, pace(f)) {
			struct cm_msg m = guess(attrs[a], i);

			forge(f, &m);
		}
}

/* Requests from the very queue pairs that are connected. */
static void restart_all(struct forger *f, uint64_t guid, uint32_t qpn)
{
	for (uint32_t i = 0; i < HELD; i++, pace(f)) {
		struct cm_msg m = forged_req(f, 1 + i, 1);

		m.req.ca_guid = guid;
		m.req.qpn = qpn + i;
		forge(f, &m);
	}
}

/* ---- the far host: the server ---- */

struct far {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listener[2];
	struct forger forger;
	struct answer a;
	uint32_t qpn;
};

static void answer_request(struct far *f, struct rdma_cm_event *e)
{
	const uint8_t *wish = e->param.conn.private_data;
	struct rdma_conn_param p = {.qp_num = FAR_QPN, .rnr_retry_count = 7};
	struct rdma_cm_id *id = e->id;

	if (*wish == FORGED) {
		CHECK_EQ(rdma_reject(id, NULL, 0), 0);
		cm_end(id);
		return;
	}
	if (*wish == HOLD) {
		p.qp_num += f->qpn++;
		id->context = f;
	}
	CHECK_EQ(rdma_accept(id, &p), 0);
}

static void take_event(struct far *f)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(f->ch, &e))
		die("rdma_get_cm_event");
	id = e->id;
	type = e->event;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		id->context = NULL;
		answer_request(f, e);
	}
	rdma_ack_cm_event(e);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED)
		return;
	f->a.ended += id->context != NULL;
	(void)rdma_disconnect(id);
	cm_end(id);
}

static void see(struct answer *a)
{
	a->received = status_of_all("connections", "received");
	a->unexpected = status_of_all("connections", "unexpected");
	a->stale = status_of_all("connections", "stale");
	a->ids = status_of_all("connections", "ids");
	a->kb = weftd_memory_kb(weftd_pid());
}

static void carry_out(struct far *f, const struct order *o)
{
	if (o->act == GUESS)
		guess_all(&f->forger);
	else if (o->act == RESTART)
		restart_all(&f->forger, o->guid, FAR_QPN);
	else if (o->act == SEE)
		see(&f->a);
}

static uint16_t listen_far(struct far *f, int i)
{
	f->listener[i] = cm_id(f->ch);
	if (rdma_bind_addr(f->listener[i], host_addr(AF_INET, FAR, 0)) ||
		rdma_listen(f->listener[i], 0))
		die("cannot listen");
	return ntohs(rdma_get_src_port(f->listener[i]));
}

static void live_far(int in, int out, void *arg)
{
	struct far f = {.ch = cm_channel()};
	struct pollfd p[] = {{.fd = in, .events = POLLIN}, {.fd = f.ch->fd, .events = POLLIN}};
	struct order o = {.act = SEE};

	(void)arg;
	f.a.port = listen_far(&f, 0);
	f.a.flooded = listen_far(&f, 1);
	f.a.guid = be64toh(ibv_get_device_guid(f.listener[0]->verbs->device));
	forger_open(&f.forger, addr_of(FAR), addr_of(NEAR));
	while (o.act != QUIT) {
		if (poll(p, 2, -1) < 0)
			die("poll");
		if (p[1].revents)
			take_event(&f);
		if (!p[0].revents)
			continue;
		t_hear(in, &o, sizeof o);
		carry_out(&f, &o);
		t_tell(out, &f.a, sizeof f.a);
	}
	forger_close(&f.forger);
	if (check_failures())
		exit(1);
}

/* ---- the near host: the clients ---- */

struct world {
	struct t_child far;
	struct rdma_event_channel *ch;
	struct forger forger;
	struct rdma_cm_id *held[HELD];
	struct answer base; /* of the far host, before */
	uint64_t guid;
};

static struct answer far_does(struct world *w, enum act act)
{
	struct order o = {.act = act, .guid = w->guid};
	struct answer a;

	t_tell(w->far.to, &o, sizeof o);
	t_hear(w->far.from, &a, sizeof a);
	return a;
}

static struct rdma_cm_id *connected(struct world *w, uint8_t wish, uint32_t qpn)
{
	struct rdma_conn_param p = {.qp_num = qpn,
		.private_data = &wish,
		.private_data_len = sizeof wish,
		.retry_count = 7,
		.rnr_retry_count = 7};
	struct rdma_cm_id *id = cm_resolved(w->ch, host_addr(AF_INET, FAR, w->base.port), false);

	if (rdma_connect(id, &p))
		die("rdma_connect");
	cm_expect(w->ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (rdma_establish(id))
		die("rdma_establish");
	return id;
}

/* New ones come about, and end; how many a second. */
static double connect_some(struct world *w)
{
	double began = now_ms();

	for (unsigned long i = 0; i < connects; i++) {
		struct rdma_cm_id *id = connected(w, END, 1);

		CHECK_EQ(rdma_disconnect(id), 0);
		cm_expect(w->ch, RDMA_CM_EVENT_DISCONNECTED);
		cm_end(id);
	}
	return connects * 1000 / (now_ms() - began);
}

/* Those that are held stand on both sides, and others come about. */
static struct answer check_all_stand(struct world *w)
{
	struct answer a;

	CHECK(!cm_readable(w->ch, 0));
	(void)connect_some(w);
	a = far_does(w, SEE);
	CHECK_EQ(a.ended, 0);
	return a;
}

static void guessing(struct world *w)
{
	uint64_t all = REJECTS + 7 * OF_EACH, near; /* DREQs are answered whoever sends them */
	struct answer a = far_does(w, SEE);
	uint64_t before = a.unexpected;

	check_case("guessed ids, on the server's side");
	do {
		guess_all(&w->forger);
		a = check_all_stand(w);
	} while (a.unexpected - before < all && !check_failures());
	printf("%llu messages to the server's host, none of %d connections ended\n",
		(unsigned long long)w->forger.sent, HELD);
	check_case("guessed ids, on the client's side");
	near = status_of_all("connections", "unexpected");
	do {
		far_does(w, GUESS);
		(void)check_all_stand(w);
	} while (status_of_all("connections", "unexpected") - near < all && !check_failures());
}

static void hearsay(struct world *w)
{
	struct answer a = w->base;

	check_case("a client was started anew, they say");
	while (a.stale - w->base.stale < HELD && !check_failures()) {
		restart_all(&w->forger, w->guid, NEAR_QPN);
		a = check_all_stand(w);
	}
	check_case("a server was started anew, they say");
	w->guid = a.guid;
	while (status_of_all("connections", "stale") < HELD && !check_failures()) {
		far_does(w, RESTART);
		(void)check_all_stand(w);
	}
}

/* Of all that came to nothing nothing is left: what stands, and who listens. */
static void flood(struct world *w)
{
	double before = connect_some(w), began = now_ms();
	struct answer a = far_does(w, SEE);
	uint64_t received = a.received;
	uint32_t comm = 0;

	check_case("a flood");
	do {
		for (unsigned long i = 0; i < requests; i++, pace(&w->forger)) {
			struct cm_msg m = forged_req(&w->forger, ++comm, w->base.flooded);

			forge(&w->forger, &m);
		}
		a = check_all_stand(w);
	} while (a.received - received < requests);
	printf("%u requests in %.1f s; connects a second: %.0f before, ", comm,
		(now_ms() - began) / 1000, before);
	printf("%.0f after; %lld KiB more\n", connect_some(w), (long long)(a.kb - w->base.kb));
	do
		a = far_does(w, SEE);
	while (a.ids > w->base.ids + HELD);
	CHECK_EQ(a.ids, w->base.ids + HELD);
	CHECK_RANGE(a.kb - w->base.kb, -GROWTH_KB, GROWTH_KB * WEFTD_MEMORY_SCALE);
}

int main(int argc, char **argv)
{
	struct world w = {0};

	requests = argc > 1 ? strtoul(argv[1], NULL, 0) : requests;
	connects = argc > 2 ? strtoul(argv[2], NULL, 0) : connects;
	t_start(argc > 1 ? 3600 : 60);
	two_hosts(&w.far, live_far);
	w.ch = cm_channel();
	w.base = far_does(&w, SEE);
	forger_open(&w.forger, addr_of(NEAR), addr_of(FAR));
	for (int i = 0; i < HELD; i++)
		w.held[i] = connected(&w, HOLD, NEAR_QPN + i);
	w.guid = be64toh(ibv_get_device_guid(w.held[0]->verbs->device));
	guessing(&w);
	hearsay(&w);
	flood(&w);
	for (int i = 0; i < HELD; i++) {
		CHECK_EQ(rdma_disconnect(w.held[i]), 0);
		cm_expect(w.ch, RDMA_CM_EVENT_DISCONNECTED);
		cm_end(w.held[i]);
	}
	far_does(&w, QUIT);
	forger_close(&w.forger);
	rdma_destroy_event_channel(w.ch);
	T_EQUAL(t_wait(&w.far), 0);
	return check_result();
}
