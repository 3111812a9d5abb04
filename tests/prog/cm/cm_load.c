// SPDX-License-Identifier: BSD-3-Clause
/*
 * Many connections with their QPs, all of a side on one CQ: what they cost weftd, and that they
 * survive it stopped and killed.
 *
 * usage: cm_load [COUNT]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/weftd_from_outside.h"

enum { DEFAULT_COUNT = 1000, IN_FLIGHT = 64, KB_PER_10000 = 20 * 1024, SLACK_KB = 512 };
enum { TIMEOUT_MIN_MS = 4000, TIMEOUT_MAX_MS = 30000, REVIVAL_MS = 20000 };

static int count = DEFAULT_COUNT;
static struct ibv_cq *cq;

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 128, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	if (!cq || rdma_create_qp(id, NULL, &init))
		die("rdma_create_qp");
}

static struct rdma_cm_event *next_event(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *e;

	if (!cm_readable(ch, REVIVAL_MS) || rdma_get_cm_event(ch, &e))
		die("no event comes");
	return e;
}

/* ---- the passive side, a process of its own ---- */

static int served, ended;

static void serve_one(struct rdma_event_channel *ch)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(ch, &e))
		die("rdma_get_cm_event");
	type = e->event;
	id = e->id;
	rdma_ack_cm_event(e);
	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		make_qp(id);
		if (rdma_accept(id, NULL))
			die("rdma_accept");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		CHECK_EQ(rdma_disconnect(id), 0);
		cm_end(id);
		ended++;
		break;
	default:
		CHECK_EQ(type, RDMA_CM_EVENT_ESTABLISHED);
		served++;
	}
}

static void serve(int out)
{
	struct rdma_event_channel *ch = cm_channel();
	uint16_t port;

	cm_listener(ch, 0, &port);
	if (write(out, &port, sizeof port) != sizeof port)
		die("write");
	while (served < count)
		serve_one(ch);
	if (write(out, "", 1) != 1)
		die("write");
	while (ended < count)
		serve_one(ch);
	exit(check_failures() ? 1 : 0);
}

static pid_t start_server(uint16_t *port, int *in)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		die("pipe");
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fds[1]);
	}
	if (read(fds[0], port, sizeof *port) != sizeof *port)
		die("the server ended");
	close(fds[1]);
	*in = fds[0];
	return pid;
}

/* ---- the active side ---- */

static void connect_all(struct rdma_event_channel *ch, struct rdma_cm_id **ids, uint16_t port)
{
	int started = 0, done = 0;

	while (done < count) {
		if (started < count && started - done < IN_FLIGHT) {
			ids[started] = cm_id(ch);
			CHECK_EQ(rdma_resolve_addr(ids[started++], NULL, cm_addr4(port), 1000), 0);
			continue;
		}
		struct rdma_cm_event *e = next_event(ch);
		struct rdma_cm_id *id = e->id;
		enum rdma_cm_event_type type = e->event;

		rdma_ack_cm_event(e);
		if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
			CHECK_EQ(rdma_resolve_route(id, 1000), 0);
		} else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
			make_qp(id);
			CHECK_EQ(rdma_connect(id, NULL), 0);
		} else {
			if (type != RDMA_CM_EVENT_ESTABLISHED)
				die("%s comes", rdma_event_str(type));
			done++;
		}
	}
}

static void weftd_stopped(struct rdma_event_channel *ch, pid_t weftd)
{
	struct rdma_cm_id *id = cm_id(ch);
	double start = now_ms();

	check_case("weftd stopped");
	kill(weftd, SIGSTOP);
	errno = 0;
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_RANGE(now_ms() - start, TIMEOUT_MIN_MS, TIMEOUT_MAX_MS);
	kill(weftd, SIGCONT);
	cm_end(id);
	id = cm_id(ch);
	CHECK_EQ(rdma_bind_addr(id, cm_addr4(0)), 0);
	cm_end(id);
}

static void disconnect_all(struct rdma_event_channel *ch, struct rdma_cm_id **ids)
{
	for (int i = 0; i < count; i++)
		CHECK_EQ(rdma_disconnect(ids[i]), 0);
	for (int ended = 0; ended < count;) {
		struct rdma_cm_event *e = next_event(ch);

		/* Where this takes long, those that ended first have waited their time. */
		if (e->event == RDMA_CM_EVENT_DISCONNECTED)
			ended++;
		else
			CHECK_EQ(e->event, RDMA_CM_EVENT_TIMEWAIT_EXIT);
		rdma_ack_cm_event(e);
	}
	for (int i = 0; i < count; i++)
		cm_end(ids[i]);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id **ids;
	pid_t server, weftd;
	long kb, grown;
	double start;
	int fds, status, in;
	char byte;
	uint16_t port;

	if (argc > 1)
		count = atoi(argv[1]);
	ids = calloc(count, sizeof *ids);
	server = start_server(&port, &in);
	ch = cm_channel();
	weftd = weftd_pid();
	kb = weftd_memory_kb(weftd);
	fds = weftd_fds(weftd);
	check_case("%d connections", count);
	start = now_ms();
	connect_all(ch, ids, port);
	if (read(in, &byte, 1) != 1) /* all are there for the server, too */
		die("the server ended");
	printf("%d connections: %.0f us each", count, (now_ms() - start) * 1000 / count);
	grown = weftd_memory_kb(weftd) - kb;
	printf("; weftd has %ld KiB and %d fds more\n", grown, weftd_fds(weftd) - fds);
	CHECK_RANGE(grown, INT64_MIN,
		WEFTD_MEMORY_SCALE * ((long)KB_PER_10000 * count / 10000 + SLACK_KB));
	/* of either process a claim for 1024 queue pairs, and one that is begun */
	CHECK_RANGE(weftd_fds(weftd) - fds, -8, 8 + 2 * (count / 1024 + 2));
	weftd_stopped(ch, weftd);
	check_case("weftd killed");
	weftd_kill(weftd);
	disconnect_all(ch, ids);
	CHECK(weftd_pid() != weftd);
	waitpid(server, &status, 0);
	CHECK_EQ(status, 0);
	free(ids);
	return check_result();
}
