// SPDX-License-Identifier: BSD-3-Clause
/* Commands of umad files: their arguments, to and from the functions of a file. */
#include "umad/device.h"

#include <errno.h>
#include <string.h>

#include "base/user_mem.h"
#include "mad/umad_abi.h"
#include "umad/file.h"
#include "umad/open.h"

/* Tells a program the id of an agent that it has now; if it cannot be told it has none. */
static int give_id(int fd, uint64_t arg, uint32_t id)
{
	int rc = user_put(arg, &id, sizeof id);

	if (rc)
		umad_file_unregister(fd, id);
	return rc;
}

static int do_register(int fd, uint64_t arg)
{
	struct umad_agent agent;
	struct umad_reg_req req;
	int rc = user_get(&req, arg, sizeof req);

	if (rc)
		return rc;
	agent = (struct umad_agent){
		.qpn = req.qpn,
		.mgmt_class = req.mgmt_class,
		.class_version = req.class_version,
		.rmpp_version = req.rmpp_version,
		.oui = req.oui[0] << 16 | req.oui[1] << 8 | req.oui[2],
	};
	memcpy(agent.method_mask, req.method_mask, sizeof agent.method_mask);
	rc = umad_file_register(fd, &agent);
	return rc ? rc : give_id(fd, arg + offsetof(struct umad_reg_req, id), agent.id);
}

static int do_register2(int fd, uint64_t arg)
{
	struct umad_agent agent;
	struct umad_reg_req2 req;
	int rc = user_get(&req, arg, sizeof req);

	if (rc)
		return rc;
	agent = (struct umad_agent){
		.qpn = req.qpn,
		.mgmt_class = req.mgmt_class,
		.class_version = req.class_version,
		.rmpp_version = req.rmpp_version,
		.oui = req.oui,
		.flags = req.flags,
	};
	memcpy(agent.method_mask, req.method_mask, sizeof agent.method_mask);
	rc = umad_file_register2(fd, &agent);
	if (rc == -EINVAL && agent.flags != req.flags &&
		user_put(arg + offsetof(struct umad_reg_req2, flags), &agent.flags,
			sizeof agent.flags))
		return -EFAULT;
	return rc ? rc : give_id(fd, arg + offsetof(struct umad_reg_req2, id), agent.id);
}

static int do_unregister(int fd, uint64_t arg)
{
	uint32_t id;
	int rc = user_get(&id, arg, sizeof id);

	return rc ? rc : umad_file_unregister(fd, id);
}

static int device_ioctl(int fd, uint32_t cmd, uint64_t arg)
{
	switch (cmd) {
	case UMAD_IOC_REGISTER_AGENT:
		return do_register(fd, arg);
	case UMAD_IOC_REGISTER_AGENT2:
		return do_register2(fd, arg);
	case UMAD_IOC_UNREGISTER_AGENT:
		return do_unregister(fd, arg);
	case UMAD_IOC_ENABLE_PKEY:
		return umad_file_enable_pkey(fd);
	default:
		return -ENOTTY;
	}
}

/* A whole MAD with its header. */
enum { PACKET = UMAD_HDR_SIZE + 256 };

/* What is longer is copied by the kernel. */
static ssize_t device_write(int fd, const void *buf, size_t len)
{
	size_t n = len < PACKET ? len : PACKET;
	uint8_t packet[PACKET];

	if (user_get(packet, (uintptr_t)buf, n))
		return umad_file_write(fd, NULL, len);
	return umad_file_write(fd, len > PACKET ? buf : packet, len);
}

/* Before something is taken that could not be given. */
static ssize_t device_read(int fd, void *buf, size_t len)
{
	size_t n = len < PACKET ? len : PACKET;
	uint8_t packet[PACKET];

	return umad_file_read(fd, user_get(packet, (uintptr_t)buf, n) ? NULL : buf, len);
}

__attribute__((visibility("default"))) const struct umad_device *weft_umad_device(void)
{
	static const struct umad_device device = {
		.open = open_numbered,
		.ioctl = device_ioctl,
		.read = device_read,
		.write = device_write,
		.wait = umad_file_wait,
	};

	return &device;
}
