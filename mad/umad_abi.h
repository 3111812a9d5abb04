/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ABI of /dev/infiniband/umadN (IB_USER_MAD_ABI_VERSION 5): what programs write, read and pass
 * to ioctl(2).  Layouts as <rdma/ib_user_mad.h> has them on 64-bit machines; "be" members are in
 * network order, all others in the machine's.  tests/unit/umad_file_test.c compares.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	UMAD_ABI_VERSION = 5,
	UMAD_AGENTS = 32,   /* of a file */
	UMAD_HDR_SIZE = 64, /* of struct umad_hdr */
	UMAD_HDR_OLD = 56,  /* ... without pkey_index: of files that never asked for it */
	UMAD_WRITE_MIN =
		36, /* bytes of a MAD that write(2) needs: up to the end of RMPP's header */
	UMAD_OUI_MAX = 0xffffff,
};

/* The flags of REGISTER_AGENT2; the second is all that are supported. */
enum { UMAD_USER_RMPP = 1, UMAD_FLAGS_CAP = 1 };

enum {
	UMAD_IOC_REGISTER_AGENT = 0xc01c1b01u,
	UMAD_IOC_UNREGISTER_AGENT = 0x40041b02,
	UMAD_IOC_ENABLE_PKEY = 0x1b03,
	UMAD_IOC_REGISTER_AGENT2 = 0xc0281b04u,
};

/* What stands before each MAD in read(2) and write(2). */
struct umad_hdr {
	uint32_t id;     /* of the agent: its slot */
	uint32_t status; /* read: 0, or ETIMEDOUT with the header of what was sent */
	uint32_t timeout_ms, retries;
	uint32_t length; /* read: of header and MAD */
	uint32_t be_qpn, be_qkey;
	uint16_t be_lid;
	uint8_t sl, path_bits;
	uint8_t grh_present, gid_index, hop_limit, traffic_class;
	uint8_t gid[16]; /* of the other side */
	uint32_t be_flow_label;
	uint16_t pkey_index; /* from here on: the new layout alone */
	uint8_t reserved[6];
};

_Static_assert(sizeof(struct umad_hdr) == UMAD_HDR_SIZE, "the new layout");
_Static_assert(offsetof(struct umad_hdr, be_qpn) == 20, "");
_Static_assert(offsetof(struct umad_hdr, be_lid) == 28, "");
_Static_assert(offsetof(struct umad_hdr, grh_present) == 32, "");
_Static_assert(offsetof(struct umad_hdr, gid) == 36, "");
_Static_assert(offsetof(struct umad_hdr, be_flow_label) == 52, "");
_Static_assert(offsetof(struct umad_hdr, pkey_index) == UMAD_HDR_OLD, "the old layout ends here");

/* REGISTER_AGENT. */
struct umad_reg_req {
	uint32_t id; /* out */
	uint32_t method_mask[4];
	uint8_t qpn, mgmt_class, class_version;
	uint8_t oui[3]; /* most significant byte first */
	uint8_t rmpp_version;
};

_Static_assert(sizeof(struct umad_reg_req) == 28, "");
_Static_assert(offsetof(struct umad_reg_req, rmpp_version) == 26, "");

/* REGISTER_AGENT2. */
struct umad_reg_req2 {
	uint32_t id; /* out */
	uint32_t qpn;
	uint8_t mgmt_class, class_version;
	uint16_t res;
	uint32_t flags; /* out, where some are not supported: those that are */
	uint64_t method_mask[2];
	uint32_t oui;
	uint8_t rmpp_version;
	uint8_t reserved[3];
};

_Static_assert(sizeof(struct umad_reg_req2) == 40, "");
_Static_assert(offsetof(struct umad_reg_req2, method_mask) == 16, "");
_Static_assert(offsetof(struct umad_reg_req2, oui) == 32, "");
