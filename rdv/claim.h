/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims of queue pair numbers: no two fabrics of a network namespace have a number in common,
 * whoever's they are.  A claim is CLAIM_QPNS numbers of one process, by an abstract socket name,
 *
 *   weft-qpn/N          the numbers N * CLAIM_QPNS and so on
 *
 * that lives as long as a descriptor of its socket: weftd makes it, and both weftd and the process
 * hold it.  Claim 0 is never made (numbers 0 and 1 are special).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum { CLAIM_QPNS = 1024, CLAIMS = 1 << 14 };

/* The socket of that claim: it listens, CLOEXEC, non-blocking.  -EADDRINUSE: it is taken. */
int claim_take(uint32_t n);

/* Is fd the socket of that claim? */
bool claim_is(int fd, uint32_t n);

/*
 * A socket, CLOEXEC, non-blocking, that is connected to who has that claim; *cred: who made it.
 * -ECONNREFUSED: nobody has it; -EAGAIN: it takes no connections now.
 */
int claim_meet(uint32_t n, struct ucred *cred);

/* Whose that claim is, whether he takes connections or not.  False: nobody's, or it cannot be seen.
 */
bool claim_owner(uint32_t n, uid_t *uid);
