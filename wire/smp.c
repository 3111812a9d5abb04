// SPDX-License-Identifier: BSD-3-Clause
#include "wire/smp.h"

#define HDR(member, byte, bit, bits)  WIRE_FIELD(struct smp_hdr, member, byte, bit, bits)
#define NODE(member, byte, bits)      WIRE_FIELD(struct node_info, member, byte, 0, bits)
#define PORT(member, byte, bit, bits) WIRE_FIELD(struct port_info, member, byte, bit, bits)
#define EXT(member, byte)             WIRE_FIELD(struct ext_port_info, member, byte, 0, 8)
#define SM(member, byte, bit, bits)   WIRE_FIELD(struct sm_info, member, byte, bit, bits)
#define SW(member, byte, bit, bits)   WIRE_FIELD(struct switch_info, member, byte, bit, bits)

static const struct wire_field hdr_fields[] = {
	HDR(base_version, 0, 0, 8),
	HDR(mgmt_class, 1, 0, 8),
	HDR(class_version, 2, 0, 8),
	HDR(method, 3, 0, 8),
	HDR(returning, 4, 0, 1),
	HDR(status, 4, 1, 15),
	HDR(hop_ptr, SMP_HOP_PTR, 0, 8),
	HDR(hop_cnt, SMP_HOP_CNT, 0, 8),
	HDR(tid, 8, 0, 64),
	HDR(attr, 16, 0, 16),
	HDR(attr_mod, 20, 0, 32),
	HDR(mkey, 24, 0, 64),
	HDR(dr_slid, 32, 0, 16),
	HDR(dr_dlid, 34, 0, 16),
};

static const struct wire_field node_info_fields[] = {
	NODE(base_version, 0, 8),
	NODE(class_version, 1, 8),
	NODE(type, 2, 8),
	NODE(ports, 3, 8),
	NODE(system_guid, 4, 64),
	NODE(node_guid, 12, 64),
	NODE(port_guid, 20, 64),
	NODE(partition_cap, 28, 16),
	NODE(device, 30, 16),
	NODE(revision, 32, 32),
	NODE(local_port, 36, 8),
	NODE(vendor, 37, 24),
};

static const struct wire_field port_info_fields[] = {
	PORT(mkey, 0, 0, 64),
	PORT(gid_prefix, 8, 0, 64),
	PORT(lid, 16, 0, 16),
	PORT(sm_lid, 18, 0, 16),
	PORT(cap_mask, 20, 0, 32),
	PORT(diag_code, 24, 0, 16),
	PORT(mkey_lease, 26, 0, 16),
	PORT(local_port, 28, 0, 8),
	PORT(width_enabled, 29, 0, 8),
	PORT(width_supported, 30, 0, 8),
	PORT(width_active, 31, 0, 8),
	PORT(speed_supported, 32, 0, 4),
	PORT(state, 32, 4, 4),
	PORT(phys_state, 33, 0, 4),
	PORT(down_default, 33, 4, 4),
	PORT(mkey_protect, 34, 0, 2),
	PORT(lmc, 34, 5, 3),
	PORT(speed_active, 35, 0, 4),
	PORT(speed_enabled, 35, 4, 4),
	PORT(neighbor_mtu, 36, 0, 4),
	PORT(sm_sl, 36, 4, 4),
	PORT(vl_cap, 37, 0, 4),
	PORT(init_type, 37, 4, 4),
	PORT(vl_high_limit, 38, 0, 8),
	PORT(vl_arb_high_cap, 39, 0, 8),
	PORT(vl_arb_low_cap, 40, 0, 8),
	PORT(init_type_reply, 41, 0, 4),
	PORT(mtu_cap, 41, 4, 4),
	PORT(vl_stall, 42, 0, 3),
	PORT(hoq_life, 42, 3, 5),
	PORT(oper_vls, 43, 0, 4),
	PORT(part_in, 43, 4, 1),
	PORT(part_out, 43, 5, 1),
	PORT(filter_in, 43, 6, 1),
	PORT(filter_out, 43, 7, 1),
	PORT(mkey_violations, 44, 0, 16),
	PORT(pkey_violations, 46, 0, 16),
	PORT(qkey_violations, 48, 0, 16),
	PORT(guid_cap, 50, 0, 8),
	PORT(client_reregister, 51, 0, 1),
	PORT(mcast_trap_suppress, 51, 1, 2),
	PORT(subnet_timeout, 51, 3, 5),
	PORT(resp_time, 52, 3, 5),
	PORT(local_phys_errors, 53, 0, 4),
	PORT(overrun_errors, 53, 4, 4),
	PORT(max_credit_hint, 54, 0, 16),
	PORT(ext_speed2_active, 56, 1, 2),
	PORT(ext_speed2_supported, 56, 3, 2),
	PORT(ext_speed2_enabled, 56, 5, 3),
	PORT(link_round_trip, 57, 0, 24),
	PORT(cap_mask2, 60, 0, 16),
	PORT(ext_speed_active, 62, 0, 4),
	PORT(ext_speed_supported, 62, 4, 4),
	PORT(ext_speed_enabled, 63, 3, 5),
};

static const struct wire_field ext_port_info_fields[] = {
	EXT(set, 3),
	EXT(speed_supported, 7),
	EXT(speed_enabled, 11),
	EXT(speed_active, 15),
};

static const struct wire_field switch_info_fields[] = {
	SW(lft_cap, 0, 0, 16),
	SW(random_cap, 2, 0, 16),
	SW(mft_cap, 4, 0, 16),
	SW(lft_top, 6, 0, 16),
	SW(default_port, 8, 0, 8),
	SW(default_mc_primary, 9, 0, 8),
	SW(default_mc_not_primary, 10, 0, 8),
	SW(life_time, 11, 0, 5),
	SW(port_state_change, 11, 5, 1),
	SW(optimized_sl2vl, 11, 6, 2),
	SW(lids_per_port, 12, 0, 16),
	SW(enforce_cap, 14, 0, 16),
	SW(enforce_in, 16, 0, 1),
	SW(enforce_out, 16, 1, 1),
	SW(filter_in, 16, 2, 1),
	SW(filter_out, 16, 3, 1),
	SW(enhanced_port0, 16, 4, 1),
	SW(mft_top, 18, 0, 16),
};

static const struct wire_field sm_info_fields[] = {
	SM(guid, 0, 0, 64),
	SM(sm_key, 8, 0, 64),
	SM(act_count, 16, 0, 32),
	SM(priority, 20, 0, 4),
	SM(state, 20, 4, 4),
};

const struct wire_format smp_hdr_format = WIRE_FORMAT("SMP", hdr_fields);
const struct wire_format node_info_format = WIRE_FORMAT("NodeInfo", node_info_fields);
const struct wire_format port_info_format = WIRE_FORMAT("PortInfo", port_info_fields);
const struct wire_format switch_info_format = WIRE_FORMAT("SwitchInfo", switch_info_fields);
const struct wire_format ext_port_info_format =
	WIRE_FORMAT("ExtendedPortInfo", ext_port_info_fields);
const struct wire_format sm_info_format = WIRE_FORMAT("SMInfo", sm_info_fields);
