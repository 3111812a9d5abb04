/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device files of a node as a directory tree: what the kernel shows of an HCA below
 * /sys/class/infiniband, /sys/class/infiniband_verbs, /sys/class/infiniband_mad and
 * /dev/infiniband.  weftd keeps the tree up to date in its runtime directory, since it knows when
 * a value changes; the path shim (shim/) leads programs to it.
 *
 * The tree has sys/class/infiniband/<device>, sys/class/infiniband_verbs/uverbs0, and
 * sys/class/infiniband_mad/umadN and issmN for each port.  What has a device node has one in
 * dev/infiniband: a symbolic link to /dev/null that the shim shows as a character device.  Unlike
 * in the kernel, class entries are directories, and what is below their device are links to them;
 * files of gid_attrs that answer EINVAL, as those of unused GIDs, are links.  A switch has no
 * uverbs0.
 */
#pragma once

#include "fabric/page.h"

/* Device numbers of /dev/infiniband/umad0, issm0 and uverbs0, as sysfs and the shim give them. */
enum { SYSFS_MAJOR = 231, SYSFS_UMAD_MINOR = 0, SYSFS_ISSM_MINOR = 64, SYSFS_UVERBS_MINOR = 192 };

/*
 * Brings the tree in directory dir, relative to directory fd at (or AT_FDCWD) and made if need be,
 * up to date with page, which nobody may write meanwhile.  A file is replaced as a whole, and only
 * if it changed, so that readers find the old or the new value at any time.  One process may write
 * at a time.  Blocks for the file system only.  Returns 0 or the first -errno, after trying
 * everything.
 */
int sysfs_write(int at, const char *dir, const struct fabric_page *page);

/* The value of a file of a port: "counters/NAME" or "hw_counters/NAME". */
struct sysfs_counter {
	const char *file;
	uint64_t value;
};

/*
 * Writes n counters of a port into a tree that sysfs_write() has made; it leaves there what this
 * wrote.  A port's other counters read 0.  As sysfs_write() for the rest.
 */
int sysfs_write_counters(int at, const char *dir, const char *device, uint32_t port,
	const struct sysfs_counter *counter, size_t n);

/* Removes the tree with everything in it.  Returns 0, also if there is none, or -errno. */
int sysfs_remove(const char *dir);
