/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subnet management packets (IBA volume 1, 14.2): the header that both classes share, what a
 * directed route adds to it, and the attributes that have named fields.  Attributes begin at byte
 * SMP_DATA; their formats count from there.
 */
#pragma once

#include "wire/mad.h"

enum {
	SMP_HOP_PTR = 6,
	SMP_HOP_CNT = 7,
	SMP_DATA = 64,
	SMP_DATA_SIZE = 64,
	SMP_INITIAL_PATH = 128, /* [hop], from 1 */
	SMP_RETURN_PATH = 192,
	SMP_HOPS = 63, /* that a route may have */
	SMP_CLASS_VERSION = 1,
	LID_PERMISSIVE = 0xffff,
	LID_MULTICAST = 0xc000, /* the first; 1 to 0xbfff are unicast */
};

enum smp_attr {
	SMP_NOTICE = 0x02,
	SMP_NODE_DESC = 0x10,
	SMP_NODE_INFO = 0x11,
	SMP_SWITCH_INFO = 0x12,
	SMP_GUID_INFO = 0x14,
	SMP_PORT_INFO = 0x15,
	SMP_PKEY_TABLE = 0x16,
	SMP_SL2VL = 0x17,
	SMP_VL_ARB = 0x18,
	SMP_LFT = 0x19,
	SMP_MFT = 0x1b,
	SMP_SM_INFO = 0x20,
	SMP_VENDOR_FIRST = 0xff00,
	SMP_EXT_PORT_INFO = 0xff90, /* Mellanox's: FDR10 */
};

/* Status of a response, without the direction bit. */
enum smp_status {
	SMP_OK = 0,
	SMP_BAD_VERSION = 0x04,
	SMP_BAD_METHOD = 0x08,
	SMP_UNSUPPORTED = 0x0c,
	SMP_INVALID = 0x1c, /* a field of the attribute or its modifier */
};

/* Entries in one block of a table. */
enum {
	SMP_PKEYS = 32,
	SMP_GUIDS = 8,
	SMP_LIDS = 64,  /* of a linear forwarding table */
	SMP_MLIDS = 32, /* of a multicast forwarding table, 16 ports each */
	SMP_VL_ARBS = 32,
	SMP_SLS = 16,
};

struct smp_hdr {
	uint8_t base_version, mgmt_class, class_version, method;
	uint8_t returning; /* D: of a directed route */
	uint16_t status;   /* 15 bits */
	uint8_t hop_ptr, hop_cnt;
	uint64_t tid;
	uint16_t attr;
	uint32_t attr_mod;
	uint64_t mkey;
	uint16_t dr_slid, dr_dlid;
};

enum port_state { PORT_NOP = 0, PORT_DOWN, PORT_INIT, PORT_ARMED, PORT_ACTIVE };

enum phys_state {
	PHYS_NOP = 0,
	PHYS_SLEEP,
	PHYS_POLLING,
	PHYS_DISABLED,
	PHYS_TRAINING,
	PHYS_LINK_UP,
};

/* CapabilityMask and CapabilityMask2 of PortInfo. */
enum port_cap {
	CAP_SM = 1 << 1,
	CAP_NOTICE = 1 << 2,
	CAP_TRAP = 1 << 3,
	CAP_SL_MAP = 1 << 6,
	CAP_SYSTEM_GUID = 1 << 11,
	CAP_SWITCH_PKEY_TRAP = 1 << 12,
	CAP_EXT_SPEEDS = 1 << 14,
	CAP_MASK2 = 1 << 15,
	CAP_CM = 1 << 16,
	CAP_VENDOR_CLASS = 1 << 20,
	CAP_DR_NOTICE = 1 << 21,
	CAP_MASK_NOTICE = 1 << 22,
	CAP_CLIENT_REREGISTER = 1 << 25,
	CAP_OTHER_CHANGES_NOTICE = 1 << 26,
	CAP_MULTICAST_TOP = 1 << 30,
	CAP2_SET_NODE_DESC = 1 << 0,
	CAP2_WIDTH_2X = 1 << 4,
	CAP2_SPEED_HDR = 1 << 5,
	CAP2_SPEED_NDR = 1 << 10,
	CAP2_EXT_SPEEDS2 = 1 << 11,
	CAP2_SPEED_XDR = 1 << 12,
};

struct node_info {
	uint8_t base_version, class_version, type, ports;
	uint64_t system_guid, node_guid, port_guid;
	uint16_t partition_cap, device;
	uint32_t revision;
	uint8_t local_port;
	uint32_t vendor;
};

struct port_info {
	uint64_t mkey, gid_prefix;
	uint16_t lid, sm_lid;
	uint32_t cap_mask;
	uint16_t diag_code, mkey_lease;
	uint8_t local_port;
	uint8_t width_enabled, width_supported, width_active;
	uint8_t speed_supported, state, phys_state, down_default;
	uint8_t mkey_protect, lmc;
	uint8_t speed_active, speed_enabled;
	uint8_t neighbor_mtu, sm_sl, vl_cap, init_type;
	uint8_t vl_high_limit, vl_arb_high_cap, vl_arb_low_cap;
	uint8_t init_type_reply, mtu_cap, vl_stall, hoq_life, oper_vls;
	uint8_t part_in, part_out, filter_in, filter_out;
	uint16_t mkey_violations, pkey_violations, qkey_violations;
	uint8_t guid_cap, client_reregister, mcast_trap_suppress, subnet_timeout, resp_time;
	uint8_t local_phys_errors, overrun_errors;
	uint16_t max_credit_hint;
	uint32_t link_round_trip;
	uint16_t cap_mask2;
	uint8_t ext_speed_active, ext_speed_supported, ext_speed_enabled;
	uint8_t ext_speed2_active, ext_speed2_supported, ext_speed2_enabled; /* 1 XDR */
};

/* Masks of FDR10 alone; what of a Set counts says another one. */
enum { EXT_PORT_FDR10 = 1, EXT_PORT_SET_SPEED = 1 };

struct ext_port_info {
	uint8_t set, speed_supported, speed_enabled, speed_active;
};

struct switch_info {
	uint16_t lft_cap, random_cap, mft_cap, lft_top;
	uint8_t default_port, default_mc_primary, default_mc_not_primary;
	uint8_t life_time, port_state_change, optimized_sl2vl;
	uint16_t lids_per_port, enforce_cap;
	uint8_t enforce_in, enforce_out, filter_in, filter_out, enhanced_port0;
	uint16_t mft_top;
};

enum sm_state { SM_NOT_ACTIVE = 0, SM_DISCOVERING, SM_STANDBY, SM_MASTER };

struct sm_info {
	uint64_t guid, sm_key;
	uint32_t act_count;
	uint8_t priority, state;
};

extern const struct wire_format smp_hdr_format; /* of the whole MAD */
extern const struct wire_format node_info_format, port_info_format, switch_info_format,
	sm_info_format, ext_port_info_format;
