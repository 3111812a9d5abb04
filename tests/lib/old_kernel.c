// SPDX-License-Identifier: BSD-3-Clause
/*
 * To be linked into a program whose symbols come first: ioctl() and madvise() refuse what the
 * kernel in OLD_KERNEL ("6.1", "5.10") refuses, as far as memory is mapped for peers.
 */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WP_SHMEM = 1 << 12, WP_UNPOPULATED = 1 << 13 };

static int refuse(void)
{
	errno = EINVAL;
	return -1;
}

static bool is(const char *release)
{
	const char *old = getenv("OLD_KERNEL");

	return old && !strcmp(old, release);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	struct uffdio_api *api;
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	api = arg;
	if (request == UFFDIO_API && ((is("6.1") && api->features & WP_UNPOPULATED) ||
					     (is("5.10") && api->features >= WP_SHMEM)))
		return refuse();
	return syscall(SYS_ioctl, fd, request, arg);
}

__attribute__((visibility("default"))) int madvise(void *addr, size_t len, int advice)
{
	if (is("5.10") && (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE))
		return refuse();
	return syscall(SYS_madvise, addr, len, advice);
}
