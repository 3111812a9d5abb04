// SPDX-License-Identifier: BSD-3-Clause
/*
 * weftd is stopped: data flows on, control calls say what is wrong.  weftd is killed while
 * requests wait for their time: they still get their errors.
 *
 * usage: weftd_stop BUILD
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "world.h"

enum {
	FLOOD = 20000,
	FLOOD_MS = 4000, /* less than a call to weftd waits; and some times as long as usual */
	FLOOD_TIMES = 3,
	CALL_MS = 20000,
	Q = 0,
	PARK_MS = 164 * 3,
	LATE_MS = 1500, /* a busy machine is asked again */
	BUSY_MS = 10000,
	EXPIRE_TRIES = 5
};

/* Three waits of 164 ms for a receive, one of 2 * 134 ms for an acknowledgement. */
static const struct agent_tuning patient = {
	.timeout = 15, .retry_cnt = 1, .rnr_retry = 3, .min_rnr_timer = 28};

static bool ask(struct agent *a, struct agent_req req, int expected, const char *what)
{
	struct agent_rep rep;
	int rc = agent_tell(a, &req);

	if (!rc)
		rc = agent_reply(a, &rep, CALL_MS);
	return check(rc == expected, "%s: %s", what, strerror(-rc));
}

static bool start_pair(struct agent *a, struct agent *b, bool polls)
{
	int rc = agent_start(a, polls);

	if (!rc)
		rc = agent_start(b, polls);
	if (!rc)
		rc = agents_connect(a, Q, b, Q, patient);
	return check(!rc, "start: %s", strerror(-rc));
}

/* Messages from a to b, also while weftd is stopped; how long they take. */
static uint64_t flow(struct agent *a, struct agent *b)
{
	const struct agent_req sink = {.cmd = CMD_SINK, .qp = Q, .count = FLOOD};
	const struct agent_req flood = {.cmd = CMD_FLOOD, .qp = Q, .count = FLOOD, .len = 100};
	struct agent_rep rep = {0};
	uint64_t start = now_ns();
	int rc = agent_tell(b, &sink);

	if (!rc)
		rc = agent_do(a, &flood, &rep);
	check(!rc && !rep.counts.send_bad, "SENDs while weftd is stopped: %s, status %u",
		strerror(-rc), rep.status);
	rc = agent_reply(b, &rep, CALL_MS);
	check(!rc && !rep.counts.wrong, "receives while weftd is stopped: %s, %u wrong",
		strerror(-rc), rep.counts.wrong);
	return now_ns() - start;
}

static void flow_freely(struct agent *a, struct agent *b, uint64_t usual)
{
	check(flow(a, b) < FLOOD_MS * 1000000ull + FLOOD_TIMES * usual,
		"data is slow while weftd is stopped");
}

static void stopped(bool polls)
{
	struct agent a, b;
	struct counts c;
	char text[64];
	uint64_t start, usual;

	if (!start_pair(&a, &b, polls) || !check(world_counts(&c), "no status"))
		return;
	usual = flow(&a, &b);
	kill(c.pid, SIGSTOP);
	flow_freely(&a, &b, usual);
	start = now_ns();
	ask(&a, (struct agent_req){.cmd = CMD_CHANNEL}, -ETIMEDOUT,
		"a control call while weftd is stopped");
	check(now_ns() - start < CALL_MS * 1000000ull, "the control call took too long");
	snprintf(text, sizeof text, "weftd (pid %d) does not answer", (int)c.pid);
	check(world_logged(text), "the log does not say: %s", text);
	flow_freely(&a, &b, usual);
	kill(c.pid, SIGCONT);
	ask(&a, (struct agent_req){.cmd = CMD_CHANNEL}, 0, "a control call after weftd goes on");
	check(!agent_end(&a) && !agent_end(&b), "the agents do not end");
	world_empty(EMPTY_MS);
}

static void kill_weftd(void)
{
	struct counts c;

	if (check(world_counts(&c), "no status"))
		kill(c.pid, SIGKILL);
}

/* a's request waits; weftd dies; the request ends with that status.  False: but too late. */
static bool expire_once(bool polls, bool peer_dies, enum ibv_wc_status wanted)
{
	struct agent_req post = {.cmd = CMD_POST,
		.qp = Q,
		.opcode = peer_dies ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
		.len = 100,
		.count = 1};
	const struct agent_req wait = {.cmd = CMD_WAIT_INSIDE, .qp = Q, .value = PARK_MS + BUSY_MS};
	struct agent_rep rep = {0};
	struct agent a, b;
	uint64_t start, took;
	int rc;

	if (!start_pair(&a, &b, polls))
		return true;
	if (peer_dies)
		agent_kill(&b);
	ask(&a, post, 0, "post");
	start = now_ns();
	kill_weftd();
	rc = agent_do(&a, &wait, &rep);
	took = (now_ns() - start) / 1000000;
	check(!rc && rep.status == wanted,
		"weftd was killed, %s%s: %s, status %u, not %u, after %u ms",
		polls ? "polling" : "sleeping", peer_dies ? ", the peer is dead" : "",
		strerror(-rc), rep.status, wanted, (unsigned)took);
	agent_kill(&a);
	agent_kill(&b);
	world_reap();
	world_up();
	world_empty(EMPTY_MS);
	return took < PARK_MS + LATE_MS;
}

static void expire(bool polls, bool peer_dies, enum ibv_wc_status wanted)
{
	int tries = 0;

	while (!expire_once(polls, peer_dies, wanted))
		if (!check(++tries < EXPIRE_TRIES, "%s%s: requests end too late each time",
			    polls ? "polling" : "sleeping", peer_dies ? ", the peer is dead" : ""))
			return;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	world_begin(argv[1]);
	world_up();
	for (int polls = 0; polls < 2; polls++) {
		stopped(polls);
		expire(polls, false, IBV_WC_RNR_RETRY_EXC_ERR);
		expire(polls, true, IBV_WC_RETRY_EXC_ERR);
		printf("%s: done\n", polls ? "polling" : "sleeping");
	}
	/* The same where nobody may start another weftd. */
	setenv("WEFT_AUTOSTART", "0", 1);
	for (int polls = 0; polls < 2; polls++) {
		expire(polls, false, IBV_WC_RNR_RETRY_EXC_ERR);
		expire(polls, true, IBV_WC_RETRY_EXC_ERR);
	}
	unsetenv("WEFT_AUTOSTART");
	return world_end();
}
