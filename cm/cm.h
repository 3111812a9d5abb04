/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication manager: ids owned by processes, their addresses and ports, and the IBA
 * state machine that connects them by MADs.  It runs in weftd, one for each fabric.  One thread,
 * nothing blocks; time, MADs and the way to the owners are the environment's.
 *
 * Functions return 0 or a negative errno.  An id is named by its owner's attach id and a handle.
 */
#pragma once

#include <stdbool.h>

#include "cm/cm_proto.h"
#include "mad/mad.h"
#include "wire/cm_msg.h"

enum cm_state {
	CM_IDLE,
	CM_LISTEN,
	CM_REQ_SENT,
	CM_REQ_RCVD, /* the consumer has to accept or reject */
	CM_REP_SENT,
	CM_REP_RCVD, /* the consumer has to say RTU or reject */
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD, /* the consumer has to disconnect, too */
	CM_TIMEWAIT,
	CM_SIDR_REQ_SENT,
	CM_SIDR_REQ_RCVD,
	CM_ENDED, /* rejected or timed out */
	CM_STATE_COUNT
};

enum {
	CM_BUCKETS = 1 << 14,
	CM_PEER_BUCKETS = 1 << 10,
	CM_BACKLOG_MAX = 1024,
	CM_IDS_MAX = 1 << 20,       /* of all processes */
	CM_HALF_OPEN_MAX = 1 << 14, /* requests of one other host, accepted or not yet */
	CM_ANSWERS = 256,
	CM_EPOCH_BITS = 4, /* of communication ids */
	CM_RETRIES = 15,
	CM_TIMEOUT = 20,     /* of a message, encoded: 4.096 us << 20 */
	CM_MRA_TIMEOUT = 24, /* what a consumer gets, and a peer's at most */
	CM_LIFETIME = 18,    /* of a packet, encoded */
	CM_ACK_DELAY = 15,
	CM_RECENT = 32,
	CM_EPHEMERAL_FIRST = 32768, /* free ports are looked for here, as the kernel does */
	CM_EPHEMERAL_COUNT = 28232,
	CM_LOAN = 8, /* ports lent at a time */
	CM_LOANS = CM_EPHEMERAL_COUNT / CM_LOAN,
};

struct cm;

/* An address in use, embedded in its id. */
struct cm_bind {
	struct cm_bind *next; /* same bucket of cm.binds */
	bool bound;
	uint16_t ps;
	uint32_t flags;
	struct cm_addr addr;
};

/* What ids are found by: cm/tables.h. */
enum cm_table { CM_BY_HANDLE, CM_BY_COMM, CM_BY_REMOTE, CM_BY_REMOTE_QP, CM_TABLES };

struct cm_link {
	struct cm_id *next, **link; /* link NULL: it is not in the table */
};

struct cm_id {
	struct deadline timewait; /* first member */
	struct cm *cm;
	uint32_t owner, handle, channel;
	uint8_t state;
	uint8_t taken;     /* passive: its event is known to have been taken */
	uint8_t accepted;  /* passive: by its program, which hears of it from now on */
	uint8_t late;      /* an MRA was sent or received for this step */
	uint8_t local_ack; /* ack timeout of our path, encoded */
	uint8_t transport; /* enum cm_transport */
	uint16_t ps;
	uint32_t flags;
	struct cm_bind bind;
	int32_t backlog;        /* of a listener: how many more requests */
	uint32_t listen_handle; /* of a request: whose */
	struct cm_addr src, dst;
	uint32_t local_comm, remote_comm;
	struct mad_addr addr;
	uint64_t tid;      /* of its request, and of what answers that */
	uint64_t dreq_tid; /* of the peer's DREQ */
	uint64_t service_id;
	uint64_t remote_guid;
	uint32_t qpn, remote_qpn;
	uint32_t psn; /* with which the peer starts to send */
	struct mad_send *pending;
	struct cm_peer *half_open; /* a request of another host: where it is counted */
	struct cm_link in[CM_TABLES];
	struct cm_id *next, *prev; /* all of them */
};

struct cm_env {
	/* Gives an event to the channel of a process. */
	void (*event)(void *arg, uint32_t owner, uint32_t channel, struct cm_event *e, size_t len);
	/* Is that GID one of ours? */
	bool (*is_local)(void *arg, const uint8_t gid[16]);
	uint64_t (*now)(void *arg);
	uint32_t (*random)(void *arg);
	void *arg;
};

enum cm_count {
	CM_N_SENT,
	CM_N_RECEIVED,
	CM_N_DUPLICATE,
	CM_N_MALFORMED,
	CM_N_UNEXPECTED,    /* in no state that awaits it */
	CM_N_WRONG_ADDRESS, /* a request whose IP header names others than its packet */
	CM_N_NO_LISTENER,
	CM_N_BACKLOG_FULL,
	CM_N_TOO_MANY, /* half open, of one host */
	CM_N_STALE,
	CM_N_TIMEOUT,
	CM_N_NO_MEMORY,
	CM_N_COUNT
};

