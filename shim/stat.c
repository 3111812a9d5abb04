// SPDX-License-Identifier: BSD-3-Clause
/*
 * The stat family, of paths and of descriptors.  A umad file's fd is a socket to the kernel, and a
 * uverbs file's is /dev/null: what is shown of them is what stat(2) shows of their device files.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "fabric/sysfs.h"
#include "shim/mark.h"
#include "shim/next.h"
#include "shim/shim.h"
#include "shim/umad.h"

enum { STAT_VER_MAX = 1 };
/* Of /dev/scif, whose minor number the kernel chose as it came. */
enum { MISC_MAJOR = 10, SCIF_MINOR = 119 };

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64-bit only: one struct stat");

typedef int (*stat_fn)(const char *, struct stat *);
typedef int (*xstat_fn)(int, const char *, struct stat *);
typedef int (*fstat_fn)(int, struct stat *);
typedef int (*fxstat_fn)(int, int, struct stat *);
typedef int (*fstatat_fn)(int, const char *, struct stat *, int);
typedef int (*fxstatat_fn)(int, int, const char *, struct stat *, int);
typedef int (*statx_fn)(int, const char *, int, unsigned, struct statx *);

/* The devices in /dev/infiniband: the minor number of the first, and who may open it. */
static const struct {
	const char *name;
	unsigned minor;
	mode_t mode;
} nodes[] = {
	{"uverbs", SYSFS_UVERBS_MINOR, 0666},
	{"umad", SYSFS_UMAD_MINOR, 0600},
	{"issm", SYSFS_ISSM_MINOR, 0600},
};

/* What stat(2) shows of a device. */
struct shown {
	mode_t mode;
	dev_t dev;
};

/* False: there is no device of that name. */
static bool node_shown(const char *virt, struct shown *as)
{
	const char *name = strrchr(virt, '/') + 1;

	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		size_t len = strlen(nodes[i].name);

		if (strncmp(name, nodes[i].name, len))
			continue;
		as->mode = S_IFCHR | nodes[i].mode;
		as->dev = makedev(SYSFS_MAJOR, nodes[i].minor + strtoul(name + len, NULL, 10));
		return true;
	}
	return false;
}

/* True: it is a device of ours, whose file in the tree has that mode. */
static bool shown_as(const struct path_mapped *m, mode_t mode, struct shown *as)
{
	if (m->kind == PATH_DEV_NODE)
		return S_ISLNK(mode) && node_shown(m->virt, as);
	*as = (struct shown){S_IFCHR | 0666, makedev(MISC_MAJOR, SCIF_MINOR)};
	return m->kind == PATH_SCIF;
}

/* A device node is a link in the tree: it is looked at itself, and shown as what it means. */
SLOW static int stat_ours(const char *path, struct stat *st, int flags)
{
	fstatat_fn real = (fstatat_fn)next(NEXT_FSTATAT);
	struct path_mapped m;
	struct shown as;
	int rc;

	if (map_or_errno(path, &m))
		return -1;
	if (m.kind == PATH_DEV_NODE)
		flags |= AT_SYMLINK_NOFOLLOW;
	rc = real(AT_FDCWD, m.real, st, flags);
	if (!rc && shown_as(&m, st->st_mode, &as)) {
		st->st_mode = as.mode;
		st->st_rdev = as.dev;
		st->st_size = 0;
	}
	return rc;
}

SLOW static int stat_again(int rc, int dirfd, const char *path, struct stat *st, int flags)
{
	char abs[PATH_MAX];

	return path_from(dirfd, path, abs) ? stat_ours(abs, st, flags) : rc;
}

/* Whether the fd of a call, with that path and those flags, is itself what is asked about. */
static inline bool is_of_fd(int fd, const char *path, int flags)
{
	return (flags & AT_EMPTY_PATH) && marked(fd) && path_is_empty(path);
}

