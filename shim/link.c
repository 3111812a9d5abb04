// SPDX-License-Identifier: BSD-3-Clause
/* readlink(2) and realpath(3): the tree's own place must not show. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/next.h"
#include "shim/root.h"
#include "shim/shim.h"

typedef ssize_t (*readlink_fn)(const char *, char *, size_t);
typedef ssize_t (*readlinkat_fn)(int, const char *, char *, size_t);
typedef ssize_t (*readlink_chk_fn)(const char *, char *, size_t, size_t);
typedef ssize_t (*readlinkat_chk_fn)(int, const char *, char *, size_t, size_t);
typedef char *(*realpath_fn)(const char *, char *);
typedef char *(*realpath_chk_fn)(const char *, char *, size_t);

/* A device node is a link in the tree only; the links in sysfs are shown as they are. */
SLOW static ssize_t readlink_ours(const char *path, char *buf, size_t size)
{
	readlink_fn real = (readlink_fn)next(NEXT_READLINK);
	struct path_mapped m;
	ssize_t n;

	if (map_or_errno(path, &m))
		return -1;
	n = real(m.real, buf, size);
	if (n < 0 || m.kind != PATH_DEV_NODE)
		return n;
	errno = EINVAL;
	return -1;
}

EXPORT ssize_t readlink(const char *path, char *buf, size_t size)
{
	if (path_ours(path))
		return readlink_ours(path, buf, size);
	return ((readlink_fn)next(NEXT_READLINK))(path, buf, size);
}

EXPORT ssize_t readlinkat(int dirfd, const char *path, char *buf, size_t size)
{
	if (path_ours(path))
		return readlink_ours(path, buf, size);
	return ((readlinkat_fn)next(NEXT_READLINKAT))(dirfd, path, buf, size);
}

/* What _FORTIFY_SOURCE calls.  With too small a buffer, the real one ends the program. */
ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t buf_size);
ssize_t __readlinkat_chk(int dirfd, const char *path, char *buf, size_t size, size_t buf_size);
char *__realpath_chk(const char *path, char *resolved, size_t size);

EXPORT ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t buf_size)
{
	if (path_ours(path) && size <= buf_size)
		return readlink_ours(path, buf, size);
	return ((readlink_chk_fn)next(NEXT_READLINK_CHK))(path, buf, size, buf_size);
}

EXPORT ssize_t __readlinkat_chk(
	int dirfd, const char *path, char *buf, size_t size, size_t buf_size)
{
	if (path_ours(path) && size <= buf_size)
		return readlink_ours(path, buf, size);
	return ((readlinkat_chk_fn)next(NEXT_READLINKAT_CHK))(dirfd, path, buf, size, buf_size);
}

/* Where a mapped path leads, in the program's eyes; -1 with errno. */
static int resolve(const struct path_mapped *m, char *out)
{
	realpath_fn real = (realpath_fn)next(NEXT_REALPATH);
	int (*real_access)(const char *, int) = next(NEXT_ACCESS);
	char root[PATH_MAX];

	if (m->kind == PATH_DEV_NODE || m->kind == PATH_SCIF) {
		strcpy(out, m->virt);
		return real_access(m->real, F_OK);
	}
	if (!real(m->real, out))
		return -1;
	tree_root(root);
	path_outside(root, out);
	return 0;
}

SLOW static char *realpath_ours(const char *path, char *resolved)
{
	struct path_mapped m;
	char out[PATH_MAX];

	if (map_or_errno(path, &m) || resolve(&m, out))
		return NULL;
	return resolved ? strcpy(resolved, out) : strdup(out);
}

EXPORT char *realpath(const char *path, char *resolved)
{
	if (path_ours(path))
		return realpath_ours(path, resolved);
	return ((realpath_fn)next(NEXT_REALPATH))(path, resolved);
}

EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	if (path_ours(path) && size >= PATH_MAX)
		return realpath_ours(path, resolved);
	return ((realpath_chk_fn)next(NEXT_REALPATH_CHK))(path, resolved, size);
}

EXPORT char *canonicalize_file_name(const char *path)
{
	char *(*real)(const char *) = next(NEXT_CANONICALIZE_FILE_NAME);

	return path_ours(path) ? realpath_ours(path, NULL) : real(path);
}
