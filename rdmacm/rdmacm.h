/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librdmacm: ids and event channels of this process.  Include this header first: it gives the
 * public functions default visibility.  Internal functions return 0 or a negative errno; only
 * the public ones set errno.
 *
 * The process holds the truth of each id; what weftd knows of it is published again when a new
 * weftd starts.  Most work is weftd's (cm/): here are addresses, the QP's transitions, and the
 * order of events.
 *
 * Locks: table.lock (which ids and channels exist) is taken before a channel's lock; neither is
 * held in a call to weftd, which may call publish() back.
 */
#pragma once

#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#pragma GCC visibility pop

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/lock.h"
#include "base/own_fd.h"
#include "cm/cm_proto.h"
#include "fabric/page.h"
#include "rdv/proto.h"

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* How far an id is, as we know it. */
enum ident_state {
	ID_IDLE,
	ID_BOUND,
	ID_ADDR_QUERY,
	ID_ADDR_RESOLVED,
	ID_ROUTE_QUERY,
	ID_ROUTE_RESOLVED,
	ID_LISTEN,
	ID_CONNECTING, /* REQ was sent */
	ID_REQUESTED,  /* a request that the program has to answer */
	ID_RESPONDED,  /* REP has come, the program has to say rdma_establish() */
	ID_ACCEPTING,  /* REP was sent */
	ID_CONNECTED,
	ID_DISCONNECTING, /* by us */
	ID_DISCONNECTED,  /* by the peer; our answer is due */
	ID_ENDED,
};

struct local_event {
	struct local_event *next;
	struct cm_event e;
};

struct event_channel {
	struct rdma_event_channel ch; /* first member */
	struct own_fd sock;           /* ch.fd: a face's program may have closed it */
	uint32_t id;
	struct sockaddr_un addr; /* of our own socket */
	bool near;               /* addr is valid; else the name is too long for it */
	bool inherited;          /* by fork */
	struct event_channel *next, *prev;

	struct lock lock; /* the rest */
	struct local_event *head, **tail;
	unsigned tokens;  /* datagrams of one byte in the socket */
	bool lost;        /* its name is gone: no event of weftd comes any more */
	uint32_t unacked; /* events of weftd taken since it was told */
};

struct ident {
	struct rdma_cm_id id; /* first member */
	uint32_t handle;
	_Atomic enum ident_state state; /* events are taken by one thread, calls made by others */
	bool sync;                      /* has a channel of its own */
	bool own_send_cq, own_recv_cq;
	bool srq_has_cq;  /* completions of id.srq come to id.recv_cq */
	bool has_port;    /* ours, as weftd knows or will learn */
	bool known;       /* weftd may know the id */
	bool inherited;   /* by fork: its events are the parent's to acknowledge */
	bool asks;        /* weftd looks for the way to dst */
	uint32_t loan;    /* which lent port it has, 0: none */
	uint64_t left_at; /* when it disconnected, ns; 0: it did not */
	uint32_t flags;   /* enum cm_flags */
	uint8_t tos, ack_timeout;
	int backlog;
	struct cm_addr src, dst;
	uint32_t scope;     /* interface of a link-local address, 0: none */
	int32_t resolve_ms; /* how long it may look */
	uint32_t local_comm, remote_comm;
	uint32_t qpn;          /* as the peer was told, or will be */
	uint64_t peer_guid;    /* of its adapter */
	struct cm_params peer; /* from REQ or REP */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count;
	struct ibv_ece local_ece, remote_ece;
	struct ibv_sa_path_rec path;
	struct ibv_qp_init_attr *ep_qp_attr; /* rdma_create_ep() of a listener */
	struct ibv_pd *ep_pd;
	struct rdma_addrinfo *info; /* of rdma_resolve_addrinfo() */
	void *connect;              /* private data of rdma_create_ep() */
	size_t connect_len;
	struct ident *by_handle, *next, *prev;

	struct lock qp_lock; /* an event moves the QP to ERR while a call destroys it */
	pthread_mutex_t mutex;
	pthread_cond_t acked;
	uint32_t n_events, n_acked;
	struct join *joins; /* multicast groups, the oldest first */
	uint32_t last_join;
};

struct got_event {
	struct rdma_cm_event event; /* first member */
	struct ident *owner;        /* whose count it is in */
	struct join *join;          /* the same, or NULL */
	uint8_t priv[CM_PRIV_MAX];
};

static inline struct ident *to_ident(struct rdma_cm_id *id)
{
	return (struct ident *)id;
}

static inline struct event_channel *to_channel(struct rdma_event_channel *ch)
{
	return (struct event_channel *)ch;
}

static inline int fail(int err)
{
	errno = err < 0 ? -err : err;
	return -1;
}

/* 0, or -1 with errno, of 0 or a negative errno. */
static inline int result(int ret)
{
	return ret ? fail(ret) : 0;
}
