// SPDX-License-Identifier: BSD-3-Clause
#include "mad/dispatch.h"

#include <string.h>

#include "mad/agents.h"
#include "mad/rmpp.h"
#include "mad/transact.h"
#include "wire/rmpp.h"

const char *mad_drop_name(enum mad_drop why)
{
	static const char *const names[MAD_DROP_COUNT] = {
		[MAD_DROP_VERSION] = "bad_base_version",
		[MAD_DROP_QP] = "wrong_qp",
		[MAD_DROP_CM_METHOD] = "bad_cm_method",
		[MAD_DROP_NO_AGENT] = "no_agent",
		[MAD_DROP_NO_REQUESTER] = "no_requester",
		[MAD_DROP_NO_REQUEST] = "no_request",
		[MAD_DROP_QUEUE] = "queue_full",
		[MAD_DROP_MEMORY] = "no_memory",
		[MAD_DROP_RMPP] = "stray_segment",
	};

	return names[why];
}

/* MAD_DROP_COUNT: it makes sense. */
static enum mad_drop judge(
	const struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	if (hdr->base_version != MAD_BASE_VERSION)
		return MAD_DROP_VERSION;
	if (from->qp != mad_class_qp(hdr->mgmt_class) || (!from->qp && !port->has_qp0))
		return MAD_DROP_QP;
	if (hdr->mgmt_class == MAD_CLASS_CM && hdr->attr != MAD_ATTR_CLASS_PORT_INFO &&
		hdr->method != MAD_SEND)
		return MAD_DROP_CM_METHOD;
	return MAD_DROP_COUNT;
}

/* Nobody is there who knows the class or method. */
static void refuse(struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t *mad)
{
	struct mad_hdr answer = *hdr;
	uint8_t out[MAD_SIZE];

	port->drops[MAD_DROP_NO_AGENT]++;
	if (hdr->method != MAD_GET && hdr->method != MAD_SET)
		return;
	answer.method = MAD_GET_RESP;
	answer.status = MAD_STATUS_UNSUPPORTED;
	if (hdr->mgmt_class == MAD_CLASS_SUBN_DR)
		answer.status |= MAD_STATUS_DIRECTION;
	memcpy(out, mad, MAD_SIZE);
	mad_hdr_pack(&answer, out);
	port->sent++;
	(void)port->transmit(port->arg, from, out);
}

/* Segments of an agent's own need no request that waits for them: only it knows which do. */
static void receive_response(struct mad_agent *a, const struct mad_addr *from,
	const struct mad_hdr *hdr, const uint8_t *mad)
{
	struct mad_send *s = mad_awaiting(a, from, hdr);

	if (s)
		mad_finish(s, 0, from, mad, MAD_SIZE);
	else if (rmpp_is_active(mad))
		a->receive(a, from, mad);
	else
		a->port->drops[MAD_DROP_NO_REQUEST]++;
}

static void give(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t *mad)
{
	if (mad_registration_has_rmpp(&a->reg) && rmpp_is_active(mad))
		rmpp_receive(a, from, hdr, mad);
	else if (mad_is_response(hdr))
		receive_response(a, from, hdr, mad);
	else
		a->receive(a, from, mad);
}

void mad_receive(struct mad_port *port, const struct mad_addr *from, const uint8_t mad[MAD_SIZE])
{
	struct mad_agent *a;
	enum mad_drop why;
	struct mad_hdr hdr;

	port->received++;
	mad_hdr_unpack(mad, &hdr);
	why = judge(port, from, &hdr);
	if (why != MAD_DROP_COUNT) {
		port->drops[why]++;
		return;
	}
	a = mad_is_response(&hdr) ? mad_agent_of_tid(port, hdr.tid)
				  : mad_registered(port, &hdr, mad);
	if (a)
		give(a, from, &hdr, mad);
	else if (mad_is_response(&hdr))
		port->drops[MAD_DROP_NO_REQUESTER]++;
	else
		refuse(port, from, &hdr, mad);
}
