/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpma: access to the (persistent) memory of another process or machine over RDMA.
 *
 * This is the newest API (releases 1.0 to 1.3 of librpma) together with what earlier releases had
 * and later ones dropped; those functions are at the end and are deprecated.  librpma(7) explains
 * the whole; the section names below are those of its manual pages.
 *
 * Conventions that hold for every function unless its comment says otherwise:
 * - It returns 0, or one of the negative RPMA_E_* below; it never touches what its out parameters
 *   point to when it fails.
 * - An object or an out parameter that is NULL is RPMA_E_INVAL; only that is not repeated below.
 * - RPMA_E_PROVIDER is a refusal of libibverbs or librdmacm; the log has the errno in words.
 * - Allocating functions can fail with RPMA_E_NOMEM.
 * - X_delete(struct X **p): *p == NULL is fine and returns 0; *p is NULL afterwards, also on
 * failure.
 * - Every function may be called from several threads at once, on the same object too, except that
 *   nobody may use an object while or after it is deleted.
 * - Sizes, lengths and offsets are bytes.
 */
#ifndef LIBRPMA_H
#define LIBRPMA_H 1

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors: librpma(7) ---- */

#define RPMA_W_WAIT_FOR_COMPLETION (1) /* not used */

#define RPMA_E_UNKNOWN             (-100000)
#define RPMA_E_NOSUPP              (-100001) /* not supported */
#define RPMA_E_PROVIDER            (-100002) /* libibverbs or librdmacm refused */
#define RPMA_E_NOMEM               (-100003) /* out of memory */
#define RPMA_E_INVAL               (-100004) /* invalid argument */
#define RPMA_E_NO_COMPLETION       (-100005) /* no completion is there */
#define RPMA_E_NO_EVENT            (-100006) /* no event is there */
#define RPMA_E_AGAIN               (-100007) /* temporary; try again */
#define RPMA_E_SHARED_CHANNEL      (-100008) /* the completion channel is shared */
#define RPMA_E_NOT_SHARED_CHNL     (-100009) /* the completion channel is not shared */

/* The text of an error code; never NULL. */
const char *rpma_err_2str(int ret);

/* ---- picking a device: rpma_peer(3) ---- */

#define RPMA_DEFAULT_TIMEOUT_MS 1000

enum rpma_util_ibv_context_type {
	RPMA_UTIL_IBV_CONTEXT_LOCAL, /* the device that owns the address */
	RPMA_UTIL_IBV_CONTEXT_REMOTE /* the device through which the address is reached */
};

/*
 * The device of an IPv4 or IPv6 address or host name.  The context belongs to librdmacm and lives
 * as long as the process.  INVAL: unknown type.  PROVIDER: no such address, no device for it.
 */
int rpma_utils_get_ibv_context(
	const char *addr, enum rpma_util_ibv_context_type type, struct ibv_context **ibv_ctx_ptr);

/* Sets *is_odp_capable to 1 if RC reads and writes may use on-demand memory, else 0.  PROVIDER. */
int rpma_utils_ibv_context_is_odp_capable(struct ibv_context *ibv_ctx, int *is_odp_capable);

/* ---- peer configuration: rpma_peer_cfg(3) ---- */

struct rpma_peer_cfg;

/* A new one: direct write to pmem is false. */
int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr);
int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr);

/* Declares whether a finished RDMA write followed by a flush is durable on that peer's platform. */
int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported);
int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported);

/* Writes the descriptor, rpma_peer_cfg_get_descriptor_size() bytes, for the other side. */
int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc);
/* Always 1. */
int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size);
/* INVAL: desc_size is 0 or the byte is neither 0 nor 1.  Bytes behind the first are ignored. */
int rpma_peer_cfg_from_descriptor(
	const void *desc, size_t desc_size, struct rpma_peer_cfg **pcfg_ptr);

/* ---- peer: rpma_peer(3) ---- */

struct rpma_peer;

/*
 * A protection domain on that device, which everything else is made in.  NOMEM; PROVIDER; UNKNOWN:
 * the device refused without an errno.
 */
int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr);
/* PROVIDER: something made in it still exists. */
int rpma_peer_delete(struct rpma_peer **peer_ptr);

/* ---- memory regions: rpma_mr(3) ---- */

struct rpma_mr_local;
struct rpma_mr_remote;

#define RPMA_MR_USAGE_READ_SRC              (1 << 0)
#define RPMA_MR_USAGE_READ_DST              (1 << 1)
#define RPMA_MR_USAGE_WRITE_SRC             (1 << 2)
#define RPMA_MR_USAGE_WRITE_DST             (1 << 3)
#define RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY (1 << 4)
#define RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT (1 << 5)
#define RPMA_MR_USAGE_SEND                  (1 << 6)
#define RPMA_MR_USAGE_RECV                  (1 << 7)

