// SPDX-License-Identifier: BSD-3-Clause
/* open(2) and its kin, and fopen(3). */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/mark.h"
#include "shim/next.h"
#include "shim/scif.h"
#include "shim/shim.h"
#include "shim/umad.h"

typedef int (*open_fn)(const char *, int, ...);
typedef int (*openat_fn)(int, const char *, int, ...);
typedef int (*open_2_fn)(const char *, int);
typedef int (*openat_2_fn)(int, const char *, int);
typedef FILE *(*fopen_fn)(const char *, const char *);
typedef FILE *(*freopen_fn)(const char *, const char *, FILE *);

static bool is_device(const struct path_mapped *m)
{
	return m->kind == PATH_DEV_NODE || m->kind == PATH_SCIF;
}

static bool wants_write(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC);
}

/*
 * The errno that opening a mapped file for writing gets: attributes are read-only, for root too,
 * and nothing can be made here.  Device nodes may be written.  0: it may be opened.
 */
static int refusal(const struct path_mapped *m, int flags)
{
	int (*real)(int, const char *, struct stat *, int) = next(NEXT_FSTATAT);
	struct stat st;

	if (m->kind == PATH_OTHER || (flags & O_PATH) || !wants_write(flags))
		return 0;
	if (real(AT_FDCWD, m->real, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT && (flags & O_CREAT) ? EACCES : errno;
	if ((flags & O_CREAT) && (flags & O_EXCL))
		return EEXIST;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return is_device(m) ? 0 : EACCES;
}

/* The path and flags with which to open it; -1 with errno if it may not be. */
static int prepare(const char *path, int *flags, struct path_mapped *m)
{
	int saved = errno, refused;

	if (map_or_errno(path, m))
		return -1;
	refused = refusal(m, *flags);
	errno = refused ? refused : saved;
	if (is_device(m))
		*flags &= ~(O_NOFOLLOW | O_CREAT);
	return refused ? -1 : 0;
}

/* Not if the path goes on behind it: that is for the file system to refuse. */
static bool opens_scif(const struct path_mapped *m)
{
	return m->kind == PATH_SCIF && !strcmp(m->real, "/dev/null");
}

SLOW static int open_ours(const char *path, int flags, mode_t mode)
{
	openat_fn real = (openat_fn)next(NEXT_OPENAT);
	struct path_mapped m;
	int fd;

	if (prepare(path, &flags, &m))
		return -1;
	if (opens_scif(&m) && !(flags & O_PATH))
		return scif_open_device(flags);
	if (umad_path(&m) && !(flags & O_PATH))
		return umad_open_device(&m, flags);
	fd = real(AT_FDCWD, m.real, flags, mode);
	if (fd >= 0 && m.kind == PATH_DEV_NODE && !(flags & O_PATH))
		mark_set(fd, FILE_UVERBS, flags);
	return fd;
}

SLOW static int open_again(int dirfd, const char *path, int flags, mode_t mode)
{
	char abs[PATH_MAX];

	return path_from(dirfd, path, abs) ? open_ours(abs, flags, mode) : -1;
}

static inline int open_by(enum next_fn fn, const char *path, int flags, mode_t mode)
{
	int fd;

	if (path_ours(path))
		return open_ours(path, flags, mode);
	fd = ((open_fn)next(fn))(path, flags, mode);
	return fd < 0 && path_retry(path) ? open_again(AT_FDCWD, path, flags, mode) : fd;
}

static inline int openat_by(enum next_fn fn, int dirfd, const char *path, int flags, mode_t mode)
{
	int fd;

	if (path_ours(path))
		return open_ours(path, flags, mode);
	fd = ((openat_fn)next(fn))(dirfd, path, flags, mode);
	return fd < 0 && path_retry(path) ? open_again(dirfd, path, flags, mode) : fd;
}

static inline mode_t mode_arg(int flags, va_list ap)
{
	return __OPEN_NEEDS_MODE(flags) ? va_arg(ap, mode_t) : 0;
}

EXPORT int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_arg(flags, ap);
	va_end(ap);
	return open_by(NEXT_OPEN, path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_arg(flags, ap);
	va_end(ap);
	return open_by(NEXT_OPEN64, path, flags, mode);
}

EXPORT int openat(int dirfd, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_arg(flags, ap);
	va_end(ap);
	return openat_by(NEXT_OPENAT, dirfd, path, flags, mode);
}

EXPORT int openat64(int dirfd, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = mode_arg(flags, ap);
	va_end(ap);
	return openat_by(NEXT_OPENAT64, dirfd, path, flags, mode);
}

EXPORT int creat(const char *path, mode_t mode)
{
	return open_by(NEXT_OPEN, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

EXPORT int creat64(const char *path, mode_t mode)
{
	return open_by(NEXT_OPEN64, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* What _FORTIFY_SOURCE calls.  With flags that need a mode, the real one ends the program. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

static inline int open_2_by(enum next_fn fn, const char *path, int flags)
{
	int fd;

	if (path_ours(path) && !__OPEN_NEEDS_MODE(flags))
		return open_ours(path, flags, 0);
	fd = ((open_2_fn)next(fn))(path, flags);
	return fd < 0 && path_retry(path) ? open_again(AT_FDCWD, path, flags, 0) : fd;
}

static inline int openat_2_by(enum next_fn fn, int dirfd, const char *path, int flags)
{
	int fd;

	if (path_ours(path) && !__OPEN_NEEDS_MODE(flags))
		return open_ours(path, flags, 0);
	fd = ((openat_2_fn)next(fn))(dirfd, path, flags);
	return fd < 0 && path_retry(path) ? open_again(dirfd, path, flags, 0) : fd;
}

EXPORT int __open_2(const char *path, int flags)
{
	return open_2_by(NEXT_OPEN_2, path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
	return open_2_by(NEXT_OPEN64_2, path, flags);
}

EXPORT int __openat_2(int dirfd, const char *path, int flags)
{
	return openat_2_by(NEXT_OPENAT_2, dirfd, path, flags);
}

EXPORT int __openat64_2(int dirfd, const char *path, int flags)
{
	return openat_2_by(NEXT_OPENAT64_2, dirfd, path, flags);
}

static int mode_flags(const char *mode)
{
	if (mode[0] != 'r')
		return O_WRONLY | O_CREAT;
	return strchr(mode, '+') ? O_RDWR : O_RDONLY;
}

static FILE *fopen_scif(const char *mode)
{
	int fd = scif_open_device(strchr(mode, 'e') ? O_CLOEXEC : 0);
	FILE *file = fd < 0 ? NULL : fdopen(fd, mode);

	if (fd >= 0 && !file)
		close(fd);
	return file;
}

/* A stream reads its fd by itself, which for a umad file is not the way: refused. */
SLOW static FILE *fopen_ours(enum next_fn fn, const char *path, const char *mode)
{
	struct path_mapped m;
	int flags = mode_flags(mode);

	if (prepare(path, &flags, &m))
		return NULL;
	if (umad_path(&m)) {
		errno = ENXIO;
		return NULL;
	}
	return opens_scif(&m) ? fopen_scif(mode) : ((fopen_fn)next(fn))(m.real, mode);
}

SLOW static FILE *fopen_again(enum next_fn fn, const char *path, const char *mode)
{
	char abs[PATH_MAX];

	return path_from(AT_FDCWD, path, abs) ? fopen_ours(fn, abs, mode) : NULL;
}

static inline FILE *fopen_by(enum next_fn fn, const char *path, const char *mode)
{
	FILE *file;

	if (path_ours(path))
		return fopen_ours(fn, path, mode);
	file = ((fopen_fn)next(fn))(path, mode);
	return !file && path_retry(path) ? fopen_again(fn, path, mode) : file;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	return fopen_by(NEXT_FOPEN, path, mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	return fopen_by(NEXT_FOPEN64, path, mode);
}

/*
 * A refused one closes the stream all the same, as freopen() does when it fails.  The SCIF
 * device is refused: a stream's file description cannot become an endpoint, or a umad file.
 */
SLOW static FILE *freopen_ours(enum next_fn fn, const char *path, const char *mode, FILE *file)
{
	freopen_fn real = (freopen_fn)next(fn);
	struct path_mapped m;
	int flags = mode_flags(mode), refused;

	if (!prepare(path, &flags, &m)) {
		if (!opens_scif(&m) && !umad_path(&m))
			return real(m.real, mode, file);
		errno = ENXIO;
	}
	refused = errno;
	real("", mode, file);
	errno = refused;
	return NULL;
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *file)
{
	if (path_ours(path))
		return freopen_ours(NEXT_FREOPEN, path, mode, file);
	return ((freopen_fn)next(NEXT_FREOPEN))(path, mode, file);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *file)
{
	if (path_ours(path))
		return freopen_ours(NEXT_FREOPEN64, path, mode, file);
	return ((freopen_fn)next(NEXT_FREOPEN64))(path, mode, file);
}
