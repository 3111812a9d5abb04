/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: sockets on top of the public verbs and rdma_cm calls.  Include this header first: it
 * gives the public functions default visibility.  Internal functions return 0, a count, or a
 * negative errno; only the public ones (api.c, io.c, option.c, poll.c) set errno.
 *
 * An rsocket's fd is that of its rdma_cm event channel.  Everything of an rsocket is under its
 * lock, which is dropped only to sleep (wait.c).  Who changes something that others may wait for
 * calls sleepers_wake() before it drops the lock.
 */
#pragma once

#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#pragma GCC visibility pop

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/lock.h"
#include "face/credit.h"
#include "face/look.h"
#include "face/sleeper.h"

enum rs_state {
	RS_IDLE,
	RS_BOUND,
	RS_LISTENING,
	RS_RESOLVING,  /* the address */
	RS_ROUTING,    /* the route */
	RS_CONNECTING, /* the request was sent */
	RS_ACCEPTING,  /* the reply was sent */
	RS_CONNECTED,
	RS_ENDED, /* by the peer, or it never came about */
};

struct rs_options {
	int sndbuf, rcvbuf;      /* bytes */
	int sqsize, rqsize;      /* work requests */
	int inline_size;         /* bytes */
	int iomap_size;          /* mappings that the peer may announce */
	int reuseaddr, v6only;   /* IPV6_V6ONLY */
	int keepalive, keepidle; /* kept for rgetsockopt(): death of a peer is always noticed */
	int nodelay, oobinline;  /* the same: nothing is ever delayed, there is no urgent data */
	struct linger linger;    /* SO_LINGER */
	uint64_t rcvtimeo, sndtimeo; /* ns, 0: none */
};

/* What each end tells the other in the private data of REQ and REP; big-endian. */
struct rs_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t iomap_size;
	uint64_t ring_addr;
	uint32_t ring_size;
	uint32_t ring_rkey;
	uint32_t rq_size;
	uint32_t reserved;
};

enum {
	RS_SLOT = 64,      /* bytes of a receive: a control message */
	RS_MIN_RQ = 16,    /* receives an end must have */
	RS_MAX_WR = 16384, /* RDMA_SQSIZE, RDMA_RQSIZE */
	RS_MIN_BUF = 4096, /* SO_SNDBUF, SO_RCVBUF */
	RS_MAX_BUF = 256 << 20,
	RS_MAX_IOMAP = 128,  /* RDMA_IOMAPSIZE */
	RS_MAX_INLINE = 512, /* RDMA_INLINE */
};

/* A piece of the peer's memory that riowrite() may reach. */
struct rs_peer_map {
	uint64_t offset, len, addr;
	uint32_t rkey;
	bool used;
};

/* One of our buffers under riomap(). */
struct rs_iomap {
	struct rs_iomap *next;
	void *buf;
	size_t len;
	uint64_t offset;
	struct ibv_mr *mr;
	int index; /* in the peer's table; -1: for local use alone */
};

/* Both directions of a connection. */
struct stream {
	uint8_t *mem; /* ring, send buffer, slots: one mapping */
	size_t mem_size;
	struct ibv_mr *ring_mr, *local_mr;
	uint32_t ring_size, tx_size, rq_size, sq_size;
	uint32_t inline_size;

	/* in */
	uint8_t *ring, *slots;
	struct credit_in rx;
	bool fin;     /* the peer sends no more */
	bool rx_shut; /* we read no more */

	/* out */
	uint8_t *tx;
	uint64_t tx_head, tx_tail; /* bytes of the send buffer taken, given back */
	uint64_t *tx_mark;         /* per slot of the send queue: tx_head after it */
	uint32_t posted, done;     /* work requests */
	uint32_t signalled;        /* posted, at the last one that will complete visibly */
	uint64_t signalled_head;   /* tx_head then */
	struct credit_out out;     /* its room is the peer's ring and receives; 0: not known yet */
	uint64_t peer_ring;        /* address */
	uint32_t peer_rkey;
	bool tx_fin; /* we send no more; said so */

	struct rs_peer_map *peer_maps; /* iomap_size of them */
	struct rs_iomap *maps;
	uint32_t n_peer_maps;  /* that the peer lets us announce */
	uint64_t announced[2]; /* bit map of the indices in use */
};

struct dgram;

struct rsocket {
	int fd;
	int family, type; /* SOCK_STREAM, SOCK_DGRAM */
	_Atomic uint32_t refs;
	struct lock lock; /* the rest */
	enum rs_state state;
	bool closed;     /* rclose() was called */
	bool inherited;  /* by fork(): the parent's */
	bool nonblock;   /* O_NONBLOCK */
	bool told_async; /* rconnect() said EINPROGRESS */
	int err;         /* SO_ERROR: positive errno */
	struct rs_options opt;
	struct ibv_path_data *route; /* RDMA_ROUTE */
	size_t route_len;

	struct rdma_event_channel *cm;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *cc;
	struct ibv_cq *recv_cq, *send_cq;
	bool recv_armed, send_armed;
	uint32_t recv_events, send_events; /* to acknowledge */
	uint64_t cm_seen;                  /* coarse ns, when the event channel was looked at */

	struct rdma_cm_id *request; /* a listener's: not accepted yet */
	struct rs_hello request_hello;

	struct stream st;
	struct dgram *dg;
	struct sleeper *sleepers;
	struct look look; /* of who waits for an answer */
	bool spoke;       /* the program has sent since it waited for data last */
};

static inline bool is_dgram(const struct rsocket *s)
{
	return s->type == SOCK_DGRAM;
}