/* After fstat() of a marked fd; weftd, with its tree, may be gone. */
SLOW static int fstat_ours(int fd, struct stat *st)
{
	char path[UMAD_NODE_PATH];
	struct stat node;
	struct shown as;
	int saved = errno;

	if (!umad_node(fd, S_ISCHR(st->st_mode) ? st->st_rdev : 0, path))
		return 0;
	if (!stat_ours(path, &node, 0)) {
		*st = node;
	} else if (node_shown(path, &as)) {
		st->st_mode = as.mode;
		st->st_rdev = as.dev;
	}
	errno = saved;
	return 0;
}

static inline int fstat_by(enum next_fn fn, int fd, struct stat *st)
{
	int rc = ((fstat_fn)next(fn))(fd, st);

	return !rc && marked(fd) ? fstat_ours(fd, st) : rc;
}

static inline int fxstat_by(enum next_fn fn, int ver, int fd, struct stat *st)
{
	int rc = ((fxstat_fn)next(fn))(ver, fd, st);

	return !rc && marked(fd) ? fstat_ours(fd, st) : rc;
}

static inline int stat_by(enum next_fn fn, const char *path, struct stat *st, int flags)
{
	int rc;

	if (path_ours(path))
		return stat_ours(path, st, flags);
	rc = ((stat_fn)next(fn))(path, st);
	return rc && path_retry(path) ? stat_again(rc, AT_FDCWD, path, st, flags) : rc;
}

static inline int fstatat_by(
	enum next_fn fn, int dirfd, const char *path, struct stat *st, int flags)
{
	int rc;

	if (path_ours(path))
		return stat_ours(path, st, flags);
	rc = ((fstatat_fn)next(fn))(dirfd, path, st, flags);
	if (!rc)
		return is_of_fd(dirfd, path, flags) ? fstat_ours(dirfd, st) : 0;
	return path_retry(path) ? stat_again(rc, dirfd, path, st, flags) : rc;
}

static inline int xstat_by(enum next_fn fn, int ver, const char *path, struct stat *st, int flags)
{
	int rc;

	if (path_ours(path) && ver >= 0 && ver <= STAT_VER_MAX)
		return stat_ours(path, st, flags);
	rc = ((xstat_fn)next(fn))(ver, path, st);
	return rc && path_retry(path) ? stat_again(rc, AT_FDCWD, path, st, flags) : rc;
}

static inline int fxstatat_by(
	enum next_fn fn, int ver, int dirfd, const char *path, struct stat *st, int flags)
{
	int rc;

	if (path_ours(path) && ver >= 0 && ver <= STAT_VER_MAX)
		return stat_ours(path, st, flags);
	rc = ((fxstatat_fn)next(fn))(ver, dirfd, path, st, flags);
	if (!rc)
		return is_of_fd(dirfd, path, flags) ? fstat_ours(dirfd, st) : 0;
	return path_retry(path) ? stat_again(rc, dirfd, path, st, flags) : rc;
}

EXPORT int stat(const char *path, struct stat *st)
{
	return stat_by(NEXT_STAT, path, st, 0);
}

EXPORT int stat64(const char *path, struct stat64 *st)
{
	return stat_by(NEXT_STAT64, path, (struct stat *)st, 0);
}

EXPORT int lstat(const char *path, struct stat *st)
{
	return stat_by(NEXT_LSTAT, path, st, AT_SYMLINK_NOFOLLOW);
}

