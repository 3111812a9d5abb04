// SPDX-License-Identifier: BSD-3-Clause
#include "umad/issm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "rdv/umad_line.h"
#include "umad/part.h"

static int ask(const char *device, int port, int flags)
{
	struct proto_umad_open what = {.port = 0};
	struct proto_out call = proto_call(OP_ISSM_OPEN, &what);
	struct proto_in in;
	int fd, ret;

	ret = part_name_port(device, port, &what);
	if (!ret)
		ret = part_watch_forks();
	what.flags = flags & O_NONBLOCK ? 0 : PROTO_WAIT;
	if (!ret)
		ret = umad_line_call(&call, &in, true);
	if (ret)
		return ret == -EPIPE ? -ENOTCONN : ret;
	fd = proto_take_fd(&in, 0);
	proto_close(&in);
	return fd;
}

static void close_waiting(void *fd)
{
	close(*(int *)fd);
}

/* Until weftd says that the bit is ours: 0. */
static int wait_turn(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int n;

	pthread_cleanup_push(close_waiting, &fd);
	n = poll(&pfd, 1, -1);
	pthread_cleanup_pop(0);
	if (n < 0)
		return -errno;
	return pfd.revents & POLLHUP ? -EIO : 0;
}

int umad_issm_open(const char *device, int port, int flags)
{
	int cancel, fd, ret;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	fd = ask(device, port, flags);
	pthread_setcancelstate(cancel, NULL);
	if (fd < 0)
		return fd;
	ret = wait_turn(fd);
	if (!ret)
		ret = part_set_flags(fd, flags);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}
