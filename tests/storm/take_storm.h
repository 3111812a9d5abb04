/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of a take storm share: an owner of a client's memory, which is taken away all
 * the time, and users, who read and write it.  Each of them may be stopped or killed at any time.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "tests/lib/verbs_pair.h"

enum { TAKE_USERS = 2, TAKE_REGIONS = 4, TAKE_BYTES = 64 << 10, TAKE_KINDS = 9 };

enum take_link {
	LINK_NONE,
	LINK_WANTED, /* the user has a queue pair, user is filled in */
	LINK_READY,  /* so has the owner, who is connected; owner is filled in */
};

struct take_user {
	_Atomic int link; /* enum take_link */
	struct vp_addr user, owner;
	_Atomic uint64_t done, failed; /* requests */
};

struct take_world {
	_Atomic int stop;
	_Atomic uint64_t takes, used; /* callbacks that returned; while somebody used the memory */
	_Atomic uint64_t kinds[TAKE_KINDS];
	_Atomic uint64_t longest_us; /* callback */
	struct take_region {
		_Atomic uint64_t addr;
		_Atomic uint32_t rkey; /* 0: none */
	} region[TAKE_REGIONS];
	struct take_user user[TAKE_USERS];
};

/* The life of the owner, until w->stop; seed is not 0.  Ends the process if it fails. */
void take_owner(struct take_world *w, uint64_t seed);
/* That of user n. */
void take_user(struct take_world *w, unsigned n, uint64_t seed);

/* The next of a sequence of numbers. */
static inline uint64_t take_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}
