/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which paths are ours, and where they lie in weftd's tree (fabric/sysfs.h).  Ours are
 * /dev/infiniband and /sys/class/infiniband{,_verbs,_mad,_cm} and all below; of peer clients
 * /sys/kernel/mm/memory_peers and /sys/module/{nvidia_peermem,nv_peer_mem}; and /dev/scif and
 * /dev/mic/scif, which show as /dev/null does (scif.h opens them).  No function here allocates, or
 * takes a lock; all keep errno unless they say so.
 */
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum path_kind { PATH_OTHER, PATH_SYS, PATH_PEERS, PATH_DEV_DIR, PATH_DEV_NODE, PATH_SCIF };

/* What became of a path of ours. */
struct path_mapped {
	enum path_kind kind; /* PATH_OTHER: by "..", it leads out of ours */
	char virt[PATH_MAX]; /* as the program sees it: absolute, no ".", "..", "//" */
	char real[PATH_MAX]; /* where it lies; the same as virt for PATH_OTHER */
};

/* The slow half of path_ours(). */
bool path_match(const char *path);

/*
 * True if path is absolute and lies in ours, symbolic links aside.  A path that leads into ours
 * by ".." in front of it is not recognised.  Any pointer near 0 is accepted, for the kernel to
 * refuse.
 */
static inline bool path_ours(const char *path)
{
	enum { PAGE = 4096 };

	/* Programs probe with NULL and (char *)-1, for which libc gives EFAULT. */
	if ((uintptr_t)path < PAGE || (uintptr_t)path > UINTPTR_MAX - PAGE || path[0] != '/')
		return false;
	if (path[1] != 'd' && path[1] != 's' && path[1] != '/' && path[1] != '.')
		return false;
	return path_match(path);
}

/* Whether a path that a successful call with AT_EMPTY_PATH had is none: "" or, since 6.11, NULL. */
static inline bool path_is_empty(const char *path)
{
	return !path || !path[0];
}

/*
 * To be called when a call on path failed: true if it failed with ENOENT and path is a relative
 * one that may be ours, seen from its directory, so that path_from() should look.
 */
static inline bool path_retry(const char *path)
{
	return errno == ENOENT && path[0] != '/' &&
	       (strstr(path, "infiniband") || strstr(path, "scif") || strstr(path, "peer"));
}

/*
 * Whether a relative path, seen from dirfd (AT_FDCWD: the current directory), is ours; then it is
 * in abs.
 */
bool path_from(int dirfd, const char *path, char abs[PATH_MAX]);

/*
 * Maps a path for which path_ours() is true, by the given root of the tree, and by its letters
 * alone: "a/.." is nothing.  A trailing slash is kept.  Returns 0 or a negative errno:
 * -ENAMETOOLONG.
 */
int path_map_to(const char *root, const char *path, struct path_mapped *out);

/*
 * The same in the tree of this process's fabric, see tree_root(), but as the kernel has "..": links
 * before it are followed, and what is no directory is an error.
 */
int path_map(const char *path, struct path_mapped *out);

/* Makes an absolute path, as the kernel has it, what the program sees of it. */
void path_outside(const char *root, char *real);
