/* SPDX-License-Identifier: BSD-3-Clause */
/* Attached processes: their segment, channels and death. */
#pragma once

#include <sys/types.h>

#include "daemon/process_table.h"
#include "daemon/server.h"

struct session;
struct wire_member;

/* Our duplicates of a process's descriptors, by its numbers for them. */
struct kept_fds {
	struct kept_fd {
		uint32_t id;
		int fd;
	} * at;
	uint32_t n, room;
};

struct process {
	struct watch death; /* its pidfd; -1 if none could be had */
	uint32_t id;
	pid_t pid;       /* in our pid namespace, 0 if it has none there */
	int32_t own_pid; /* in its own, as it said */
	uint64_t pid_ns; /* inode, as it said */
	char comm[16];
	int seg_fd, async_fd;
	int arena_fd; /* pages/arena.h; -1: none could be had */
	struct seg *seg;
	const struct node *node;     /* that it works on */
	struct session *session;     /* NULL: the connection broke, the process lives */
	struct kept_fds channels;    /* eventfds */
	struct kept_fds backings;    /* files that peers map */
	struct wire_member *wire;    /* daemon/wire_hand.h; NULL: it has not joined */
	bool waits_for_wire;         /* a join was refused */
	struct process *next, *prev; /* server.processes */
	struct process *chain;       /* server.by_number */
};

/* Makes a sealed segment for attach id id; *fd is the caller's.  -EFBIG: ulimit -f. */
int segment_create(uint32_t id, struct seg **seg, int *fd);

/* An attach id that nobody uses, 0 if there is none. */
uint32_t process_new_id(struct server *s);

/*
 * A new process with a new id, segment and async eventfd.  pidfd passes to it, may be -1.
 * pid: in our namespace.
 */
int process_create(struct server *s, pid_t pid, int pidfd, struct process **out);

/*
 * A process that an earlier weftd knew by id: takes seg_fd, async_fd, arena_fd (-1: lost) and
 * pidfd over on success.  -EPROTO: not its segment, or not an arena.
 */
int process_adopt(struct server *s, uint32_t id, pid_t pid, int pidfd, int seg_fd, int async_fd,
	int arena_fd, struct process **out);

/* After its connection ended: true if it can still attach again under the same id. */
bool process_lives(const struct process *p);

/* Entries that had no room in the hub get it, as far as there is some now. */
void processes_list_members(struct server *s);

/* It is gone: tells its peers, keeps what it counted, releases all it had, frees it. */
void process_died(struct server *s, struct process *p);

/* Adds a channel or replaces that of the same id; takes fd over on success.  -ENOMEM. */
int process_add_channel(struct server *s, struct process *p, uint32_t id, int fd);
/* -ENOENT */
int process_del_channel(struct server *s, struct process *p, uint32_t id);
/* The eventfd of channel id (0: of async events), -1 if there is none. */
int process_channel(const struct process *p, uint32_t id);
/* Is it readable? */
bool process_unread(struct process *p, uint32_t id);
/* Writes that eventfd; never blocks. */
void process_fire(struct server *s, struct process *p, uint32_t id);

/* The same of the files that peers map: adds or replaces one, takes fd over on success.  -ENOMEM.
 */
int process_add_backing(struct process *p, uint32_t id, int fd);
/* -ENOENT */
int process_del_backing(struct process *p, uint32_t id);
/* -1 if there is none. */
int process_backing(const struct process *p, uint32_t id);
