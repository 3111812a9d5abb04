// SPDX-License-Identifier: BSD-3-Clause
/* The test's side of an agent. */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent_side.h"

enum { CALL_MS = 30000, END_MS = 20000 };

const struct agent_tuning agent_quick = {
	.timeout = 10, .retry_cnt = 1, .rnr_retry = 7, .min_rnr_timer = 12};

/* Half a second, in which a peer gets its CPU again. */
static const struct agent_tuning over_packets = {
	.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12};

const struct agent_tuning *agent_usual(void)
{
	const char *wire = getenv("WEFT_WIRE");

	return wire && !strcmp(wire, "always") ? &over_packets : &agent_quick;
}

int agent_start(struct agent *a, bool polls)
{
	pid_t parent = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	a->polls = polls;
	a->pid = fork();
	if (a->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		close(pair[0]);
		agent_main(pair[1], polls);
	}
	close(pair[1]);
	a->sock = pair[0];
	return a->pid < 0 ? -errno : 0;
}

void agent_kill(struct agent *a)
{
	if (a->pid <= 0)
		return;
	kill(a->pid, SIGKILL);
	waitpid(a->pid, NULL, 0);
	close(a->sock);
	a->pid = 0;
}

int agent_end(struct agent *a)
{
	const struct agent_req req = {.cmd = CMD_EXIT};
	struct pollfd p = {.fd = a->sock, .events = POLLIN};
	int status;

	if (agent_tell(a, &req) || poll(&p, 1, END_MS) != 1) {
		agent_kill(a);
		return -ETIMEDOUT;
	}
	waitpid(a->pid, &status, 0);
	close(a->sock);
	a->pid = 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

int agent_tell(struct agent *a, const struct agent_req *req)
{
	ssize_t n = send(a->sock, req, sizeof *req, MSG_NOSIGNAL);

	return n == sizeof *req ? 0 : -EPIPE;
}

int agent_reply(struct agent *a, struct agent_rep *rep, int timeout_ms)
{
	struct pollfd p = {.fd = a->sock, .events = POLLIN};
	int n = poll(&p, 1, timeout_ms);

	memset(rep, 0, sizeof *rep);
	if (n != 1)
		return -ETIMEDOUT;
	if (recv(a->sock, rep, sizeof *rep, 0) != sizeof *rep)
		return -EPIPE;
	return rep->rc;
}

int agent_do(struct agent *a, const struct agent_req *req, struct agent_rep *rep)
{
	struct agent_rep ignored;
	int rc = agent_tell(a, req);

	return rc ? rc : agent_reply(a, rep ? rep : &ignored, CALL_MS);
}

static int new_qp(struct agent *a, unsigned i, struct agent_addr *addr)
{
	const struct agent_req req = {.cmd = CMD_QP, .qp = i};
	struct agent_rep rep;
	int rc = agent_do(a, &req, &rep);

	*addr = rep.addr;
	return rc;
}

static int connect_to(
	struct agent *a, unsigned i, const struct agent_addr *addr, struct agent_tuning tuning)
{
	const struct agent_req req = {.cmd = CMD_CONNECT, .qp = i, .addr = *addr, .tuning = tuning};

	return agent_do(a, &req, NULL);
}

int agents_connect(
	struct agent *a, unsigned i, struct agent *b, unsigned k, struct agent_tuning tuning)
{
	struct agent_addr at_a, at_b;
	int rc = new_qp(a, i, &at_a);

	if (!rc)
		rc = new_qp(b, k, &at_b);
	if (!rc)
		rc = connect_to(a, i, &at_b, tuning);
	if (!rc)
		rc = connect_to(b, k, &at_a, tuning);
	return rc;
}
