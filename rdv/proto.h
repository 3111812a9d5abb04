/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between a process and weftd, one per SOCK_SEQPACKET packet: a head, then the payload
 * that its op has, with fds beside it by SCM_RIGHTS.  A call carries a cookie that its one reply
 * repeats; cookie 0 is one way and has no reply.  A reply with a status other than 0 has no
 * payload.  How many bytes and fds go with an op stands in one table (proto_op()), against which
 * both sides hold what comes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PROTO_VERSION = 11,
	PROTO_MAX_FDS = 5,
	PROTO_TIMEOUT_MS = 5000,
	PROTO_PAYLOAD_MAX = 512,
};

/* Beside each op its payloads: struct of the call; struct of the reply.  And fds, in order. */
enum proto_op_number {
	/*
	 * proto_attach, fds {network namespace}; to publish again {network namespace, segment,
	 * async eventfd, arena}, the last three or the arena missing if the process lost them.
	 * proto_attached, fds {fabric page, hub, segment, async eventfd, arena if PROTO_ARENA}.
	 */
	OP_ATTACH = 1,
	OP_LEASE, /* ; proto_block, fds {the claim's socket} unless PROTO_UNCLAIMED */
	/*
	 * proto_block, fds {the claim's socket, if the process has it}; proto_block, fds {the same}
	 * unless PROTO_UNCLAIMED: the process holds it already, from an earlier weftd.  -EEXIST: it
	 * is another's by now.
	 */
	OP_CLAIM,
	OP_RETURN, /* proto_block */
	/*
	 * proto_find; proto_found, fds {segment, async, arena if PROTO_ARENA, pidfd if any}.
	 * -ENOENT: nobody, now; -EADDRNOTAVAIL: the number is not of this fabric.
	 */
	OP_FIND_QPN,
	OP_ADD_CHANNEL, /* proto_channel, fds {eventfd}; replaces one of the same id */
	OP_DEL_CHANNEL, /* proto_channel */
	OP_GET_CHANNEL, /* proto_peer_channel; , fds {eventfd} */
	/*
	 * Files of which the process shares memory (pages/backing.h, pages/piece.h).
	 *
	 * proto_backing, fds {file}; replaces one of the same id.
	 */
	OP_ADD_BACKING,
	OP_DEL_BACKING, /* proto_backing */
	OP_GET_BACKING, /* proto_peer_backing; , fds {file} */
	OP_SET_TIMER,   /* one way: proto_timer */
	OP_FIRE,        /* one way: proto_peer_channel */
	OP_MEMBERS,     /* proto_members: the list in the process's segment has changed */
	/* Below: also for a connection that is not attached. */
	OP_PING,     /* weftd brings files that have counters up to date */
	OP_STATUS,   /* ; proto_status, fds {memfd with the text} */
	OP_STAY,     /* never leave for want of work */
	OP_SHUTDOWN, /* the reply comes first, the end of the connection tells that weftd left */
	/*
	 * Connections, of attached processes.
	 *
	 * proto_channel, fds {datagram socket}: weftd gives the socket a name in the runtime
	 * directory, unless it has one of an earlier weftd.  -ENOENT: that is gone.
	 */
	OP_CM_ADD_CHANNEL,
	OP_CM_DEL_CHANNEL,  /* proto_channel */
	OP_CM_WAKE_CHANNEL, /* proto_channel: sends the channel's socket a byte */
	OP_CM_TAKEN,        /* one way: proto_cm_taken */
	/* The payloads of these calls are in cm/cm_proto.h. */
	OP_CM_BIND,       /* cm_bind_call; proto_cm_bound */
	OP_CM_LISTEN,     /* cm_listen_call */
	OP_CM_CONNECT,    /* cm_connect_call; proto_cm_connecting */
	OP_CM_ACCEPT,     /* cm_accept_call */
	OP_CM_READY,      /* cm_id_call */
	OP_CM_REJECT,     /* cm_reject_call */
	OP_CM_NOTIFY,     /* cm_id_call */
	OP_CM_DISCONNECT, /* cm_id_call */
	OP_CM_MIGRATE,    /* cm_migrate_call */
	OP_CM_DESTROY,    /* cm_id_call */
	OP_CM_PUBLISH,    /* cm_publish_call */
	OP_CM_LEND,       /* ; proto_cm_loan */
	OP_CM_RESOLVE,    /* cm_resolve_call */
	/*
	 * Files of management datagrams (mad/umad_page.h), also for a connection that is not
	 * attached, whose end ends its lanes.
	 *
	 * proto_umad_open; proto_umad_opened, fds {the program's end, page, lane, fabric page}.
	 * -ENODEV: no such device or port.
	 */
	OP_UMAD_OPEN,
	/*
	 * , fds {the program's end}; proto_umad_opened, fds {page, lane, fabric page}: for a
	 * process that was handed the file.  -EBADF: it is none.
	 */
	OP_UMAD_JOIN,
	OP_UMAD_REGISTER,   /* proto_umad_register; proto_umad_registered */
	OP_UMAD_UNREGISTER, /* proto_umad_agent */
	OP_UMAD_PKEY,       /* proto_umad_file */
	/*
	 * proto_umad_send, fds {memfd with the whole message, sealed}: of what is longer than a
	 * record.  It goes out behind all that is in the lane.
	 */
	OP_UMAD_SEND,
	/*
	 * proto_umad_fetch; , fds {memfd with the whole message}: of a record that is in the
	 * receive ring.  -ENOENT: it is not, any more.
	 */
	OP_UMAD_FETCH,
	/*
	 * proto_umad_open; , fds {the program's end}.  It is readable once the port's IsSM bit is
	 * that file's; -EAGAIN: another one has it, and the call did not want to wait.
	 */
	OP_ISSM_OPEN,
	/* A fabric's topology, for any connection.  -EOPNOTSUPP: it has none. */
	OP_NODE,    /* proto_node; proto_node_found, its device files are made.  -ENOENT */
	OP_TOPO,    /* proto_topo; proto_status, fds {memfd with the text} */
	OP_TOPO_DO, /* a console command, no NUL; proto_topo_done, fds {memfd with what it printed}
		     */
	/*
	 * Rules of faults to inject into packets, text without a NUL; none: no rules any more. Also
	 * for a connection that is not attached.  proto_fault; proto_faulted.
	 */
	OP_FAULT,
	/*
	 * UDP port 4791 (rdv/wire.h), of attached processes.
	 *
	 * proto_wire_join, fds {weftd's end of the hand-over pair}; to publish again {that end,
	 * both ends of the keeper}.  proto_wire_joined, fds {a socket for each family of its flags,
	 * both ends of the keeper}, none if its result is not 0 or if it was to publish again.
	 */
	OP_WIRE_JOIN,
	OP_COUNT
};

