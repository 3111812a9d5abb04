/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that are inside a region just now.  A list of what lies on their stacks. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* What others may have to wait for. */
enum peer_role {
	PEER_MAKES = 1,    /* registers it */
	PEER_OP = 2,       /* reads or writes its bytes */
	PEER_CALLBACK = 4, /* takes it away */
	PEER_REVOKES = 8,  /* ... and has not told the HCA yet */
	PEER_DROPS = 16,   /* deregisters it; until its pages are given back */
	PEER_UNDOES = 32,  /* is in dma_unmap, put_pages or release */
	PEER_RUNS = 64,    /* a PEER_OP that has not called back itself */
	PEER_ANY_ROLE = 127,
};

struct peer_guest {
	struct peer_guest *next;
	pid_t tid;
	unsigned roles;
	const char *in; /* the function it runs, for the log */
};

/* Adds g, the caller's, as this thread. */
void peer_guest_add(struct peer_guest **list, struct peer_guest *g, unsigned roles, const char *in);

/* Removes g, which is in the list. */
void peer_guest_remove(struct peer_guest **list, struct peer_guest *g);

/* This thread's operation calls back: true if it is the first time.  The callback failed. */
bool peer_guest_calls(struct peer_guest *list);
void peer_guest_calls_not(struct peer_guest *list);

/* A guest of another thread, or of this one, in one of the roles; NULL: there is none. */
const struct peer_guest *peer_guest_other(const struct peer_guest *list, unsigned roles);
const struct peer_guest *peer_guest_self(const struct peer_guest *list, unsigned roles);
