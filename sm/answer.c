// SPDX-License-Identifier: BSD-3-Clause
#include "sm/answer.h"

#include <string.h>

static bool is_request(const struct smp_hdr *h)
{
	if (h->base_version != MAD_BASE_VERSION || h->class_version != SMP_CLASS_VERSION)
		return false;
	if (h->method == MAD_TRAP)
		return h->attr == SMP_NOTICE;
	return h->attr == SMP_SM_INFO && (h->method == MAD_GET || h->method == MAD_SET);
}

static void fill(const struct sm_info *self, struct smp_hdr *h, uint8_t *data)
{
	if (h->method == MAD_TRAP) {
		h->method = MAD_TRAP_REPRESS;
		return;
	}
	/* Who hands over, or wants it to stand by, deals with a party of elections, which it is
	 * not. */
	h->status = h->method == MAD_GET ? SMP_OK : SMP_UNSUPPORTED;
	h->method = MAD_GET_RESP;
	h->returning = h->mgmt_class == MAD_CLASS_SUBN_DR;
	memset(data, 0, SMP_DATA_SIZE);
	wire_pack(&sm_info_format, self, data);
}

bool answer_smp(const struct sm_info *self, const uint8_t mad[MAD_SIZE], uint8_t reply[MAD_SIZE])
{
	struct smp_hdr h;

	wire_unpack(&smp_hdr_format, mad, &h);
	if (!is_request(&h))
		return false;
	memcpy(reply, mad, MAD_SIZE);
	fill(self, &h, reply + SMP_DATA);
	wire_pack(&smp_hdr_format, &h, reply);
	return true;
}
