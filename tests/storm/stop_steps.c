// SPDX-License-Identifier: BSD-3-Clause
/*
 * A process A is stopped after each few instructions of a call on the data path.  While it lies
 * there, B and C, with whom it shares QPs and a CQ, go on at full speed; when it runs again, or
 * was killed, everything finishes and the data is right.
 *
 * usage: stop_steps BUILD [STOPS [KILLS [CASE]]]
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepper.h"
#include "world.h"

enum {
	DEFAULT_STOPS = 300,
	DEFAULT_KILLS = 40,
	FLOOD = 1000,
	FLOOD_LEN = 64,
	FLOOD_MS = 1000, /* a hang lasts for ever; a loaded machine is asked again */
	FLOOD_TRIES = 10,
	BOUND_MS = 10000,
	NOTICE_MS = 5000,
	WRITE_LEN = 1024, /* copied by instructions, each of which is stepped through */
	Q_A = 0,          /* A and C */
	Q_B = 1,          /* B and C */
	Q_ATOMIC = 2,     /* A and B */
	Q_RIVAL = 3,      /* C and B, for atomics on the same process */
};

static struct agent A, B, C;
static uint64_t slowest_ns;
static unsigned a_recvs, c_recvs; /* messages that A and C must have had on Q_A */

struct stop_case {
	const char *name;
	enum trap_kind trap;
	struct agent_req op; /* of A, between the traps */
	bool (*before)(void);
	bool (*frozen)(void);   /* while A is stopped */
	bool (*finish)(void);   /* after A went on */
	bool (*bereaved)(void); /* after A was killed */
	bool (*holds)(void);    /* not NULL: does it hold here? */
};

/* ---- helpers ---- */

static bool run(struct agent *a, struct agent_req req, const char *what)
{
	struct agent_rep rep;
	int rc = agent_do(a, &req, &rep);

	return check(!rc, "%s: %s", what, strerror(-rc)) &&
	       check(!rep.counts.wrong, "%s: wrong order or content", what);
}

static bool post(struct agent *a, unsigned qp, enum ibv_wr_opcode op, uint32_t len, unsigned n)
{
	return run(a,
		(struct agent_req){.cmd = CMD_POST, .qp = qp, .opcode = op, .len = len, .count = n},
		"post");
}

static bool receive(struct agent *a, unsigned qp, unsigned n)
{
	return run(a, (struct agent_req){.cmd = CMD_RECV, .qp = qp, .count = n}, "post receives");
}

static bool wait_recv(struct agent *a, unsigned total)
{
	return run(a,
		(struct agent_req){
			.cmd = CMD_WAIT_RECV, .qp = Q_A, .count = total, .value = BOUND_MS},
		"wait for receives");
}

/* All sends of a on qp have ended, as wanted. */
static bool wait_sends(struct agent *a, unsigned qp, enum ibv_wc_status wanted)
{
	const struct agent_req req = {.cmd = CMD_WAIT, .qp = qp, .value = BOUND_MS};
	struct agent_rep rep;
	int rc = agent_do(a, &req, &rep);

	return check(!rc, "wait for sends on QP %u: %s", qp, strerror(-rc)) &&
	       check(rep.status == wanted, "sends on QP %u ended with status %u, not %u", qp,
		       rep.status, wanted);
}

static bool connect_a(void)
{
	int rc = agents_connect(&A, Q_A, &C, Q_A, agent_quick);

	if (!rc)
		rc = agents_connect(&A, Q_ATOMIC, &B, Q_ATOMIC, agent_quick);
	a_recvs = c_recvs = 0;
	return check(!rc, "connect A: %s", strerror(-rc));
}

static bool start_a(void)
{
	return check(!agent_start(&A, true), "start A") && connect_a();
}

static bool start_all(void)
{
	int rc = agent_start(&B, true);

	if (!rc)
		rc = agent_start(&C, true);
	if (!rc)
		rc = agents_connect(&B, Q_B, &C, Q_B, agent_quick);
	if (!rc)
		rc = agents_connect(&C, Q_RIVAL, &B, Q_RIVAL, agent_quick);
	return check(!rc, "start B and C: %s", strerror(-rc)) && start_a();
}

