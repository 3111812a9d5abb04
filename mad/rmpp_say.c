// SPDX-License-Identifier: BSD-3-Clause
#include "mad/rmpp_say.h"

#include <string.h>

void rmpp_answer(struct mad_agent *a, const struct mad_addr *to, const uint8_t *mad,
	const struct rmpp_hdr *rmpp, bool turn)
{
	uint8_t out[MAD_SIZE] = {0};
	struct rmpp_hdr own = *rmpp, was;
	struct mad_hdr hdr;
	unsigned data_at;

	wire_unpack(&rmpp_hdr_format, mad, &was);
	own.resp_time = was.resp_time;
	mad_hdr_unpack(mad, &hdr);
	data_at = rmpp_data_at(hdr.mgmt_class);
	memcpy(out, mad, data_at);
	if (turn)
		hdr.method ^= MAD_RESPONSE;
	mad_hdr_pack(&hdr, out);
	wire_pack(&rmpp_hdr_format, &own, out);
	(void)mad_post(a, to, out);
}

void rmpp_abort(struct mad_agent *a, const struct mad_addr *to, const uint8_t *mad,
	enum rmpp_status status, bool turn)
{
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = status == RMPP_NO_RESOURCES ? RMPP_STOP : RMPP_ABORT,
		.flags = RMPP_ACTIVE,
		.status = status};

	rmpp_answer(a, to, mad, &hdr, turn);
}
