// SPDX-License-Identifier: BSD-3-Clause
#include "mad/rmpp.h"

#include "mad/rmpp_recv.h"
#include "mad/rmpp_say.h"
#include "mad/rmpp_send.h"

/* What has come says nothing that could be understood: it is over, and the other side is told. */
static void refuse(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t *mad, enum rmpp_status why)
{
	rmpp_abort(a, from, mad, why, true);
	/* The first may end the agent. */
	if (!rmpp_recv_end(a, from, hdr))
		(void)rmpp_send_end(a, from, hdr);
}

/* The other side gave up, as sender or as receiver; it is not answered. */
static bool got_end(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	return rmpp_recv_end(a, from, hdr) || rmpp_send_end(a, from, hdr);
}

/* Is it a status that a STOP, or an ABORT, has? */
static bool is_ending(const struct rmpp_hdr *rmpp)
{
	if (rmpp->type == RMPP_STOP)
		return rmpp->status == RMPP_NO_RESOURCES;
	return rmpp->status >= RMPP_ABORT_FIRST && rmpp->status <= RMPP_ABORT_LAST;
}

/* False: it is about nothing that there is. */
static bool handle(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const struct rmpp_hdr *rmpp, const uint8_t *mad)
{
	switch (rmpp->type) {
	case RMPP_DATA:
		return rmpp_segment(a, from, hdr, rmpp, mad);
	case RMPP_ACK:
		return rmpp_ack(a, from, hdr, rmpp);
	case RMPP_STOP:
	case RMPP_ABORT:
		if (is_ending(rmpp))
			return got_end(a, from, hdr);
		refuse(a, from, hdr, mad, RMPP_BAD_STATUS);
		return true;
	default:
		refuse(a, from, hdr, mad, RMPP_BAD_TYPE);
		return true;
	}
}

void rmpp_receive(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t mad[MAD_SIZE])
{
	struct mad_port *port = a->port; /* the agent may end */
	struct rmpp_hdr rmpp;

	wire_unpack(&rmpp_hdr_format, mad, &rmpp);
	if (rmpp.version != RMPP_VERSION)
		refuse(a, from, hdr, mad, RMPP_BAD_VERSION);
	else if (!handle(a, from, hdr, &rmpp, mad))
		port->drops[MAD_DROP_RMPP]++;
}
