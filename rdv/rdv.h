/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous, client side: the one connection of this process to weftd.  All calls are control
 * path: they may block for a named time, take an internal lock, and re-establish the
 * connection (restarting weftd and re-publishing this process's segment) when it broke.
 * Messages and their fields are in rdv/proto.h; the server is daemon/.
 *
 * Common errors of all calls (negative errno): -ENOTCONN no weftd and WEFT_AUTOSTART=0 (one log
 * line names the command to run), -EACCES runtime directory or daemon of another user,
 * -EPROTO version mismatch, -ETIMEDOUT weftd did not answer within 5 s (stopped?) or
 * was not ready 30 s after its start, -EMFILE, -ENOMEM.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/page.h"

struct seg;

/* What an attach yields.  All fds are CLOEXEC and belong to rdv; they stay open. */
struct rdv_attach {
	uint32_t attach_id;      /* 24 bits, never 0 */
	struct seg *seg;         /* our segment, mapped, DONTFORK, DONTDUMP */
	struct seg *hub;         /* weftd's own segment: its exec slots (attach id hub_id) */
	_Atomic uint32_t hub_id; /* another one once weftd is new */
	const struct fabric_page *fabric; /* identity, ports, GIDs; read-only, live */
	int async_fd;                     /* our eventfd(EFD_SEMAPHORE) for async events */
};

/* A peer process as weftd knows it.  Fds are CLOEXEC and belong to the caller. */
struct rdv_peer {
	uint32_t attach_id;
	int32_t pid;      /* as seen from our pid namespace; 0 if it has none there */
	bool same_pid_ns; /* false: no process_vm_* to it */
	int pidfd;        /* -1 if none could be had */
	int seg_fd;       /* its segment: SEG_SIZE bytes, seals checked by the callee */
	int async_fd;     /* its async eventfd, to be written */
	int arena_fd;     /* pages/arena.h: checked by the callee; -1: it has none */
};

/*
 * Attaches this process to its fabric (WEFT_FABRIC, WEFT_NODE), starting weftd if need be, once;
 * later calls and calls from other threads return the same.  In a forked child: attaches anew.
 */
int rdv_attach(const struct rdv_attach **out);

/*
 * Makes rdv_attach.async_fd good again if the program has closed it behind our back
 * (closefrom(3) of a daemon): connects anew and takes another duplicate from weftd.  Does
 * nothing if the fd is what it was.  -ESTALE: weftd has it no more, either.
 */
int rdv_revive(void);

/*
 * Has weftd died?  Then attaches anew, so that peers find us through its successor, which knows
 * only who has come to it; after `weft down` waits for somebody else to start one.  Costs two
 * system calls while all is well; keeps errno.  0; -EAGAIN: none runs, try again soon.
 */
int rdv_check(void);

/*
 * Our own arena (pages/arena.h): an fd that stays rdv's, or -1 if weftd could make none or the
 * program has closed it behind our back.  Does not block.
 */
int rdv_arena_fd(void);

enum { RDV_QPN_BLOCK = 256 };

/*
 * Leases a block of RDV_QPN_BLOCK QP numbers, which nobody else in this network namespace has, at a
 * drawn place; *first is a multiple of that.  -ENOSPC: none.
 */
int rdv_lease_qpns(uint32_t *first);

/* Gives a block back (the process keeps blocks while it runs; used at detach). */
int rdv_return_qpns(uint32_t first);

/*
 * The socket of the claim that QP number qpn of ours is of (rdv/claim.h), to which processes of
 * other fabrics connect; it stays rdv's, and weftd is asked for another where the program has
 * closed it.  -ENOENT: it is of no claim.
 */
int rdv_own_claim(uint32_t qpn);

/* False: the program has closed some of these.  Does not block. */
bool rdv_claims_whole(void);

/* Who owns QP number qpn.  -ENOENT: nobody (now); -EADDRNOTAVAIL: it is not of this fabric. */
int rdv_find_qpn(uint32_t qpn, struct rdv_peer *out);

/* The same of the process with that attach id. */
int rdv_find_attach(uint32_t attach_id, struct rdv_peer *out);

/*
 * Registers completion channel id (unique in this process, not 0): an eventfd(EFD_SEMAPHORE)
 * that peers write.  The fd stays the caller's; weftd keeps a duplicate until rdv_del_channel()
 * or our death, and after its own restart gets it again from the caller's fd.
 */
int rdv_add_channel(uint32_t id, int fd);
int rdv_del_channel(uint32_t id);

/* A duplicate of a peer's channel eventfd, to be cached by the caller. -ENOENT: no such. */
int rdv_get_channel(uint32_t attach_id, uint32_t id, int *fd);

/* The same three for files that peers map, with numbers of their own. */
int rdv_add_backing(uint32_t id, int fd);
int rdv_del_backing(uint32_t id);
int rdv_get_backing(uint32_t attach_id, uint32_t id, int *fd);

/*
 * Tells weftd that entry number index of the list of members in our segment has changed
 * (hca/proc/member.h).  -ENOSPC: it has no room for it.
 */
int rdv_publish_member(uint32_t index);

/*
 * One way: asks weftd to watch the deadline of our or a peer's parked QP.  Blocks only to
 * restart a weftd that is gone.  Returns 0, or an error if the message could not be sent (then
 * the caller retries later).
 */
int rdv_set_timer(uint32_t attach_id, uint32_t qp_index);

/* One way as rdv_set_timer(): asks weftd to write a peer's channel (id 0: its async eventfd). */
int rdv_fire(uint32_t attach_id, uint32_t id);

/*
 * A call of OP_CM_* with len bytes of payload; on 0 *reply (may be NULL) is the payload of the
 * reply, of the struct that the op has.  Blocks for the round trip.  Errors: common ones, or what
 * weftd answered.
 */
int rdv_cm_call(uint32_t op, const void *call, size_t len, void *reply);

/* The same with an fd beside it, which stays the caller's, for ops whose reply has no payload. */
int rdv_cm_call_fd(uint32_t op, const void *call, size_t len, int fd);

/*
 * The same one way: never blocks, and does not look for another weftd.  -EPIPE there is none,
 * -EAGAIN it does not read.
 */
int rdv_cm_post(uint32_t op, const void *call, size_t len);

/*
 * Has publish called whenever this process comes to a new weftd, with a function that makes
 * further calls to it: as rdv_cm_call() does, or if fd is not -1 as rdv_cm_call_fd().  It may call
 * nothing else of rdv/.
 */
typedef int (*rdv_cm_send)(void *conn, uint32_t op, const void *call, size_t len, int fd);
void rdv_cm_publish(int (*publish)(rdv_cm_send send, void *conn));

/*
 * The address of socket name of the runtime directory, as this process found that when it attached.
 * *dir_fd: -1, or what the address is good for, to be closed after use.  Does not block.
 * -ENAMETOOLONG; what open(2) answers.
 */
struct sockaddr_un;
int rdv_name_addr(const char *name, struct sockaddr_un *addr, int *dir_fd);

/* The socket to weftd, only to be watched for its end; -1 if there is none. */
int rdv_socket(void);

/*
 * Checks and maps the segment behind a peer's seg_fd, whole, DONTFORK and DONTDUMP, registered
 * as by rdv_note_mapping().  The fd stays the caller's and may be closed.  -EPROTO: not a sealed
 * segment of the right size; -ENOMEM: no address space.  Does not block.
 */
int rdv_map_segment(int seg_fd, struct seg **seg);
void rdv_unmap_segment(struct seg *seg);

/*
 * Called in a forked child, with no other thread: forget everything of the parent.  fds of the
 * parent's connection are closed, mappings of segments were not inherited; in their place lie
 * zero pages, so that a stale object of the parent reads as RESET and empty.  Registered with
 * pthread_atfork() by the first rdv_attach(); a second call in the same child does nothing.
 */
void rdv_forked_child(void);

/*
 * Remembers that [base, base+len) maps somebody's segment with MADV_DONTFORK, so that a forked
 * child finds zero pages there instead of a hole; and forgets it again, before it is unmapped.
 */
void rdv_note_mapping(void *base, size_t len);
void rdv_forget_mapping(void *base);

/* Counts up with every attach of this process: an object with an older epoch is stale. */
uint32_t rdv_epoch(void);
