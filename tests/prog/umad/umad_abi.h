/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ABI of umad files, written down once more beside <rdma/ib_user_mad.h>: programs that compare
 * Weft's with the kernel's trust neither's headers.
 */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

#define REGISTER   _IOC(_IOC_READ | _IOC_WRITE, 0x1b, 1, 28)
#define UNREGISTER _IOC(_IOC_WRITE, 0x1b, 2, 4)
#define PKEY       _IOC(_IOC_NONE, 0x1b, 3, 0)
#define REGISTER2  _IOC(_IOC_READ | _IOC_WRITE, 0x1b, 4, 40)

struct req {
	uint32_t id, mask[4];
	uint8_t qpn, class, version, oui[3], rmpp, pad;
};

struct req2 {
	uint32_t id, qpn;
	uint8_t class, version;
	uint16_t res;
	uint32_t flags, mask[4], oui;
	uint8_t rmpp, pad[3];
};
