// SPDX-License-Identifier: BSD-3-Clause
/*
 * What system calls on a umad file say that the kernel has no word for in umad_raw.c: that the
 * device is gone, here with weftd; that a poll goes on where the MAD was taken before; streams.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_mad.h>

#include "tests/lib/check.h"
#include "tests/lib/weftd_from_outside.h"

static const char umad[] = "/dev/infiniband/umad0", issm[] = "/dev/infiniband/issm0";

/* A blocking read, begun before. */
static void *read_until_gone(void *arg)
{
	char buf[320];

	CHECK_EQ(read(*(int *)arg, buf, sizeof buf), -1);
	CHECK_EQ(errno, EIO);
	return NULL;
}

static void polls(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
	const struct timespec at_once = {0};
	struct timeval none = {0};
	fd_set in, out;

	CHECK_EQ(poll(&p, 1, 20000), 1);
	CHECK_EQ(p.revents, POLLERR);
	CHECK_EQ(ppoll(&p, 1, &at_once, NULL), 1);
	CHECK_EQ(p.revents, POLLERR);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd, &in);
	FD_SET(fd, &out);
	CHECK_EQ(select(fd + 1, &in, &out, NULL, &none), 2);
}

static void calls(int fd)
{
	struct ib_user_mad_reg_req req = {.qpn = 1};
	struct ib_user_mad_reg_req2 req2 = {.qpn = 1};
	char buf[320] = {0};
	uint32_t id = 0;

	CHECK_EQ(read(fd, buf, sizeof buf), -1);
	CHECK_EQ(errno, EIO);
	CHECK_EQ(write(fd, buf, sizeof buf), -1);
	CHECK_EQ(errno, EIO);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &req), -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &req2), -1);
	CHECK_EQ(errno, EPIPE);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id), -1);
	CHECK_EQ(errno, EINVAL);
}

/* Nobody sends: no poll may end early, and none late by much. */
static void nothing_comes(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	const struct timespec moment = {.tv_nsec = 30000000};

	CHECK_EQ(poll(&p, 1, 30), 0);
	CHECK_EQ(ppoll(&p, 1, &moment, NULL), 0);
	CHECK_EQ(poll(&p, 1, 0), 0);
	p.events = POLLOUT;
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK_EQ(p.revents, POLLOUT);
}

/* A stream would read the fd by itself. */
static void streams(void)
{
	CHECK(!fopen(umad, "r+"));
	CHECK_EQ(errno, ENXIO);
	CHECK(!fopen("/dev/infiniband/umad7", "r"));
	CHECK_EQ(errno, ENOENT);
}

int main(void)
{
	struct ib_user_mad_reg_req req = {.qpn = 1};
	int fd, blocking, again;
	pthread_t reader;

	streams();
	fd = open(umad, O_RDWR | O_NONBLOCK);
	blocking = open(umad, O_RDWR);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &req), 0);
	nothing_comes(fd);
	CHECK(open(issm, O_RDONLY | O_NONBLOCK) >= 0);
	pthread_create(&reader, NULL, read_until_gone, &blocking);
	weftd_kill(weftd_pid());
	pthread_join(reader, NULL);
	polls(fd);
	calls(fd);
	CHECK_EQ(ioctl(fd, IB_USER_MAD_ENABLE_PKEY), -1);
	CHECK_EQ(errno, EINVAL);
	/* Another weftd has another adapter, whose IsSM bit nobody has. */
	again = open(umad, O_RDWR | O_NONBLOCK);
	CHECK_EQ(ioctl(again, IB_USER_MAD_REGISTER_AGENT, &req), 0);
	CHECK(open(issm, O_RDONLY | O_NONBLOCK) >= 0);
	calls(fd);
	return check_result();
}
