// SPDX-License-Identifier: BSD-3-Clause
#include "wire/mad.h"

#define F(member, byte, bits) WIRE_FIELD(struct mad_hdr, member, byte, 0, bits)

static const struct wire_field hdr_fields[] = {
	F(base_version, 0, 8),
	F(mgmt_class, 1, 8),
	F(class_version, 2, 8),
	F(method, 3, 8),
	F(status, 4, 16),
	F(class_specific, 6, 16),
	F(tid, 8, 64),
	F(attr, 16, 16),
	F(attr_mod, 20, 32),
};

const struct wire_format mad_hdr_format = {
	"MAD", hdr_fields, sizeof hdr_fields / sizeof hdr_fields[0]};
