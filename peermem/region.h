/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A region of a client's memory, from the question whose it is until its release.  The lock covers
 * state and guests and is held over no call of the client or the HCA.  docs/peermem.md has the
 * states; generation.h in what the releases of MLNX_OFED differ.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "peermem/client.h"
#include "peermem/generation.h"
#include "peermem/guest.h"
#include "peermem/table.h"
#include "peermem/trace.h"

/* Calls that succeeded and must be undone. */
enum peer_done {
	PEER_DID_ACQUIRE = 1,
	PEER_DID_PIN = 2,
	PEER_DID_MAP = 4,
	PEER_DID_PAGES = PEER_DID_PIN | PEER_DID_MAP,
	PEER_DID_ALL = PEER_DID_PAGES | PEER_DID_ACQUIRE,
};

/* What is to be registered. */
struct peer_request {
	const char *call;      /* by which it registers; NULL: ibv_reg_mr */
	uint64_t addr, length; /* as the program gave them */
	bool writable;         /* by anyone */
	struct device *device; /* for dma_map */
	/*
	 * Takes the region's key away, so that nothing new begins.  Called in whatever thread the
	 * client took the memory away, without a lock.  It does not wait for who entered, only for
	 * others that use the memory.  0; -ETIMEDOUT: some still do, which it logged, and it is
	 * called again, maybe by several, when the client asks again.
	 */
	int (*revoke)(struct peer_region *r);
	void *of; /* the HCA's */
};

struct peer_region {
	struct peer_request request;
	struct peer_client *client;
	struct peer_pieces pieces; /* from the page of addr on; no window once it is gone */
	uint64_t page_size;

	/* The rest is peermem's own. */
	struct lock lock;
	_Atomic uint32_t changes; /* counts what may be waited for */
	unsigned waiting;         /* threads that sleep on it */
	enum peer_state state;
	unsigned done;   /* enum peer_done */
	bool failed;     /* taken away too early: will not become live */
	bool still_used; /* revoke failed */
	struct peer_guest *guests;
	struct peer_guest maker;
	void *context; /* the client's */
	struct sg_table table;
	int nmap;
	bool counted; /* in the statistics, as these: */
	uint64_t pages_counted, bytes_counted;
	/* Of registry.c, under its lock: */
	uint64_t ticket; /* the core context */
	bool findable, evicted;
	struct peer_region *next_ticket, *next_of_client;
};

/*
 * Asks the clients, and has the one that claims the range pin and map it.  0, with *out: MAPPED, to
 * be followed in this thread by peer_region_live() or peer_region_abandon(), or NULL: nobody claims
 * it.  Else nothing is left, and the log has t: what the client answered; -EINVAL if that was
 * garbage, or it took the memory away meanwhile; -EDEADLK inside a client's acquire; -ENOMEM.
 * -EINVAL for a range that wraps, too, of which no client is asked.
 */
int peer_region_make(const struct peer_request *q, struct peer_region **out, struct peer_trace *t);

/*
 * The region goes live: from now on revoke may be called.  -EINVAL: its client took it away; it is
 * gone, revoke was not called.
 */
int peer_region_live(struct peer_region *r);

/* Instead of going live: undoes all.  The region is gone. */
void peer_region_abandon(struct peer_region *r);

/*
 * Waits for the operations that run in other threads; others may begin meanwhile, if they can.  0;
 * -EDEADLK in a thread that is inside it, -ETIMEDOUT if one stayed inside for 10 s, as
 * peer_region_drop(), which is called later.
 */
int peer_region_await_ops(struct peer_region *r);

/*
 * Deregisters: waits for operations and callbacks that run, gives the pages back, releases.  The
 * key must be gone.  0: the region is gone.  -EDEADLK in a thread that is inside it, -ETIMEDOUT if
 * another stayed inside for 10 s: it remains, and can be dropped again.
 */
int peer_region_drop(struct peer_region *r);

/* In a forked child: frees what stands for a region of the parent.  No client is called. */
void peer_region_forget(struct peer_region *r);

/*
 * Before and after this thread touches the bytes; in: the function, a constant, for the log. False:
 * they must not be touched any more, and there is nothing to leave.  op is the caller's until
 * leave.
 */
bool peer_region_enter(struct peer_region *r, struct peer_guest *op, const char *in);
void peer_region_leave(struct peer_region *r, struct peer_guest *op);

/* It goes on to another function, in. */
void peer_region_goes_into(struct peer_region *r, struct peer_guest *op, const char *in);

/* True once the client took it away, or it is being deregistered. */
bool peer_region_is_gone(struct peer_region *r);

/* Neither gone nor being registered.  A guess: it may change at once. */
bool peer_region_is_live(struct peer_region *r);
