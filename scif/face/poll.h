/* SPDX-License-Identifier: BSD-3-Clause */
/* scif_poll(). */
#pragma once

#include <poll.h>

/* Can there be so many entries, and are they somewhere?  -EINVAL, -EFAULT. */
int poll_check(const void *entries, unsigned n);
/* As poll(2), with the states of endpoints; -errno. */
int poll_eps(struct pollfd *fds, unsigned n, long timeout);
