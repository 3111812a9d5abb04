/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device file /dev/scif (of later drivers) and /dev/mic/scif (of earlier ones), as the path
 * shim reaches it: what system calls on its file descriptors do.  Such an fd is an endpoint like
 * any other: programs may mix these and the calls of <scif.h>.
 *
 * All functions return 0 or more, or a negative errno; -ENOTTY or -EBADF: this is none of ours,
 * let the kernel answer.  Pointers that the kernel would check (ioctl's and poll's) may be bad.
 */
#pragma once

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct scif_device {
	/* A new endpoint's fd; of flags, O_CLOEXEC and O_NONBLOCK are heeded. */
	int (*open)(int flags);
	/* Whatever commands the driver has, of both generations; -EINVAL for all others.  May
	 * block. */
	int (*ioctl)(int fd, uint32_t cmd, uint64_t arg);
	/* mmap(2) of windows of the peer; where, in *at.  May block. */
	int (*mmap)(void *addr, size_t len, int prot, int flags, int fd, int64_t off, void **at);
	/* munmap(2) of a range with such windows. */
	int (*munmap)(void *addr, size_t len);
	/* poll(2) with the states of endpoints, if there is one among the entries. */
	int (*poll)(struct pollfd *fds, unsigned n, int timeout);
	/* close(2): the last one of an endpoint disconnects before it returns. */
	int (*close)(int fd);
};

/* What the shim looks up in libscif.so.0. */
const struct scif_device *weft_scif_device(void);
