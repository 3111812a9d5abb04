/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsockets: sockets on top of the public verbs and rdma_cm calls.  Include this header first: it
 * gives the public functions default visibility.  Internal functions return 0, a count, or a
 * negative errno; only the public ones (api.c, io.c, option.c, poll.c) set errno.
 *
 * An rsocket's fd is that of its rdma_cm event channel.  Everything of an rsocket is under its
 * lock, which is dropped only to sleep (wait.c).  Who changes something that others may wait for
 * calls wake_others() before it drops the lock.
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

/* Both directions of a connection; counts of bytes and messages are from its beginning. */
struct stream {
	uint8_t *mem; /* ring, send buffer, slots: one mapping */
	size_t mem_size;
	struct ibv_mr *ring_mr, *local_mr;
	uint32_t ring_size, tx_size, rq_size, sq_size;
	uint32_t inline_size;

	/* in */
	uint8_t *ring, *slots;
	uint64_t received, consumed;
	uint64_t told;      /* consumed, as the peer knows */
	uint32_t rx_msgs;   /* messages received; their receives are posted anew */
	uint32_t told_msgs; /* rx_msgs, as the peer knows */
	bool fin;           /* the peer sends no more */
	bool rx_shut;       /* we read no more */

	/* out */
	uint8_t *tx;
	uint64_t tx_head, tx_tail; /* bytes of the send buffer taken, given back */
	uint64_t *tx_mark;         /* per slot of the send queue: tx_head after it */
	uint32_t posted, done;     /* work requests */
	uint32_t signalled;        /* posted, at the last one that will complete visibly */
	uint64_t signalled_head;   /* tx_head then */
	uint64_t sent, peer_consumed;
	uint32_t tx_msgs, tx_limit; /* messages sent, and how many may be */
	uint64_t peer_ring;         /* address */
	uint32_t peer_rkey, peer_size, peer_rq;
	bool tx_fin; /* we send no more; said so */

	struct rs_peer_map *peer_maps; /* iomap_size of them */
	struct rs_iomap *maps;
	uint32_t n_peer_maps;  /* that the peer lets us announce */
	uint64_t announced[2]; /* bit map of the indices in use */
};

struct dgram;

/* A thread that sleeps for this rsocket. */
struct rs_sleeper {
	struct rs_sleeper *next, **link;
	int fd; /* its eventfd */
};

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
	struct rs_sleeper *sleepers;
};

static inline bool is_dgram(const struct rsocket *s)
{
	return s->type == SOCK_DGRAM;
}

