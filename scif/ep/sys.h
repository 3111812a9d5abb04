/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls past the path shim.  It wraps the functions of libc and asks us what they do on an
 * endpoint (scif/face/device.h); where we ask the kernel about one, or take a mapping of ours away,
 * a call by the usual name would come back to us, again and again.
 *
 * close(2) is not among them: that the shim comes back by it, once, is how scif_close() and it
 * are the same.
 */
#pragma once

#include <poll.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As poll(2); the shim leaves ppoll(2) alone. */
static inline int sys_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	struct timespec ts = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

	return ppoll(fds, n, timeout_ms < 0 ? NULL : &ts, NULL);
}

/* As ioctl(2), with a pointer. */
static inline int sys_ioctl(int fd, unsigned long request, void *arg)
{
	return syscall(SYS_ioctl, fd, request, arg);
}

/* As munmap(2). */
static inline int sys_munmap(void *addr, size_t len)
{
	return syscall(SYS_munmap, addr, len);
}
