/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing a directory tree of small text files that others read meanwhile.  The first error is
 * kept in the tree; later steps still try.  Paths are relative to the tree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What many paths of a tree may be: a hard link costs less than a file. */
enum tree_shared {
	TREE_ZERO_GID,
	TREE_ZERO,
	TREE_NO_PKEY,
	TREE_UNREADABLE, /* can be opened, and answers EINVAL when it is read */
	TREE_N_SHARED
};

struct tree {
	int fd;  /* of the directory */
	int err; /* 0 or the first -errno */
	ino_t shared[TREE_N_SHARED];
	bool fresh; /* made by tree_open(): nothing is there but what was put since */
};

struct tree_path {
	char s[256];
};

/* A path (or link target) from a format; cut at 255 characters. */
struct tree_path tree_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Opens directory dir, seen from directory fd at; makes it if it is not there.  0 or -errno. */
int tree_open(struct tree *t, int at, const char *dir);

/* Ends the work and returns the first error of all steps, or 0. */
int tree_close(struct tree *t);

/* Makes a directory, mode 0755 whatever the umask, unless it is there. */
void tree_dir(struct tree *t, const char *path);

/* Makes path a read-only file with that content; replaces it only if the content differs. */
void tree_put(struct tree *t, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Makes what paths may share; before tree_put_shared(). */
void tree_share(struct tree *t);

/* Makes path such a file. */
void tree_put_shared(struct tree *t, enum tree_shared which, const char *path);

/* The same unless there is a file: others fill it later. */
void tree_put_first(struct tree *t, enum tree_shared which, const char *path);

/* Makes path a symbolic link to target. */
void tree_link(struct tree *t, const char *path, const char *target);

/* Removes a file or link that an earlier tree_open() found; none there is no error. */
void tree_drop(struct tree *t, const char *path);

/* Removes what is in directory path but the n given names (each up to 15 characters). */
void tree_keep_only(struct tree *t, const char *path, const char *const *names, size_t n);
