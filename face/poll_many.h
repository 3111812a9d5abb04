/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll(2) of an array in which some fds are a face's and the others the kernel's.  The thread looks
 * at the face's for a moment; then it sleeps for all of them in one call.
 */
#pragma once

#include <poll.h>
#include <stdint.h>

#include "face/sleeper.h"

enum {
	POLL_ON = 2,        /* kernel fds that one of a face's may be slept for on */
	POLL_NOT_OURS = -1, /* instead of conditions: that fd is something else by now */
};

/*
 * What a face says of its own.  Conditions are all that hold at this moment, whatever was asked
 * for; a function that gives them takes and drops the lock of what it looks at.
 */
struct poll_face {
	/* What of ours is behind fd, with a reference; NULL: nothing.  Gives it back. */
	void *(*find)(int fd);
	void (*put)(void *ours);
	/* Its conditions. */
	int (*look)(void *ours, const struct pollfd *asked);
	/*
	 * The same before a thread sleeps: enters it first, and asks for events, so that nothing
	 * that comes after the look is missed.  on: what to sleep on, by default nothing.
	 */
	int (*before)(void *ours, const struct pollfd *asked, struct sleeper *me,
		struct pollfd on[POLL_ON]);
	/* The same after that: takes it out again.  Not called after a POLL_NOT_OURS of before().
	 */
	int (*after)(void *ours, const struct pollfd *asked, struct sleeper *me,
		const struct pollfd on[POLL_ON]);
	uint64_t look_ns; /* how long to look before it sleeps */
	uint64_t nap_ns;  /* it looks again after so long, whether or not it was woken */
};

/*
 * poll(2) of the kernel's alone, by a call that preloaded libraries leave to the kernel.  ns: how
 * long at most, below 0: for ever.  How many are ready, or a negative errno.
 */
int poll_ns(struct pollfd *fds, nfds_t n, int64_t ns);

/* The same where some are the face's. */
int poll_many(const struct poll_face *face, struct pollfd *fds, nfds_t n, int64_t ns);
