/* SPDX-License-Identifier: BSD-3-Clause */
/* scif_poll(). */
#pragma once

#include <poll.h>

/* Can there be so many entries, and are they somewhere?  -EINVAL, -EFAULT. */
int poll_check(const void *entries, unsigned n);
/* As poll(2), with the states of endpoints; -errno. */
int poll_fds(struct pollfd *fds, unsigned n, long timeout);
/* An fd was closed: threads in poll_fds() look again. */
void poll_fd_closed(void);
/* In a forked child: nobody polls. */
void poll_forked(void);
