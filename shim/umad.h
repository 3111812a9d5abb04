/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * umad and issm files by system calls.  What they do is libibumad.so.3's (umad/device.h), which is
 * loaded when the first such file is opened or used.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "shim/path.h"

enum { UMAD_NODE_PATH = 40 };

/* Whether a mapped path is that of a umad or issm file that is there.  Keeps errno. */
bool umad_path(const struct path_mapped *m);

/* open(2) of such a path; -1 with errno. */
int umad_open_device(const struct path_mapped *m, int flags);

/*
 * Of a marked fd (mark.h), which the kernel says is a character device with the number real, or
 * none (0): the path of its device file, as the program sees it.  False: it is none any more. Keeps
 * errno.
 */
bool umad_node(int fd, dev_t real, char path[UMAD_NODE_PATH]);

/*
 * The calls below are for a marked fd.  False: it is none of ours, and the kernel is to
 * answer.  Else *ret is the call's result, and errno set if it is -1.
 */
bool umad_read(int fd, void *buf, size_t len, ssize_t *ret);
bool umad_write(int fd, const void *buf, size_t len, ssize_t *ret);
bool umad_ioctl(int fd, unsigned long request, void *arg, int *ret);

/*
 * After poll(2) showed something of ready fds: how many remain.  POLLIN goes where no MAD is to be
 * read; a device that was removed shows POLLERR and nothing else.
 */
int umad_polled(struct pollfd *fds, nfds_t n, int ready);
