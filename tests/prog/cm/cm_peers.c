// SPDX-License-Identifier: BSD-3-Clause
/*
 * Connections whose other end, or weftd, dies at some step; many at a time; and what they cost
 * weftd.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/weftd_from_outside.h"

enum { MANY = 1000, HALF_OPEN = 10000, BACKLOG_MAX = 1024 };

/* Who hears of no death asks again, which takes longer, each time. */
enum { SOON_MS = 4000, TRIES = 5 };

enum step { REQUESTED, RESPONDED, CONNECTED, STEPS };

/* ---- a peer that is killed ---- */

struct peer {
	pid_t pid;
	int in, out; /* ours */
};

static void start(struct peer *p, void (*run)(int in, int out, enum step step), enum step step)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		die("pipe");
	p->pid = fork();
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(to[0], from[1], step);
		for (;;)
			pause();
	}
	close(to[0]);
	close(from[1]);
	p->in = to[1];
	p->out = from[0];
}

static void kill_peer(struct peer *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	close(p->in);
	close(p->out);
}

static void tell(int fd, uint16_t v)
{
	if (write(fd, &v, sizeof v) != sizeof v)
		die("write");
}

static uint16_t hear(int fd)
{
	uint16_t v;

	if (read(fd, &v, sizeof v) != sizeof v)
		die("the peer ended");
	return v;
}

static void serve(int in, int out, enum step step)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	uint16_t port;

	(void)in;
	cm_listener(ch, 0, &port);
	tell(out, port);
	e = cm_take(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	rdma_ack_cm_event(e);
	if (step >= RESPONDED && rdma_accept(id, &(struct rdma_conn_param){.qp_num = 9}))
		die("rdma_accept");
	if (step >= CONNECTED)
		cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	tell(out, 1);
}

/* These return how long it takes to hear of it, in ms. */
static double killed_server(enum step step)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id;
	struct peer peer;
	double took;

	check_case("server killed at step %d", step);
	start(&peer, serve, step);
	id = cm_resolved(ch, cm_addr4(hear(peer.out)), false);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	if (step >= RESPONDED)
		cm_expect(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (step >= CONNECTED)
		CHECK_EQ(rdma_establish(id), 0);
	hear(peer.out);
	took = now_ms();
	kill_peer(&peer);
	cm_expect(ch, step >= CONNECTED ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED);
	took = now_ms() - took;
	CHECK(!cm_readable(ch, 50));
	cm_end(id);
	rdma_destroy_event_channel(ch);
	return took;
}

static void call(int in, int out, enum step step)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = cm_resolved(ch, cm_addr4(hear(in)), false);

	if (rdma_connect(id, NULL))
		die("rdma_connect");
	if (step >= RESPONDED)
		cm_expect(ch, RDMA_CM_EVENT_CONNECT_RESPONSE);
	if (step >= CONNECTED && rdma_establish(id))
		die("rdma_establish");
	tell(out, 1);
}

static double killed_client(enum step step)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *e;
	struct peer peer;
	uint16_t port;
	double took;

	check_case("client killed at step %d", step);
	listener = cm_listener(ch, 0, &port);
	start(&peer, call, step);
	tell(peer.in, port);
	e = cm_take(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	rdma_ack_cm_event(e);
	if (step >= RESPONDED)
		CHECK_EQ(rdma_accept(id, &(struct rdma_conn_param){.qp_num = 9}), 0);
	if (step >= CONNECTED)
		cm_expect(ch, RDMA_CM_EVENT_ESTABLISHED);
	hear(peer.out);
	took = now_ms();
	kill_peer(&peer);
	/* Of a request that was not accepted nobody is told. */
	if (step >= RESPONDED)
		cm_expect(ch,
			step >= CONNECTED ? RDMA_CM_EVENT_DISCONNECTED : RDMA_CM_EVENT_REJECTED);
	took = now_ms() - took;
	CHECK(!cm_readable(ch, 50));
	cm_end(id);
	cm_end(listener);
	rdma_destroy_event_channel(ch);
	return took;
}

static void heard_soon(double (*killed)(enum step step), enum step step)
{
	int tries = 1;

	while (killed(step) > SOON_MS && tries < TRIES)
		tries++;
	CHECK_RANGE(tries, 1, TRIES - 1);
}

/* ---- many ---- */

static struct cm_conn conns[MANY];

static void many(struct rdma_event_channel *ach, struct rdma_event_channel *pch, uint16_t port)
{
	for (int i = 0; i < MANY; i++)
		conns[i] = cm_connect(ach, pch, port, false);
}

