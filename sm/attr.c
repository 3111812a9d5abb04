// SPDX-License-Identifier: BSD-3-Clause
#include "sm/attr.h"

#include <string.h>

static bool request(struct subnet *s, uint32_t node, uint8_t port, struct smp_hdr *h,
	uint8_t data[SMP_DATA_SIZE])
{
	uint8_t mad[MAD_SIZE] = {0};

	wire_pack(&smp_hdr_format, h, mad);
	memcpy(mad + SMP_DATA, data, SMP_DATA_SIZE);
	if (subnet_local_smp(s, node, port, mad))
		return false;
	wire_unpack(&smp_hdr_format, mad, h);
	memcpy(data, mad + SMP_DATA, SMP_DATA_SIZE);
	return h->status == SMP_OK;
}

static struct smp_hdr header(uint8_t method, uint16_t attr, uint32_t mod)
{
	return (struct smp_hdr){.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_SUBN_LID,
		.class_version = SMP_CLASS_VERSION,
		.method = method,
		.attr = attr,
		.attr_mod = mod};
}

bool attr_get(struct subnet *s, uint32_t node, uint8_t port, uint16_t attr, uint32_t mod,
	uint8_t data[SMP_DATA_SIZE])
{
	struct smp_hdr h = header(MAD_GET, attr, mod);

	memset(data, 0, SMP_DATA_SIZE);
	return request(s, node, port, &h, data);
}

bool attr_set(struct subnet *s, uint32_t node, uint8_t port, uint16_t attr, uint32_t mod,
	uint8_t data[SMP_DATA_SIZE])
{
	struct smp_hdr h = header(MAD_SET, attr, mod);

	return request(s, node, port, &h, data);
}
