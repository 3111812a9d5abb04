/* SPDX-License-Identifier: BSD-3-Clause */
/* Management datagrams: the 24-byte header that all classes share, and what a class says. */
#pragma once

#include <stdbool.h>

#include "wire/field.h"

enum { MAD_SIZE = 256, MAD_HDR_SIZE = 24, MAD_OUI_AT = 37 };

enum mad_class {
	MAD_CLASS_SUBN_LID = 0x01,
	MAD_CLASS_SA = 0x03,
	MAD_CLASS_PERF = 0x04,
	MAD_CLASS_BM = 0x05,
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

enum {
	MAD_BASE_VERSION = 1,
	MAD_ATTR_CLASS_PORT_INFO = 0x0001,
	MAD_BM_RESPONSE = 1, /* of the attribute modifier */
	MAD_STATUS_UNSUPPORTED = 0x000c,
	MAD_STATUS_DIRECTION = 0x8000, /* of a directed-route SMP: on its way back */
};

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

/* What wire_unpack() and wire_pack() do by mad_hdr_format, for who does it with each MAD. */
void mad_hdr_unpack(const uint8_t mad[MAD_SIZE], struct mad_hdr *hdr);
void mad_hdr_pack(const struct mad_hdr *hdr, uint8_t mad[MAD_SIZE]);

/* Does it answer a request?  By its method, for baseboard management by its attribute modifier. */
bool mad_is_response(const struct mad_hdr *hdr);

/* Subnet management: of LID-routed or directed-route SMPs. */
bool mad_class_is_smp(uint8_t mgmt_class);

/* The QP that MADs of that class go to: 0 or 1. */
unsigned mad_class_qp(uint8_t mgmt_class);

/* The vendor classes of the second range: an OUI says whose MADs they are. */
bool mad_class_has_oui(uint8_t mgmt_class);

/* That OUI; of a MAD of another class: 0. */
uint32_t mad_oui(const uint8_t mad[MAD_SIZE]);
