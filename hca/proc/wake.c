// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/wake.h"

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/own_fd.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"

static struct lock own_lock;
/* A face's program may have closed them. */
static struct {
	bool used;
	struct own_fd fd;
} channels[SEG_CHANNELS];
static uint32_t cursor;

bool wake_write(int fd, struct fired_note *note)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t n;

	fired_enter(note);
	n = write(fd, &one, sizeof one);
	errno = saved;
	return n == sizeof one;
}

int wake_take(int fd)
{
	uint64_t one;
	struct iovec iov = {.iov_base = &one, .iov_len = sizeof one};
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (preadv2(fd, &iov, 1, -1, RWF_NOWAIT) >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	/* Emulators lack the flag. */
	if (poll(&p, 1, 0) == 0)
		return -EAGAIN;
	return read(fd, &one, sizeof one) < 0 ? -errno : 0;
}

static bool fire_own(uint32_t channel, struct fired_note *note)
{
	struct own_fd fd = OWN_FD_NONE;

	if (!channel)
		return wake_write(proc_at()->async_fd, note);
	lock_take(&own_lock);
	if (channels[channel % SEG_CHANNELS].used)
		fd = channels[channel % SEG_CHANNELS].fd;
	lock_drop(&own_lock);
	return own_fd_ok(&fd) && wake_write(fd.fd, note);
}

bool wake_fire(uint32_t attach, uint32_t channel, struct fired_note *note, void *arg)
{
	bool own = attach == proc_at()->attach_id;

	(void)arg;
	if (own ? fire_own(channel, note) : peer_fire(attach, channel, note))
		return true;
	fired_enter(note);
	if (!own)
		rdv_fire(attach, channel);
	return false;
}

bool wake_timer(uint32_t attach, uint32_t qp_index, uint64_t when, void *arg)
{
	(void)when;
	(void)arg;
	return rdv_set_timer(attach, qp_index) == 0;
}

int wake_own_add(int fd, uint32_t *id)
{
	int rc = -ENOMEM;

	lock_take(&own_lock);
	for (uint32_t i = 1; i < SEG_CHANNELS; i++) {
		cursor = cursor % (SEG_CHANNELS - 1) + 1;
		if (!channels[cursor].used) {
			channels[cursor].used = true;
			channels[cursor].fd = own_fd_at(fd);
			*id = cursor;
			rc = 0;
			break;
		}
	}
	lock_drop(&own_lock);
	return rc;
}

void wake_own_del(uint32_t id)
{
	lock_take(&own_lock);
	channels[id % SEG_CHANNELS].used = false;
	lock_drop(&own_lock);
}
