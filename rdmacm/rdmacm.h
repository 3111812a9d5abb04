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
	bool token;       /* a datagram of one byte lies in the socket: head has something */
	bool lost;        /* its name is gone: no event of weftd comes any more */
	uint32_t unacked; /* events of weftd taken since it was told */
};

struct ident {
	struct rdma_cm_id id; /* first member */
	uint32_t handle;
	_Atomic enum ident_state state; /* events are taken by one thread, calls made by others */
	bool sync;                      /* has a channel of its own */
	bool own_send_cq, own_recv_cq;
	bool has_port;    /* ours, as weftd knows or will learn */
	bool known;       /* weftd may know the id */
	bool inherited;   /* by fork: its events are the parent's to acknowledge */
	uint32_t loan;    /* which lent port it has, 0: none */
	uint64_t left_at; /* when it disconnected, ns; 0: it did not */
	uint32_t flags;   /* enum cm_flags */
	uint8_t tos, ack_timeout;
	int backlog;
	struct cm_addr src, dst;
	uint32_t local_comm, remote_comm;
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

/* ---- device.c ---- */

struct device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;                  /* device_xrcd() */
	const struct fabric_page *_Atomic page; /* live */
	uint8_t max_responder, max_initiator;
};

/* The one device, opened once for the life of the process. */
int device_get(const struct device **dev);
/* The parent's protection and XRC domains are not the child's. */
void device_forked_child(void);
/* The XRC domain of all ids of this process that name none. */
int device_xrcd(struct ibv_xrcd **xrcd);
/* Index of one of our GIDs, -ENOENT. */
int device_gid_index(const uint8_t gid[16]);
/* The MTU of the port now, enum ibv_mtu: it follows the link's. */
uint8_t device_mtu(const struct device *dev);
/* The first address of that family; loopback: that one. */
int device_address(uint8_t family, bool loopback, struct cm_addr *addr);

/* ---- table.c ---- */

struct ident *ident_new(
	struct rdma_event_channel *ch, void *context, enum rdma_port_space ps, uint32_t handle);
/* Out of the table: no event finds it any more. */
void ident_remove(struct ident *id);
/* Frees it once all its events are acknowledged; may block for that. */
void ident_free(struct ident *id);
/* Finds it and counts an event for it. */
struct ident *ident_count_event(uint32_t handle);
void ident_ack_event(struct ident *id);
void channel_enter(struct event_channel *ch);
void channel_leave(struct event_channel *ch);

/* ---- channel.c ---- */

/*
 * Known to weftd from now on.  May block for a call to it: its errors; -ENOSPC, -EROFS and the
 * like: the runtime directory takes no name for it (logged).
 */
int channel_create(struct event_channel **out);
void channel_destroy(struct event_channel *ch);
/* Tells a new weftd of it, by a function like weft_cm_call() or, with an fd, weft_cm_call_fd(). */
typedef int (*channel_send)(void *conn, uint32_t op, const void *call, size_t len, int fd);
int channel_publish(struct event_channel *ch, channel_send send, void *conn);
/* An event of our own making; ENOMEM. */
int channel_put(struct event_channel *ch, const struct cm_event *e, size_t len);
/* Takes the next event, blocking by the fd's flag: -EAGAIN, -EINTR; -ENOENT: its name is gone. */
int channel_take(struct event_channel *ch, struct cm_event *e);
/*
 * Calls pick for each event that waits; those for which it returns true are taken out and go to
 * `to`, if that is not NULL.
 */
void channel_sift(struct event_channel *ch, struct event_channel *to,
	bool (*pick)(const struct cm_event *e, const void *arg), const void *arg);

/* ---- calls to weftd, call.c ---- */

/* What all calls about id begin with. */
struct cm_call call_for(const struct ident *id);
/* Makes the call; *reply (may be NULL): the payload of the reply, as rdv/proto.h has it for op. */
int call_weftd(uint32_t op, const struct cm_call *call, void *reply);
/* The same, without waiting for the answer where weftd takes it at once. */
int tell_weftd(uint32_t op, const struct cm_call *call);
int set_private_data(struct cm_call *call, const void *data, size_t len, size_t max);

/* ---- address.c ---- */

int addr_from_sockaddr(const struct sockaddr *sa, struct cm_addr *a);
/* ps: the port space of a service id. */
void addr_to_sockaddr(const struct cm_addr *a, uint16_t ps, struct sockaddr_storage *ss);
bool addr_is_any(const struct cm_addr *a);
/* Shows the addresses of the id to the program. */
void ident_show_addresses(struct ident *id);
int ident_attach_device(struct ident *id);
int ident_bind(struct ident *id, const struct cm_addr *addr);

/* ---- ports.c ---- */

/*
 * A port that is free for all addresses and port spaces; *loan goes with it.  Calls weftd now and
 * then: its errors.  -EADDRNOTAVAIL: there is none.
 */
int port_borrow(uint16_t *port, uint32_t *loan);
void port_give_back(uint16_t port, uint32_t loan);
/* Is it one that was lent and is not in use?  Then it is taken. */
bool port_claim(uint16_t port);
/* There is a new weftd, which knows of no loan. */
void ports_forget(void);
void ports_forked_child(void);

/* ---- qp.c ---- */

int qp_to_connected(struct ident *id);
void qp_to_error(struct ident *id);
/* Attributes of the next state; mask is set. */
int qp_attributes(struct ident *id, struct ibv_qp_attr *attr, int *mask);

/* ---- mcast.c ---- */

/*
 * The program takes the event of that join: attaches the QP, if there is one, and fills the event
 * in, which becomes MULTICAST_ERROR if that fails.  NULL: it has been left meanwhile.
 */
struct join *join_take_event(struct ident *id, uint32_t number, struct rdma_cm_event *event);
/* The event is acknowledged; j may be gone afterwards. */
void join_ack_event(struct ident *id, struct join *j);
/* Frees them; the QP stays as it is. */
void joins_free(struct ident *id);

/* ---- event.c ---- */

/* For synchronous ids: waits for the next event and keeps it in id->event. */
int ident_complete(struct ident *id);
/* An event of id's own making. */
int ident_put_event(struct ident *id, int type, int status);
