// SPDX-License-Identifier: BSD-3-Clause
/*
 * poll(2) of endpoints of the SCIF device, and of umad files.  The socket that a umad file is may
 * be readable although it is empty, where a reader was stopped: then it is looked for the rest of
 * the time.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "scif/face/device.h"
#include "shim/mark.h"
#include "shim/next.h"
#include "shim/scif.h"
#include "shim/shim.h"
#include "shim/umad.h"

typedef int (*poll_fn)(struct pollfd *, nfds_t, int);
typedef int (*ppoll_fn)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

static int poll_once(struct pollfd *fds, nfds_t n, int timeout)
{
	const struct scif_device *device = scif_known();
	int ret = device && n <= UINT32_MAX ? device->poll(fds, n, timeout) : -ENOTTY;

	if (ret >= 0)
		return ret;
	if (ret == -ENOTTY || ret == -EBADF)
		return ((poll_fn)next(NEXT_POLL))(fds, n, timeout);
	errno = -ret;
	return -1;
}

/* Without umad files it is not worth looking at the clock. */
static uint64_t now(void)
{
	return mark_any() ? clock_ns() : 0;
}

static uint64_t left(uint64_t until)
{
	uint64_t at = clock_ns();

	return at < until ? until - at : 0;
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	uint64_t until = timeout > 0 ? now() + (uint64_t)timeout * NSEC_PER_MSEC : 0;
	int ret, seen;

	for (;;) {
		seen = ret = poll_once(fds, n, timeout);
		if (ret > 0)
			seen = umad_polled(fds, n, ret);
		if (seen || ret <= 0 || !timeout)
			return seen;
		if (timeout > 0)
			timeout = (int)((left(until) + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC);
	}
}

static bool is_zero(const struct timespec *ts)
{
	return ts && !ts->tv_sec && !ts->tv_nsec;
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	ppoll_fn real = (ppoll_fn)next(NEXT_PPOLL);
	const uint64_t start = now();
	uint64_t until = 0, ns;
	struct timespec rest;
	int ret, seen;

	for (;;) {
		seen = ret = real(fds, n, timeout, mask);
		if (ret > 0)
			seen = umad_polled(fds, n, ret);
		if (seen || ret <= 0 || is_zero(timeout))
			return seen;
		if (!timeout)
			continue;
		if (!until)
			until = start + timeout->tv_sec * NSEC_PER_SEC + timeout->tv_nsec;
		ns = left(until);
		rest = (struct timespec){ns / NSEC_PER_SEC, ns % NSEC_PER_SEC};
		timeout = &rest;
	}
}

/* What _FORTIFY_SOURCE calls.  With too small an array, the real one ends the program. */
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
	size_t size);

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
	int (*real)(struct pollfd *, nfds_t, int, size_t) = next(NEXT_POLL_CHK);

	return size / sizeof *fds < n ? real(fds, n, timeout, size) : poll(fds, n, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
	const sigset_t *mask, size_t size)
{
	int (*real)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t) =
		next(NEXT_PPOLL_CHK);

	return size / sizeof *fds < n ? real(fds, n, timeout, mask, size)
				      : ppoll(fds, n, timeout, mask);
}
