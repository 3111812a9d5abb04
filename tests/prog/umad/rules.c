// SPDX-License-Identifier: BSD-3-Clause
/* What a umad file refuses, and how: registrations, writes and reads. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/prog/umad/help.h"
#include "umad/device.h"

static struct umad_agent agent_of(uint8_t mgmt_class, uint32_t qpn)
{
	return (struct umad_agent){.qpn = qpn,
		.mgmt_class = mgmt_class,
		.class_version = 1,
		.method_mask = {1 << METHOD}};
}

static void registrations(void)
{
	int fd = open_file(O_NONBLOCK), other = open_file(O_NONBLOCK);
	struct umad_agent a = agent_of(CLASS, 1), smp = agent_of(0x81, 0), bad = agent_of(0x51, 1);
	struct umad_agent twice = a;

	T_OK(umad_file_register(fd, &a));
	T_EQUAL(a.id, 0);
	T_EQUAL(umad_file_register(other, &twice), -EINVAL);
	T_EQUAL(umad_file_register(fd, &smp), -EPROTONOSUPPORT);
	T_EQUAL(umad_file_register(fd, &bad), -EINVAL);
	T_EQUAL(umad_file_enable_pkey(fd), -EINVAL);
	T_EQUAL(umad_file_unregister(fd, 1), -EINVAL);
	T_EQUAL(umad_file_unregister(fd, 32), -EINVAL);
	T_OK(umad_file_unregister(fd, a.id));
	T_EQUAL(umad_file_unregister(fd, a.id), -EINVAL);
	T_OK(umad_file_register(other, &twice));
	for (uint32_t i = 0; i < UMAD_AGENTS; i++)
		T_EQUAL(add_sender(fd, 0), i);
	bad = agent_of(0, 1);
	T_EQUAL(umad_file_register(fd, &bad), -ENOMEM);
}

static void register2(void)
{
	int fd = open_plain(O_NONBLOCK);
	struct umad_agent a = agent_of(CLASS, 1);

	a.flags = 6;
	T_EQUAL(umad_file_register2(fd, &a), -EINVAL);
	T_EQUAL(a.flags, 1);
	a.flags = 0;
	a.qpn = 2;
	T_EQUAL(umad_file_register2(fd, &a), -EINVAL);
	a.qpn = 1;
	T_OK(umad_file_register2(fd, &a));
	T_EQUAL(a.id, 0);
	/* It made headers long. */
	char small[UMAD_HDR_OLD];

	T_EQUAL(umad_file_read(fd, small, sizeof small), -EINVAL);
}

static void old_layout(void)
{
	int fd = open_plain(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0);
	uint32_t server = add_agent(fd, CLASS, 0);
	struct packet p = request(sender, CLASS, 1);
	char old[UMAD_HDR_OLD + MAD_BYTES], in[sizeof old];

	memcpy(old, &p.hdr, UMAD_HDR_OLD);
	memcpy(old + UMAD_HDR_OLD, p.mad, MAD_BYTES);
	T_EQUAL(umad_file_write(fd, old, sizeof old), sizeof old);
	await(fd);
	T_EQUAL(umad_file_read(fd, in, sizeof in), sizeof in);
	T_EQUAL(((struct umad_hdr *)in)->id, server);
	T_EQUAL(((struct umad_hdr *)in)->length, sizeof in);
	T_CHECK(!memcmp(in + UMAD_HDR_OLD + 64, p.mad + 64, MAD_BYTES - 64));
}

static void writes(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0);
	struct packet p = request(sender, CLASS, 1), bad = p;
	char big[sizeof p + 1] = {0};

	memcpy(big, &p, sizeof p);
	T_EQUAL(umad_file_write(fd, &p, UMAD_HDR_SIZE + 35), -EINVAL);
	T_EQUAL(umad_file_write(fd, &p, UMAD_HDR_SIZE + 36), UMAD_HDR_SIZE + 36);
	T_EQUAL(umad_file_write(fd, big, sizeof big), -EINVAL);
	bad.hdr.id = 32;
	T_EQUAL(umad_file_write(fd, &bad, sizeof bad), -EINVAL);
	bad.hdr.id = 31;
	T_EQUAL(umad_file_write(fd, &bad, sizeof bad), -EIO);
	bad = p;
	bad.hdr.grh_present = 0;
	T_EQUAL(umad_file_write(fd, &bad, sizeof bad), -EINVAL);
	bad = p;
	bad.hdr.gid_index = 255;
	T_EQUAL(umad_file_write(fd, &bad, sizeof bad), -ENODATA);
	p = request(sender, CLASS, 2);
	put(fd, &p);
}

