// SPDX-License-Identifier: BSD-3-Clause
#include "wire/mad.h"

#include <endian.h>
#include <string.h>

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

/* The fields as they lie in a MAD. */
struct packed_hdr {
	uint8_t base_version, mgmt_class, class_version, method;
	uint16_t be_status, be_class_specific;
	uint64_t be_tid;
	uint16_t be_attr, reserved;
	uint32_t be_attr_mod;
};

_Static_assert(sizeof(struct packed_hdr) == MAD_HDR_SIZE, "without holes");

void mad_hdr_unpack(const uint8_t mad[MAD_SIZE], struct mad_hdr *hdr)
{
	struct packed_hdr p;

	memcpy(&p, mad, sizeof p);
	*hdr = (struct mad_hdr){
		.base_version = p.base_version,
		.mgmt_class = p.mgmt_class,
		.class_version = p.class_version,
		.method = p.method,
		.status = be16toh(p.be_status),
		.class_specific = be16toh(p.be_class_specific),
		.tid = be64toh(p.be_tid),
		.attr = be16toh(p.be_attr),
		.attr_mod = be32toh(p.be_attr_mod),
	};
}

void mad_hdr_pack(const struct mad_hdr *hdr, uint8_t mad[MAD_SIZE])
{
	struct packed_hdr p;

	memcpy(&p, mad, sizeof p); /* for what is reserved */
	p.base_version = hdr->base_version;
	p.mgmt_class = hdr->mgmt_class;
	p.class_version = hdr->class_version;
	p.method = hdr->method;
	p.be_status = htobe16(hdr->status);
	p.be_class_specific = htobe16(hdr->class_specific);
	p.be_tid = htobe64(hdr->tid);
	p.be_attr = htobe16(hdr->attr);
	p.be_attr_mod = htobe32(hdr->attr_mod);
	memcpy(mad, &p, sizeof p);
}

bool mad_is_response(const struct mad_hdr *hdr)
{
	return hdr->method & MAD_RESPONSE || hdr->method == MAD_TRAP_REPRESS ||
	       (hdr->mgmt_class == MAD_CLASS_BM && hdr->attr_mod & MAD_BM_RESPONSE);
}

bool mad_class_is_smp(uint8_t mgmt_class)
{
	return mgmt_class == MAD_CLASS_SUBN_LID || mgmt_class == MAD_CLASS_SUBN_DR;
}

unsigned mad_class_qp(uint8_t mgmt_class)
{
	return !mad_class_is_smp(mgmt_class);
}

bool mad_class_has_oui(uint8_t mgmt_class)
{
	return mgmt_class >= MAD_CLASS_VENDOR2 && mgmt_class <= MAD_CLASS_VENDOR2_END;
}

uint32_t mad_oui(const uint8_t mad[MAD_SIZE])
{
	const uint8_t *oui = mad + MAD_OUI_AT;

	return mad_class_has_oui(mad[1]) ? (uint32_t)oui[0] << 16 | oui[1] << 8 | oui[2] : 0;
}
