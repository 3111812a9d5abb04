/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of one process in the address space of another, on one machine: what a soft HCA can do
 * and an adapter cannot.  The functions are in Weft's libibverbs.so.1 (version node WEFT_1.0); they
 * are declared weak, so that a program linked with the system's libibverbs runs on either: where
 * weft_share_there() is 0 there is nothing of this, and the program does without.  (One linked with
 * Weft's names the node, and runs on Weft's alone.)  weft_share(3) says the same at length.
 *
 * The owner exports a range and sends the handle to its peer as it likes; the peer, a process of
 * the same user and fabric, maps it, all or a part, as often as it wants.  Loads, stores and
 * atomics of the CPU on either side then act on the same memory; the owner goes on using its own
 * addresses.  It may also be registered, before or afterwards.
 *
 * No access through a mapping ever faults, whatever the owner does or whether it lives; but for
 * memory of a file that can become shorter, see weft_share_export().
 */
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An export, of the process that made it. */
struct weft_share;

/* What names an export in other processes: plain bytes, to be sent by any means. */
struct weft_share_handle {
	uint8_t raw[32];
};

enum weft_share_flags {
	WEFT_SHARE_FIXED = 1,     /* weft_share_map: exactly at addr, in place of what is there */
	WEFT_SHARE_NOREPLACE = 2, /* ... but only if nothing is there; with or without FIXED */
};

/*
 * Exports [addr, addr+length) of this process: whole pages of 4096 bytes of private anonymous
 * memory (malloc(3), mmap(2)) that is readable and writable.  prot: PROT_READ, perhaps with
 * PROT_WRITE, is what peers may ask for.  Fills *handle.  The contents stay, other threads may go
 * on using the memory; system calls of theirs that write into it just now may fail with EFAULT.
 * What fork() children see there is a copy.
 *
 * Memory of one object that is shared already (MAP_SHARED of a file, a memfd, POSIX or anonymous
 * shared memory; System V) stays what and where it is, and peers map the object.  Its file is found
 * among the descriptors that this process has open with the rights in prot, by its name if it has
 * one still, or, in privileged processes, by /proc/self/map_files.  Who makes the file shorter
 * (ftruncate(2)) takes the memory away from all who map it: an access there is a SIGBUS, in the
 * peer, too.  A file that may be sealed gets F_SEAL_SHRINK, so that ftruncate(2) answers EPERM.
 *
 * NULL with errno: EINVAL not whole pages, an empty or wrapping range, a bad prot; EFAULT not
 * mapped, or PROT_NONE; EOPNOTSUPP memory of another kind (a file privately, shared memory
 * of which no descriptor is to be had, several objects, huge pages, a stack, read-only,
 * executable), or WEFT_SHARE=never; EBUSY the pages are in use in a way that does not allow it
 * (fixed buffers of io_uring, a region with atomics at odd addresses, a mapping of an earlier
 * export of the same place that was revoked); ENOMEM memory, or more than half of the machine's
 * memory, or 4 GiB if that is more, exported; or 256 objects.
 */
struct weft_share *weft_share_export(struct ibv_context *context, void *addr, size_t length,
	int prot, struct weft_share_handle *handle) __attribute__((weak));

/*
 * Ends an export: nobody can map it any more.  Those who have it mapped keep it, and share it with
 * the owner, until they unmap it; the pages become private again after that, with a later call.
 * The owner may unmap or free the memory: its peers keep the pages.  share is gone.  0, or EINVAL:
 * it is NULL.
 */
int weft_share_close(struct weft_share *share) __attribute__((weak));

/*
 * Ends an export and takes it away from those who have it mapped: what they store does not reach
 * the owner from here on, and what they load is theirs alone, at first zeros.  Regions of the owner
 * on the same pages are copied from then on; pages that another export covers stay shared.  As
 * long as somebody has not unmapped it, memory at these addresses cannot be exported again.
 * share is gone.  0; EINVAL: it is NULL; EBUSY: ended, but a stopped peer is using a region
 * there, or it is of an object that was shared before and is mapped, and the pages stay shared.
 */
int weft_share_revoke(struct weft_share *share) __attribute__((weak));

/*
 * Maps [offset, offset+length), whole pages, of the export that handle names; prot is 0 or some of
 * PROT_READ and PROT_WRITE.  addr is a hint, or with a flag the place itself.  The mapping stays
 * valid until weft_share_unmap(), munmap(2) not being told to anybody; children by fork() do not
 * have it.  The owner itself may map it too, a second time.
 *
 * NULL with errno: EINVAL a bad argument or no handle; ESTALE closed, revoked, or its process is
 * gone; EAGAIN weftd was started anew, and has not heard of the owner's objects yet; EACCES it
 * allows no writing; ENXIO beyond its end, or the object has become shorter; EEXIST
 * (WEFT_SHARE_NOREPLACE) something is there; ENOSPC 4096 mappings of the owner's memory exist;
 * EOPNOTSUPP the owner has no memory to share; ENOMEM.
 */
void *weft_share_map(struct ibv_context *context, const struct weft_share_handle *handle,
	uint64_t offset, size_t length, int prot, int flags, void *addr) __attribute__((weak));

/*
 * Unmaps what lies of such mappings in [addr, addr+length), whole pages, also parts of one or
 * several; nothing else there is touched.  0, or EINVAL: nothing of that lies there.
 */
int weft_share_unmap(void *addr, size_t length) __attribute__((weak));

/*
 * Maps [addr, addr+length) of this process, whole pages of shared memory (a file, System V, a
 * memfd), a second time with the same rights, so that the pages stay whatever the program does at
 * addr.  What can be exported is mapped a second time by weft_share_map() instead.  The mapping is
 * the caller's, to be ended by munmap(2); children by fork() do not have it.
 *
 * NULL with errno: EINVAL a bad argument; EFAULT not mapped; EOPNOTSUPP memory of another kind
 * (private, huge pages, a device, exported once and moved since); ENOMEM.
 */
void *weft_share_second(struct ibv_context *context, void *addr, size_t length)
	__attribute__((weak));

/* Does the libibverbs that this program runs with have these functions? */
static inline int weft_share_there(void)
{
	return weft_share_export != NULL;
}

#ifdef __cplusplus
}
#endif