/* ---- third parties ---- */

static bool flood_once(struct agent *from, struct agent *to, uint64_t *ns)
{
	const struct agent_req sink = {.cmd = CMD_SINK, .qp = Q_B, .count = FLOOD};
	const struct agent_req flood = {
		.cmd = CMD_FLOOD, .qp = Q_B, .count = FLOOD, .len = FLOOD_LEN};
	struct agent_rep rep;
	uint64_t start = now_ns();
	int rc = agent_tell(to, &sink);

	if (!rc)
		rc = agent_do(from, &flood, &rep);
	if (!rc)
		rc = agent_reply(to, &rep, BOUND_MS);
	*ns = now_ns() - start;
	return check(!rc && !rep.counts.wrong && !rep.counts.recv_bad,
		"others hang while A is stopped: %s", strerror(-rc));
}

static bool others_go_on(unsigned round)
{
	uint64_t ns = 0;

	for (int i = 0; i < FLOOD_TRIES; i++) {
		bool ok = round & 1 ? flood_once(&B, &C, &ns) : flood_once(&C, &B, &ns);

		if (!ok)
			return false;
		if (ns < FLOOD_MS * 1000000ull)
			break;
	}
	if (ns > slowest_ns)
		slowest_ns = ns;
	return check(ns < FLOOD_MS * 1000000ull,
		"others are slow while A is stopped: %u SENDs in %u ms", FLOOD,
		(unsigned)(ns / 1000000));
}

/* ---- the cases ---- */

static bool nothing(void)
{
	return true;
}

static bool send_before(void)
{
	return receive(&C, Q_A, 1);
}

static bool receive_finish_both(void)
{
	return wait_sends(&A, Q_A, IBV_WC_SUCCESS) && wait_recv(&C, ++c_recvs);
}

static bool write_finish(void)
{
	return wait_sends(&A, Q_A, IBV_WC_SUCCESS);
}

/* What one write of C to A ends with; -1 if not at all. */
static int write_to_a(void)
{
	const struct agent_req req = {.cmd = CMD_WAIT, .qp = Q_A, .value = BOUND_MS};
	struct agent_rep rep;

	if (!post(&C, Q_A, IBV_WR_RDMA_WRITE, 64, 1) || agent_do(&C, &req, &rep))
		return -1;
	return rep.status;
}

/*
 * C finds that A is gone as soon as it asks something of it; memory that is mapped takes the bytes
 * until the death is noticed, soon after.
 */
static bool c_notices(void)
{
	uint64_t end = now_ns() + NOTICE_MS * 1000000ull;
	int status;

	do
		status = write_to_a();
	while (status == IBV_WC_SUCCESS && now_ns() < end);
	return check(
		status == IBV_WC_RETRY_EXC_ERR, "writes to the dead ended with status %d", status);
}

static bool recv_before(void)
{
	return post(&C, Q_A, IBV_WR_SEND, 500, 1);
}

static bool recv_frozen(void)
{
	return post(&C, Q_A, IBV_WR_SEND, 20, 1);
}

static bool no_more_traps(void)
{
	return run(&A, (struct agent_req){.cmd = CMD_TRAP}, "no more traps");
}

static bool recv_finish(void)
{
	a_recvs += 2;
	return no_more_traps() && receive(&A, Q_A, 1) && wait_recv(&A, a_recvs) &&
	       wait_sends(&C, Q_A, IBV_WC_SUCCESS);
}

static bool recv_bereaved(void)
{
	return wait_sends(&C, Q_A, IBV_WC_RETRY_EXC_ERR);
}

static bool poll_before(void)
{
	return no_more_traps() && receive(&A, Q_A, 8) && post(&C, Q_A, IBV_WR_SEND, 20, 2) &&
	       post(&C, Q_A, IBV_WR_SEND, 1000, 2) && wait_sends(&C, Q_A, IBV_WC_SUCCESS);
}

static bool poll_frozen(void)
{
	return post(&C, Q_A, IBV_WR_SEND, 1000, 4) && wait_sends(&C, Q_A, IBV_WC_SUCCESS);
}

