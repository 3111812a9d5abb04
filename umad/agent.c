// SPDX-License-Identifier: BSD-3-Clause
// Agents of a port.
#include "umad/umad.h"

#include <errno.h>
#include <infiniband/umad_types.h>
#include <string.h>

#include "umad/debug.h"
#include "umad/file.h"

enum { OUI_MAX = 0xffffff };

static bool is_vendor2(int mgmt_class)
{
	return mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	       mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END;
}

static uint32_t qpn_of(int mgmt_class)
{
	return mgmt_class != UMAD_CLASS_SUBN_LID_ROUTED &&
	       mgmt_class != UMAD_CLASS_SUBN_DIRECTED_ROUTE;
}

/* The id, or -EPERM with the reason in errno. */
static int register_old(int portid, struct umad_agent *agent, const long *method_mask)
{
	int rc;

	if (method_mask)
		memcpy(agent->method_mask, method_mask, sizeof agent->method_mask);
	rc = umad_file_register(portid, agent);
	if (!rc)
		return (int)agent->id;
	errno = -rc;
	debug_trace(__func__, "fd %d class 0x%x version %d: %m", portid, agent->mgmt_class,
		agent->class_version);
	return -EPERM;
}

int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
	long method_mask[16 / sizeof(long)])
{
	struct umad_agent agent = {
		.qpn = qpn_of(mgmt_class),
		.mgmt_class = (uint8_t)mgmt_class,
		.class_version = (uint8_t)mgmt_version,
		.rmpp_version = rmpp_version,
		.oui = UMAD_OPENIB_OUI,
	};

	return register_old(portid, &agent, method_mask);
}

int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
	long method_mask[16 / sizeof(long)])
{
	struct umad_agent agent = {
		.qpn = 1,
		.mgmt_class = (uint8_t)mgmt_class,
		.class_version = 1,
		.rmpp_version = rmpp_version,
	};

	if (!is_vendor2(mgmt_class))
		return -EINVAL;
	agent.oui = oui[0] << 16 | oui[1] << 8 | oui[2];
	return register_old(portid, &agent, method_mask);
}

/*
 * Returns a positive errno.  Where the file does not know the flags of a refused agent they come
 * back as 0: those that it does know.
 */
int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct umad_agent agent;
	int rc;

	if (!attr || !agent_id)
		return EINVAL;
	if (is_vendor2(attr->mgmt_class) && (!attr->oui || attr->oui > OUI_MAX))
		return EINVAL;
	agent = (struct umad_agent){
		.qpn = qpn_of(attr->mgmt_class),
		.mgmt_class = attr->mgmt_class,
		.class_version = attr->mgmt_class_version,
		.rmpp_version = attr->rmpp_version,
		.oui = attr->oui,
		.flags = attr->flags,
	};
	memcpy(agent.method_mask, attr->method_mask, sizeof agent.method_mask);
	rc = umad_file_register2(port_fd, &agent);
	if (rc == -ENOTTY || rc == -EINVAL) {
		agent.flags = 0;
		if (!attr->flags)
			rc = umad_file_register(port_fd, &agent);
	}
	if (rc)
		attr->flags = agent.flags;
	else
		*agent_id = agent.id;
	return -rc;
}

int umad_unregister(int portid, int agentid)
{
	int rc = umad_file_unregister(portid, agentid);

	if (!rc)
		return 0;
	errno = -rc;
	return -1;
}