/*
 * Registers [ptr, ptr+size) for the RPMA_MR_USAGE_* that are or'ed in usage; it must stay mapped
 * until rpma_mr_dereg().  INVAL: size or usage is 0, ptr is NULL, unknown bits.  PROVIDER.
 */
int rpma_mr_reg(
	struct rpma_peer *peer, void *ptr, size_t size, int usage, struct rpma_mr_local **mr_ptr);
/* PROVIDER. */
int rpma_mr_dereg(struct rpma_mr_local **mr_ptr);

/* Writes the descriptor, rpma_mr_get_descriptor_size() bytes, for the other side. */
int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc);
/* Always 21: address, size, key and usage, little endian. */
int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size);
/*
 * A remote region of the descriptor that its owner sent.  INVAL: desc_size < 21 (more is ignored),
 * or the usage in it is empty.  NOSUPP: it describes no possible region (size 0, beyond the address
 * space).
 */
int rpma_mr_remote_from_descriptor(
	const void *desc, size_t desc_size, struct rpma_mr_remote **mr_ptr);

/* Address and size, as registered, and the size that the descriptor has. */
int rpma_mr_get_ptr(const struct rpma_mr_local *mr, void **ptr);
int rpma_mr_get_size(const struct rpma_mr_local *mr, size_t *size);
int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size);
/* The RPMA_MR_USAGE_FLUSH_TYPE_* that the owner registered it for, or'ed. */
int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type);
int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr);

/*
 * Advises the device about [offset, offset+len) of a region; advice and flags as ibv_advise_mr(3).
 * NOSUPP; INVAL: bad advice or flags, out of the region, memory that is not mapped; PROVIDER.
 */
int rpma_mr_advise(struct rpma_mr_local *mr, size_t offset, size_t len, int advice, uint32_t flags);

/* ---- shared receive queues: rpma_srq(3) ---- */

struct rpma_srq;
struct rpma_srq_cfg;
struct rpma_cq;

/* A new one: 20 entries in the receive queue, 20 in its completion queue. */
int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr);
int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size);
int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size);
/* 0: the SRQ has no completion queue; its receives complete in those of the connections. */
int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size);
int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size);

/* cfg may be NULL: the defaults.  PROVIDER. */
int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr);
/* PROVIDER: a connection still uses it. */
int rpma_srq_delete(struct rpma_srq **srq_ptr);
/*
 * Posts a receive for any connection of the SRQ.  dst may be NULL if offset and len are 0.
 * INVAL: not within dst, len above 4 GiB - 1.  PROVIDER: the queue is full.
 */
int rpma_srq_recv(struct rpma_srq *srq, struct rpma_mr_local *dst, size_t offset, size_t len,
	const void *op_context);
/* Its own completion queue, NULL if it has none. */
int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr);

/* ---- connection configuration: rpma_conn_cfg(3) ---- */

struct rpma_conn_cfg;

/* A new one: 1000 ms, cq 10, no rcq, sq 10, rq 10, own channels, no SRQ. */
int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr);
int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr);
/* Time to resolve the address and the route of a connection, each.  INVAL: negative. */
int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms);
int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms);
/* Entries of the main completion queue; what is above INT_MAX counts as INT_MAX. */
int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size);
int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size);
/* Entries of a completion queue for receives alone; 0: they complete in the main one. */
int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size);
int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size);
int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size);
int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size);
int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size);
int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size);
/* true: both completion queues share one channel; then rpma_conn_wait() waits for them. */
int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared);
int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared);
/* The SRQ must outlive the connections made with it. */
int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq);
int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr);

/* ---- connections: rpma_conn(3) ---- */

struct rpma_conn;
struct rpma_conn_req;
struct rpma_ep;

struct rpma_conn_private_data {
	void *ptr;
	uint8_t len;
};

enum rpma_conn_event {
	RPMA_CONN_UNDEFINED = -1,
	RPMA_CONN_ESTABLISHED, /* ready */
	RPMA_CONN_CLOSED,      /* by the peer, or our disconnect is done; also when the peer died */
	RPMA_CONN_LOST,        /* the connect failed, or the device is gone */
	RPMA_CONN_REJECTED,    /* the peer refused, or nobody listens */
	RPMA_CONN_UNREACHABLE  /* nobody answered */
};

/* The text of an event; never NULL. */
const char *rpma_utils_conn_event_2str(enum rpma_conn_event conn_event);

/*
 * Starts a connection: finds the peer and makes the queues.  cfg may be NULL: the defaults.  May
 * block for the configured timeout, twice.  INVAL: a shared channel and an SRQ with its own
 * completion queue.  PROVIDER: no such address, peer is on another device, more than the device
 * has.
 */
int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
	const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);
