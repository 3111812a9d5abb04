// SPDX-License-Identifier: BSD-3-Clause
#include "rdmacm/explain.h"

#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/gid.h"
#include "base/log.h"
#include "rdmacm/device.h"
#include "verbs/for_rdmacm.h"

/* REJ:Reason, as far as a peer of ours or a kernel's gives it. */
enum {
	REASON_NO_RESOURCES = 3,
	REASON_TIMEOUT = 4,
	REASON_SERVICE_ID = 8,
	REASON_TRANSPORT = 9,
	REASON_STALE = 10,
	REASON_GID = 12,
	REASON_CONSUMER = 28,
	SIDR_UNSUPPORTED = 1, /* SIDR_REP:Status */
};

enum { WHY = 500 };

static const char *const states[] = {
	[ID_IDLE] = "is new",
	[ID_BOUND] = "has an address",
	[ID_ADDR_QUERY] = "waits for RDMA_CM_EVENT_ADDR_RESOLVED",
	[ID_ADDR_RESOLVED] = "has its address resolved, not its route",
	[ID_ROUTE_QUERY] = "waits for RDMA_CM_EVENT_ROUTE_RESOLVED",
	[ID_ROUTE_RESOLVED] = "has its route resolved",
	[ID_LISTEN] = "listens",
	[ID_CONNECTING] = "is connecting",
	[ID_REQUESTED] = "is that of a request, which was not answered",
	[ID_RESPONDED] = "has an answer, and waits for rdma_establish",
	[ID_ACCEPTING] = "has accepted",
	[ID_CONNECTED] = "is connected",
	[ID_DISCONNECTING] = "is disconnecting",
	[ID_DISCONNECTED] = "was disconnected by its peer",
	[ID_ENDED] = "has ended its connection",
};

int out_of_order(const struct ident *id, const char *call, const char *wants)
{
	log_refusal("%s refused: the id %s, and the call is for one that %s", call,
		states[id->state], wants);
	return -EINVAL;
}

int at_an_end(const struct ident *id, int err, const char *call, const char *wants)
{
	if (err == -EINVAL && log_enabled(LOG_LVL_INFO))
		out_of_order(id, call, wants);
	return err;
}

int no_such_address(const char *call, const uint8_t gid[16], int err)
{
	char text[INET6_ADDRSTRLEN];

	log_refusal("%s: %s is no address of this device%s", call, gid_text(gid, text),
		device_is_simulated()
			? ": a node of a simulated subnet has no IP address, so rdma_cm "
			  "connects nothing there; run the program without a node"
			: "");
	return err;
}

/* ---- events ---- */

static const char *why_rejected(int reason)
{
	switch (reason) {
	case REASON_NO_RESOURCES:
		return "the other side has no resources left, or its backlog is full";
	case REASON_TIMEOUT:
		return "the other side's program did not answer in time";
	case REASON_SERVICE_ID:
		return "nobody listens there in this port space";
	case REASON_TRANSPORT:
		return "who listens there takes no queue pair of that type";
	case REASON_STALE:
		return "the other side still has a connection of that queue pair";
	case REASON_GID:
		return "the other side does not have that GID";
	case REASON_CONSUMER:
		return "the other side's program said rdma_reject, or ended";
	default:
		return "see Reason of REJ in the InfiniBand specification";
	}
}

/* Nobody of this fabric listens there: somebody of another may, who has the same addresses. */
static void why_not_here(const struct ident *id, char why[WHY])
{
	static const char says[] = "; rdma_cm stays within a fabric, and here live, too: ";
	const struct device *dev;

	strcpy(why, says);
	if (device_gid_index(id->dst.gid) < 0 || device_get(&dev) ||
		!weft_cm_beside(why + sizeof says - 1, WHY - sizeof says + 1,
			be64toh(ibv_get_device_guid(dev->verbs->device))))
		*why = '\0';
}

static void tell_rejected(const struct ident *id, int reason)
{
	char text[INET6_ADDRSTRLEN], why[WHY] = "";
	const char *to = gid_text(id->dst.gid, text);

	/* Programs that reject mean it. */
	if (reason == REASON_CONSUMER && !log_enabled(LOG_LVL_INFO))
		return;
	if (reason == (id->flags & CM_F_DATAGRAM ? SIDR_UNSUPPORTED : REASON_SERVICE_ID) &&
		log_refusals())
		why_not_here(id, why);
	if (id->flags & CM_F_DATAGRAM)
		log_refusal("the request to %s port %u is rejected: status %d, 1 if nobody listens "
			    "there%s",
			to, id->dst.port, reason, why);
	else
		log_refusal("the connection to %s port %u is rejected: %s (reason %d)%s", to,
			id->dst.port, why_rejected(reason), reason, why);
}

/* An answer to a request for datagrams that brings no queue pair has a status above 0. */
static bool is_refused(const struct ident *id, const struct cm_event *e)
{
	return e->type == RDMA_CM_EVENT_REJECTED ||
	       (e->type == RDMA_CM_EVENT_UNREACHABLE && id->flags & CM_F_DATAGRAM && e->status > 0);
}

void explain_cm_event(const struct ident *id, const struct cm_event *e)
{
	char text[INET6_ADDRSTRLEN];

	if (is_refused(id, e)) {
		tell_rejected(id, e->status);
		return;
	}
	switch (e->type) {
	case RDMA_CM_EVENT_UNREACHABLE:
		log_refusal(
			"the connection to %s port %u is not made: its host did not answer (%s)",
			gid_text(id->dst.gid, text), id->dst.port,
			e->status < 0 ? strerror(-e->status) : "no reason given");
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		log_refusal("the connection with %s port %u is not made: %s",
			gid_text(id->dst.gid, text), id->dst.port,
			e->status < 0 ? strerror(-e->status) : "no reason given");
		break;
	default:
		break;
	}
}