/* The counts of a connection that end in the peer's hands are compared by their difference. */
static inline int32_t ahead(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

/* ---- table.c: which fds are rsockets ---- */

/* A new one with its event channel, entered under its fd, one reference.  -ENOMEM, -ENODEV ... */
int rs_create(int family, int type, struct rsocket **out);
/* The rsocket of that fd with one more reference, NULL: it is none. */
struct rsocket *rs_find(int fd);
/* Gives a reference back; the last one frees it.  Not under its lock. */
void rs_release(struct rsocket *s);
/* Out of the table: nobody finds it any more.  False: somebody else has done so. */
bool rs_withdraw(struct rsocket *s);
/* What public functions begin with: the rsocket under its lock, or NULL with errno EBADF. */
struct rsocket *rs_enter(int fd);
/* And end with: ret, or -1 with errno, of a count or a negative errno. */
int64_t rs_leave(struct rsocket *s, int64_t ret);

/* ---- config.c: /etc/rdma/rsocket ---- */

/* The defaults of this machine. */
void rs_default_options(struct rs_options *opt);
/* How long to spin before sleeping, ns: 0 on a single CPU. */
uint64_t rs_spin_ns(void);
/*
 * How many ms to sleep at once, of a timeout as for poll(2).  It has an end: only a call of ours
 * notices that weftd was started anew and has to be told of this process.
 */
int rs_sleep_ms(int wanted);

/* ---- wait.c ---- */

/*
 * Under the lock, which it drops to sleep: waits until rs_ready() has one of `events`, POLLIN or
 * POLLOUT.  -EAGAIN at the deadline (ns of clock_ns(), 0: none); -EINTR.
 */
int rs_wait(struct rsocket *s, short events, uint64_t deadline);
/* The same until done(s), which `events` may bring about. */
int rs_wait_for(
	struct rsocket *s, bool (*done)(struct rsocket *s), short events, uint64_t deadline);
/* Makes all other threads that sleep for s look again. */
void wake_others(struct rsocket *s);
/* Enters this thread as a sleeper, and takes it out.  Under the lock. */
void sleeper_enter(struct rsocket *s, struct rs_sleeper *me);
void sleeper_leave(struct rs_sleeper *me);
/* The eventfd of this thread, -1: it needs none, or there is none to be had. */
int sleeper_fd(void);
/* Takes what lies in it. */
void sleeper_drain(int fd);
/* Asks for an event at the next completion; call rs_progress() after it and look once more. */
void rs_arm(struct rsocket *s, short events);
/* Takes events of the completion channel. */
void rs_take_events(struct rsocket *s);
/* Acknowledges what was counted there and destroys the CQs; no QP uses them any more. */
void rs_free_cqs(struct rsocket *s);
/* poll(2) conditions of s at this moment, among POLLIN, POLLOUT, POLLERR, POLLHUP. */
short rs_ready(struct rsocket *s);
/* Takes completions; with cm, or if that was long ago, rdma_cm events as well. */
void rs_progress(struct rsocket *s, bool cm);

/* ---- connect.c: streams and rdma_cm ---- */

int conn_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
int conn_listen(struct rsocket *s, int backlog);
/* Begins to connect; -EINPROGRESS, or how it ended already. */
int conn_start(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
/* Turns the request that waits into *out.  -EAGAIN: there is none (any more). */
int conn_accept(struct rsocket *s, struct rsocket **out);
/* Takes all events that wait. */
void conn_events(struct rsocket *s);
/* The connection is lost, or failed: err is for SO_ERROR. */
void conn_end(struct rsocket *s, int err);
/* Tells the peer that no more will come, if it can be told by then: -EAGAIN. */
int conn_fin(struct rsocket *s, uint64_t deadline);
/* Ends whatever there is, waiting for data under way as SO_LINGER says. */
void conn_close(struct rsocket *s);

/* ---- stream.c: the bytes ---- */

/* Makes queues and buffers; s->id has its device.  *hello: for the peer. */
int stream_open(struct rsocket *s, struct rs_hello *hello);
/* Takes the peer's.  -EPROTO. */
int stream_meet(struct rsocket *s, const struct rs_hello *hello);
void stream_free(struct rsocket *s);
/* Takes completions, gives credit. */
void stream_progress(struct rsocket *s);
bool stream_readable(const struct rsocket *s);
bool stream_writable(const struct rsocket *s);
/* True while a send has to complete before something that is due can go on. */
bool stream_send_pends(const struct rsocket *s, bool want_out);
/* Copies out at most len; 0: the end, -EAGAIN: nothing there. */
ssize_t stream_take(struct rsocket *s, void *buf, size_t len, bool peek, size_t skip);
/* Sends some of it; -EAGAIN: no room. */
ssize_t stream_put(struct rsocket *s, const void *buf, size_t len);
/* Says that we send no more.  -EAGAIN. */
int stream_fin(struct rsocket *s);
/* All that was posted has completed. */
bool stream_drained(const struct rsocket *s);

enum rs_msg { RS_CREDIT = 1, RS_FIN, RS_IOMAP, RS_IOUNMAP };

/* A control message; big-endian.  Each carries the credit as it is. */
struct rs_ctl {
	uint32_t type;
	uint32_t msgs;     /* rx_msgs of the sender */
	uint64_t consumed; /* of the sender */
	uint64_t offset, len, addr;
	uint32_t rkey, index;
};

/* Sends one about iomap; -EAGAIN. */
int stream_say(struct rsocket *s, enum rs_msg type, const struct rs_iomap *map);
/* A plain RDMA WRITE of at most len bytes; -EAGAIN. */
ssize_t stream_write(struct rsocket *s, const void *buf, size_t len, uint64_t addr, uint32_t rkey);

/* ---- iomap.c ---- */

/* A message of the peer about its mappings.  -EPROTO. */
int iomap_heard(struct rsocket *s, enum rs_msg type, const struct rs_ctl *ctl);
void iomap_free_all(struct rsocket *s);

/* ---- dgram.c ---- */

int dgram_bind(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
int dgram_connect(struct rsocket *s, const struct sockaddr *addr, socklen_t len);
void dgram_free(struct rsocket *s);
void dgram_events(struct rsocket *s);
void dgram_progress(struct rsocket *s);
bool dgram_readable(const struct rsocket *s);
bool dgram_writable(const struct rsocket *s);
/* One datagram from the pieces, to `to`, or the connected peer if that is NULL.  -EAGAIN. */
ssize_t dgram_put(struct rsocket *s, const struct iovec *iov, int n, const struct sockaddr *to,
	socklen_t len);
/* One datagram: its whole length; *from (may be NULL): whose; what does not fit is lost. */
ssize_t dgram_take(struct rsocket *s, const struct iovec *iov, int n, bool peek,
	struct sockaddr_storage *from);
/* Where rconnect() led, 0 or -ENOTCONN. */
int dgram_peer(const struct rsocket *s, struct sockaddr_storage *peer);
