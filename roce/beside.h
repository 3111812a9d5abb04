/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between fabrics of one user on one host.  Both have the addresses of this host, so none
 * could be found by an address; but a queue pair's number is of a claim (rdv/claim.h), whose socket
 * takes connections:
 *
 *   process A ---- connects to the claim of B's number ----> process B, which accepts
 *                  struct wire_handed, then packets of one size
 *
 * Each side asks the kernel whose process the other one is.  These packets do not go through the
 * network, so no setting of WEFT_WIRE keeps them back, and nobody else's get among them.
 */
#pragma once

#include <sys/socket.h>

#include "hca/exec/exec.h"
#include "roce/port/socket.h"

/*
 * Connects to who has that number; one beside_drop() for each that succeeds.  Does not block: where
 * there is no room for a connection, each beside_send() tries again, until when all is lost.
 * -ECONNREFUSED: nobody has it; -EACCES: it is of another user; -ENOSPC: too many are held.
 */
int beside_hold(uint32_t qpn);
void beside_drop(uint32_t qpn);

/* Is something held? */
bool beside_any(void);

/*
 * From now on what comes for that number, which is one of ours, is taken.  Asks weftd, so it may
 * block as other control calls.  -ENOENT: it is of no claim; -EMFILE, -ENOMEM.
 */
int beside_listen(uint32_t qpn);

/*
 * Sends one message to who has numbers of that claim; its first piece is a struct wire_handed.  Any
 * thread.  False: it is lost, as on a wire.
 */
bool beside_send(uint32_t claim, const struct msghdr *m);

/* One packet of n bytes, the index-th of its message, as rx_packet(). */
typedef void (*beside_packet_fn)(struct exec *x, const struct roce_from *from, const uint8_t *bytes,
	size_t n, unsigned index, uint64_t now);

/* Gives what has come to `take`.  Under the engine's lock.  True: there was something. */
bool beside_look(struct exec *x, beside_packet_fn take, uint64_t now);

/* Readable while something is there; -1: nobody listens. */
int beside_fd(void);

/*
 * With the engine stopped: false: the program has closed some of it behind our back; there is
 * nothing to read until beside_mend(), which may block.
 */
bool beside_whole(void);
void beside_mend(void);

/* In a forked child: connections are the parent's. */
void beside_forked_child(void);
