// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/wake.h"

#include <errno.h>
#include <unistd.h>

#include "base/lock.h"
#include "hca/proc/peer.h"
#include "hca/proc/proc.h"

static struct lock own_lock;
static int channel_fds[SEG_CHANNELS]; /* fd + 1 */
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
	int fd;

	if (!channel)
		return wake_write(proc_at()->async_fd);
	lock_take(&own_lock);
	fd = channel_fds[channel % SEG_CHANNELS] - 1;
	lock_drop(&own_lock);
	return fd >= 0 && wake_write(fd);
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
		if (!channel_fds[cursor]) {
			channel_fds[cursor] = fd + 1;
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
	channel_fds[id % SEG_CHANNELS] = 0;
	lock_drop(&own_lock);
}