enum proto_flags {
	PROTO_AGAIN = 1 << 0, /* proto_attach, proto_wire_join: publishes again */
	PROTO_ARENA = 1 << 1, /* replies: an arena is among the fds */
	PROTO_WAIT = 1 << 2,  /* proto_umad_open, of OP_ISSM_OPEN */
	PROTO_REQ2 = 1 << 3,  /* proto_umad_register: it is REGISTER_AGENT2 */
	PROTO_IPV4 = 1 << 4,  /* proto_wire_joined: there is a socket of that family */
	PROTO_IPV6 = 1 << 5,
	PROTO_UNCLAIMED = 1 << 6, /* proto_block: there is no claim */
};

/* Sizes of the payloads in cm/cm_proto.h, less their private data, and where the length of that is.
 */
enum {
	PROTO_CM_ID = 4,
	PROTO_CM_BIND = 36,
	PROTO_CM_LISTEN = 16,
	PROTO_CM_RESOLVE = 56,
	PROTO_CM_CONNECT = 96,
	PROTO_CM_CONNECT_LEN = 93,
	PROTO_CM_ACCEPT = 48,
	PROTO_CM_ACCEPT_LEN = 45,
	PROTO_CM_REJECT = 8,
	PROTO_CM_REJECT_LEN = 6,
	PROTO_CM_MIGRATE = 8,
	PROTO_CM_PUBLISH = 88,
	PROTO_CM_PRIVATE = 224, /* the most private data */
};

struct proto_head {
	uint32_t op;      /* enum proto_op_number; a reply repeats it */
	uint32_t version; /* PROTO_VERSION of the sender; op and version keep their places */
	uint32_t cookie;
	int32_t status; /* replies: 0 or a negative errno */
};

/* ---- payloads ---- */

struct proto_attach {
	int32_t pid;        /* as the process sees itself */
	uint32_t flags;     /* PROTO_AGAIN */
	uint64_t pid_ns;    /* inode of its pid namespace */
	uint32_t attach_id; /* with PROTO_AGAIN: what it had, and whose hub */
	uint32_t hub_id;
	uint32_t node; /* number; -ENODEV: the topology has none; without one it does not count */
	uint32_t pad;
};

struct proto_attached {
	uint32_t attach_id;
	uint32_t hub_id;
	uint64_t segment_size;
	uint32_t flags; /* PROTO_ARENA */
	uint32_t pad;
};

