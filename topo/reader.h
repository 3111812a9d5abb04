/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known while a netlist is read. */
#pragma once

#include "topo/build.h"
#include "topo/lex.h"
#include "topo/names.h"

enum { READER_DEPTH_MAX = 9 }; /* files that include each other, the first one counted */

/* A line of a file. */
struct place {
	uint32_t file; /* index of reader.files */
	uint32_t line;
};

/* [port] "name"[peer_port] */
struct link {
	struct place place;
	uint32_t node, name;
	uint8_t port, peer_port;
	bool alias; /* the name is one */
};

struct reader {
	struct topo_build build;
	struct names names;
	struct place *nodes; /* by number: where it is described */
	struct link *links;
	uint32_t nodes_room, n_links, links_room;
	char **files, **commands;
	uint32_t n_files, n_commands;
	struct place at;                /* the line that is read */
	char module[TOPO_TEXT_MAX + 1]; /* prefix of names; may be empty */
	uint32_t record;                /* whose ports may follow; TOPO_NONE: nobody's */
	unsigned depth;
	uint64_t stack[READER_DEPTH_MAX][2]; /* device and inode of the files that are open */
	uint64_t bytes;                      /* read so far */
	char *error;
};

/* Notes "FILE:LINE: text" as the error, of the present line; -EINVAL. */
int reader_fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As reader_fail, of another line. */
int reader_fail_at(struct reader *r, struct place at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Whether a mask below the greatest has bits of it alone; what: who wants it.  0 or -EINVAL, noted.
 */
int reader_check_mask(struct reader *r, const char *what, uint64_t v, unsigned greatest);

/* Takes len bytes of text, the file that r->at names.  0 or -errno, noted. */
int reader_lines(struct reader *r, const char *text, size_t len);

/* Takes the open file that was kept last in r->files, regular if others are open.  As above. */
int reader_file(struct reader *r, int fd);

/* Reads a file, in the directory of the present one unless it is absolute.  0 or -errno, noted. */
int reader_include(struct reader *r, struct slice path);

/*
 * The number of the name that text means here: under the present module unless it names one.  0,
 * -EINVAL (too long, unprintable), -ENOMEM.
 */
int reader_name(struct reader *r, struct slice text, uint32_t *name);

/* Takes a string, to be freed, into a list of n.  0, or -ENOMEM after freeing it. */
int reader_keep(char ***list, uint32_t *n, char *text);
