// SPDX-License-Identifier: BSD-3-Clause
/*
 * System calls on file descriptors of the SCIF device, and commands of umad files.  Until a program
 * has opened one, each is a few loads and branches more than without the shim.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "scif/face/device.h"
#include "scif/face/device_abi.h"
#include "shim/mark.h"
#include "shim/next.h"
#include "shim/scif.h"
#include "shim/shim.h"
#include "shim/umad.h"

typedef void *(*mmap_fn)(void *, size_t, int, int, int, off_t);

/* Is this no answer, but for the kernel to give? */
static bool passed_on(int64_t ret)
{
	return ret == -ENOTTY || ret == -EBADF;
}

static int answer(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* What the kernel does itself with the fd of any device. */
static bool of_any_file(uint32_t cmd)
{
	return cmd == FIOCLEX || cmd == FIONCLEX || cmd == FIONBIO || cmd == FIOASYNC;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	const struct scif_device *device = scif_known();
	int (*real)(int, unsigned long, ...) = next(NEXT_IOCTL);
	va_list ap;
	void *arg;
	int ret;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (of_any_file(request))
		return real(fd, request, arg);
	if (marked(fd) && umad_ioctl(fd, request, arg, &ret))
		return ret;
	if (!device && _IOC_TYPE((uint32_t)request) == DEV_TYPE)
		device = scif_look();
	if (!device)
		return real(fd, request, arg);
	ret = device->ioctl(fd, request, (uintptr_t)arg);
	return passed_on(ret) ? real(fd, request, arg) : answer(ret);
}

/* Allocators map memory before libc can look anything up. */
static void *real_mmap(
	enum next_fn fn, void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	mmap_fn real = (mmap_fn)atomic_load_explicit(&next_found[fn], memory_order_relaxed);

	return real ? real(addr, len, prot, flags, fd, off)
		    : (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

/* A socket, which an endpoint is to the kernel, cannot be mapped. */
SLOW static void *mmap_again(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	const struct scif_device *device = scif_look();
	int saved = errno, ret = -ENOTTY;
	void *at;

	if (device)
		ret = device->mmap(addr, len, prot, flags, fd, off, &at);
	errno = !ret ? saved : passed_on(ret) ? ENODEV : -ret;
	return ret ? MAP_FAILED : at;
}

static inline void *mmap_by(
	enum next_fn fn, void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	int saved = errno;
	void *at = real_mmap(fn, addr, len, prot, flags, fd, off);

	if (at != MAP_FAILED || errno != ENODEV || fd < 0)
		return at;
	errno = saved;
	return mmap_again(addr, len, prot, flags, fd, off);
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return mmap_by(NEXT_MMAP, addr, len, prot, flags, fd, off);
}

EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap_by(NEXT_MMAP64, addr, len, prot, flags, fd, off);
}

EXPORT int munmap(void *addr, size_t len)
{
	const struct scif_device *device = scif_known();
	int (*real)(void *, size_t) =
		atomic_load_explicit(&next_found[NEXT_MUNMAP], memory_order_relaxed);
	int ret = device ? device->munmap(addr, len) : -ENOTTY;

	if (!passed_on(ret))
		return answer(ret);
	return real ? real(addr, len) : (int)syscall(SYS_munmap, addr, len);
}

EXPORT int close(int fd)
{
	/* The library closes the fd by this function, too. */
	static __thread bool inside __attribute__((tls_model("initial-exec")));
	const struct scif_device *device = scif_known();
	int (*real)(int) = next(NEXT_CLOSE), ret;

	if (marked(fd))
		mark_other(fd); /* before another thread can get the number */
	if (!device || inside)
		return real(fd);
	inside = true;
	ret = device->close(fd);
	inside = false;
	return passed_on(ret) ? real(fd) : answer(ret);
}
