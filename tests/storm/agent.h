/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agents: processes that use verbs and do what a test tells them, one command at a time.  The
 * test itself opens no device, so that it can stop, step and kill any of them.  An agent has one
 * CQ for all its QPs, one region, and an area of that region for each QP.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	AGENT_QPS = 8,
	AGENT_DEPTH = 64,      /* send and receive requests of each QP */
	AGENT_MSG = 64 * 1024, /* longest message */
	AGENT_NO_TIMEOUT = -1,
	/* Small receives in turn, then what is sent, written to, read from, and an atomic word. */
	AREA_RECV = 0,
	AREA_SEND = AGENT_DEPTH * 4096,
	AREA_WRITE = AREA_SEND + AGENT_MSG,
	AREA_READ = AREA_WRITE + AGENT_MSG,
	AREA_ATOMIC = AREA_READ + AGENT_MSG,
	AREA_RESULT = AREA_ATOMIC + 64,
	AREA_SIZE = AREA_ATOMIC + 4096,
	CANARY_SIZE = 4096,
	LENT_SIZE = 16 * 1024,
};

enum agent_cmd {
	CMD_QP,          /* creates QP number qp anew; reply.addr */
	CMD_CONNECT,     /* to addr, with the tuning */
	CMD_RECV,        /* posts count receives */
	CMD_POST,        /* posts count requests of opcode, len bytes each */
	CMD_WAIT,        /* until no send is outstanding; reply: status of the first failure or 0 */
	CMD_WAIT_INSIDE, /* the same; a sleeper sleeps in ibv_get_cq_event() */
	CMD_WAIT_RECV,   /* until count receives have completed in all on this QP */
	CMD_FLOOD,       /* count SENDs, waits for all */
	CMD_SINK,        /* takes count SENDs, posting receives as it goes */
	CMD_TRAP,        /* from now on the next call of kind value is put between two traps */
	CMD_POLL,        /* one ibv_poll_cq */
	CMD_REG_DEREG,   /* registers a region and deregisters it */
	CMD_LEND,        /* registers other memory; reply.addr: for CMD_TARGET */
	CMD_TARGET,      /* the QP writes to addr from now on */
	CMD_TAKE_BACK,   /* deregisters what was lent, fills it, and registers it again */
	CMD_INTACT,      /* deregisters it; reply.rc: 0 if it is as it was filled */
	CMD_CHANNEL,     /* creates and destroys a completion channel; reply: errno */
	CMD_ERR,         /* moves the QP to ERR and takes all its completions */
	CMD_DESTROY_QP,  /* destroys the QP */
	CMD_COUNTS,      /* reply: what the QP has seen so far */
	CMD_CHECK,       /* reply.rc: 0 if no byte outside the region changed */
	CMD_SCRIBBLE, /* random bytes over the own segment: value is the seed, len milliseconds */
	CMD_EXIT,
};

/* Which call CMD_TRAP means. */
enum trap_kind { TRAP_NONE, TRAP_POST_SEND, TRAP_POST_RECV, TRAP_POLL, TRAP_DEREG };

struct agent_addr {
	uint32_t qpn, rkey;
	uint64_t va; /* of the QP's area */
	union ibv_gid gid;
};

struct agent_tuning {
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
};

struct agent_req {
	enum agent_cmd cmd;
	unsigned qp;
	enum ibv_wr_opcode opcode;
	uint32_t len, count;
	uint64_t value;
	struct agent_addr addr;
	struct agent_tuning tuning;
};

struct agent_counts {
	uint32_t posted, send_ok, send_bad, recv_posted, recv_ok, recv_bad;
	uint32_t first_bad; /* enum ibv_wc_status of the first failed send */
	uint32_t wrong;     /* messages whose content or order was wrong */
};

struct agent_rep {
	int rc; /* 0 or a negative errno */
	uint32_t status;
	uint64_t value;
	struct agent_addr addr;
	struct agent_counts counts;
};

struct agent {
	pid_t pid;
	int sock;
	bool polls; /* else it sleeps on its completion channel */
};

/* Starts an agent; polls: how it waits.  0 or a negative errno. */
int agent_start(struct agent *a, bool polls);

/* Ends it by SIGKILL and reaps it; harmless if it has ended. */
void agent_kill(struct agent *a);

/* Lets it close everything and ends it: 0 if it exited with 0 within 20 s. */
int agent_end(struct agent *a);

/* Sends a command; agent_reply() takes the answer: reply.rc, or -ETIMEDOUT, -EPIPE. */
int agent_tell(struct agent *a, const struct agent_req *req);
int agent_reply(struct agent *a, struct agent_rep *rep, int timeout_ms);

/* Both, with 30 s for the answer. */
int agent_do(struct agent *a, const struct agent_req *req, struct agent_rep *rep);

/* Makes QP i of a and QP k of b anew and connects them. */
int agents_connect(
	struct agent *a, unsigned i, struct agent *b, unsigned k, struct agent_tuning tuning);

/* The patience of most tests: acknowledgement within 8 ms, receiver-not-ready for ever. */
extern const struct agent_tuning agent_quick;
/* That, or with WEFT_WIRE=always more: peers answer only when they have a CPU. */
const struct agent_tuning *agent_usual(void);
