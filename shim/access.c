// SPDX-License-Identifier: BSD-3-Clause
/* The access family, and extended attributes, which ls(1) asks for. */
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "shim/next.h"
#include "shim/shim.h"

typedef int (*access_fn)(const char *, int);
typedef int (*faccessat_fn)(int, const char *, int, int);
typedef ssize_t (*getxattr_fn)(const char *, const char *, void *, size_t);
typedef ssize_t (*listxattr_fn)(const char *, char *, size_t);

SLOW static int access_ours(const char *path, int mode, int flags)
{
	faccessat_fn real = (faccessat_fn)next(NEXT_FACCESSAT);
	struct path_mapped m;

	return map_or_errno(path, &m) ? -1 : real(AT_FDCWD, m.real, mode, flags);
}

SLOW static int access_again(int rc, int dirfd, const char *path, int mode, int flags)
{
	char abs[PATH_MAX];

	return path_from(dirfd, path, abs) ? access_ours(abs, mode, flags) : rc;
}

static inline int access_by(enum next_fn fn, const char *path, int mode, int flags)
{
	int rc;

	if (path_ours(path))
		return access_ours(path, mode, flags);
	rc = ((access_fn)next(fn))(path, mode);
	return rc && path_retry(path) ? access_again(rc, AT_FDCWD, path, mode, flags) : rc;
}

EXPORT int access(const char *path, int mode)
{
	return access_by(NEXT_ACCESS, path, mode, 0);
}

EXPORT int eaccess(const char *path, int mode)
{
	return access_by(NEXT_EACCESS, path, mode, AT_EACCESS);
}

EXPORT int euidaccess(const char *path, int mode)
{
	return access_by(NEXT_EUIDACCESS, path, mode, AT_EACCESS);
}

EXPORT int faccessat(int dirfd, const char *path, int mode, int flags)
{
	int rc;

	if (path_ours(path))
		return access_ours(path, mode, flags);
	rc = ((faccessat_fn)next(NEXT_FACCESSAT))(dirfd, path, mode, flags);
	return rc && path_retry(path) ? access_again(rc, dirfd, path, mode, flags) : rc;
}

SLOW static ssize_t getxattr_ours(
	enum next_fn fn, const char *path, const char *name, void *value, size_t size)
{
	struct path_mapped m;

	return map_or_errno(path, &m) ? -1 : ((getxattr_fn)next(fn))(m.real, name, value, size);
}

SLOW static ssize_t listxattr_ours(enum next_fn fn, const char *path, char *list, size_t size)
{
	struct path_mapped m;

	return map_or_errno(path, &m) ? -1 : ((listxattr_fn)next(fn))(m.real, list, size);
}

EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	if (path_ours(path))
		return getxattr_ours(NEXT_GETXATTR, path, name, value, size);
	return ((getxattr_fn)next(NEXT_GETXATTR))(path, name, value, size);
}

EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	if (path_ours(path))
		return getxattr_ours(NEXT_LGETXATTR, path, name, value, size);
	return ((getxattr_fn)next(NEXT_LGETXATTR))(path, name, value, size);
}

EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
	if (path_ours(path))
		return listxattr_ours(NEXT_LISTXATTR, path, list, size);
	return ((listxattr_fn)next(NEXT_LISTXATTR))(path, list, size);
}

EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
	if (path_ours(path))
		return listxattr_ours(NEXT_LLISTXATTR, path, list, size);
	return ((listxattr_fn)next(NEXT_LLISTXATTR))(path, list, size);
}
