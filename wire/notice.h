/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attribute Notice, 64 bytes, as traps of subnet management carry it (IBA volume 1, 13.4.8.2
 * and 14.2.5.1): who tells, and the details, which differ from trap to trap.
 */
#pragma once

#include "wire/mad.h"

enum { NOTICE_SIZE = 64, NOTICE_PATH = 30, NOTICE_GID = 16 };

enum notice_trap {
	TRAP_LINK_STATE = 128,
	TRAP_LINK_INTEGRITY = 129,
	TRAP_BUFFER_OVERRUN = 130,
	TRAP_WATCHDOG = 131,
	TRAP_LOCAL_CHANGES = 144,
	TRAP_SYSTEM_GUID = 145,
	TRAP_BAD_MKEY = 256,
	TRAP_BAD_PKEY = 257,
	TRAP_BAD_QKEY = 258,
	TRAP_SWITCH_BAD_PKEY = 259,
};

enum notice_type { NOTICE_FATAL = 0, NOTICE_URGENT = 1, NOTICE_SECURITY = 2, NOTICE_INFO = 4 };

/* What of trap 144 has changed besides the capability mask. */
enum notice_change { CHANGED_NODE_DESC = 1, CHANGED_WIDTH = 2, CHANGED_SPEED = 4 };

/* Members that a trap's details lack are 0. */
struct notice {
	uint8_t generic, type;
	uint32_t producer; /* NodeType */
	uint16_t trap, issuer;
	uint8_t toggle;
	uint16_t count;

	uint16_t lid;  /* where; of 257 to 259 the sender of the packet */
	uint16_t lid2; /* its receiver */
	uint8_t port;
	uint8_t other_changes;
	uint32_t cap_mask;
	uint16_t change_flags, cap_mask2;
	uint64_t system_guid;
	uint16_t dr_slid, attr;
	uint8_t method;
	uint32_t attr_mod;
	uint64_t mkey;
	uint8_t directed, path_cut, hops;
	uint8_t path[NOTICE_PATH];
	uint32_t key; /* P_Key or Q_Key */
	uint8_t sl;
	uint32_t qp1, qp2;
	uint8_t gid1[NOTICE_GID], gid2[NOTICE_GID];
	uint16_t valid; /* of 259: which of its members hold */
	uint16_t switch_lid;
};

/* Writes it with the details of n->trap. */
void notice_pack(const struct notice *n, uint8_t attr[NOTICE_SIZE]);

/* Reads it; of a trap with a number that is not above no details. */
void notice_unpack(const uint8_t attr[NOTICE_SIZE], struct notice *n);