/* A block of QP numbers: those of a claim (rdv/claim.h). */
struct proto_block {
	uint32_t first_qpn;
	uint32_t flags; /* PROTO_UNCLAIMED */
};

struct proto_find {
	uint32_t qpn; /* 0: by attach_id */
	uint32_t attach_id;
};

struct proto_found {
	uint32_t attach_id;
	int32_t pid;     /* as it sees itself */
	uint64_t pid_ns; /* inode */
	uint32_t flags;  /* PROTO_ARENA */
	uint32_t pad;
};

/* Of the process that asks. */
struct proto_channel {
	uint32_t id;
};

struct proto_peer_channel {
	uint32_t attach_id;
	uint32_t id; /* 0: of async events */
};

/* Of the process that asks. */
struct proto_backing {
	uint32_t id; /* not 0 */
};

struct proto_peer_backing {
	uint32_t attach_id;
	uint32_t id;
};

struct proto_timer {
	uint32_t attach_id;
	uint32_t index; /* of a QP, or with SEG_TIMER_CQ of a CQ */
};

struct proto_members {
	uint32_t entry; /* number of the one that changed, from 1; 0: all */
};

struct proto_status {
	uint64_t size; /* of the text */
};

struct proto_cm_taken {
	uint32_t channel;
	uint32_t handle; /* of a connection request, 0: none */
	uint32_t events; /* that left the channel */
};

struct proto_cm_bound {
	uint32_t port;
};

struct proto_cm_connecting {
	uint32_t comm_id; /* ours */
	uint32_t port;
};

/* Ports that are lent. */
struct proto_cm_loan {
	uint32_t first;
	uint32_t count;
};

enum { PROTO_DEVICE_NAME = 64, PROTO_UMAD_REQ = 40, PROTO_UMAD_RECORD = 336 };

struct proto_umad_open {
	char device[PROTO_DEVICE_NAME]; /* ends in a NUL */
	uint32_t node;
	uint32_t port;  /* from 1; 0 of a switch */
	uint32_t flags; /* PROTO_WAIT */
	uint32_t pad;
};

struct proto_umad_opened {
	uint64_t file; /* inode of the program's end */
	uint32_t lane; /* the number of the process's, from 1 */
	uint32_t port; /* the same, in the fabric page */
};

struct proto_umad_file {
	uint64_t file;
};

struct proto_umad_register {
	uint64_t file;
	uint32_t flags; /* PROTO_REQ2 */
	uint32_t pad;
	uint8_t req[PROTO_UMAD_REQ]; /* struct umad_reg_req or _req2 of mad/umad_abi.h */
};

/* Also of a registration that was refused. */
struct proto_umad_registered {
	int32_t result; /* 0 or a negative errno */
	uint32_t id;
	uint32_t flags; /* as REGISTER_AGENT2 gives them back */
	uint32_t pad;
};

struct proto_umad_agent {
	uint64_t file;
	uint32_t id;
	uint32_t pad;
};

struct proto_umad_send {
	uint64_t file;
	uint32_t lane;
	uint32_t pad;
	uint8_t record[PROTO_UMAD_RECORD]; /* struct umad_record of mad/ring.h */
};

struct proto_umad_fetch {
	uint64_t file;
	uint64_t message; /* of the record */
};

/* Id, description, GUID (0x...) or number of a node. */
struct proto_node {
	char name[128];
};

struct proto_node_found {
	uint32_t number;
	uint32_t is_switch;
	uint32_t files_errno; /* why its device files could not be written, or 0 */
};

enum proto_topo_form { PROTO_TOPO_NET, PROTO_TOPO_JSON };

/* The topology as it is now. */
struct proto_topo {
	uint32_t form; /* enum proto_topo_form */
};

/* How a command ended: what it printed, or if error is not 0 the reason. */
struct proto_topo_done {
	int32_t error;   /* 0 or -errno; above 0: it was done, but that errno kept it from NAME.topo
			  */
	uint32_t wait_s; /* before the next command */
	uint64_t size;   /* of the text */
};

enum { PROTO_FAULT_TEXT = 480, PROTO_FAULT_ALL = 0, PROTO_FAULT_SELF = -1 };

/* As much of the text is sent as there is. */
struct proto_fault {
	int32_t pid; /* of a process, as it or weftd sees it; or one of the above */
	char text[PROTO_FAULT_TEXT];
};

struct proto_faulted {
	uint32_t processes; /* that have the rules now */
};

struct proto_wire_join {
	uint32_t flags; /* PROTO_AGAIN */
	uint32_t index; /* with PROTO_AGAIN: what it has */
};

enum { PROTO_WIRE_WHY = 240 };

