/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside an agent. */
#pragma once

#include "agent.h"

struct side_qp {
	struct ibv_qp *qp;
	uint8_t *area;
	struct agent_addr peer;
	struct agent_counts n;
	uint32_t send_seq, recv_seq; /* of the messages' content */
};

struct side {
	bool polls;
	bool sleeps_inside; /* in ibv_get_cq_event, where the library watches deadlines by itself */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *map; /* canary, the region, canary */
	uint8_t *mem; /* AGENT_QPS areas */
	uint8_t *lent_mem;
	struct ibv_mr *lent;
	union ibv_gid gid;
	struct side_qp qp[AGENT_QPS];
	enum trap_kind trap;
};

/* Commands on memory that comes and goes. */
int side_lend(struct side *s, struct agent_addr *addr);
int side_take_back(struct side *s);
int side_intact(struct side *s);

/* Serves commands from sock; does not return. */
void agent_main(int sock, bool polls) __attribute__((noreturn));

/* Opens the device and makes the objects that live as long as the agent.  0 or -errno. */
int side_open(struct side *s);
int side_close(struct side *s);

/* The commands on QPs. */
int side_new_qp(struct side *s, unsigned i, struct agent_addr *addr);
int side_connect(
	struct side *s, unsigned i, const struct agent_addr *to, const struct agent_tuning *t);
int side_destroy_qp(struct side *s, unsigned i);

int side_post_recv(struct side *s, unsigned i, uint32_t count);
int side_post(struct side *s, unsigned i, enum ibv_wr_opcode op, uint32_t len, uint32_t count);

/*
 * Takes completions until done() or the time is over (-ETIMEDOUT); sleeps on the channel unless
 * the agent polls.
 */
int side_take(struct side *s, bool (*done)(const struct side_qp *q, uint64_t arg),
	const struct side_qp *q, uint64_t arg, int timeout_ms);

/* One ibv_poll_cq; the number of completions or -errno. */
int side_poll(struct side *s);

/* Puts one trap before and one behind the next call of that kind. */
void side_trap(struct side *s, enum trap_kind kind);

/* Random bytes over what exists of the own segment, again and again for ms milliseconds. */
int side_scribble(uint64_t seed, uint32_t ms);
