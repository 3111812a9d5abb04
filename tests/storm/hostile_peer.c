// SPDX-License-Identifier: BSD-3-Clause
/*
 * A process destroys its own segment while others send to it and receive from it.  They do not
 * crash, their requests end, no byte of theirs outside the region it was given changes, and weftd
 * goes on.
 *
 * usage: hostile_peer BUILD [SECONDS [SEED]]
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent.h"
#include "world.h"

enum {
	DEFAULT_SECONDS = 40,
	SCRIBBLE_MS = 30,
	BOUND_MS = 10000,
	Q_HOSTILE = 0,
	Q_OTHER = 1,
	VICTIMS = 2,
};

static struct agent victim[VICTIMS], hostile;
static unsigned ended_by_itself, ended_by_death;

static bool victims_start(void)
{
	int rc = agent_start(&victim[0], true);

	if (!rc)
		rc = agent_start(&victim[1], false);
	if (!rc)
		rc = agents_connect(&victim[0], Q_OTHER, &victim[1], Q_OTHER, agent_quick);
	return check(!rc, "start: %s", strerror(-rc));
}

/* An answer must come, whatever it is: the connection may be damaged in any way. */
static bool answers(struct agent *a, struct agent_req req, const char *what)
{
	struct agent_rep rep;
	int rc = agent_do(a, &req, &rep);

	return check(rep.rc || (rc != -ETIMEDOUT && rc != -EPIPE), "%s: %s", what, strerror(-rc));
}

static bool hostile_start(void)
{
	int rc = agent_start(&hostile, true);

	for (unsigned i = 0; !rc && i < VICTIMS; i++)
		rc = agents_connect(&hostile, i, &victim[i], Q_HOSTILE, agent_quick);
	/* Requests of its own that wait until a victim posts a receive, and then run there. */
	for (unsigned i = 0; !rc && i < VICTIMS; i++) {
		const struct agent_req send = {
			.cmd = CMD_POST, .qp = i, .opcode = IBV_WR_SEND, .len = 300, .count = 20};
		const struct agent_req recv = {.cmd = CMD_RECV, .qp = i, .count = 20};

		rc = agent_do(&hostile, &send, NULL);
		if (!rc)
			rc = agent_do(&hostile, &recv, NULL);
	}
	return check(!rc, "start the hostile one: %s", strerror(-rc));
}

/* One of each kind of request to the hostile one, and receives that its own requests wait for. */
static bool disturb(struct agent *a, unsigned round)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct agent_req post = {.cmd = CMD_POST, .qp = Q_HOSTILE, .count = 2};
	bool ok = answers(
		a, (struct agent_req){.cmd = CMD_RECV, .qp = Q_HOSTILE, .count = 4}, "post_recv");

	for (unsigned i = 0; ok && i < 4; i++) {
		post.opcode = ops[(round + i) % 4];
		post.len = round & 1 ? 2000 : 30;
		ok = answers(a, post, "post_send");
	}
	return ok && answers(a, (struct agent_req){.cmd = CMD_POLL}, "poll_cq");
}

/* The requests have ended, or end once the hostile one is dead. */
static bool requests_end(void)
{
	const struct agent_req soon = {.cmd = CMD_WAIT, .qp = Q_HOSTILE, .value = 200};
	const struct agent_req bound = {.cmd = CMD_WAIT, .qp = Q_HOSTILE, .value = BOUND_MS};
	struct agent_rep rep;
	bool ok = true, all = true;

	for (unsigned i = 0; i < VICTIMS; i++)
		all &= agent_do(&victim[i], &soon, &rep) == 0;
	agent_kill(&hostile);
	ended_by_itself += all;
	ended_by_death += !all;
	for (unsigned i = 0; i < VICTIMS; i++) {
		int rc = agent_do(&victim[i], &bound, &rep);

		ok &= check(!rc, "requests to a dead hostile process: %s, %u of %u ended",
			strerror(-rc), rep.counts.send_ok + rep.counts.send_bad, rep.counts.posted);
		ok &= answers(&victim[i], (struct agent_req){.cmd = CMD_ERR, .qp = Q_HOSTILE},
			"modify to ERR");
		ok &= answers(&victim[i],
			(struct agent_req){.cmd = CMD_DESTROY_QP, .qp = Q_HOSTILE}, "destroy_qp");
	}
	return ok;
}

/* The victims' own traffic is as it was. */
static bool victims_work(void)
{
	const struct agent_req sink = {.cmd = CMD_SINK, .qp = Q_OTHER, .count = 200};
	const struct agent_req flood = {.cmd = CMD_FLOOD, .qp = Q_OTHER, .count = 200, .len = 200};
	struct agent_rep rep;
	bool ok = true;
	int rc = agent_tell(&victim[1], &sink);

	if (!rc)
		rc = agent_do(&victim[0], &flood, &rep);
	if (!rc)
		rc = agent_reply(&victim[1], &rep, BOUND_MS);
	ok = check(!rc && !rep.counts.wrong, "the victims' own traffic: %s, %u wrong",
		strerror(-rc), rep.counts.wrong);
	for (unsigned i = 0; i < VICTIMS; i++) {
		const struct agent_req canary = {.cmd = CMD_CHECK};

		ok &= check(!agent_do(&victim[i], &canary, NULL),
			"memory outside the region of victim %u changed", i);
	}
	return ok;
}

static bool round_of(uint64_t seed, unsigned round)
{
	const struct agent_req scribble = {
		.cmd = CMD_SCRIBBLE, .value = seed, .len = round % 3 ? SCRIBBLE_MS : 0};
	struct counts c;
	bool ok = hostile_start();

	if (!ok || !check(!agent_tell(&hostile, &scribble), "scribble"))
		return false;
	for (unsigned i = 0; ok && i < 4; i++) {
		ok = disturb(&victim[0], round + i) && disturb(&victim[1], round + i);
		nap_us(SCRIBBLE_MS * 250);
	}
	ok = ok && requests_end() && victims_work();
	return ok && check(world_counts(&c), "weftd does not answer");
}

int main(int argc, char **argv)
{
	unsigned seconds = argc > 2 ? atoi(argv[2]) : DEFAULT_SECONDS;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : now_ns();
	uint64_t start = now_ns(), said = start;
	unsigned n = 0;
	bool ok;

	if (argc < 2)
		return 2;
	world_begin(argv[1]);
	world_up();
	ok = victims_start();
	for (; ok && now_ns() - start < seconds * 1000000000ull; n++) {
		ok = round_of(seed + n, n);
		if (!ok)
			printf("seed %llu, round %u\n", (unsigned long long)(seed + n), n);
		if (now_ns() - said > 5000000000ull) {
			said = now_ns();
			printf("  %u rounds\n", n);
		}
	}
	printf("%u rounds; requests ended by themselves in %u, by its death in %u\n", n,
		ended_by_itself, ended_by_death);
	if (ok)
		for (unsigned i = 0; i < VICTIMS; i++)
			check(!agent_end(&victim[i]), "victim %u does not end", i);
	else
		for (unsigned i = 0; i < VICTIMS; i++)
			agent_kill(&victim[i]);
	agent_kill(&hostile);
	if (ok)
		world_empty(EMPTY_MS);
	return world_end();
}
