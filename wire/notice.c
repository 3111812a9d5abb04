// SPDX-License-Identifier: BSD-3-Clause
#include "wire/notice.h"

#include <string.h>

#define F(member, byte, bit, bits) WIRE_FIELD(struct notice, member, byte, bit, bits)

static const struct wire_field head_fields[] = {
	F(generic, 0, 0, 1),
	F(type, 0, 1, 7),
	F(producer, 1, 0, 24),
	F(trap, 4, 0, 16),
	F(issuer, 6, 0, 16),
	F(toggle, 8, 0, 1),
	F(count, 8, 1, 15),
};

static const struct wire_field link_state_fields[] = {
	F(lid, 10, 0, 16),
};

static const struct wire_field link_error_fields[] = {
	F(lid, 12, 0, 16),
	F(port, 14, 0, 8),
};

static const struct wire_field local_changes_fields[] = {
	F(lid, 12, 0, 16),
	F(other_changes, 15, 7, 1),
	F(cap_mask, 16, 0, 32),
	F(change_flags, 20, 0, 16),
	F(cap_mask2, 22, 0, 16),
};

static const struct wire_field system_guid_fields[] = {
	F(lid, 12, 0, 16),
	F(system_guid, 16, 0, 64),
};

static const struct wire_field bad_mkey_fields[] = {
	F(lid, 12, 0, 16),
	F(dr_slid, 14, 0, 16),
	F(method, 16, 0, 8),
	F(attr, 18, 0, 16),
	F(attr_mod, 20, 0, 32),
	F(mkey, 24, 0, 64),
	F(directed, 33, 0, 1),
	F(path_cut, 33, 1, 1),
	F(hops, 33, 2, 6),
	F(path, 34, 0, 8 * NOTICE_PATH),
};

static const struct wire_field bad_key_fields[] = {
	F(lid, 12, 0, 16),
	F(lid2, 14, 0, 16),
	F(key, 16, 0, 32),
	F(sl, 20, 0, 4),
	F(qp1, 21, 0, 24),
	F(qp2, 25, 0, 24),
	F(gid1, 28, 0, 128),
	F(gid2, 44, 0, 128),
};

static const struct wire_field switch_bad_pkey_fields[] = {
	F(valid, 10, 0, 16),
	F(lid, 12, 0, 16),
	F(lid2, 14, 0, 16),
	F(key, 16, 0, 16),
	F(sl, 18, 0, 4),
	F(qp1, 19, 0, 24),
	F(qp2, 23, 0, 24),
	F(gid1, 26, 0, 128),
	F(gid2, 42, 0, 128),
	F(switch_lid, 58, 0, 16),
	F(port, 60, 0, 8),
};

static const struct wire_format head = WIRE_FORMAT("Notice", head_fields);

static const struct details {
	uint16_t trap;
	struct wire_format format;
} details[] = {
	{TRAP_LINK_STATE, WIRE_FORMAT("LinkState", link_state_fields)},
	{TRAP_LINK_INTEGRITY, WIRE_FORMAT("LinkIntegrity", link_error_fields)},
	{TRAP_BUFFER_OVERRUN, WIRE_FORMAT("BufferOverrun", link_error_fields)},
	{TRAP_WATCHDOG, WIRE_FORMAT("Watchdog", link_error_fields)},
	{TRAP_LOCAL_CHANGES, WIRE_FORMAT("LocalChanges", local_changes_fields)},
	{TRAP_SYSTEM_GUID, WIRE_FORMAT("SystemGuid", system_guid_fields)},
	{TRAP_BAD_MKEY, WIRE_FORMAT("BadMKey", bad_mkey_fields)},
	{TRAP_BAD_PKEY, WIRE_FORMAT("BadPKey", bad_key_fields)},
	{TRAP_BAD_QKEY, WIRE_FORMAT("BadQKey", bad_key_fields)},
	{TRAP_SWITCH_BAD_PKEY, WIRE_FORMAT("SwitchBadPKey", switch_bad_pkey_fields)},
};

static const struct wire_format *details_of(uint16_t trap)
{
	for (size_t i = 0; i < sizeof details / sizeof details[0]; i++)
		if (details[i].trap == trap)
			return &details[i].format;
	return NULL;
}

void notice_pack(const struct notice *n, uint8_t attr[NOTICE_SIZE])
{
	const struct wire_format *f = details_of(n->trap);

	memset(attr, 0, NOTICE_SIZE);
	wire_pack(&head, n, attr);
	if (f)
		wire_pack(f, n, attr);
}

void notice_unpack(const uint8_t attr[NOTICE_SIZE], struct notice *n)
{
	const struct wire_format *f;

	memset(n, 0, sizeof *n);
	wire_unpack(&head, attr, n);
	f = details_of(n->trap);
	if (f)
		wire_unpack(f, attr, n);
}
