// SPDX-License-Identifier: BSD-3-Clause
/* An agent's loop over its commands. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent_side.h"

enum { DEFAULT_MS = 10000, WINDOW = AGENT_DEPTH / 2 };

static int patience(const struct agent_req *r)
{
	return r->value ? (int)r->value : DEFAULT_MS;
}

static bool sends_done(const struct side_qp *q, uint64_t at_most)
{
	return q->n.posted - q->n.send_ok - q->n.send_bad <= at_most;
}

static bool recvs_done(const struct side_qp *q, uint64_t count)
{
	return q->n.recv_ok + q->n.recv_bad >= count;
}

static bool room_to_recv(const struct side_qp *q, uint64_t count)
{
	return recvs_done(q, count) ||
	       q->n.recv_posted - q->n.recv_ok - q->n.recv_bad <= AGENT_DEPTH / 2;
}

static bool recvs_flushed(const struct side_qp *q, uint64_t none)
{
	return sends_done(q, none) && q->n.recv_posted == q->n.recv_ok + q->n.recv_bad;
}

static int flood(struct side *s, const struct agent_req *r)
{
	struct side_qp *q = &s->qp[r->qp];
	int rc = 0;

	for (uint32_t n = 0; !rc && n < r->count; n++) {
		rc = side_take(s, sends_done, q, WINDOW, patience(r));
		if (!rc && !q->n.send_bad)
			rc = side_post(s, r->qp, IBV_WR_SEND, r->len, 1);
	}
	return rc ? rc : side_take(s, sends_done, q, 0, patience(r));
}

/* Takes count messages beyond those it has; leaves receives posted. */
static int sink(struct side *s, const struct agent_req *r)
{
	struct side_qp *q = &s->qp[r->qp];
	uint32_t end = q->n.recv_ok + q->n.recv_bad + r->count;
	int rc = 0;

	while (!rc && !recvs_done(q, end)) {
		uint32_t left = q->n.recv_posted - q->n.recv_ok - q->n.recv_bad;

		rc = side_post_recv(s, r->qp, AGENT_DEPTH - left);
		if (!rc)
			rc = side_take(s, room_to_recv, q, end, patience(r));
	}
	return rc;
}

static int to_error(struct side *s, unsigned i)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int rc = ibv_modify_qp(s->qp[i].qp, &attr, IBV_QP_STATE);

	return rc ? -rc : side_take(s, recvs_flushed, &s->qp[i], 0, DEFAULT_MS);
}

static int reg_dereg(struct side *s)
{
	static uint8_t memory[8192];
	struct ibv_mr *mr = ibv_reg_mr(s->pd, memory, sizeof memory,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	int rc;

	if (!mr)
		return -errno;
	side_trap(s, TRAP_DEREG);
	rc = ibv_dereg_mr(mr);
	side_trap(s, TRAP_DEREG);
	return -rc;
}

static int channel(struct side *s)
{
	struct ibv_comp_channel *ch;

	errno = 0;
	ch = ibv_create_comp_channel(s->ctx);
	if (!ch)
		return -errno;
	return -ibv_destroy_comp_channel(ch);
}

static int check_canaries(const struct side *s)
{
	size_t size = (size_t)AGENT_QPS * AREA_SIZE;

	for (size_t i = 0; i < CANARY_SIZE; i++)
		if (s->map[i] != 0xa5 || s->mem[size + i] != 0xa5)
			return -EILSEQ;
	return 0;
}

/* Where one-sided requests go. */
static void aim(struct side_qp *q, const struct agent_addr *at)
{
	q->peer.rkey = at->rkey;
	q->peer.va = at->va;
}

static int serve(struct side *s, const struct agent_req *r, struct agent_rep *rep)
{
	struct side_qp *q = &s->qp[r->qp];
	int n;

	switch (r->cmd) {
	case CMD_QP:
		return side_new_qp(s, r->qp, &rep->addr);
	case CMD_CONNECT:
		return side_connect(s, r->qp, &r->addr, &r->tuning);
	case CMD_RECV:
		return side_post_recv(s, r->qp, r->count);
	case CMD_POST:
		return side_post(s, r->qp, r->opcode, r->len, r->count);
	case CMD_WAIT:
		return side_take(s, sends_done, q, 0, patience(r));
	case CMD_WAIT_INSIDE:
		s->sleeps_inside = true;
		return side_take(s, sends_done, q, 0, patience(r));
	case CMD_WAIT_RECV:
		return side_take(s, recvs_done, q, r->count, patience(r));
	case CMD_FLOOD:
		return flood(s, r);
	case CMD_SINK:
		return sink(s, r);
	case CMD_TRAP:
		s->trap = r->value;
		return 0;
	case CMD_POLL:
		n = side_poll(s);
		rep->value = n > 0 ? n : 0;
		return n < 0 ? -EIO : 0;
	case CMD_REG_DEREG:
		return reg_dereg(s);
	case CMD_LEND:
		return side_lend(s, &rep->addr);
	case CMD_TARGET:
		aim(q, &r->addr);
		return 0;
	case CMD_TAKE_BACK:
		return side_take_back(s);
	case CMD_INTACT:
		return side_intact(s);
	case CMD_CHANNEL:
		return channel(s);
	case CMD_ERR:
		return to_error(s, r->qp);
	case CMD_DESTROY_QP:
		return side_destroy_qp(s, r->qp);
	case CMD_COUNTS:
		memcpy(&rep->value, q->area + AREA_ATOMIC, sizeof rep->value);
		return 0;
	case CMD_CHECK:
		return check_canaries(s);
	case CMD_SCRIBBLE:
		return side_scribble(r->value, r->len);
	default:
		return -EOPNOTSUPP;
	}
}

void agent_main(int sock, bool polls)
{
	static struct side s;
	struct agent_req req;
	struct agent_rep rep;
	int opened;

	s.polls = polls;
	opened = side_open(&s);
	while (recv(sock, &req, sizeof req, 0) == sizeof req && req.cmd != CMD_EXIT) {
		memset(&rep, 0, sizeof rep);
		req.qp %= AGENT_QPS;
		rep.rc = opened ? opened : serve(&s, &req, &rep);
		rep.counts = s.qp[req.qp].n;
		rep.status = rep.counts.first_bad;
		if (send(sock, &rep, sizeof rep, MSG_NOSIGNAL) != sizeof rep)
			break;
	}
	_exit(opened || side_close(&s) ? 1 : 0);
}
