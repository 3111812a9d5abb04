/* SPDX-License-Identifier: BSD-3-Clause */
/* This process's attachment: shared by the files of rdv/, not for others. */
#pragma once

#include "base/lock.h"
#include "rdv/conn.h"
#include "rdv/rdv.h"

/* Descriptors that weftd keeps duplicates of, by our numbers for them. */
struct client_fds {
	struct client_fd {
		uint32_t id;
		struct own_fd fd;
	} * at;
	size_t n, room;
};

struct client {
	struct lock lock;      /* control calls, one at a time; all below */
	struct lock post_lock; /* which socket conn.sock is; taken inside lock, for an instant */
	struct conn conn;
	_Atomic uint32_t epoch;
	_Atomic bool attached; /* att is valid; cleared in a forked child */
	bool told;             /* that there is no weftd */
	bool only_join;        /* a weftd that somebody else starts */
	struct rdv_attach att;
	uint64_t seg_size;
	struct own_fd seg_fd, async_fd;
	struct own_fd arena_fd;     /* under post_lock too */
	struct client_fds channels; /* OP_ADD_CHANNEL */
	struct client_fds backings; /* OP_ADD_BACKING */
	int (*publish_cm)(rdv_cm_send send, void *conn);
	char dir[PATH_MAX]; /* the runtime directory; under post_lock too */
};

extern struct client client;

/* A control call begins: one at a time, and no cancellation while it holds the lock. */
int client_enter(void);

/* It ends; returns ret. */
int client_leave(int cancel, int ret);

/*
 * Between the two: a call that survives the death of weftd.  Errors as conn_call(), and what
 * attaching answers.
 */
int client_call(struct proto_out *out, struct proto_in *in);

/*
 * The same for what takes something back and has no reply: a weftd that started meanwhile never had
 * it, which is no error.
 */
int client_undo(uint32_t op, const void *payload);

/* ... and alone: there is a connection over which we are attached. */
int client_ensure(void);
