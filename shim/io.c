// SPDX-License-Identifier: BSD-3-Clause
/*
 * Reading and writing umad files.  For all other fds a wrapper is a load and a branch; before libc
 * can look anything up, as when an allocator starts, it is the system call.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/user_mem.h"
#include "shim/mark.h"
#include "shim/next.h"
#include "shim/shim.h"
#include "shim/umad.h"

typedef ssize_t (*read_fn)(int, void *, size_t);
typedef ssize_t (*write_fn)(int, const void *, size_t);
typedef ssize_t (*vector_fn)(int, const struct iovec *, int);

static void *found(enum next_fn fn)
{
	return atomic_load_explicit(&next_found[fn], memory_order_relaxed);
}

EXPORT ssize_t read(int fd, void *buf, size_t len)
{
	read_fn real = (read_fn)found(NEXT_READ);
	ssize_t ret;

	if (marked(fd) && umad_read(fd, buf, len, &ret))
		return ret;
	return real ? real(fd, buf, len) : syscall(SYS_read, fd, buf, len);
}

EXPORT ssize_t write(int fd, const void *buf, size_t len)
{
	write_fn real = (write_fn)found(NEXT_WRITE);
	ssize_t ret;

	if (marked(fd) && umad_write(fd, buf, len, &ret))
		return ret;
	return real ? real(fd, buf, len) : syscall(SYS_write, fd, buf, len);
}

/* What _FORTIFY_SOURCE calls.  With too small a buffer, the real one ends the program. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);

EXPORT ssize_t __read_chk(int fd, void *buf, size_t len, size_t size)
{
	ssize_t (*real)(int, void *, size_t, size_t) = next(NEXT_READ_CHK);

	return len > size ? real(fd, buf, len, size) : read(fd, buf, len);
}

/* False: it is none of ours, and nothing is done. */
static bool one(int fd, const struct iovec *iov, bool reading, ssize_t *ret)
{
	return reading ? umad_read(fd, iov->iov_base, iov->iov_len, ret)
		       : umad_write(fd, iov->iov_base, iov->iov_len, ret);
}

/*
 * The kernel reads and writes each segment by itself, for a umad file knows no vectors; and stops
 * after the first that is not done whole.
 */
static bool each(int fd, const struct iovec *iov, int n, bool reading, ssize_t *ret)
{
	ssize_t done = 0, got;
	int saved = errno;

	for (int i = 0; i < n; i++) {
		if (!iov[i].iov_len)
			continue;
		if (!one(fd, &iov[i], reading, &got)) {
			if (!done)
				return false;
			break;
		}
		if (got < 0 && !done) {
			*ret = got;
			return true;
		}
		done += got > 0 ? got : 0;
		if (got != (ssize_t)iov[i].iov_len)
			break;
	}
	errno = saved;
	*ret = done;
	return true;
}

/* Of a vector that the kernel would not take it is asked for the errno. */
SLOW static bool vector(int fd, const struct iovec *iov, int n, bool reading, ssize_t *ret)
{
	struct iovec copy[IOV_MAX];
	size_t sum = 0;

	if (n < 0 || n > IOV_MAX || user_get(copy, (uintptr_t)iov, n * sizeof *iov))
		return false;
	for (int i = 0; i < n; i++) {
		if (copy[i].iov_len > SSIZE_MAX - sum)
			return false;
		sum += copy[i].iov_len;
	}
	return sum && each(fd, copy, n, reading, ret);
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int n)
{
	vector_fn real = (vector_fn)found(NEXT_READV);
	ssize_t ret;

	if (marked(fd) && vector(fd, iov, n, true, &ret))
		return ret;
	return real ? real(fd, iov, n) : syscall(SYS_readv, fd, iov, n);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int n)
{
	vector_fn real = (vector_fn)found(NEXT_WRITEV);
	ssize_t ret;

	if (marked(fd) && vector(fd, iov, n, false, &ret))
		return ret;
	return real ? real(fd, iov, n) : syscall(SYS_writev, fd, iov, n);
}
