/* SPDX-License-Identifier: BSD-3-Clause */
/* What services and forks call in the rooms above this one; ti/parts.c names it. */
#pragma once

struct member;

struct core_calls {
	/* Starts what every service needs besides the system thread.  0 or a negative errno. */
	int (*start)(void);
	/* The service ends, and m's handle is closed: nothing of it goes on.  Waits for no peer. */
	void (*halt)(struct member *m);
	/* Ends a connection whose handle is closed; its end calls service_unstay(). */
	void (*end_conn)(struct member *m);
	/* Ends a completion queue that no connection uses, whose handle is closed. */
	void (*end_cq)(struct member *m);
	/* In a forked child: forgets what was the parent's. */
	void (*forked)(void);
};

extern const struct core_calls core_calls;
