/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A piece of an object (pages/backing.h) as memory of a program: what one process exports of
 * memory that it shares already, another maps.  Unlike windows, which our own code loads and stores
 * through, it may be of any file: who truncates that takes the memory away from all who map it,
 * and their next access is a SIGBUS, as with any file.
 */
#pragma once

#include "pages/backing.h"

/* Is fd a file of small pages, so that a piece of it can be mapped anywhere? */
bool piece_file(int fd);

/*
 * How many bytes of the object, whole pages, there are just now.  -EXDEV: it is in another
 * namespace; -EACCES: it may not be looked at; -ENXIO: no such object, or one of huge pages.  Keeps
 * errno.
 */
int64_t piece_room(const struct backing *b);

/*
 * Has the file, if it allows that, never become shorter from here on.  Who wants to make it so is
 * told EPERM.
 */
void piece_seal(int fd);

/*
 * Maps [offset, offset+len) of the object, whole pages, with the rights prot; at is a hint, or with
 * MAP_FIXED or MAP_FIXED_NOREPLACE in `placed` the place.  Children by fork() do not have it.
 * Errors of mmap(2), and -ENXIO: that is not all there; -EACCES.  Keeps errno; b->fd stays the
 * caller's.
 */
int piece_map(const struct backing *b, uint64_t offset, uint64_t len, int prot, int placed,
	void *at, void **out);
