/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which file descriptors are umad, issm or uverbs files: a byte for each number, so that read(2)
 * and the like of all others cost a load and a branch more than without the shim.
 *
 * A mark is set when a file comes: opened, duplicated, received, inherited.  It goes stale when the
 * fd is closed, or another takes its number (nobody wraps all that does either, and the child of a
 * vfork(2) closes what its parent keeps).  So a mark says "perhaps": the library, or the name of
 * the socket, tells whether it is true.  No mark is sure: no umad file can be at that number,
 * unless it came by a direct system call.
 *
 * All are safe in signal handlers and threads, and keep errno.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rdv/file_name.h"

enum { MARKS = 1 << 20 };

/* Kind, access mode, and in the upper half a count of how often it was set; see mark.c. */
extern _Atomic uint8_t marks[MARKS];

/* Whether any fd was ever marked. */
bool mark_any(void);

/* Whether fd may be a umad, issm or uverbs file. */
static inline bool marked(int fd)
{
	return (unsigned)fd < MARKS && atomic_load_explicit(&marks[fd], memory_order_relaxed);
}

enum file_kind mark_kind(uint8_t mark);

/* O_RDONLY, O_WRONLY or O_RDWR. */
int mark_access(uint8_t mark);

/* The mark of fd as it is now, 0: none. */
uint8_t mark_of(int fd);

/*
 * fd has just been opened, as no file of ours; returned as it is.  A uverbs file is not known but
 * by its mark: so none may be left over.
 */
int mark_other(int fd);

/* fd is a file of that kind, opened with those flags of open(2).  False: its number is too high. */
bool mark_set(int fd, enum file_kind kind, int flags);

/* fd was found to be something else than mark said.  Unless it was marked anew since, it goes. */
void mark_stale(int fd, uint8_t mark);

/* fd to is a duplicate of from, which may have none. */
void mark_copy(int from, int to);

/* fd came from another process: looks what it is. */
void mark_arrived(int fd);
