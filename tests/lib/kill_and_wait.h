/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Kills that process and waits for its end, at which its sockets go; false: it is there after 20 s.
 */
static inline bool kill_and_wait(pid_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	bool ends = p.fd >= 0 && kill(pid, SIGKILL) == 0 && poll(&p, 1, 20000) == 1;

	if (p.fd >= 0)
		close(p.fd);
	return ends;
}
