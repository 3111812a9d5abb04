/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints.  All functions here and beside return 0 or a negative errno unless they say else.
 *
 * An endpoint's fd is a stand-in (face/standin.h), by whose inode it is found.
 *
 * Locks: an endpoint's lock guards all of it; `sending` and `receiving` keep blocking callers of
 * one direction apart and come before it.  Nothing of another endpoint is touched under a lock.
 * Who waits sleeps on seq, which moves with every change.
 */
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "face/credit.h"
#include "face/look.h"
#include "face/sleeper.h"
#include "face/standin.h"
#include "scif/ep/check.h"
#include "scif/ep/node.h"
#include "scif/ep/window.h"
#include "scif/ep/wire.h"

enum ep_state {
	EP_UNBOUND,
	EP_BOUND,
	EP_LISTENING,
	EP_REQUEST,    /* a request that waits in a listener's queue; has no fd yet */
	EP_CONNECTING, /* by scif_connect(), or accepted and not established yet */
	EP_CONNECTED,
	EP_DISCONNECTED,
	EP_CLOSED,    /* being taken down */
	EP_INHERITED, /* of the process that forked us (scif/heir/heir.h) */
};

enum { WIRE_BATCH = 8 }; /* receives that are posted together */
enum { SQ_DEPTH = 256, SQ_SPARE = 96, MAX_CTL = 256, MAX_ANSWERS = 1024, MAX_INLINE = 64 };

/* A question to the peer that a thread waits for. */
struct rpc {
	uint32_t id;
	bool done;
	uint64_t *answer; /* words of it */
	int words;
	struct rpc *next;
};

/* What is done when a request of the send queue, and all before it, are complete. */
struct after {
	uint64_t wr;        /* the request's number */
	struct after *next; /* in order of wr */
	struct ibv_mr *mr;  /* deregistered, or NULL */
	bool local, remote; /* ranges of windows that are used no more */
	uint64_t loff, lat_len, roff, rat_len;
	bool store;  /* lval to our window at loff */
	bool answer; /* WIRE_WAIT_ACK id */
	uint64_t lval;
	uint32_t id;
};

enum { CHECKED = 4 };

/* Memory of the program that SCIF_RMA_USECACHE may take for granted until then. */
struct checked {
	uintptr_t from, to;
	uint64_t until;
	bool writable;
};

/* Registered memory of a connection. */
struct link_mem {
	struct wire_credit credit;                      /* written by the peer */
	_Alignas(WIRE_TOOK_AT) struct wire_credit took; /* read by the peer */
	_Alignas(WIRE_TOOK_AT) struct wire_credit
		looked;         /* where the peer's comes when we read it */
	uint8_t out[WIRE_RING]; /* bytes accepted by scif_send() */
	struct wire_ctl ctl[WIRE_RECVS];
	uint8_t recvs[WIRE_RECVS][WIRE_MSG];
};

/* The queue pair and its two rings (scif/link/link.h). */
struct link {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr, *credit_mr; /* of mem; of what the peer may write */
	struct ibv_mr *all_mr;         /* of all our memory, where the adapter takes it on demand */
	struct link_mem *mem;
	bool ready;           /* the peer's hello is known */
	bool far;             /* it has another adapter: nothing of it can be mapped */
	bool armed;           /* the queue rings when something comes, or has just rung (bell.h) */
	uint64_t eager_until; /* it stays armed until then */
	uint64_t credit_addr;
	uint32_t credit_rkey;
	uint64_t sq_posted, sq_done; /* requests */
	uint64_t sq_signaled;        /* the last one that says when it is done */
	uint64_t told_wr;            /* the last one that told of a window */
	uint64_t tx_total;           /* bytes accepted */
	struct credit_out tx;        /* what was sent of them; taken: as far as we have looked */
	uint64_t look_wr;            /* the request that reads it, 0: none */
	struct credit_in rx;         /* messages: processed, and posted again */
	uint32_t spent[WIRE_BATCH];  /* the receives of those that were not */
	uint8_t in[WIRE_RING];
	uint32_t want_sent;  /* WANT_*, not answered yet */
	uint32_t peer_wants; /* WANT_*; bytes beyond peer_knows */
	uint64_t peer_knows;
	struct wire_ctl ctl[MAX_CTL]; /* to be sent, a ring */
	uint32_t ctl_head, ctl_tail;
	struct after *after, **after_end;
	struct rpc *rpcs;
	uint32_t rpc_id;
	uint64_t rma_last;               /* number of the last request of an RMA */
	uint64_t marks_self, marks_peer; /* number of the last one marked + 1, 0: none */
	uint32_t answers;                /* WIRE_WAITs of the peer not answered */
	struct checked checked[CHECKED];
	unsigned next_checked;
};

