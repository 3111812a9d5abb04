// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/fake_umad_file.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

struct fake_file fake;

int umad_file_open(const char *device, int port, int flags)
{
	fake.n_open++;
	snprintf(fake.device, sizeof fake.device, "%s", device);
	fake.port = port;
	fake.flags = flags;
	return fake.open_rc ? fake.open_rc : FAKE_FD;
}

int umad_file_enable_pkey(int fd)
{
	(void)fd;
	return fake.enable_rc;
}

int umad_file_register(int fd, struct umad_agent *agent)
{
	(void)fd;
	fake.n_register++;
	fake.agent = *agent;
	agent->id = fake.id;
	return fake.register_rc;
}

int umad_file_register2(int fd, struct umad_agent *agent)
{
	(void)fd;
	fake.n_register2++;
	fake.agent = *agent;
	agent->id = fake.id;
	if (fake.register2_rc == -EINVAL)
		agent->flags = fake.flags_known;
	return fake.register2_rc;
}

int umad_file_unregister(int fd, uint32_t id)
{
	(void)fd;
	fake.unregistered = id;
	return fake.unregister_rc;
}

ssize_t umad_file_write(int fd, const void *msg, size_t len)
{
	(void)fd;
	fake.n_write++;
	fake.written_len = len;
	memcpy(fake.written, msg, len < FAKE_MESSAGE ? len : FAKE_MESSAGE);
	return fake.write_rc ? fake.write_rc : (ssize_t)len;
}

ssize_t umad_file_read(int fd, void *buf, size_t len)
{
	size_t n = fake.message_len < len ? fake.message_len : len;

	(void)fd;
	fake.n_read++;
	fake.read_len = len;
	if (fake.read_rc && fake.read_rc != -ENOSPC)
		return fake.read_rc;
	memcpy(buf, fake.message, n);
	return fake.read_rc ? fake.read_rc : (ssize_t)n;
}

int umad_file_wait(int fd, int timeout_ms)
{
	struct pollfd p = {.fd = fake.wait_fd, .events = POLLIN};

	(void)fd;
	fake.n_wait++;
	fake.waited_ms = timeout_ms;
	if (!fake.wait_fd)
		return fake.wait_rc;
	return poll(&p, 1, timeout_ms) == 1 ? 0 : -ETIMEDOUT;
}

ssize_t umad_file_receive(int fd, void *buf, size_t len, int timeout_ms)
{
	int ret = umad_file_wait(fd, timeout_ms);

	return ret ? ret : umad_file_read(fd, buf, len);
}
