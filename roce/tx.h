/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets on their way out.  They are collected, and leave together by one system call; equal ones
 * in a row, of one path, are one message that the kernel cuts (UDP_SEGMENT).  All under the
 * engine's lock.
 */
#pragma once

#include <sys/uio.h>

#include "hca/exec/exec.h"
#include "hca/seg/seg_path.h"
#include "wire/icrc.h"

/* Between which addresses, and how. */
struct tx_path {
	struct icrc_path addr;
	uint32_t interface; /* where an address does not say which: link-local, multicast; else 0 */
	uint32_t claim;     /* whose process it is for, past the network (roce/beside.h); 0: none */
	uint8_t tos, ttl;
	uint16_t most; /* payload that its links carry; longer packets are sent singly, and get lost
			*/
};

/* From the path of a queue pair, or of a datagram, to that number. */
void tx_path_of(struct tx_path *p, const struct seg_path *path, uint32_t dest_qpn);

enum {
	TX_PIECES_MAX = 33, /* pieces of memory in one packet */
	TX_MEMORY_BYTES = 128 << 10,
};

/*
 * Takes a packet: these headers, and the payload that lies in n pieces of memory, which stay as
 * they are until tx_flush().  Packets of one path are one run while `path` is the same pointer.
 * False: the kernel has no room now; nothing was taken.
 */
bool tx_put(struct exec *x, const struct tx_path *path, const struct roce_packet *head,
	const struct iovec *piece, unsigned n);

/*
 * Memory of n bytes, at most half of TX_MEMORY_BYTES, for payload of packets that tx_put() will
 * take; nobody else gets it before the next call, or before those that were taken until then have
 * left.  May flush itself.  NULL: the kernel has no room now.
 */
void *tx_memory(struct exec *x, size_t n);

/*
 * Sends what was taken.  True: all of it is gone.  False: the kernel has no room; a copy of the
 * rest waits for the next call, and the memory of the packets is needed no more.
 */
bool tx_flush(struct exec *x);

/*
 * The same, but the last message stays if packets of the same size could join it, which tx_put()
 * is to be given at once; the memory of its packets is still needed.
 */
bool tx_flush_most(struct exec *x);

/*
 * Sends one whole packet at once, its ICRC made for identification 0, by any thread and without the
 * engine's lock.  0: it is gone, or lost and counted; -EAGAIN: the kernel has no room now.
 */
int tx_now(struct exec *x, const struct tx_path *path, const struct iovec *piece, unsigned n);

/* Does something wait for room in that socket (KEEPER_IPV4, KEEPER_IPV6)? */
bool tx_waits(int family);

/* May tx_put() take something? */
bool tx_has_room(void);

/* In a forked child: what was on its way is the parent's. */
void tx_forked_child(void);
