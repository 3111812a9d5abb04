/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between a process and weftd: one struct proto_msg per SOCK_SEQPACKET packet, fds
 * beside it by SCM_RIGHTS, or data behind it where an op has some.  A call carries a cookie that
 * its one reply repeats; cookie 0 is one way and has no reply.  Fields that an op does not name are
 * 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	PROTO_VERSION = 4,
	PROTO_MAX_FDS = 5,
	PROTO_TIMEOUT_MS = 5000,
	PROTO_DATA_MAX = 512,
};

enum proto_op {
	/*
	 * Call: fds {network namespace}; pid and pid_ns as the process sees itself.  To publish
	 * again: flags PROTO_AGAIN, attach_id and hub_id as they were, fds {network namespace,
	 * segment, async eventfd, arena}, the last three or the arena missing if the process lost
	 * them.
	 * Reply: attach_id, hub_id, size of a segment, fds {fabric page, hub, segment, async, arena
	 * if PROTO_ARENA}.
	 */
	OP_ATTACH = 1,
	OP_LEASE,    /* reply: qpn, the first of the block */
	OP_CLAIM,    /* qpn: the process holds that block already, from an earlier weftd */
	OP_RETURN,   /* qpn */
	OP_FIND_QPN, /*
		      * qpn, or if that is 0 attach_id; reply: attach_id, pid, pid_ns, fds {segment,
		      * async, arena if    PROTO_ARENA, pidfd if    any}
		      */
	/* id, fds {eventfd}, or with PROTO_BACKING {file}; replaces one of the same id */
	OP_ADD_CHANNEL,
	OP_DEL_CHANNEL, /* id */
	OP_GET_CHANNEL, /* attach_id, id; reply: fds {eventfd or file} */
	OP_SET_TIMER,   /* one way: attach_id, id = QP index */
	OP_FIRE,        /* one way: attach_id, id = channel */
	/* The list of members in the process's segment has changed: entry id - 1, or if it is 0
	   all. */
	OP_MEMBERS,
	/* Below: also for a connection that is not attached. */
	OP_PING,
	OP_STATUS,   /* reply: size, fds {memfd with the text} */
	OP_STAY,     /* never leave for want of work */
	OP_SHUTDOWN, /* the reply comes first, the end of the connection tells that weftd left */
	/*
	 * Connections, of attached processes: data struct cm_call of cm/cm_proto.h.  Replies of
	 * BIND, LISTEN and CONNECT: id the communication id, qpn the port.
	 */
	/*
	 * id, fds {datagram socket}, no data: weftd gives the socket a name in the runtime
	 * directory, unless it has one of an earlier weftd.  -ENOENT: that is gone.
	 */
	OP_CM_ADD_CHANNEL,
	OP_CM_DEL_CHANNEL,  /* id; no data */
	OP_CM_WAKE_CHANNEL, /* id; no data: sends the channel's socket a byte */
	OP_CM_TAKEN,        /* one way: id the channel, qpn a handle or 0, size events; no data */
	OP_CM_BIND,
	OP_CM_LISTEN,
	OP_CM_CONNECT,
	OP_CM_ACCEPT,
	OP_CM_READY,
	OP_CM_REJECT,
	OP_CM_NOTIFY,
	OP_CM_DISCONNECT,
	OP_CM_MIGRATE,
	OP_CM_DESTROY,
	OP_CM_PUBLISH,
	OP_CM_LEND, /* no data; reply: qpn the first of the ports, size how many */
	OP_COUNT
};

enum proto_flags {
	PROTO_AGAIN = 1 << 0, /* OP_ATTACH: publishes again */
	PROTO_ARENA = 1 << 1, /* replies: an arena is among the fds */
};

/*
 * In the id of a channel: it is none, but a file of which the process shares memory
 * (pages/backing.h, pages/piece.h).
 */
#define PROTO_BACKING (1u << 31)

struct proto_msg {
	uint32_t op;      /* enum proto_op; a reply repeats it */
	uint32_t version; /* PROTO_VERSION of the sender; op and version keep their places */
	uint32_t cookie;
	int32_t status; /* replies: 0 or a negative errno */
	uint32_t attach_id;
	uint32_t hub_id;
	uint32_t id;
	uint32_t qpn;
	int32_t pid;
	uint32_t flags;
	uint64_t pid_ns; /* inode of a pid namespace */
	uint64_t size;
};

_Static_assert(sizeof(struct proto_msg) == 56, "no padding");

/* A received message and its fds; those taken are set to -1, the rest go by proto_close(). */
struct proto_in {
	struct proto_msg msg;
	int fds[PROTO_MAX_FDS];
	int n_fds;
	size_t len; /* of data; 0 but for the ops that have some */
	_Alignas(8) uint8_t data[PROTO_DATA_MAX];
};

/*
 * Sends one message with n_fds fds, never blocks, never raises SIGPIPE.  -EAGAIN: the other side
 * does not read; -EPIPE: it is gone.
 */
int proto_send(int sock, const struct proto_msg *msg, const int *fds, int n_fds);

/* The same with data behind the message, at most PROTO_DATA_MAX, and no fds. */
int proto_send_data(int sock, const struct proto_msg *msg, const void *data, size_t len);

/*
 * Receives one message without blocking; fds come CLOEXEC.  Returns 0, -EAGAIN none there,
 * -EPIPE the other side is gone, -EBADMSG not a message (wrong size, or too many fds), -EPROTO
 * another version (in->msg.version says which), -EMFILE no room for its fds (in->msg is valid).
 * In all cases but 0 no fds are left in *in.
 */
int proto_recv(int sock, struct proto_in *in);

/* The same, but waits as long as the socket does (SO_RCVTIMEO, then -EAGAIN); -EINTR. */
int proto_await(int sock, struct proto_in *in);

/* Takes fd number i out of *in, -1 if it is not there. */
int proto_take_fd(struct proto_in *in, int i);

/* Closes the fds that nobody took. */
void proto_close(struct proto_in *in);
