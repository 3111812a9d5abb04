/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process and weftd tell each other about connections: the payload of the OP_CM_* calls
 * of rdv/proto.h, and of the events that weftd sends into the socket of an event channel, where a
 * single byte means that the process has an event of its own making.  Host order but for addresses.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	CM_PRIV_MAX = 224, /* private data of any message, whole */
	CM_WINDOW = 64,    /* events of a channel that may lie unread in its socket */
	CM_ACK_EVERY = 4,  /* so many of them make one acknowledgement */
};

/* Handles of ids that weftd makes, for connection requests, have this bit; ours have not. */
#define CM_HANDLE_PASSIVE 0x80000000u

/* An address in the form of a GID: IPv4 as ::ffff:a.b.c.d. */
struct cm_addr {
	uint8_t gid[16];
	uint16_t port;  /* host order */
	uint8_t family; /* 4 or 6, 0: none */
	uint8_t is_gid; /* the program gave, and is shown, a sockaddr_ib */
};

enum cm_flags {
	CM_F_REUSEADDR = 1 << 0,
	CM_F_AFONLY = 1 << 1,
	CM_F_DATAGRAM = 1 << 2, /* UD: SIDR instead of a connection */
	CM_F_HAS_QP = 1 << 3,   /* events only: weftd waits for the user's RTU */
	CM_F_LENT = 1 << 4,     /* BIND: the port is one that was lent to the caller */
};

/* The service that a connection is for, as a REQ names it. */
enum cm_transport {
	CM_RC = 0,
	CM_XRC = 3,
};

struct cm_params {
	uint32_t qpn;
	uint32_t sq_psn, rq_psn; /* events: with which the id starts to send and to receive */
	uint32_t qkey;
	uint32_t ece_vendor, ece_options;
	uint32_t flow_label;                          /* of packets both ways */
	uint8_t responder_resources, initiator_depth; /* as the receiver of the struct sees them */
	uint8_t flow_control;
	uint8_t retry_count, rnr_retry;
	uint8_t srq;
	uint8_t mtu;         /* enum ibv_mtu */
	uint8_t ack_timeout; /* of a QP, encoded */
	uint8_t tclass;
	uint8_t priv_len;
	uint8_t transport; /* enum cm_transport */
	uint8_t pad;
};

/* ---- the payloads of the calls, OP_CM_* of rdv/proto.h, which has their sizes ---- */

/* READY, NOTIFY, DISCONNECT, DESTROY. */
struct cm_id_call {
	uint32_t handle;
};

struct cm_bind_call {
	uint32_t handle, channel;
	uint32_t flags; /* enum cm_flags */
	uint16_t ps;    /* enum rdma_port_space */
	uint16_t pad;
	struct cm_addr src;
};

/*
 * Find the way to dst, which is no address of this host.  Without a route the call fails, by the
 * kernel's errno; else the answer is an event, ADDR_RESOLVED with src filled in, or ADDR_ERROR:
 * -ETIMEDOUT the next hop did not answer; -EHOSTUNREACH it could not be asked for.
 */
struct cm_resolve_call {
	uint32_t handle, channel;
	int32_t timeout_ms;
	uint32_t ifindex;   /* of a link-local dst; 0: any */
	struct cm_addr src; /* family 0: the kernel's choice */
	struct cm_addr dst;
};

struct cm_listen_call {
	uint32_t handle, channel;
	uint32_t flags;
	int32_t backlog; /* 0: the most there is */
};

struct cm_connect_call {
	uint32_t handle, channel;
	uint32_t flags;
	uint16_t ps;
	uint16_t pad;
	struct cm_addr src, dst;
	struct cm_params param;
	uint8_t priv[CM_PRIV_MAX]; /* sent up to param.priv_len */
};

struct cm_accept_call {
	uint32_t handle, channel;
	struct cm_params param;
	uint8_t priv[CM_PRIV_MAX]; /* sent up to param.priv_len */
};

struct cm_reject_call {
	uint32_t handle;
	uint16_t reason; /* 0: the consumer's */
	uint8_t priv_len;
	uint8_t pad;
	uint8_t priv[CM_PRIV_MAX]; /* sent up to priv_len */
};

struct cm_migrate_call {
	uint32_t handle, channel;
};

/* What an earlier weftd knew of an id. */
struct cm_publish_call {
	uint32_t handle, channel;
	uint32_t flags;
	int32_t backlog;
	uint32_t local_comm, remote_comm;
	uint32_t qpn, remote_qpn;
	uint16_t ps;
	uint8_t state; /* enum cm_state */
	uint8_t pad;
	uint32_t pad2;
	uint64_t remote_guid;
	struct cm_addr src, dst;
};

/* Flags of an event. */
enum cm_event_flags {
	CM_E_ACK = 1 << 0,   /* tell weftd with OP_CM_TAKEN that this one was taken */
	CM_E_LOCAL = 1 << 1, /* the process's own */
};

/* An event: the datagram of a channel.  type is an enum rdma_cm_event_type. */
struct cm_event {
	uint32_t type;
	int32_t status;
	uint32_t handle;
	uint32_t listen_handle; /* CONNECT_REQUEST: of the listener; handle is a new one */
	uint32_t flags;
	uint32_t local_comm, remote_comm;
	uint16_t ps;
	uint16_t datagram;
	uint32_t join;           /* MULTICAST_*: the number of the join, else 0 */
	uint64_t remote_guid;    /* of the peer's adapter, where there is a connection */
	struct cm_addr src, dst; /* CONNECT_REQUEST: ours and theirs */
	struct cm_params param;
	uint8_t priv[CM_PRIV_MAX]; /* up to param.priv_len */
};

/* Milliseconds of an encoded timeout. */
static inline uint32_t cm_timeout_ms(uint8_t encoded)
{
	return encoded > 8 ? 1u << (encoded - 8) : 1;
}

/* The longest time of waiting after the end, encoded: whatever a peer says. */
enum { CM_TIMEWAIT_LONGEST = 20 };

/* Milliseconds that an id waits after its end whose path has that ack timeout, encoded. */
static inline uint32_t cm_timewait_ms(uint8_t ack_timeout)
{
	return cm_timeout_ms(ack_timeout < CM_TIMEWAIT_LONGEST ? ack_timeout : CM_TIMEWAIT_LONGEST);
}

static inline size_t cm_connect_size(const struct cm_connect_call *c)
{
	return offsetof(struct cm_connect_call, priv) + c->param.priv_len;
}

static inline size_t cm_accept_size(const struct cm_accept_call *c)
{
	return offsetof(struct cm_accept_call, priv) + c->param.priv_len;
}

static inline size_t cm_reject_size(const struct cm_reject_call *c)
{
	return offsetof(struct cm_reject_call, priv) + c->priv_len;
}

static inline size_t cm_event_size(const struct cm_event *e)
{
	return offsetof(struct cm_event, priv) + e->param.priv_len;
}
