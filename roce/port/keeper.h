/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper: all sockets of a steered group, as descriptors on their way through a pair of
 * SOCK_SEQPACKET sockets that each process of the fabric holds.
 *
 *   weftd ----- in [ index 0 | index 1 | index 2 ... ] out ----- every process holds both ends
 *
 * When a member of a SO_REUSEPORT group goes, the last one takes its index, and packets go to the
 * wrong process.  So none may ever go, whoever dies: as long as one process lives, what is in the
 * pair stays open, and a new weftd finds each socket with its index.
 */
#pragma once

#include <stdint.h>

enum {
	KEEPER_IPV4,
	KEEPER_IPV6,
	KEEPER_FDS,
	KEEPER_ROOM = 1 << 20, /* bytes of the pair's buffer: some 2,700 entries */
};

/* The pair: entries are put into fd[0] and taken from fd[1]. */
struct keeper {
	int fd[2];
};

/* One index of the group: a socket for each family, or -1. */
struct keeper_entry {
	uint32_t index;
	int fd[KEEPER_FDS];
};

/* A new, empty one.  Negative errno. */
int keeper_open(struct keeper *);

void keeper_close(struct keeper *);

/*
 * Puts an entry, whose descriptors stay the caller's.  -EAGAIN: it is full; -ETOOMANYREFS: this
 * user has more descriptors on their way than RLIMIT_NOFILE.
 */
int keeper_put(const struct keeper *, const struct keeper_entry *);

/*
 * Shows each entry to `visit`, whose descriptors it then are; an index once, though one who died
 * while it walked may have left it twice.  One process at a time.  Whenever the walker dies, no
 * entry is lost.  0, what visit returned if that is not 0 (the walk ends there), or negative errno.
 */
int keeper_walk(
	const struct keeper *, int (*visit)(void *arg, const struct keeper_entry *), void *arg);
