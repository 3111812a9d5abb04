/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions behind ours: what the program would have called without the shim, found by
 * dlsym(RTLD_NEXT) at their first use or when the shim is initialised, whichever comes first.
 */
#pragma once

#include <stdatomic.h>

enum next_fn {
	NEXT_STAT,
	NEXT_STAT64,
	NEXT_LSTAT,
	NEXT_LSTAT64,
	NEXT_FSTAT,
	NEXT_FSTAT64,
	NEXT_FXSTAT,
	NEXT_FXSTAT64,
	NEXT_FSTATAT,
	NEXT_FSTATAT64,
	NEXT_STATX,
	NEXT_XSTAT,
	NEXT_XSTAT64,
	NEXT_LXSTAT,
	NEXT_LXSTAT64,
	NEXT_FXSTATAT,
	NEXT_FXSTATAT64,
	NEXT_ACCESS,
	NEXT_FACCESSAT,
	NEXT_EACCESS,
	NEXT_EUIDACCESS,
	NEXT_OPEN,
	NEXT_OPEN64,
	NEXT_OPENAT,
	NEXT_OPENAT64,
	NEXT_OPEN_2,
	NEXT_OPEN64_2,
	NEXT_OPENAT_2,
	NEXT_OPENAT64_2,
	NEXT_FOPEN,
	NEXT_FOPEN64,
	NEXT_FREOPEN,
	NEXT_FREOPEN64,
	NEXT_OPENDIR,
	NEXT_SCANDIR,
	NEXT_SCANDIR64,
	NEXT_SCANDIRAT,
	NEXT_SCANDIRAT64,
	NEXT_READLINK,
	NEXT_READLINKAT,
	NEXT_READLINK_CHK,
	NEXT_READLINKAT_CHK,
	NEXT_REALPATH,
	NEXT_REALPATH_CHK,
	NEXT_CANONICALIZE_FILE_NAME,
	NEXT_GETXATTR,
	NEXT_LGETXATTR,
	NEXT_LISTXATTR,
	NEXT_LLISTXATTR,
	NEXT_IOCTL,
	NEXT_MMAP,
	NEXT_MMAP64,
	NEXT_MUNMAP,
	NEXT_CLOSE,
	NEXT_POLL,
	NEXT_POLL_CHK,
	NEXT_READ,
	NEXT_READ_CHK,
	NEXT_WRITE,
	NEXT_READV,
	NEXT_WRITEV,
	NEXT_DUP,
	NEXT_DUP2,
	NEXT_DUP3,
	NEXT_FCNTL,
	NEXT_FCNTL64,
	NEXT_RECVMSG,
	NEXT_RECVMMSG,
	NEXT_PPOLL,
	NEXT_PPOLL_CHK,
	NEXT_CHDIR,
	NEXT_COUNT
};

extern _Atomic(void *) next_found[NEXT_COUNT];

/* Finds a function, keeps errno.  One that libc lacks is answered by ENOSYS. */
void *next_find(enum next_fn fn);

/* The function behind ours, to be called through a pointer of its type. */
static inline void *next(enum next_fn fn)
{
	void *found = atomic_load_explicit(&next_found[fn], memory_order_relaxed);

	return found ? found : next_find(fn);
}
