// SPDX-License-Identifier: BSD-3-Clause
/*
 * Reading directories, and going there.  Once open, a directory of ours is one of the file system,
 * so readdir(), fdopendir() and the like need no help; nor do paths relative to one, but for those
 * that lead out of it by "..".
 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "shim/next.h"
#include "shim/shim.h"

typedef DIR *(*opendir_fn)(const char *);
typedef int (*filter_fn)(const struct dirent *);
typedef int (*order_fn)(const struct dirent **, const struct dirent **);
typedef int (*filter64_fn)(const struct dirent64 *);
typedef int (*order64_fn)(const struct dirent64 **, const struct dirent64 **);
typedef int (*scandirat_fn)(int, const char *, struct dirent ***, filter_fn, order_fn);
typedef int (*scandirat64_fn)(int, const char *, struct dirent64 ***, filter64_fn, order64_fn);

SLOW static DIR *opendir_ours(const char *path)
{
	struct path_mapped m;

	return map_or_errno(path, &m) ? NULL : ((opendir_fn)next(NEXT_OPENDIR))(m.real);
}

SLOW static DIR *opendir_again(const char *path)
{
	char abs[PATH_MAX];

	return path_from(AT_FDCWD, path, abs) ? opendir_ours(abs) : NULL;
}

EXPORT DIR *opendir(const char *path)
{
	DIR *dir;

	if (path_ours(path))
		return opendir_ours(path);
	dir = ((opendir_fn)next(NEXT_OPENDIR))(path);
	return !dir && path_retry(path) ? opendir_again(path) : dir;
}

SLOW static int scandir_ours(
	const char *path, struct dirent ***list, filter_fn filter, order_fn order)
{
	scandirat_fn real = (scandirat_fn)next(NEXT_SCANDIRAT);
	struct path_mapped m;

	return map_or_errno(path, &m) ? -1 : real(AT_FDCWD, m.real, list, filter, order);
}

SLOW static int scandir64_ours(
	const char *path, struct dirent64 ***list, filter64_fn filter, order64_fn order)
{
	scandirat64_fn real = (scandirat64_fn)next(NEXT_SCANDIRAT64);
	struct path_mapped m;

	return map_or_errno(path, &m) ? -1 : real(AT_FDCWD, m.real, list, filter, order);
}

EXPORT int scandir(const char *path, struct dirent ***list, filter_fn filter, order_fn order)
{
	int (*real)(const char *, struct dirent ***, filter_fn, order_fn) = next(NEXT_SCANDIR);

	if (path_ours(path))
		return scandir_ours(path, list, filter, order);
	return real(path, list, filter, order);
}

EXPORT int scandir64(
	const char *path, struct dirent64 ***list, filter64_fn filter, order64_fn order)
{
	int (*real)(const char *, struct dirent64 ***, filter64_fn, order64_fn) =
		next(NEXT_SCANDIR64);

	if (path_ours(path))
		return scandir64_ours(path, list, filter, order);
	return real(path, list, filter, order);
}

EXPORT int scandirat(
	int dirfd, const char *path, struct dirent ***list, filter_fn filter, order_fn order)
{
	if (path_ours(path))
		return scandir_ours(path, list, filter, order);
	return ((scandirat_fn)next(NEXT_SCANDIRAT))(dirfd, path, list, filter, order);
}

EXPORT int scandirat64(
	int dirfd, const char *path, struct dirent64 ***list, filter64_fn filter, order64_fn order)
{
	if (path_ours(path))
		return scandir64_ours(path, list, filter, order);
	return ((scandirat64_fn)next(NEXT_SCANDIRAT64))(dirfd, path, list, filter, order);
}

SLOW static int chdir_ours(const char *path)
{
	struct path_mapped m;

	return map_or_errno(path, &m) ? -1 : ((int (*)(const char *))next(NEXT_CHDIR))(m.real);
}

SLOW static int chdir_again(const char *path)
{
	char abs[PATH_MAX];

	return path_from(AT_FDCWD, path, abs) ? chdir_ours(abs) : -1;
}

EXPORT int chdir(const char *path)
{
	int rc;

	if (path_ours(path))
		return chdir_ours(path);
	rc = ((int (*)(const char *))next(NEXT_CHDIR))(path);
	return rc && path_retry(path) ? chdir_again(path) : rc;
}
