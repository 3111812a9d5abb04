/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come in: read, cut where the kernel has joined them, checked in the order of
 * docs/roce.md, and given to the flow, or to who takes datagrams.  All under the engine's lock.
 */
#pragma once

#include "hca/exec/exec.h"
#include "roce/port/socket.h"
#include "wire/roce.h"

/* Reads what is there, up to a limit.  True: there was something. */
bool rx_look(struct exec *x, uint64_t now);

/*
 * Takes a UD packet whose ICRC and P_Key are right, to its queue pair or multicast group.  False:
 * there is no such queue pair here.  The engine's lock; x's exec slot is free.
 */
typedef bool (*rx_datagram_fn)(
	struct exec *x, const struct roce_packet *p, const struct roce_from *from);

/* Who takes them; until then they are dropped. */
void rx_take_datagrams(rx_datagram_fn take);

/* So many queue pairs more, or fewer, take datagrams: the sockets are looked at for them, too. */
void rx_listen(int change);

/* In a forked child: they are the parent's. */
void rx_forked_child(void);

/* One packet of n bytes, the index-th of those that came together. */
void rx_packet(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, uint64_t now);

/* The same behind the rules of faults. */
void rx_accept(struct exec *x, const struct roce_from *from, const uint8_t *bytes, size_t n,
	unsigned index, uint64_t now);
