/* SPDX-License-Identifier: BSD-3-Clause */
/* Management datagrams: the 24-byte header that all classes share. */
#pragma once

#include "wire/field.h"

enum { MAD_SIZE = 256, MAD_HDR_SIZE = 24 };

enum mad_class {
	MAD_CLASS_SUBN_LID = 0x01,
	MAD_CLASS_SA = 0x03,
	MAD_CLASS_PERF = 0x04,
	MAD_CLASS_DEV_MGT = 0x06,
	MAD_CLASS_CM = 0x07,
	MAD_CLASS_DEV_ADM = 0x10,
	MAD_CLASS_BIS = 0x12,
	MAD_CLASS_VENDOR2 = 0x30,
	MAD_CLASS_VENDOR2_END = 0x4f,
	MAD_CLASS_SUBN_DR = 0x81,
};

enum mad_method {
	MAD_GET = 0x01,
	MAD_SET = 0x02,
	MAD_SEND = 0x03,
	MAD_TRAP = 0x05,
	MAD_REPORT = 0x06,
	MAD_TRAP_REPRESS = 0x07,
	MAD_RESPONSE = 0x80, /* the bit */
	MAD_GET_RESP = 0x81,
};

enum { MAD_BASE_VERSION = 1, MAD_ATTR_CLASS_PORT_INFO = 0x0001, MAD_STATUS_UNSUPPORTED = 0x000c };

struct mad_hdr {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;
	uint16_t attr;
	uint32_t attr_mod;
};

extern const struct wire_format mad_hdr_format;
