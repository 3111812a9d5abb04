/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Movers copy bytes between the memory of this process and that of a peer.  Which one serves a
 * transfer is decided in mover.c alone: `cma` (process_vm_readv/writev), `agent` (a thread of the
 * peer, where the kernel refuses that; pages/agent.h), or a plain copy within the process.
 *
 * All movers keep the order that programs rely on: the last bytes of the destination become
 * visible last.
 */
#pragma once

#include <stdbool.h>

#include "pages/iov.h"

enum move_result {
	MOVE_OK,
	MOVE_FAULT_LOCAL,  /* memory of this process is not there (any more) */
	MOVE_FAULT_REMOTE, /* memory of the peer is not there */
	MOVE_GONE,         /* the peer process is dead */
	MOVE_REFUSED, /* the kernel does not let us (Yama, seccomp, other uid, pid namespace) */
	MOVE_DENIED,  /* the peer's agent knows no such memory or QP, or gives no right to it */
	MOVE_BUSY,    /* an atomic was held up: nothing was done, try again soon */
	MOVE_LATE,    /* the peer's agent did not answer in time */
	MOVE_LATER,   /* nothing was done: only a thread that may sleep can do this */
	MOVE_TAKEN,   /* a region or a QP was taken away between two steps */
	MOVE_ANEW,    /* a region is changing over: the request begins anew when that is through */
};

enum { MOVE_STEP = 256 * 1024 };

struct agent_call;

/* Bytes that only functions reach, in the place of a list of addresses. */
struct sgl_io {
	/* The next n of them, to (in) or from buf; MOVE_OK, or with what the move ends. */
	enum move_result (*copy)(void *arg, uint8_t *buf, uint64_t n, bool in);
	void *arg;
};

struct move {
	int pid;   /* of the peer; 0: both lists are of this process */
	bool push; /* true: local to remote; false: remote to local */
	struct sgl *local;
	struct sgl *remote;
	/* Asked between steps of MOVE_STEP bytes: MOVE_OK, or with what it ends.  NULL: always. */
	enum move_result (*may_go_on)(void *arg);
	void *arg;
	struct agent_call *agent; /* not NULL: by the peer's agent, which may sleep */
	/* With an agent: instead of local, which is not looked at.  NULL: local. */
	const struct sgl_io *io;
	/* result */
	uint64_t moved;
	uint32_t calls;
};

/*
 * Carries out m; both lists have the same length and are consumed.  Blocks for the copy alone.
 * When pid is 0, `local` is the source if push, else the destination.
 */
enum move_result mover_run(struct move *m);

/* The cma mover; m->pid is not 0. */
enum move_result cma_run(struct move *m);