static bool poll_finish(void)
{
	a_recvs += 8;
	return no_more_traps() && wait_recv(&A, a_recvs);
}

static bool dereg_frozen(void)
{
	return post(&C, Q_A, IBV_WR_RDMA_WRITE, 8192, 1) && wait_sends(&C, Q_A, IBV_WC_SUCCESS);
}

/* Atomics on B wait while A holds B's atomic word; to post them does not. */
static bool atomic_frozen(void)
{
	return post(&C, Q_RIVAL, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1);
}

static bool atomic_finish(void)
{
	return wait_sends(&A, Q_ATOMIC, IBV_WC_SUCCESS) && wait_sends(&C, Q_RIVAL, IBV_WC_SUCCESS);
}

static bool atomic_bereaved(void)
{
	return wait_sends(&C, Q_RIVAL, IBV_WC_SUCCESS) && c_notices();
}

static bool lend(void)
{
	const struct agent_req ask = {.cmd = CMD_LEND};
	struct agent_req target = {.cmd = CMD_TARGET, .qp = Q_A};
	struct agent_rep rep;
	int rc = agent_do(&C, &ask, &rep);

	target.addr = rep.addr;
	return check(!rc, "lend: %s", strerror(-rc)) && run(&A, target, "set the target");
}

/* Nobody waits for A to go on. */
static bool take_back(void)
{
	return run(&C, (struct agent_req){.cmd = CMD_TAKE_BACK}, "dereg beside a stopped peer");
}

/* What A wrote came in time, or nobody sees it and A knows. */
static bool lent_finish(void)
{
	const struct agent_req req = {.cmd = CMD_WAIT, .qp = Q_A, .value = BOUND_MS};
	struct agent_rep rep;
	int rc = agent_do(&A, &req, &rep);

	if (!check(!rc, "wait for the write: %s", strerror(-rc)) ||
		!check(rep.status == IBV_WC_SUCCESS || rep.status == IBV_WC_REM_ACCESS_ERR,
			"the write ended with status %u", rep.status) ||
		!run(&C, (struct agent_req){.cmd = CMD_INTACT}, "memory of another region"))
		return false;
	return rep.status == IBV_WC_SUCCESS || connect_a();
}

static bool is_mapped(void)
{
	const char *mode = getenv("WEFT_SHARE");

	return mode && strcmp(mode, "always") == 0;
}

static const struct stop_case cases[] = {
	{"send", TRAP_POST_SEND,
		{.cmd = CMD_POST, .qp = Q_A, .opcode = IBV_WR_SEND, .len = 200, .count = 1},
		send_before, nothing, receive_finish_both, c_notices},
	{"write", TRAP_POST_SEND,
		{.cmd = CMD_POST,
			.qp = Q_A,
			.opcode = IBV_WR_RDMA_WRITE,
			.len = WRITE_LEN,
			.count = 1},
		nothing, nothing, write_finish, c_notices},
	{"recv", TRAP_POST_RECV, {.cmd = CMD_RECV, .qp = Q_A, .count = 1}, recv_before, recv_frozen,
		recv_finish, recv_bereaved},
	{"poll", TRAP_POLL, {.cmd = CMD_POLL}, poll_before, poll_frozen, poll_finish, c_notices},
	{"dereg", TRAP_DEREG, {.cmd = CMD_REG_DEREG}, nothing, dereg_frozen, nothing, c_notices},
	{"atomic", TRAP_POST_SEND,
		{.cmd = CMD_POST,
			.qp = Q_ATOMIC,
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.len = 8,
			.count = 1},
		nothing, atomic_frozen, atomic_finish, atomic_bereaved},
	{"lent", TRAP_POST_SEND,
		{.cmd = CMD_POST,
			.qp = Q_A,
			.opcode = IBV_WR_RDMA_WRITE,
			.len = WRITE_LEN,
			.count = 1},
		lend, take_back, lent_finish, c_notices, is_mapped},
};

/* ---- stopping ---- */

