/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs for test programs, over the public verbs alone: both ends in one
 * process, or each in its own.  What cannot be set up ends the program (die()).
 */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { VP_GID_INDEX_IPV6 = 0, VP_GID_INDEX = 1, VP_DEADLINE_MS = 10000, VP_QKEY = 0x11223344 };

/* What an end is made of; vp_defaults() fills all. */
struct vp_opts {
	enum ibv_qp_type type; /* RC, UC, UD */
	struct ibv_srq *srq;   /* of the same context, or NULL; its PD need not be the QP's */
	uint32_t send_wr, recv_wr, sge, max_inline;
	int cqe;
	bool channel;                /* CQs on a completion channel of the end's own */
	struct ibv_comp_channel *on; /* ... on this one, or NULL */
	bool one_cq;                 /* the same CQ for sends and receives */
	bool sig_all;
	size_t len; /* of the buffer; 0 = none */
	int mr_access, qp_access;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	enum ibv_mtu path_mtu;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
};

struct vp_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	uint8_t *buf; /* mmapped, zero */
	size_t len;
	struct ibv_mr *mr;
	struct vp_opts opts;
};

/* What one end must know of the other. */
struct vp_addr {
	uint32_t qpn, psn;
	union ibv_gid gid;
	uint64_t addr;
	uint32_t rkey;
};

struct vp_opts vp_defaults(void);

/* Opens weft0. */
struct ibv_context *vp_open(void);

/* Makes PD, CQs, QP (in RESET) and buffer in ctx. */
void vp_make(struct vp_end *e, struct ibv_context *ctx, const struct vp_opts *o);
/* Makes a QP more on e's PD and CQs; its address. */
struct ibv_qp *vp_extra_qp(struct vp_end *e);
/* Destroys all of it but the context; checks that each answers 0. */
void vp_free(struct vp_end *e);

struct vp_addr vp_addr(const struct vp_end *e);

/* The transitions; each returns what ibv_modify_qp() did. */
int vp_init(struct vp_end *e);
int vp_rtr(struct vp_end *e, const struct vp_addr *peer);
int vp_rts(struct vp_end *e);
int vp_state(struct vp_end *e, enum ibv_qp_state to);
/* INIT, RTR and RTS, checked. */
void vp_connect(struct vp_end *e, const struct vp_addr *peer);
/* The present state, asked with ibv_query_qp(). */
enum ibv_qp_state vp_get_state(struct vp_end *e);

/* Two connected ends in one process; a context each. */
void vp_pair(struct vp_end *a, struct vp_end *b, const struct vp_opts *o);
void vp_pair_free(struct vp_end *a, struct vp_end *b);
/* Both ends to RESET and connected anew. */
void vp_reconnect(struct vp_end *a, struct vp_end *b);

/* Posts one request whose SGE is [off, off+len) of e's buffer; returns the verb's result. */
int vp_post_recv(struct vp_end *e, uint64_t id, size_t off, uint32_t len);
int vp_post_send(struct vp_end *e, uint64_t id, enum ibv_wr_opcode op, unsigned flags, size_t off,
	uint32_t len, const struct vp_addr *peer, size_t peer_off);
/* One SGE of that, for requests made by hand. */
struct ibv_sge vp_sge(const struct vp_end *e, size_t off, uint32_t len);

bool vp_is_atomic(enum ibv_wr_opcode op);
/* Where wr's opcode goes in the other's memory; an atomic puts swap there, or adds 1. */
void vp_aim(struct ibv_send_wr *wr, uint64_t at, uint32_t rkey, uint64_t swap);

/* Polls until one completion came; false after ms. */
bool vp_poll(struct ibv_cq *cq, struct ibv_wc *wc, int ms);
/* Waits for one completion and checks its status and wr_id. */
bool vp_want(struct ibv_cq *cq, struct ibv_wc *wc, enum ibv_wc_status status, uint64_t id);
/* Posts one WRITE more than its send CQ has room for; its send queue is to be longer. */
void vp_overrun(struct vp_end *e, const struct vp_addr *to);
/* Posts a request, which is to be signaled, and waits for it; its status. */
enum ibv_wc_status vp_run(struct vp_end *e, struct ibv_send_wr *wr);
/* Checks that nothing completes within ms. */
void vp_quiet(struct ibv_cq *cq, int ms);

/* A second process of the test and the socket to it. */
struct vp_child {
	pid_t pid;
	int fd;
};

/*
 * Forks; the child runs fn(fd, arg) and exits with its failures.  Call it before opening the
 * device unless that is the thing tested.  The child is killed when the thread that forked ends.
 */
struct vp_child vp_fork(void (*fn)(int fd, void *arg), void *arg);
/* Exchanges addresses over such a socket. */
struct vp_addr vp_swap(int fd, const struct vp_addr *mine);
/* The same, and connects e with the other process's end, whose address it returns. */
struct vp_addr vp_meet(struct vp_end *e, int fd);
/* The next async event of ctx within ms, not acknowledged; false if none came. */
bool vp_async(struct ibv_context *ctx, struct ibv_async_event *ev, int ms);
/* Posts a datagram to peer by an address handle. */
int vp_post_ud(struct vp_end *e, uint64_t id, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	size_t off, uint32_t len);
/* An address handle to that GID; NULL and errno as ibv_create_ah(). */
struct ibv_ah *vp_ah(struct vp_end *e, const union ibv_gid *gid);

/* Waits until the other side has come to its vp_sync() too. */
void vp_sync(int fd);
/* Sends and takes n bytes over such a socket; what cannot be ends the program. */
void vp_put(int fd, const void *p, size_t n);
void vp_get(int fd, void *p, size_t n);
/* The same of one word. */
void vp_tell(int fd, uint64_t word);
uint64_t vp_hear(int fd);
/* Ends it by SIGKILL and waits. */
void vp_kill_join(struct vp_child *c);
/* SIGSTOP; on return no thread of it runs any more. */
void vp_stop(const struct vp_child *c);
/* Closes the socket, waits for the child's end, and counts its failures. */
void vp_join(struct vp_child *c);
