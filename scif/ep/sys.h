/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls past the path shim.  It wraps the functions of libc and asks us what they do on an
 * endpoint (scif/face/device.h); where we take a mapping of ours away, a call by the usual name
 * would come back to us, again and again.  (Nor does face/ ask the kernel about an fd that way.)
 *
 * close(2) is not among them: that the shim comes back by it, once, is how scif_close() and it
 * are the same.
 */
#pragma once

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As munmap(2). */
static inline int sys_munmap(void *addr, size_t len)
{
	return syscall(SYS_munmap, addr, len);
}