struct scif_ep {
	struct lock lock;
	_Atomic uint32_t seq; /* moves with every change of state */
	_Atomic uint32_t sleepers;
	_Atomic uint32_t refs;
	_Atomic uint32_t gone;   /* ep_close() is through with it */
	_Atomic uint64_t used;   /* when the program last made a call, about */
	uint32_t inside;         /* threads that look for completions in ep_wait() */
	struct look look;        /* how long ep_wait() does */
	struct sleeper *pollers; /* threads in scif_poll() */
	enum ep_state state;
	struct lock sending, receiving;
	struct scif_ep *next; /* in the table, whose lock guards both */
	uint32_t visited;     /* in that round of ep_each() */
	bool listed, forgotten;
	struct scif_ep *busy_next; /* in the list of bell.c, whose lock guards the three */

	/* the fd */
	struct standin standin;
	bool inherited; /* EP_INHERITED: since the fork, whatever the state */
	int maker;      /* ... the socket to the process that made it, -1: none (heir.h) */

	struct scif_port *port; /* NULL: unbound */
	struct scif_id peer;
	struct rdma_cm_id *id;
	struct link link;

	int connect_result; /* of a connect that is over: 0, a negative errno; 1: none to collect */
	bool collect;       /* by the next non-blocking scif_connect() */
	uint64_t connect_until;  /* 0: it was not we who asked */
	struct remains *remains; /* room for what a failed connect leaves (cm.c); NULL: none runs */

	int backlog, waiting; /* a listener's queue */
	struct scif_ep *requests, **requests_end, *next_request;

	struct ep_check check;
	struct windows own;    /* ours, with their regions */
	struct windows theirs; /* the peer's, with their keys */
	struct windows lent;   /* inherited: of its windows, those over memory of ours */
};

/* A new endpoint in state EP_UNBOUND with one reference and no fd; NULL: no memory. */
struct scif_ep *ep_new(void);
/* Enters one that has its fd into the table, which has a reference from then on. */
void ep_enter(struct scif_ep *ep);
/* Enters one that another process made and passed to us, who is asked by that socket. */
int ep_inherit(int fd, int maker);
/* Takes a reference; gives it back, the last one frees. */
void ep_get(struct scif_ep *ep);
void ep_put(struct scif_ep *ep);

/* The endpoint of fd with a reference in *ep; -EBADF no fd, -ENOTTY no endpoint. */
int ep_find(int fd, struct scif_ep **ep);
/*
 * The same for calls that are made again and again: an fd that this thread has just found several
 * times is not looked at each time.  So what the program does to it with close(2) or dup2(2) may
 * be noticed 0.1 ms later.
 */
int ep_find_again(int fd, struct scif_ep **ep);
/* That of an inode number, NULL: none. */
struct scif_ep *ep_find_ino(uint64_t ino);
/* Takes it out of the table, which one caller succeeds in. */
bool ep_remove(struct scif_ep *ep);
/* An fd was closed: what threads remember of theirs is to be asked for anew. */
void ep_fd_lost(void);
/*
 * Calls fn for each endpoint that was in the table, with a reference and without locks.  One
 * thread at a time.
 */
void ep_each(void (*fn)(struct scif_ep *ep));

/* Is its fd, with all duplicates in all processes, closed?  Under the lock. */
bool ep_fd_closed(struct scif_ep *ep);

/* Says that something changed: wakes sleepers.  Under the lock. */
void ep_changed(struct scif_ep *ep);

/* The errno of a call that needs a connection, 0 if there is one.  Under the lock. */
int ep_connected(const struct scif_ep *ep);

/* Is there any of our own in the table?  With the table's lock, as before a fork. */
bool ep_any(void);
/* Around fork(). */
void ep_before_fork(void);
void ep_parent_forked(void);
/* maker: the socket to our parent, who is asked for what it made; -1: none. */
void ep_child_forked(int maker);
/* Is this thread between two of them?  Then the table is locked, by itself. */
bool ep_forking(void);
/*
 * Is fd an endpoint?  For close(2), which the libraries below call, too, with locks that a fork
 * takes: while one is under way, no.
 */
bool ep_is_open(int fd);