/* Brings A to a stop n instructions into the case's call. */
static long enter(const struct stop_case *c, long n, bool *behind)
{
	const struct agent_req trap = {.cmd = CMD_TRAP, .value = c->trap};
	long made;

	if (!c->before() || !run(&A, trap, "set traps") || agent_tell(&A, &c->op))
		return -EPIPE;
	made = stepper_into(&A, n, behind);
	check(made >= 0, "%s: stepping: %s", c->name, strerror(-made));
	return made;
}

static bool leave(const struct stop_case *c, bool behind)
{
	struct agent_rep rep;
	int rc = stepper_go_on(&A, behind);

	if (!rc)
		rc = agent_reply(&A, &rep, BOUND_MS);
	return check(!rc, "%s: A does not end its call: %s", c->name, strerror(-rc)) && c->finish();
}

static long length_of(const struct stop_case *c)
{
	bool behind;
	long n = enter(c, LONG_MAX, &behind);

	if (n < 0 || !c->frozen() || !leave(c, behind))
		return -1;
	return n;
}

static bool stop_at(const struct stop_case *c, long n, unsigned round)
{
	bool behind, others, frozen;

	if (enter(c, n, &behind) < 0)
		return false;
	others = others_go_on(round);
	frozen = c->frozen();
	return others && frozen && leave(c, behind);
}

static bool kill_at(const struct stop_case *c, long n, unsigned round)
{
	bool behind, ok;

	if (enter(c, n, &behind) < 0)
		return false;
	ok = c->frozen();
	agent_kill(&A);
	ok = ok && others_go_on(round) && c->bereaved() && start_a();
	ok = ok && check(!stepper_attach(&A), "attach to the new A");
	return ok;
}

/* Once the case went wrong it does not go on. */
static bool sample(const struct stop_case *c, long length, unsigned stops, const char *how,
	bool (*at)(const struct stop_case *, long, unsigned))
{
	uint64_t said = now_ns();

	for (unsigned i = 0; i < stops; i++) {
		long n = 1 + (long)((uint64_t)length * i / stops);

		if (!at(c, n, i))
			return check(false, "%s: %s after %ld of %ld instructions", c->name, how, n,
				length);
		if (now_ns() - said > 5000000000ull) {
			said = now_ns();
			printf("  %s: %u of %u\n", c->name, i, stops);
		}
	}
	return true;
}

static bool run_case(const struct stop_case *c, unsigned stops, unsigned kills)
{
	uint64_t start = now_ns();
	long length = length_of(c);

	if (length < 0)
		return check(false, "%s: it fails even without a stop", c->name);
	if (stops > length)
		stops = length;
	slowest_ns = 0;
	if (!sample(c, length, stops, "stopped", stop_at) ||
		!sample(c, length, kills, "killed", kill_at))
		return false;
	printf("%s: %ld instructions, %u stops, %u kills; %u SENDs of others took at most %u us; "
	       "%u s\n",
		c->name, length, stops, kills, FLOOD, (unsigned)(slowest_ns / 1000),
		(unsigned)((now_ns() - start) / 1000000000));
	return true;
}

static bool open_world(void)
{
	int rc;

	world_up();
	if (!start_all())
		return false;
	rc = stepper_attach(&A);
	if (rc == -EPERM || rc == -ENOSYS || rc == -EACCES) {
		agent_kill(&A);
		agent_kill(&B);
		agent_kill(&C);
		world_end();
		printf("cannot trace a process here: %s\n", strerror(-rc));
		exit(77);
	}
	return check(!rc, "attach: %s", strerror(-rc));
}

int main(int argc, char **argv)
{
	unsigned stops = argc > 2 ? atoi(argv[2]) : DEFAULT_STOPS;
	unsigned kills = argc > 3 ? atoi(argv[3]) : DEFAULT_KILLS;

	if (argc < 2)
		return 2;
	world_begin(argv[1]);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (argc > 4 && strcmp(argv[4], cases[i].name))
			continue;
		if (cases[i].holds && !cases[i].holds())
			continue;
		if (open_world())
			run_case(&cases[i], stops, kills);
		agent_kill(&A);
		agent_kill(&B);
		agent_kill(&C);
		world_empty(EMPTY_MS);
	}
	return world_end();
}
