/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms above this one do when something happens to this process in the fabric.  Each has
 * a table; hca/parts.c names them, in the order in which they are called.
 */
#pragma once

#include <stdint.h>

struct end;
struct owned_calls;
struct peer;
struct work;

struct proc_part {
	/* In a forked child: opens what threads of the parent held, forgets what was theirs. */
	void (*forked_child)(void);
	/* A process is mapped, and nobody uses it yet.  -errno: it is not taken. */
	int (*peer_came)(struct peer *p);
	/* Nobody uses it any more, and it is still mapped.  May wait for threads. */
	void (*peer_left)(struct peer *p);
	/* Looks after what nobody else would, every 10 ms where the program is idle. */
	void (*look)(void);
};

extern const struct proc_part *const proc_parts[]; /* NULL ends it */

/* What the executor calls in this process: struct exec says of each what it does. */
struct proc_calls {
	int (*datagram)(struct work *w);
	int (*find_srq)(struct work *w, uint32_t srqn, const struct end **out);
	const struct owned_calls *owned;
};

extern const struct proc_calls proc_calls;
