// SPDX-License-Identifier: BSD-3-Clause
#include "shim/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

_Atomic(void *) next_found[NEXT_COUNT];

static const char *const names[NEXT_COUNT] = {
	[NEXT_STAT] = "stat",
	[NEXT_STAT64] = "stat64",
	[NEXT_LSTAT] = "lstat",
	[NEXT_LSTAT64] = "lstat64",
	[NEXT_FSTAT] = "fstat",
	[NEXT_FSTAT64] = "fstat64",
	[NEXT_FXSTAT] = "__fxstat",
	[NEXT_FXSTAT64] = "__fxstat64",
	[NEXT_FSTATAT] = "fstatat",
	[NEXT_FSTATAT64] = "fstatat64",
	[NEXT_STATX] = "statx",
	[NEXT_XSTAT] = "__xstat",
	[NEXT_XSTAT64] = "__xstat64",
	[NEXT_LXSTAT] = "__lxstat",
	[NEXT_LXSTAT64] = "__lxstat64",
	[NEXT_FXSTATAT] = "__fxstatat",
	[NEXT_FXSTATAT64] = "__fxstatat64",
	[NEXT_ACCESS] = "access",
	[NEXT_FACCESSAT] = "faccessat",
	[NEXT_EACCESS] = "eaccess",
	[NEXT_EUIDACCESS] = "euidaccess",
	[NEXT_OPEN] = "open",
	[NEXT_OPEN64] = "open64",
	[NEXT_OPENAT] = "openat",
	[NEXT_OPENAT64] = "openat64",
	[NEXT_OPEN_2] = "__open_2",
	[NEXT_OPEN64_2] = "__open64_2",
	[NEXT_OPENAT_2] = "__openat_2",
	[NEXT_OPENAT64_2] = "__openat64_2",
	[NEXT_FOPEN] = "fopen",
	[NEXT_FOPEN64] = "fopen64",
	[NEXT_FREOPEN] = "freopen",
	[NEXT_FREOPEN64] = "freopen64",
	[NEXT_OPENDIR] = "opendir",
	[NEXT_SCANDIR] = "scandir",
	[NEXT_SCANDIR64] = "scandir64",
	[NEXT_SCANDIRAT] = "scandirat",
	[NEXT_SCANDIRAT64] = "scandirat64",
	[NEXT_READLINK] = "readlink",
	[NEXT_READLINKAT] = "readlinkat",
	[NEXT_READLINK_CHK] = "__readlink_chk",
	[NEXT_READLINKAT_CHK] = "__readlinkat_chk",
	[NEXT_REALPATH] = "realpath",
	[NEXT_REALPATH_CHK] = "__realpath_chk",
	[NEXT_CANONICALIZE_FILE_NAME] = "canonicalize_file_name",
	[NEXT_GETXATTR] = "getxattr",
	[NEXT_LGETXATTR] = "lgetxattr",
	[NEXT_LISTXATTR] = "listxattr",
	[NEXT_LLISTXATTR] = "llistxattr",
	[NEXT_IOCTL] = "ioctl",
	[NEXT_MMAP] = "mmap",
	[NEXT_MMAP64] = "mmap64",
	[NEXT_MUNMAP] = "munmap",
	[NEXT_CLOSE] = "close",
	[NEXT_POLL] = "poll",
	[NEXT_POLL_CHK] = "__poll_chk",
	[NEXT_READ] = "read",
	[NEXT_READ_CHK] = "__read_chk",
	[NEXT_WRITE] = "write",
	[NEXT_READV] = "readv",
	[NEXT_WRITEV] = "writev",
	[NEXT_DUP] = "dup",
	[NEXT_DUP2] = "dup2",
	[NEXT_DUP3] = "dup3",
	[NEXT_FCNTL] = "fcntl",
	[NEXT_FCNTL64] = "fcntl64",
	[NEXT_RECVMSG] = "recvmsg",
	[NEXT_RECVMMSG] = "recvmmsg",
	[NEXT_PPOLL] = "ppoll",
	[NEXT_PPOLL_CHK] = "__ppoll_chk",
	[NEXT_CHDIR] = "chdir",
};

static long lacks_number(void)
{
	errno = ENOSYS;
	return -1;
}

static void *lacks_pointer(void)
{
	errno = ENOSYS;
	return NULL;
}

static void *lacking(enum next_fn fn)
{
	switch (fn) {
	case NEXT_FOPEN:
	case NEXT_FOPEN64:
	case NEXT_FREOPEN:
	case NEXT_FREOPEN64:
	case NEXT_OPENDIR:
	case NEXT_REALPATH:
	case NEXT_REALPATH_CHK:
	case NEXT_CANONICALIZE_FILE_NAME:
		return (void *)lacks_pointer;
	default:
		return (void *)lacks_number;
	}
}

void *next_find(enum next_fn fn)
{
	int saved = errno;
	void *found = dlsym(RTLD_NEXT, names[fn]);

	if (!found)
		found = lacking(fn);
	atomic_store_explicit(&next_found[fn], found, memory_order_relaxed);
	errno = saved;
	return found;
}

/* Early, so that a signal handler finds everything looked up: dlsym() may take a lock. */
__attribute__((constructor)) static void find_all(void)
{
	for (int fn = 0; fn < NEXT_COUNT; fn++)
		next_find(fn);
}
