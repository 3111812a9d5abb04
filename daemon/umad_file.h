/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weftd's side of a umad file: its agents, the page that all who have the file map, the lanes of
 * their processes, what was sent and waits for its answer, and what was received and waits for
 * room (docs/umad.md).
 */
#pragma once

#include "base/spare.h"
#include "daemon/server.h"
#include "mad/file.h"
#include "mad/mad.h"
#include "mad/packet.h"
#include "mad/umad_page.h"

struct umads;
struct session;
struct ufile;

/* An agent of a file. */
struct uslot {
	struct mad_agent agent; /* first member */
	struct ufile *file;
	uint32_t id;
};

/* A process's part of a file, or a library's where it has several. */
struct ulane {
	struct umad_lane *mem;
	uint32_t number;     /* in the file, from 1 */
	uint32_t overridden; /* its claims on the bell: mad/bell.h */
	uint64_t head;       /* of its send ring */
	struct ufile *file;
	struct ulane *next, **link; /* of the file */
	const struct session *session;
	struct ulane *session_next, **session_link;
};

/* What was sent and waits for an answer, or for the time when there will be none. */
struct uflight {
	struct uflight *next, **link; /* of the file */
	struct umad_hdr hdr;          /* as it was written */
	uint64_t hash;                /* in the page's table, if listed */
	uint64_t bytes;               /* that it is charged */
	uint16_t lane;
	bool listed;
};

/* What was received: waits for room in the ring, or is longer than a record. */
struct uheld {
	struct uheld *next;
	struct umad_record rec;
	uint8_t *message; /* the whole of it, rec.length bytes; NULL: rec has it all */
	uint64_t pos;     /* in the ring, once it is there */
};

struct uqueue {
	struct uheld *first, **last;
};

struct ufile {
	struct watch sock; /* first member: our end */
	struct umads *all;
	struct ufile *next, **link; /* of all */
	uint64_t ino;               /* of the programs' end */
	const struct node *node;
	uint32_t port_number; /* from 1; 0 of a switch */
	struct mad_port *port;
	struct umad_port facts;
	struct umad_file rules;
	struct uslot *slot[UMAD_AGENTS];
	_Atomic uint64_t word[UMAD_AGENTS]; /* what the page ought to show of them */
	int page_fd;
	struct umad_page *page;

	struct ulane *lanes;
	uint32_t n_lanes, last_lane;
	struct uflight *flights;
	uint32_t places; /* in its receive queue that are taken: held, or promised to flights */

	uint64_t tail; /* of the receive ring */
	struct bell_producer bell;
	struct ufile *unrung_next, **unrung_link; /* if its bell is to be rung in this turn */
	uint32_t ghosts;                          /* that there may be: mad/bell.h */
	struct uqueue held;                       /* no room in the ring */
	struct uqueue longs;                      /* in the ring, longer than a record */
	uint64_t last_message;                    /* number of the last long one */
	bool broken;                              /* to be ended */
	bool eager; /* epoll looks at it again although no byte lies there */
};

/* Why weftd dropped what a program sent or was to get; shown by weft status. */
enum umad_drop {
	UMAD_DROP_RECORD,     /* a send ring had what no write puts there, or its agent had gone */
	UMAD_DROP_UNSENT,     /* no memory, or too long */
	UMAD_DROP_UNREAD,     /* the file's program does not read: UMAD_FILE_MADS */
	UMAD_DROP_ALL_UNREAD, /* all programs together: UMAD_ALL_BYTES */
	UMAD_DROP_MEMORY,     /* of weftd's, for what was received */
	UMAD_DROP_COUNT
};

enum {
	UMAD_FILE_MADS = 200000,   /* received ones that a file keeps beside its ring */
	UMAD_FILE_SURE = 256,      /* so many it keeps whatever the others do */
	UMAD_ALL_BYTES = 64 << 20, /* of them, and of sends under way, in all files */
	UMAD_MAD_COST = UMAD_HDR_SIZE + MAD_SIZE, /* of one, at least */
	UMAD_SPARE = 4096,                        /* of each kind that are kept for the next */
};

/* All files of this weftd. */
struct umads {
	struct server *server;
	struct ufile *files;
	uint32_t n_files, n_lanes;
	uint64_t bytes; /* what is kept for programs that do not read */
	uint64_t drops[UMAD_DROP_COUNT];
	/* Used again, so that a MAD under way takes no memory that has to be found first. */
	struct spare spare_flights, spare_held;
	bool unfinished;      /* some file is broken, or may have ghosts */
	struct ufile *served; /* just now, unless it has ended meanwhile; or NULL */
	struct ufile *unrung; /* what was pushed there since may be read already */
	bool in_turn;         /* urecv_ring_all() comes */
};

/* A program's end of a new file, and the file.  *end is the caller's.  -errno. */
int ufile_make(struct umads *all, const struct node *node, uint32_t port_number,
	struct mad_port *port, struct ufile **out, int *end);

/* Its agents are unregistered, its processes see that the device is gone; it is freed. */
void ufile_end(struct ufile *f);

/* NULL: there is none with that inode. */
struct ufile *ufile_find(const struct umads *all, uint64_t ino);

/* REGISTER_AGENT: as umad_check_req() and mad_register(); *id: its slot. */
int ufile_register(struct ufile *f, const struct umad_reg_req *req, uint32_t *id);
/* REGISTER_AGENT2. */
int ufile_register2(struct ufile *f, struct umad_reg_req2 *req, uint32_t *id);
/* -EINVAL: no agent has that id. */
int ufile_unregister(struct ufile *f, uint32_t id);
/* ENABLE_PKEY.  -EINVAL: something was registered before. */
int ufile_enable_pkey(struct ufile *f);

/* A sealed memfd of that size, mapped.  -errno. */
int ufile_memory(const char *name, size_t size, int *fd, void **base);