static void end_many(struct rdma_event_channel *ach, struct rdma_event_channel *pch)
{
	for (int i = 0; i < MANY; i++) {
		CHECK_EQ(rdma_disconnect(conns[i].active), 0);
		CHECK_EQ(cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED), 0);
		CHECK_EQ(rdma_disconnect(conns[i].passive), 0);
		CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_DISCONNECTED), 0);
		cm_end(conns[i].active);
		cm_end(conns[i].passive);
	}
}

static void weftd_killed(void)
{
	struct rdma_event_channel *ach = cm_channel(), *pch = cm_channel();
	struct rdma_cm_id *listener, *id;
	pid_t pid = weftd_pid();
	long kb = weftd_memory_kb(pid);
	int fds = weftd_fds(pid);
	struct rdma_cm_event *e;
	struct cm_conn c;
	uint16_t port;

	check_case("weftd killed");
	listener = cm_listener(pch, 0, &port);
	many(ach, pch, port);
	CHECK_RANGE(weftd_memory_kb(pid) - kb, INT64_MIN,
		WEFTD_MEMORY_SCALE * 20 * 1024 * MANY / 10000);
	CHECK_RANGE(weftd_fds(pid) - fds, -8, 4); /* not one for each */
	/* One in the middle of a connect is lost, and says so. */
	id = cm_resolved(ach, cm_addr4(port), false);
	CHECK_EQ(rdma_connect(id, NULL), 0);
	CHECK(cm_readable(pch, CM_WAIT_MS));
	weftd_kill(pid);
	CHECK_EQ(rdma_disconnect(conns[0].active), 0); /* starts another */
	CHECK(weftd_pid() != pid);
	cm_expect(ach, RDMA_CM_EVENT_UNREACHABLE);
	cm_end(id);
	e = cm_take(pch, RDMA_CM_EVENT_CONNECT_REQUEST);
	id = e->id;
	CHECK(e->listen_id == listener);
	rdma_ack_cm_event(e);
	CHECK_EQ(rdma_accept(id, NULL), -1); /* nobody waits for that */
	cm_end(id);
	CHECK_EQ(cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED), 0);
	CHECK_EQ(rdma_disconnect(conns[0].passive), 0);
	CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_DISCONNECTED), 0);
	cm_end(conns[0].active);
	cm_end(conns[0].passive);
	conns[0] = cm_connect(ach, pch, port, true); /* the listener is there still */
	end_many(ach, pch);
	c = cm_connect(ach, pch, port, true);
	cm_end(c.active);
	CHECK_EQ(cm_expect(pch, RDMA_CM_EVENT_DISCONNECTED), 0);
	cm_end(c.passive);
}

/* Nobody takes these requests; those beyond the backlog are refused. */
static void half_open(void)
{
	struct rdma_event_channel *ach = cm_channel(), *pch = cm_channel();
	struct rdma_cm_id *listener, **ids = calloc(HALF_OPEN, sizeof *ids);
	pid_t pid = weftd_pid();
	long kb = weftd_memory_kb(pid);
	uint16_t port;
	int refused = 0;

	check_case("half open");
	listener = cm_listener(pch, 0, &port);
	for (int i = 0; i < HALF_OPEN; i++) {
		ids[i] = cm_resolved(ach, cm_addr4(port), false);
		CHECK_EQ(rdma_connect(ids[i], NULL), 0);
		if (i >= BACKLOG_MAX) {
			refused += cm_expect(ach, RDMA_CM_EVENT_REJECTED) == 28;
			cm_end(ids[i]);
		}
	}
	CHECK_EQ(refused, HALF_OPEN - BACKLOG_MAX);
	CHECK_RANGE(weftd_memory_kb(pid) - kb, INT64_MIN, WEFTD_MEMORY_SCALE * 20 * 1024);
	CHECK_EQ(weftd_pid(), pid);
	cm_end(listener);
	for (int i = 0; i < BACKLOG_MAX; i++)
		CHECK_EQ(cm_expect(ach, RDMA_CM_EVENT_REJECTED), 28);
	for (int i = 0; i < BACKLOG_MAX; i++)
		cm_end(ids[i]);
	rdma_destroy_event_channel(ach);
	rdma_destroy_event_channel(pch);
	free(ids);
}

int main(void)
{
	struct rdma_event_channel *keep = cm_channel(); /* weftd stays */

	for (enum step s = REQUESTED; s < STEPS; s++)
		heard_soon(killed_server, s);
	for (enum step s = REQUESTED; s < STEPS; s++)
		heard_soon(killed_client, s);
	half_open();
	weftd_killed();
	rdma_destroy_event_channel(keep);
	return check_result();
}
