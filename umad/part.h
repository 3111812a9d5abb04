/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this process shares with weftd of a umad file, found by any of its fds: the one that opened
 * it, a duplicate, or one that was inherited over fork(2) or exec(2) or came by SCM_RIGHTS.  Then
 * weftd is asked for the file's memory and a lane of this process's own.
 */
#pragma once

#include "base/lock.h"
#include "mad/umad_page.h"

struct fabric_page;

struct part {
	uint64_t file;   /* inode of the socket */
	uint32_t number; /* of the lane */
	uint32_t port;   /* in the fabric page */
	struct umad_page *page;
	struct umad_lane *lane;
	const struct fabric_page *fabric;
	_Atomic bool dead;       /* weftd has died */
	uint64_t spin_ns;        /* how long a reader looks for an answer before it sleeps */
	_Atomic uint64_t reader; /* the thread of this process that read last; 0: none did */
	_Atomic uint64_t tired;  /* head of the receive ring + 1 when a writer waited in vain */
	struct lock writing;
	uint64_t tail; /* of the send ring; under writing */

	struct part *next, **link; /* under the lock of all */
	unsigned users;
	bool dropped; /* in no list any more */
};

/* The part of the file behind fd, until part_put().  -EBADF: no umad file; -EIO: it is gone. */
int part_get(int fd, struct part **out);
void part_put(struct part *p);

/* What weftd is to open: that port of this process's node.  -ENODEV: it can be none. */
struct proto_umad_open;
int part_name_port(const char *device, int port, struct proto_umad_open *out);

/*
 * Opens a file: the fd, CLOEXEC, not O_NONBLOCK.  Starts weftd if need be.  -ENODEV: no such device
 * or port; -EMFILE, -ENOMEM; those of rdv/rdv.h.
 */
int part_open(const char *device, int port);

/* O_CLOEXEC and O_NONBLOCK of open(2) for an fd that came CLOEXEC and blocking.  -errno. */
int part_set_flags(int fd, int flags);

/* Before the first call to weftd: a child starts without its parent's connection.  -ENOMEM. */
int part_watch_forks(void);

static inline struct ring_ref part_recv_ring(const struct part *p)
{
	return (struct ring_ref){&p->page->recv, p->page->recv_slot, UMAD_RECV_LOG_SIZE};
}

static inline struct ring_ref part_send_ring(const struct part *p)
{
	return (struct ring_ref){&p->lane->send, p->lane->send_slot, UMAD_SEND_LOG_SIZE};
}

/* enum umad_page_state, and gone also if weftd has died. */
static inline uint32_t part_state(struct part *p)
{
	return atomic_load_explicit(&p->page->state, memory_order_acquire) |
	       (atomic_load_explicit(&p->dead, memory_order_relaxed) ? UMAD_PAGE_GONE : 0);
}
