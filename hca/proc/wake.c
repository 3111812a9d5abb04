// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/wake.h"

#include <errno.h>
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

bool wake_write(int fd)
{
	const uint64_t one = 1;
	int saved = errno;
	ssize_t n = write(fd, &one, sizeof one);

	errno = saved;
	return n == sizeof one;
}

static bool fire_own(uint32_t channel)
{
	struct own_fd fd = OWN_FD_NONE;

	if (!channel)
		return wake_write(proc_at()->async_fd);
	lock_take(&own_lock);
	if (channels[channel % SEG_CHANNELS].used)
		fd = channels[channel % SEG_CHANNELS].fd;
	lock_drop(&own_lock);
	return own_fd_ok(&fd) && wake_write(fd.fd);
}

bool wake_fire(uint32_t attach, uint32_t channel, void *arg)
{
	(void)arg;
	if (attach == proc_at()->attach_id)
		return fire_own(channel);
	if (peer_fire(attach, channel))
		return true;
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
