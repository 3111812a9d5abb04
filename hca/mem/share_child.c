// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { PATIENCE_S = 10 };

/* A pipe whose end is the child's copy; -1: none is expected. */
static int ends[2] = {-1, -1};

static void close_end(int i)
{
	if (ends[i] >= 0)
		close(ends[i]);
	ends[i] = -1;
}

void share_child_expect(void)
{
	int saved = errno;

	if (pipe2(ends, O_CLOEXEC)) {
		ends[0] = ends[1] = -1;
		log_line(LOG_LVL_WARN,
			"no descriptor is left to wait for a forked child with: memory that stays "
			"shared may change before it has a copy");
	}
	errno = saved;
}

void share_child_has_copied(void)
{
	close_end(0);
	close_end(1);
}

/* The end of the pipe comes when all that have its other end, the child alone, have closed it. */
static bool wait_for_end(void)
{
	uint64_t end = clock_ns() + PATIENCE_S * NSEC_PER_SEC, now;
	struct pollfd p = {.fd = ends[0]};

	while ((now = clock_ns()) < end)
		if (poll(&p, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) > 0)
			return true;
	return false;
}

void share_child_await(void)
{
	int saved = errno, cancel;

	if (ends[0] < 0)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	close_end(1);
	if (!wait_for_end())
		log_line(LOG_LVL_WARN,
			"a forked child has not copied in %d s what it shares with this process: "
			"it may find memory that has changed",
			PATIENCE_S);
	close_end(0);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}
