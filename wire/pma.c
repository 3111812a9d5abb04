// SPDX-License-Identifier: BSD-3-Clause
#include "wire/pma.h"

#define CPI(member, byte, bit, bits) WIRE_FIELD(struct class_port_info, member, byte, bit, bits)
#define F(member, byte, bit, bits)   WIRE_FIELD(struct pma_counters, member, byte, bit, bits)

static const struct wire_field class_port_info_fields[] = {
	CPI(base_version, 0, 0, 8),
	CPI(class_version, 1, 0, 8),
	CPI(cap_mask, 2, 0, 16),
	CPI(cap_mask2, 4, 0, 27),
	CPI(resp_time, 7, 3, 5),
};

static const struct wire_field counters_fields[] = {
	F(port, 1, 0, 8), F(select, 2, 0, 16), F(value[0], 4, 0, 16), /* SymbolErrorCounter */
	F(value[1], 6, 0, 8),                                         /* LinkErrorRecoveryCounter */
	F(value[2], 7, 0, 8),                                         /* LinkDownedCounter */
	F(value[3], 8, 0, 16),                                        /* PortRcvErrors */
	F(value[4], 10, 0, 16),  /* PortRcvRemotePhysicalErrors */
	F(value[5], 12, 0, 16),  /* PortRcvSwitchRelayErrors */
	F(value[6], 14, 0, 16),  /* PortXmitDiscards */
	F(value[7], 16, 0, 8),   /* PortXmitConstraintErrors */
	F(value[8], 17, 0, 8),   /* PortRcvConstraintErrors */
	F(select2, 18, 0, 8),    /* CounterSelect2 */
	F(value[9], 19, 0, 4),   /* LocalLinkIntegrityErrors */
	F(value[10], 19, 4, 4),  /* ExcessiveBufferOverrunErrors */
	F(value[11], 22, 0, 16), /* VL15Dropped */
	F(value[12], 24, 0, 32), /* PortXmitData */
	F(value[13], 28, 0, 32), /* PortRcvData */
	F(value[14], 32, 0, 32), /* PortXmitPkts */
	F(value[15], 36, 0, 32), /* PortRcvPkts */
	F(value[16], 40, 0, 32), /* PortXmitWait */
};

static const struct wire_field ext_fields[] = {
	F(port, 1, 0, 8), F(select, 2, 0, 16), F(select2, 4, 0, 32),
	F(value[0], 8, 0, 64),    /* PortXmitData */
	F(value[1], 16, 0, 64),   /* PortRcvData */
	F(value[2], 24, 0, 64),   /* PortXmitPkts */
	F(value[3], 32, 0, 64),   /* PortRcvPkts */
	F(value[4], 40, 0, 64),   /* PortUnicastXmitPkts */
	F(value[5], 48, 0, 64),   /* PortUnicastRcvPkts */
	F(value[6], 56, 0, 64),   /* PortMulticastXmitPkts */
	F(value[7], 64, 0, 64),   /* PortMulticastRcvPkts */
	F(value[16], 72, 0, 64),  /* SymbolErrorCounter */
	F(value[17], 80, 0, 64),  /* LinkErrorRecoveryCounter */
	F(value[18], 88, 0, 64),  /* LinkDownedCounter */
	F(value[19], 96, 0, 64),  /* PortRcvErrors */
	F(value[20], 104, 0, 64), /* PortRcvRemotePhysicalErrors */
	F(value[21], 112, 0, 64), /* PortRcvSwitchRelayErrors */
	F(value[22], 120, 0, 64), /* PortXmitDiscards */
	F(value[23], 128, 0, 64), /* PortXmitConstraintErrors */
	F(value[24], 136, 0, 64), /* PortRcvConstraintErrors */
	F(value[25], 144, 0, 64), /* LocalLinkIntegrityErrors */
	F(value[26], 152, 0, 64), /* ExcessiveBufferOverrunErrors */
	F(value[27], 160, 0, 64), /* VL15Dropped */
	F(value[28], 168, 0, 64), /* PortXmitWait */
	F(value[29], 176, 0, 64), /* QP1Dropped */
};

static const struct wire_field rcv_errors_fields[] = {
	F(port, 1, 0, 8), F(select, 2, 0, 16), F(value[0], 4, 0, 16), /* PortLocalPhysicalErrors */
	F(value[1], 6, 0, 16),  /* PortMalformedPacketErrors */
	F(value[2], 8, 0, 16),  /* PortBufferOverrunErrors */
	F(value[3], 10, 0, 16), /* PortDLIDMappingErrors */
	F(value[4], 12, 0, 16), /* PortVLMappingErrors */
	F(value[5], 14, 0, 16), /* PortLoopingErrors */
};

static const struct wire_field xmit_discards_fields[] = {
	F(port, 1, 0, 8), F(select, 2, 0, 16), F(value[0], 4, 0, 16), /* PortInactiveDiscards */
	F(value[1], 6, 0, 16),                                        /* PortNeighborMTUDiscards */
	F(value[2], 8, 0, 16),  /* PortSwLifetimeLimitDiscards */
	F(value[3], 10, 0, 16), /* PortSwHOQLifetimeLimitDiscards */
};

#define SL(i) F(value[i], 4 + 4 * (i), 0, 32)

static const struct wire_field data_sl_fields[] = {
	F(port, 1, 0, 8),
	F(select, 2, 0, 16),
	SL(0),
	SL(1),
	SL(2),
	SL(3),
	SL(4),
	SL(5),
	SL(6),
	SL(7),
	SL(8),
	SL(9),
	SL(10),
	SL(11),
	SL(12),
	SL(13),
	SL(14),
	SL(15),
};

const struct wire_format class_port_info_format =
	WIRE_FORMAT("ClassPortInfo", class_port_info_fields);
const struct wire_format pma_counters_format = WIRE_FORMAT("PortCounters", counters_fields);
const struct wire_format pma_counters_ext_format = WIRE_FORMAT("PortCountersExtended", ext_fields);
const struct wire_format pma_rcv_errors_format =
	WIRE_FORMAT("PortRcvErrorDetails", rcv_errors_fields);
const struct wire_format pma_xmit_discards_format =
	WIRE_FORMAT("PortXmitDiscardDetails", xmit_discards_fields);
const struct wire_format pma_data_sl_format = WIRE_FORMAT("PortDataSL", data_sl_fields);