/* A port whose listener has just gone. */
struct cm_recent {
	uint16_t port;  /* of whichever port space */
	uint32_t owner; /* 0: gone, too */
	uint64_t when;  /* ns, 0: none */
};

/* What a request of another host was answered with: cm/answers.h. */
struct cm_answer {
	uint64_t until; /* ns */
	uint64_t tid;
	uint32_t remote_comm;
	uint8_t gid[16];
	uint8_t mad[MAD_SIZE];
};

struct cm {
	struct cm_env env;
	struct mad_agent agent;
	uint64_t ca_guid; /* host order */
	uint32_t epoch;   /* distinguishes our comm ids from those of an earlier weftd */
	uint64_t started; /* ns */
	bool took_over;   /* the earlier one was killed: its listeners are published again */
	uint64_t salt;    /* of all hashes */
	uint32_t next_handle;
	uint32_t next_port;
	struct deadlines deadlines;
	struct cm_id *ids;
	uint32_t n_ids;
	uint64_t linger_until; /* what ids have left may come for so long; ns, 0: nothing does */
	struct cm_id *tables[CM_TABLES][CM_BUCKETS];
	struct cm_bind *binds[CM_BUCKETS];
	struct cm_peer *peers[CM_PEER_BUCKETS];
	uint32_t n_peers; /* hosts that have requests half open */
	struct cm_answer answers[CM_ANSWERS];
	uint32_t borrower[CM_LOANS]; /* of each block of CM_LOAN ports, 0: nobody */
	uint32_t next_loan;
	struct held *held; /* requests that came too early */
	unsigned n_held;
	struct deadlines held_until;
	struct cm_recent recent[CM_RECENT];
	unsigned next_recent;
	uint64_t counts[CM_N_COUNT];
};

/* env, ca_guid, epoch and took_over are filled in; registers with the port. */
int cm_init(struct cm *cm, struct mad_port *port);
void cm_end(struct cm *cm);

/*
 * Reserves call->src, whose port may be 0: then *port is one that is free.  -EADDRINUSE;
 * -EINVAL: bound already.
 */
int cm_bind(struct cm *cm, uint32_t owner, const struct cm_bind_call *call, uint16_t *port);

/*
 * Lends the owner CM_LOAN ports from *first, for ids that it binds by itself and that become known
 * here when they connect.  Nobody else gets them while the owner lives.  -EADDRNOTAVAIL.
 */
int cm_lend(struct cm *cm, uint32_t owner, uint16_t *first);

/* A bound id waits for requests.  -EINVAL, -EADDRINUSE. */
int cm_listen(struct cm *cm, uint32_t owner, const struct cm_listen_call *call);

/*
 * Sends REQ, or SIDR_REQ, from src to dst; an id that is not bound gets a free port.
 * *local_comm: its communication id.  -EINVAL wrong state, -EHOSTUNREACH, -ENOMEM.
 */
int cm_connect(struct cm *cm, uint32_t owner, const struct cm_connect_call *call,
	uint32_t *local_comm, uint16_t *port);

/* Answers a request: REP or SIDR_REP.  -EINVAL wrong state, or the request has gone. */
int cm_accept(struct cm *cm, uint32_t owner, const struct cm_accept_call *call);

/* Answers a REP: the connection is there.  -EINVAL wrong state, -ECONNRESET it is gone. */
int cm_ready(struct cm *cm, uint32_t owner, uint32_t handle);

/* Refuses a request or a REP.  -EINVAL wrong state, or it has gone. */
int cm_reject(struct cm *cm, uint32_t owner, const struct cm_reject_call *call);

/* Data has come: RTU or not, the connection is there.  -EINVAL. */
int cm_notify(struct cm *cm, uint32_t owner, uint32_t handle);

/* Sends DREQ or DREP.  -EINVAL: not connected. */
int cm_disconnect(struct cm *cm, uint32_t owner, uint32_t handle);

/* Events go to another channel from now on; an id that does not exist yet is none of ours. */
int cm_migrate(struct cm *cm, uint32_t owner, uint32_t handle, uint32_t channel);

/* Ends an id, telling its peer.  An unknown one: 0. */
int cm_destroy(struct cm *cm, uint32_t owner, uint32_t handle);

/* Takes up an id of an earlier weftd as its owner describes it.  -EEXIST, -EINVAL. */
int cm_publish(struct cm *cm, uint32_t owner, const struct cm_publish_call *call);

/* The owner has taken the event of a request. */
void cm_taken(struct cm *cm, uint32_t owner, uint32_t handle);

/* A channel is gone, with all ids that report to it. */
void cm_channel_gone(struct cm *cm, uint32_t owner, uint32_t channel);

/* A process is gone. */
void cm_owner_gone(struct cm *cm, uint32_t owner);

/* Is there an id, or may a message to one that ended still come? */
bool cm_any(const struct cm *cm);

/* Sees to what has waited long enough; when that is, 0 never. */
void cm_run(struct cm *cm);
uint64_t cm_next(const struct cm *cm);

const char *cm_count_name(enum cm_count which);