EXPORT int lstat64(const char *path, struct stat64 *st)
{
	return stat_by(NEXT_LSTAT64, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstat(int fd, struct stat *st)
{
	return fstat_by(NEXT_FSTAT, fd, st);
}

EXPORT int fstat64(int fd, struct stat64 *st)
{
	return fstat_by(NEXT_FSTAT64, fd, (struct stat *)st);
}

EXPORT int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return fstatat_by(NEXT_FSTATAT, dirfd, path, st, flags);
}

EXPORT int fstatat64(int dirfd, const char *path, struct stat64 *st, int flags)
{
	return fstatat_by(NEXT_FSTATAT64, dirfd, path, (struct stat *)st, flags);
}

/* What programs built against glibc before 2.33 call. */
int __xstat(int ver, const char *path, struct stat *st);
int __xstat64(int ver, const char *path, struct stat64 *st);
int __lxstat(int ver, const char *path, struct stat *st);
int __lxstat64(int ver, const char *path, struct stat64 *st);
int __fxstat(int ver, int fd, struct stat *st);
int __fxstat64(int ver, int fd, struct stat64 *st);
int __fxstatat(int ver, int dirfd, const char *path, struct stat *st, int flags);
int __fxstatat64(int ver, int dirfd, const char *path, struct stat64 *st, int flags);

EXPORT int __xstat(int ver, const char *path, struct stat *st)
{
	return xstat_by(NEXT_XSTAT, ver, path, st, 0);
}

EXPORT int __xstat64(int ver, const char *path, struct stat64 *st)
{
	return xstat_by(NEXT_XSTAT64, ver, path, (struct stat *)st, 0);
}

EXPORT int __lxstat(int ver, const char *path, struct stat *st)
{
	return xstat_by(NEXT_LXSTAT, ver, path, st, AT_SYMLINK_NOFOLLOW);
}

EXPORT int __lxstat64(int ver, const char *path, struct stat64 *st)
{
	return xstat_by(NEXT_LXSTAT64, ver, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW);
}

EXPORT int __fxstat(int ver, int fd, struct stat *st)
{
	return fxstat_by(NEXT_FXSTAT, ver, fd, st);
}

EXPORT int __fxstat64(int ver, int fd, struct stat64 *st)
{
	return fxstat_by(NEXT_FXSTAT64, ver, fd, (struct stat *)st);
}

EXPORT int __fxstatat(int ver, int dirfd, const char *path, struct stat *st, int flags)
{
	return fxstatat_by(NEXT_FXSTATAT, ver, dirfd, path, st, flags);
}

EXPORT int __fxstatat64(int ver, int dirfd, const char *path, struct stat64 *st, int flags)
{
	return fxstatat_by(NEXT_FXSTATAT64, ver, dirfd, path, (struct stat *)st, flags);
}

SLOW static int statx_ours(const char *path, int flags, unsigned mask, struct statx *stx)
{
	statx_fn real = (statx_fn)next(NEXT_STATX);
	struct path_mapped m;
	struct shown as;
	int rc;

	if (map_or_errno(path, &m))
		return -1;
	if (m.kind == PATH_DEV_NODE)
		flags |= AT_SYMLINK_NOFOLLOW;
	rc = real(AT_FDCWD, m.real, flags, mask, stx);
	if (!rc && shown_as(&m, stx->stx_mode, &as)) {
		stx->stx_mode = as.mode;
		stx->stx_rdev_major = major(as.dev);
		stx->stx_rdev_minor = minor(as.dev);
		stx->stx_size = 0;
	}
	return rc;
}

SLOW static int statx_again(
	int rc, int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
	char abs[PATH_MAX];

	return path_from(dirfd, path, abs) ? statx_ours(abs, flags, mask, stx) : rc;
}

SLOW static int fstatx_ours(int fd, int flags, unsigned mask, struct statx *stx)
{
	char path[UMAD_NODE_PATH];
	struct statx node;
	struct shown as;
	int saved = errno;
	dev_t real = S_ISCHR(stx->stx_mode) ? makedev(stx->stx_rdev_major, stx->stx_rdev_minor) : 0;

	if (!umad_node(fd, real, path))
		return 0;
	if (!statx_ours(path, flags & ~AT_EMPTY_PATH, mask, &node)) {
		*stx = node;
	} else if (node_shown(path, &as)) {
		stx->stx_mode = as.mode;
		stx->stx_rdev_major = major(as.dev);
		stx->stx_rdev_minor = minor(as.dev);
	}
	errno = saved;
	return 0;
}

EXPORT int statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)
{
	int rc;

	if (path_ours(path))
		return statx_ours(path, flags, mask, stx);
	rc = ((statx_fn)next(NEXT_STATX))(dirfd, path, flags, mask, stx);
	if (!rc)
		return is_of_fd(dirfd, path, flags) ? fstatx_ours(dirfd, flags, mask, stx) : 0;
	return path_retry(path) ? statx_again(rc, dirfd, path, flags, mask, stx) : rc;
}
