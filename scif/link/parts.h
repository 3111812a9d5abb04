/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this room calls in those above it; scif/parts.c fills it in.  Bytes and copies do not come
 * by here: only forks, control messages, heirs' questions and what is closed.
 */
#pragma once

#include <stdbool.h>

struct scif_ep;
struct wire_ctl;

struct link_calls {
	/* Before the service's thread starts, once: has all rooms told of forks. */
	void (*watch_forks)(void);

	/* A socket to a child has something; false: nobody asks there any more. */
	bool (*heir_asked)(int sock);
	/* ... and is watched no longer. */
	void (*heir_end)(int sock);
	/* An inherited endpoint is closed.  Without its lock. */
	void (*heir_forget)(struct scif_ep *ep);

	/* A message about windows came; one that asks for the memory of one.  -EPROTO.  Under the
	 * lock. */
	int (*reg_told)(struct scif_ep *ep, const struct wire_ctl *ctl);
	int (*map_asked)(struct scif_ep *ep, const struct wire_ctl *ctl);
	/* References of windows went, and some windows are closed.  Under the lock. */
	void (*reg_unused)(struct scif_ep *ep);
};

extern const struct link_calls link_calls;