/* Gives up; an incoming request is rejected by that.  PROVIDER. */
int rpma_conn_req_delete(struct rpma_conn_req **req_ptr);
/*
 * Sends or accepts the request.  Always consumes *req_ptr and sets it to NULL.  pdata may be NULL;
 * up to 56 bytes go with a request, 196 with the answer.  The outcome is an event of the
 * connection. INVAL: pdata without ptr or len.  PROVIDER.
 */
int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
	const struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr);
/* As rpma_recv(), before the connection exists; dst may not be NULL. */
int rpma_conn_req_recv(struct rpma_conn_req *req, struct rpma_mr_local *dst, size_t offset,
	size_t len, const void *op_context);
/* What came with an incoming request, valid as long as req; {NULL, 0} if nothing. */
int rpma_conn_req_get_private_data(
	const struct rpma_conn_req *req, struct rpma_conn_private_data *pdata);

/* Listens at an address (or host name) and port.  PROVIDER: not ours, or in use. */
int rpma_ep_listen(
	struct rpma_peer *peer, const char *addr, const char *port, struct rpma_ep **ep_ptr);
/* PROVIDER. */
int rpma_ep_shutdown(struct rpma_ep **ep_ptr);
/* Readable when a request waits; make it O_NONBLOCK to make rpma_ep_next_conn_req() so. */
int rpma_ep_get_fd(const struct rpma_ep *ep, int *fd);
/*
 * Takes the next incoming request; blocks.  cfg may be NULL: the defaults.  NO_EVENT: none is there
 * (O_NONBLOCK).  INVAL: another event than a request; or as rpma_conn_req_new().  PROVIDER.
 */
int rpma_ep_next_conn_req(
	struct rpma_ep *ep, const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr);

/* Readable when an event waits; make it O_NONBLOCK to make rpma_conn_next_event() so. */
int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd);
/* Takes the next event; blocks.  NO_EVENT: none is there (O_NONBLOCK).  UNKNOWN: an event without
 * a name here.  PROVIDER. */
int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event);
/* What the peer sent when connecting, valid as long as conn; {NULL, 0} if nothing.  The side that
 * connected has it from RPMA_CONN_ESTABLISHED on. */
int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata);
/* Says what the peer's platform can do; without it a persistent flush is RPMA_E_NOSUPP. */
int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg);
/* Ends the connection, or answers that the peer ended it; the queues are flushed.  PROVIDER. */
int rpma_conn_disconnect(struct rpma_conn *conn);
/* PROVIDER; the connection is gone all the same. */
int rpma_conn_delete(struct rpma_conn **conn_ptr);

/* The main completion queue; it lives as long as conn. */
int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr);
/* The one for receives; NULL if they have none of their own. */
int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr);
int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num);
/* The fd of the shared completion channel.  NOT_SHARED_CHNL. */
int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd);
/*
 * Waits for an event of the shared channel and says which queue it is of; is_rcq may be NULL.
 * flags: 0. There may be less to poll than events, so poll until RPMA_E_NO_COMPLETION.
 * NOT_SHARED_CHNL; NO_COMPLETION: none is there (O_NONBLOCK); UNKNOWN: another queue's; PROVIDER.
 */
int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq_ptr, bool *is_rcq);

/* ---- operations: rpma_read(3), rpma_flush(3), rpma_send(3) ---- */

#define RPMA_F_COMPLETION_ON_ERROR  (1 << 0)
#define RPMA_F_COMPLETION_ALWAYS    (1 << 1 | RPMA_F_COMPLETION_ON_ERROR)

#define RPMA_ATOMIC_WRITE_ALIGNMENT 8

enum rpma_flush_type {
	RPMA_FLUSH_TYPE_PERSISTENT,
	RPMA_FLUSH_TYPE_VISIBILITY,
};

/*
 * For all operations: flags is one of RPMA_F_*; op_context comes back as wr_id of the completion.
 * INVAL: flags is 0; a range does not lie within its region; len above 4 GiB - 1.
 * PROVIDER: the queue is full, or the connection is not established.
 * Where both regions may be NULL, offsets and len must be 0 then: the operation moves nothing.
 */

/* Reads from the peer's memory.  Both regions may be NULL. */
int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
	const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
	const void *op_context);
/* Writes to the peer's memory.  Both regions may be NULL. */
int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
	const void *op_context);
/* The same, and completes a receive of the peer with imm.  Both regions may be NULL. */
int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags, uint32_t imm,
	const void *op_context);
/*
 * Writes 8 bytes, all or none of which anybody ever sees, after earlier flushes of this connection
 * are done; src is read before the call returns.  INVAL: dst_offset is not a multiple of
 * RPMA_ATOMIC_WRITE_ALIGNMENT.
 */
