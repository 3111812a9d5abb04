/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance management (IBA volume 1, 16.1): ClassPortInfo and the attributes that are counters
 * of a port.  They begin at byte PMA_DATA; formats count from there.
 */
#pragma once

#include "wire/mad.h"

enum { PMA_DATA = 64, PMA_DATA_SIZE = MAD_SIZE - PMA_DATA, PMA_CLASS_VERSION = 1 };

enum pma_attr {
	PMA_PORT_COUNTERS = 0x12,
	PMA_RCV_ERROR_DETAILS = 0x15,
	PMA_XMIT_DISCARD_DETAILS = 0x16,
	PMA_PORT_COUNTERS_EXT = 0x1d,
	PMA_XMIT_DATA_SL = 0x36,
	PMA_RCV_DATA_SL = 0x37,
};

enum { PMA_ALL_PORTS = 0xff, PMA_COUNTERS = 32 };

/* CapabilityMask and CapabilityMask2 of ClassPortInfo. */
enum pma_cap {
	PMA_CAP_ALL_PORTS = 1 << 8,
	PMA_CAP_EXT_WIDTH = 1 << 9,
	PMA_CAP_XMIT_WAIT = 1 << 12,
	PMA_CAP2_MORE_EXT = 1 << 1, /* PortCountersExtended has the errors, too */
};

struct class_port_info {
	uint8_t base_version, class_version;
	uint16_t cap_mask;
	uint32_t cap_mask2; /* 27 bits */
	uint8_t resp_time;  /* 5 bits */
};

/* value[i] is selected by bit i of select, value[16 + i] by bit i of select2. */
struct pma_counters {
	uint8_t port;
	uint16_t select;
	uint32_t select2;
	uint64_t value[PMA_COUNTERS];
};

extern const struct wire_format class_port_info_format;
extern const struct wire_format pma_counters_format, pma_counters_ext_format;
extern const struct wire_format pma_rcv_errors_format, pma_xmit_discards_format;
extern const struct wire_format pma_data_sl_format; /* of XmitDataSL and RcvDataSL */
