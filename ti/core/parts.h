/* SPDX-License-Identifier: BSD-3-Clause */
/* What services and forks call in the rooms above this one; ti/parts.c names it. */
#pragma once

struct member;

struct core_calls {
	/* Starts what every service needs besides the system thread.  0 or a negative errno. */
	int (*start)(void);
	/* Closes a connection, if nobody did; its end calls service_unstay(). */
	void (*close_conn)(struct member *m);
	/* Closes a completion queue that no connection uses, if nobody did. */
	void (*close_cq)(struct member *m);
	/* In a forked child: forgets what was the parent's. */
	void (*forked)(void);
};

extern const struct core_calls core_calls;
