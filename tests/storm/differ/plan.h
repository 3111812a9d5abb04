/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a link does, as its seed says.  A link is a connection of two ends, which compute the same
 * plan each by itself.  An epoch is a set of objects and a connection; in each of its rounds both
 * ends send requests, each of which has bytes of its own.
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "rnd.h"
#include "words.h"

enum {
	LANES = 2,   /* queue pairs of a link */
	DEPTH = 128, /* requests in one direction of a round, all lanes, where atomics crowd */
	REQUESTS = 2 * DEPTH,
	POSTERS = 2, /* threads that post at once on the same queue pairs */
	PIECES = 4,
	INLINE_MAX = 256,
	GUARD = 64, /* bytes at both ends of a memory that nobody writes */
	GRH = 40,
};

enum op {
	DO_SEND,
	DO_SEND_IMM,
	DO_SEND_INV,
	DO_WRITE,
	DO_WRITE_IMM,
	DO_READ,
	DO_ADD,
	DO_SWAP,
	DO_ATOMIC_WRITE,
	DO_FLUSH,
	OPS
};

/* What is wrong with a request; it ends the epoch. */
enum fault {
	FAULT_NONE,
	FAULT_RKEY,      /* a key that is none */
	FAULT_RANGE,     /* beyond the end of the region */
	FAULT_RIGHT,     /* a region that does not allow it */
	FAULT_LKEY,      /* the requester's own key */
	FAULT_SHORT,     /* a receive that is too small */
	FAULT_RECV_LKEY, /* a receive into what is no memory */
	FAULT_NO_RECV,   /* no receive, and retries that end */
	FAULTS
};

/* How a memory is registered for the other end. */
enum region_kind {
	REGION_PLAIN,
	REGION_IOVA,
	REGION_ZERO_BASED,
	REGION_ON_DEMAND,
	REGION_IMPLICIT, /* on demand, all of the process's memory */
	REGION_WINDOW_1,
	REGION_WINDOW_2,
	REGIONS
};

/* Parts of a memory, in order. */
struct pieces {
	unsigned n;
	uint32_t off[PIECES], len[PIECES];
};

struct request {
	enum op op;
	enum fault fault;
	uint8_t from; /* the end that sends it */
	uint8_t lane, poster;
	bool signaled, inlined, fenced, solicited;
	bool by_wr;   /* ibv_wr_*, not ibv_post_send() */
	bool chained; /* posted with the one before it, if both are alike */
	uint32_t len, imm;
	struct pieces local;
	uint32_t remote; /* offset in the other end's memory */
	uint32_t pattern;
	uint64_t before, compare, operand; /* atomics */
	bool common; /* an atomic on a word that all links have in common (words.h) */
	uint8_t word;
};

struct epoch {
	enum ibv_qp_type type; /* IBV_QPT_XRC_SEND: a target of its own for each lane, too */
	unsigned lanes, rounds;
	uint32_t size; /* of each end's memory */
	enum fault fault;
	uint8_t fault_from;
	uint8_t rnr_retry;
	unsigned fault_round;
	bool reconnects; /* after each round, not only after one with a fault */
	bool same_qp;    /* the queue pairs are reset then; else destroyed and made anew */
	bool common;     /* has atomics on common words */
	bool crowds;     /* ... and nothing else, many */
	bool apart;      /* requests go as packets */
	struct {
		enum memory_kind memory;
		enum region_kind region;
		bool two_regions; /* one more for its own keys */
		bool srq, one_cq, sleeps;
		bool no_atomics;        /* its region has not the right to them */
		enum region_kind words; /* of its words: plain, on-demand or implicit */
	} end[2];
};

struct round {
	unsigned n;
	struct request r[REQUESTS];
	/* Receives of each end: all of one size, in a row from the lane's first on. */
	unsigned recvs[2][LANES], late[2];
	uint32_t recv_len[2], recv_step[2];
	bool invalidates[2]; /* the window of that end */
	bool two_post;       /* else all requests are of poster 0 */
};

/* apart: the ends are of two fabrics, which RC and datagrams alone have in common. */
void plan_epoch(struct epoch *e, uint64_t seed, unsigned link, unsigned number, bool apart);
void plan_round(struct round *r, const struct epoch *e, uint64_t seed, unsigned link,
	unsigned epoch, unsigned number);

/* Where receive number slot of that end goes. */
struct pieces plan_receive(const struct round *r, unsigned end, unsigned slot);
/* How many receives that end has in the lanes before. */
unsigned plan_first_slot(const struct round *r, unsigned end, unsigned lane);

/* Is each request carried out, in order, or answered by an error? */
bool is_reliable(const struct epoch *e);

bool op_is_message(enum op op);
bool op_is_atomic(enum op op);
/* Does it need a key of the other end? */
bool op_is_remote(enum op op);
const char *op_name(enum op op);
const char *fault_name(enum fault fault);
const char *region_name(enum region_kind kind);

/* Fills the memory of a request: what it sends or what a READ finds. */
void plan_data(const struct request *r, uint8_t *to);