/* Also of a join that was refused. */
struct proto_wire_joined {
	int32_t result; /* 0 or a negative errno; -EAGAIN: those who have the port come soon */
	uint32_t index; /* of the sockets, in their group */
	uint32_t flags; /* PROTO_IPV4, PROTO_IPV6 */
	uint32_t pad;
	char why[PROTO_WIRE_WHY]; /* not 0: for people; ends in a NUL */
};

union proto_payload {
	struct proto_attach attach;
	struct proto_attached attached;
	struct proto_block block;
	struct proto_find find;
	struct proto_found found;
	struct proto_channel channel;
	struct proto_peer_channel peer_channel;
	struct proto_backing backing;
	struct proto_peer_backing peer_backing;
	struct proto_timer timer;
	struct proto_members members;
	struct proto_status status;
	struct proto_cm_taken cm_taken;
	struct proto_cm_bound cm_bound;
	struct proto_cm_connecting cm_connecting;
	struct proto_cm_loan cm_loan;
	struct proto_umad_open umad_open;
	struct proto_umad_opened umad_opened;
	struct proto_umad_file umad_file;
	struct proto_umad_register umad_register;
	struct proto_umad_registered umad_registered;
	struct proto_umad_agent umad_agent;
	struct proto_umad_send umad_send;
	struct proto_umad_fetch umad_fetch;
	struct proto_node node;
	struct proto_node_found node_found;
	struct proto_topo topo;
	struct proto_topo_done topo_done;
	struct proto_fault fault;
	struct proto_faulted faulted;
	struct proto_wire_join wire_join;
	struct proto_wire_joined wire_joined;
	uint8_t bytes[PROTO_PAYLOAD_MAX];
};

_Static_assert(sizeof(struct proto_head) == 16, "no padding");
_Static_assert(sizeof(struct proto_attach) == 32 && sizeof(struct proto_attached) == 24 &&
		       sizeof(struct proto_found) == 24,
	"no padding");

/* ---- the table of ops ---- */

/* How many bytes of payload and how many fds a message may have. */
struct proto_shape {
	uint16_t least, most;
	uint8_t least_fds, most_fds;
	uint8_t len_at; /* offset of the byte that says how many follow the least ones; 0: none */
};

struct proto_op {
	const char *name;
	struct proto_shape call, reply;
};

/* NULL: no such op. */
const struct proto_op *proto_op(uint32_t op);

/* How long a payload says that it is, which was found to be from s->least to s->most bytes. */
static inline size_t proto_said_size(
	const struct proto_shape *s, size_t len, const uint8_t *payload)
{
	return s->len_at ? (size_t)s->least + payload[s->len_at] : len;
}

static inline bool proto_size_fits(const struct proto_shape *s, size_t len)
{
	return len >= s->least && len <= s->most;
}

static inline bool proto_fds_fit(const struct proto_shape *s, int n_fds)
{
	return n_fds >= s->least_fds && n_fds <= s->most_fds;
}

/* ---- sending and receiving ---- */

/* A message to be sent; payload and fds are borrowed. */
struct proto_out {
	struct proto_head head;
	const void *payload;
	size_t len;
	const int *fds;
	int n_fds;
};

/* A call of that op, without fds.  payload has the size of the op's struct; NULL if it has none. */
struct proto_out proto_call(uint32_t op, const void *payload);

/* A received message and its fds; those taken are set to -1, the rest go by proto_close(). */
struct proto_in {
	struct proto_head head;
	int fds[PROTO_MAX_FDS];
	int n_fds;
	size_t len; /* of the payload; what lies behind it is undefined */
	union proto_payload payload;
};

/*
 * Sends one message, never blocks, never raises SIGPIPE.  -EAGAIN: the other side does not read;
 * -EPIPE: it is gone.
 */
int proto_send(int sock, const struct proto_out *out);

/*
 * Receives one message without blocking; fds come CLOEXEC.  Returns 0, -EAGAIN none there,
 * -EPIPE the other side is gone, -EBADMSG not a message (too short, too long, or too many fds),
 * -EPROTO another version (in->head.version says which), -EMFILE no room for its fds (in->head is
 * valid).  In all cases but 0 no fds are left in *in.  The caller holds it against the op's shape.
 */
int proto_recv(int sock, struct proto_in *in);

/* The same, but waits as long as the socket does (SO_RCVTIMEO, then -EAGAIN); -EINTR. */
int proto_await(int sock, struct proto_in *in);

/* Takes fd number i out of *in, -1 if it is not there. */
int proto_take_fd(struct proto_in *in, int i);

/* Closes the fds that nobody took. */
void proto_close(struct proto_in *in);
