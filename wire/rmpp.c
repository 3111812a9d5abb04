// SPDX-License-Identifier: BSD-3-Clause
#include "wire/rmpp.h"

#define F(member, byte, bit, bits) WIRE_FIELD(struct rmpp_hdr, member, RMPP_AT + (byte), bit, bits)

static const struct wire_field hdr_fields[] = {
	F(version, 0, 0, 8),
	F(type, 1, 0, 8),
	F(resp_time, 2, 0, 5),
	F(flags, 2, 5, 3),
	F(status, 3, 0, 8),
	F(segment, 4, 0, 32),
	F(length, 8, 0, 32),
};

const struct wire_format rmpp_hdr_format = {
	"RMPP", hdr_fields, sizeof hdr_fields / sizeof hdr_fields[0]};

unsigned rmpp_data_at(uint8_t mgmt_class)
{
	if (mgmt_class == MAD_CLASS_SA)
		return 56;
	if (mad_class_has_oui(mgmt_class))
		return 40;
	if (mgmt_class == MAD_CLASS_DEV_MGT || mgmt_class == MAD_CLASS_DEV_ADM ||
		mgmt_class == MAD_CLASS_BIS)
		return 64;
	return 0;
}

bool rmpp_is_active(const uint8_t mad[MAD_SIZE])
{
	return rmpp_data_at(mad[1]) && mad[RMPP_AT + 2] & RMPP_ACTIVE;
}