/* A read that is too small leaves the MAD. */
static void reads(void)
{
	int fd = open_file(O_NONBLOCK);
	uint32_t sender = add_sender(fd, 0), server = add_agent(fd, CLASS, 0);
	struct packet p = request(sender, CLASS, 7), in = {0};

	T_EQUAL(umad_file_read(fd, &in, UMAD_HDR_SIZE - 1), -EINVAL);
	T_EQUAL(umad_file_read(fd, &in, UMAD_HDR_SIZE), -EAGAIN);
	put(fd, &p);
	await(fd);
	T_EQUAL(umad_file_read(fd, &in, sizeof in - 1), -EINVAL);
	T_EQUAL(in.hdr.length, 0);
	get(fd, &in);
	T_EQUAL(in.hdr.id, server);
	T_EQUAL(in.hdr.status, 0);
	T_EQUAL(in.hdr.length, sizeof in);
	T_EQUAL(in.hdr.timeout_ms, 0);
	T_EQUAL(in.hdr.grh_present, 1);
	T_EQUAL(low_tid(&in), 7);
	T_EQUAL(umad_file_read(fd, &in, sizeof in), -EAGAIN);
	quiet(fd);
}

static void opens(void)
{
	int pair[2], fd;

	T_EQUAL(umad_file_open("weft1", 1, O_RDWR), -ENODEV);
	T_EQUAL(umad_file_open("weft0", 2, O_RDWR), -ENODEV);
	T_EQUAL(umad_file_open("weft0", 0, O_RDWR), -ENODEV);
	fd = open_plain(0);
	T_EQUAL(fcntl(fd, F_GETFD), 0);
	T_EQUAL(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	T_SYS(close(fd));
	fd = open_plain(O_CLOEXEC | O_NONBLOCK);
	T_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
	T_EQUAL(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	T_EQUAL(umad_file_enable_pkey(-1), -EBADF);
	T_EQUAL(umad_file_unregister(0, 0), -EBADF);
	T_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	T_EQUAL(umad_file_enable_pkey(pair[0]), -EBADF);
}

/* As the path shim reaches it: by number, with addresses that may be bad. */
static void raw(void)
{
	const struct umad_device *device = weft_umad_device();
	int fd = device->open(false, 0, O_RDWR | O_NONBLOCK);
	struct umad_reg_req2 req = {
		.qpn = 1, .mgmt_class = CLASS, .class_version = 1, .method_mask = {1 << METHOD}};
	struct packet p, in;

	T_CHECK(fd >= 0);
	T_EQUAL(device->open(false, 7, O_RDWR), -ENXIO);
	T_EQUAL(device->ioctl(fd, UMAD_IOC_REGISTER_AGENT2, 8), -EFAULT);
	T_EQUAL(device->ioctl(fd, UMAD_IOC_ENABLE_PKEY + 1, (uintptr_t)&req), -ENOTTY);
	T_OK(device->ioctl(fd, UMAD_IOC_REGISTER_AGENT2, (uintptr_t)&req));
	T_EQUAL(req.id, 0);
	p = request(0, CLASS, 1);
	T_EQUAL(device->write(fd, (void *)8, sizeof p), -EFAULT);
	T_EQUAL(device->write(fd, &p, sizeof p), sizeof p);
	T_EQUAL(device->wait(fd, LONG_MS), 0);
	T_EQUAL(device->read(fd, (void *)8, sizeof in), -EFAULT);
	T_EQUAL(device->read(fd, &in, sizeof in), sizeof in);
	T_EQUAL(low_tid(&in), 1);
	T_EQUAL(device->read(-1, &in, sizeof in), -EBADF);
}

const struct test_case rule_cases[] = {
	{"opens", opens},
	{"registrations", registrations},
	{"register2", register2},
	{"old_layout", old_layout},
	{"writes", writes},
	{"reads", reads},
	{"raw", raw},
	{0},
};