int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const char src[8], int flags, const void *op_context);
/*
 * Completes when earlier writes of this connection to the range are visible, or durable.  NOSUPP:
 * the region was not registered for flushes of this type; PERSISTENT without a remote peer
 * configuration that allows direct writes.  INVAL: unknown type.
 */
int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset, size_t len,
	enum rpma_flush_type type, int flags, const void *op_context);
/* Sends a message; src may be NULL if offset and len are 0. */
int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset, size_t len,
	int flags, const void *op_context);
/* The same with imm.  (A draft of librpma had the last two arguments the other way round.) */
int rpma_send_with_imm(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
	size_t len, int flags, uint32_t imm, const void *op_context);
/* Posts a buffer for one message; dst may be NULL if offset and len are 0. */
int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
	const void *op_context);

/* ---- completions: rpma_cq(3) ---- */

/* The fd of the queue's channel, its own or the shared one; make it O_NONBLOCK to make
 * rpma_cq_wait(), or rpma_conn_wait(), so. */
int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd);
/*
 * Waits until completions may be there, and arms the queue again; then call rpma_cq_get_wc() until
 * it returns RPMA_E_NO_COMPLETION, at times at once.  SHARED_CHANNEL; NO_COMPLETION: none came
 * (O_NONBLOCK); PROVIDER.
 */
int rpma_cq_wait(struct rpma_cq *cq);
/*
 * Takes up to num_entries completions; *num_entries_got (may be NULL for one) says how many.
 * INVAL: num_entries < 1, or > 1 without num_entries_got.  NO_COMPLETION; PROVIDER; UNKNOWN.
 */
int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got);

/* ---- log: rpma_log(3) ---- */

enum rpma_log_level {
	RPMA_LOG_DISABLED = -1, /* nothing */
	RPMA_LOG_LEVEL_FATAL,
	RPMA_LOG_LEVEL_ERROR,
	RPMA_LOG_LEVEL_WARNING,
	RPMA_LOG_LEVEL_NOTICE,
	RPMA_LOG_LEVEL_INFO,
	RPMA_LOG_LEVEL_DEBUG,
};

enum rpma_log_threshold {
	RPMA_LOG_THRESHOLD,     /* up to which level there are messages; WARNING */
	RPMA_LOG_THRESHOLD_AUX, /* up to which the default function prints them on stderr; DISABLED
				 */
	RPMA_LOG_THRESHOLD_MAX
};

#define RPMA_LOG_USE_DEFAULT_FUNCTION (NULL)

typedef void rpma_log_function(enum rpma_log_level level, const char *file_name, const int line_no,
	const char *function_name, const char *message_format, ...);

/* INVAL: no such threshold or level. */
int rpma_log_set_threshold(enum rpma_log_threshold threshold, enum rpma_log_level level);
int rpma_log_get_threshold(enum rpma_log_threshold threshold, enum rpma_log_level *level);
/* Who gets the messages; RPMA_LOG_USE_DEFAULT_FUNCTION: syslog(3), and stderr by threshold. */
int rpma_log_set_function(rpma_log_function *log_function);

/* ---- functions that later releases dropped: rpma_old(3) ---- */

enum rpma_op {
	RPMA_OP_READ, /* a flush completes as this, too */
	RPMA_OP_WRITE,
	RPMA_OP_FLUSH,
	RPMA_OP_SEND,
	RPMA_OP_RECV,
	RPMA_OP_RECV_RDMA_WITH_IMM,
};

/* Programs linked with release 0.9 have a struct that ends before flags; theirs is kept apart. */
struct rpma_completion {
	void *op_context;
	enum rpma_op op;
	uint32_t byte_len;
	enum ibv_wc_status op_status;
	unsigned flags; /* IBV_WC_* */
	union {         /* in host order, with IBV_WC_WITH_IMM */
		uint32_t imm;
		uint32_t imm_data;
		uint32_t invalidate_rkey;
	};
};

/*
 * 0.9 to 0.13: as rpma_atomic_write(), from a region.  src is read when the operation is executed.
 */
int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
	const struct rpma_mr_local *src, size_t src_offset, int flags, const void *op_context);
/* 0.9, 0.10: rpma_cq_get_fd() of the main queue. */
int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd);
/* 0.9, 0.10: rpma_cq_wait() of the main queue. */
int rpma_conn_completion_wait(struct rpma_conn *conn);
/*
 * 0.9, 0.10: one completion of the main queue.  If it failed, only op_context and op_status are
 * set. NO_COMPLETION; PROVIDER; NOSUPP: not an operation of librpma (it is lost).
 */
int rpma_conn_completion_get(struct rpma_conn *conn, struct rpma_completion *cmpl);
/* 0.10, 0.11: the same of any queue. */
int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl);

#ifdef __cplusplus
}
#endif
#endif /* LIBRPMA_H */
