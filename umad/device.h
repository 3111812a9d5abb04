/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device files /dev/infiniband/umadN and issmN, as the path shim reaches them: what system
 * calls on their file descriptors do.  A umad file opened here is one like any other: programs may
 * mix these and the calls of <infiniband/umad.h>.
 *
 * All functions return 0 or more, or a negative errno; they never set errno.  -EBADF: the fd is no
 * umad file; let the kernel answer.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { UMAD_IOC_TYPE = 0x1b };

struct umad_device {
	/*
	 * The fd of umad<number>, or of issm<number>, with the flags of open(2).  -ENXIO: the
	 * device that has it is gone; those of umad_file_open() and umad_issm_open().  An issm that
	 * another has waits for it, or, with O_NONBLOCK, gives -EAGAIN.
	 */
	int (*open)(bool issm, unsigned number, int flags);
	/* A command of the kernel's ABI, with an address that may be bad; -ENOTTY: it is none. */
	int (*ioctl)(int fd, uint32_t cmd, uint64_t arg);
	/* As umad_file_read(), umad_file_write(); -EFAULT: nothing is at that address. */
	ssize_t (*read)(int fd, void *buf, size_t len);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	/* As umad_file_wait(). */
	int (*wait)(int fd, int timeout_ms);
};

/* What the shim looks up in libibumad.so.3. */
const struct umad_device *weft_umad_device(void);
