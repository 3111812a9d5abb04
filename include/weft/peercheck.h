/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices whose memory a peer client offers, for weft peercheck (weft-peercheck(1)) and for tests
 * of programs.  libweftkshim.so.0 has fake ones behind the kernel's interfaces; an author of a
 * client for something else writes the eight members of this structure, in a library that defines
 * weft_peer_device, maybe the client's own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Functions give 0 or -errno.  They are called from several threads. */
struct weft_peer_device {
	size_t size; /* of this structure */
	const char *name;
	/*
	 * n bytes of the device; *addr: what a program would register.  No range that was freed is
	 * given out again.
	 */
	int (*alloc)(size_t n, uint64_t *addr);
	/*
	 * Ends an allocation, by its first address.  The device tells who pinned it, as its real
	 * driver would, and returns when they have been told.
	 */
	int (*free)(uint64_t addr);
	/* The device itself writes and reads n bytes of its memory; -EFAULT: it is not there. */
	int (*write)(uint64_t addr, const void *from, size_t n);
	int (*read)(uint64_t addr, void *to, size_t n);
	/* Pins, mappings and the like that a client has not undone. */
	long (*pinned)(void);
	/* Of the calls that a client makes from now on the nth fails, once.  0: none does. */
	void (*fail_nth)(unsigned long n);
};

/* What a library defines that brings a device of its own. */
extern const struct weft_peer_device weft_peer_device;

/*
 * A fake device of libweftkshim.so.0: "nvidia", "kfd" or "vma".  NULL: no such one.  Addresses of
 * the first two have no memory that the CPU reaches.
 */
const struct weft_peer_device *weft_kshim_device(const char *name);

#ifdef __cplusplus
}
#endif
