/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: who speaks, what he asks, the reply. */
#pragma once

#include "daemon/process.h"
#include "rdv/proto.h"

enum { REPLY_OWN_FDS = 2 };

struct session {
	struct watch sock;
	pid_t pid;                   /* of the peer, in our pid namespace, 0 if none */
	struct process *process;     /* once attached */
	struct ulane *lanes;         /* daemon/umad_lane.h */
	struct session *next, *prev; /* server.sessions */
};

/* What a request gets back.  fds are borrowed, those in own are closed after it was sent. */
struct reply {
	union proto_payload payload; /* as the op has it */
	int fds[PROTO_MAX_FDS];
	int n_fds;
	int own[REPLY_OWN_FDS];
	int n_own;
};

/* The reply's own from now on; to be put among its fds.  Returns fd. */
static inline int reply_owns(struct reply *r, int fd)
{
	r->own[r->n_own++] = fd;
	return fd;
}

/* Accepts what waits at the listener. */
void session_accept(struct server *s, struct watch *w, uint32_t events);

/* Ends a connection; its process, if it lives, stays. */
void session_close(struct server *s, struct session *c);
