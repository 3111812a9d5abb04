// SPDX-License-Identifier: BSD-3-Clause
/* Statuses, events and addresses as text. */
#include "ti/core/ti.h"

#include <arpa/inet.h>
#include <stdio.h>

/* ---- statuses ---- */

static const char *const statuses[] = {
	[TI_SUCCESS] = "Success",
	[TI_PENDING] = "Pending",
	[TI_INSUFFICIENT_RESOURCES] = "Insufficient Resources",
	[TI_INSUFFICIENT_MEMORY] = "Insufficient Memory",
	[TI_INVALID_PARAMETER] = "Invalid Parameter",
	[TI_INVALID_PERMISSION] = "Invalid Permission",
	[TI_INVALID_ADDRESS] = "Invalid Address",
	[TI_INVALID_HANDLE] = "Invalid Handle",
	[TI_INVALID_SETTING] = "Invalid Setting",
	[TI_INVALID_OPERATION] = "Invalid Operation",
	[TI_UNSUPPORTED] = "Unsupported",
	[TI_RESOURCE_BUSY] = "Resource Busy",
	[TI_REJECTED] = "Rejected",
	[TI_CANCELED] = "Canceled",
	[TI_TIMEOUT] = "Timeout",
	[TI_CQ_ERROR] = "CQ Error",
	[TI_CQ_OVERRUN_ERROR] = "CQ Overrun Error",
	[TI_NOT_FOUND] = "Not Found",
	[TI_ERROR] = "Error",
};

char *ti_status_2_str(const ti_status_t status)
{
	if (status == TI_NO_STATUS)
		return (char *)"No Status";
	if ((unsigned)status >= sizeof statuses / sizeof statuses[0])
		return (char *)"Unknown Status";
	return (char *)statuses[status];
}

char *ti_status_to_str(const ti_status_t status)
{
	return ti_status_2_str(status);
}

/* ---- events ---- */

static const char *const events[] = {
	[TI_EVENT_NONE] = "No Event",
	[TI_EVENT_NETDEV_ONLINE] = "Device Online",
	[TI_EVENT_NETDEV_UP] = "Device Up",
	[TI_EVENT_NETDEV_DOWN] = "Device Down",
	[TI_EVENT_NETDEV_REBOOT] = "Device Reboot",
	[TI_EVENT_NETDEV_CHANGE] = "Device Change",
	[TI_EVENT_NETDEV_REGISTER] = "Device Register",
	[TI_EVENT_NETDEV_UNREGISTER] = "Device Unregister",
	[TI_EVENT_NETDEV_CHANGEMTU] = "Device Change of MTU",
	[TI_EVENT_NETDEV_CHANGEADDR] = "Device Change of Address",
	[TI_EVENT_NETDEV_GOING_DOWN] = "Device Going Down",
	[TI_EVENT_NETDEV_CHANGENAME] = "Device Change of Name",
	[TI_EVENT_SYS_DOWN] = "System Down",
	[TI_EVENT_SYS_RESTART] = "System Restart",
	[TI_EVENT_SYS_HALT] = "System Halt",
	[TI_EVENT_SYS_POWER_OFF] = "System Power Off",
	[TI_EVENT_RTF_UP] = "Route Up",
	[TI_EVENT_RTF_GATEWAY] = "Route by Gateway",
	[TI_EVENT_RTF_HOST] = "Route to Host",
	[TI_EVENT_RTF_REINSTATE] = "Route Reinstated",
	[TI_EVENT_RTF_DYNAMIC] = "Route Dynamic",
	[TI_EVENT_RTF_MODIFIED] = "Route Modified",
	[TI_EVENT_RTF_MTU] = "Route MTU",
	[TI_EVENT_RTF_MSS] = "Route MSS",
	[TI_EVENT_RTF_WINDOW] = "Route Window",
	[TI_EVENT_RTF_IRTT] = "Route Initial Round Trip Time",
	[TI_EVENT_RTF_REJECT] = "Route Rejects",
	[TI_EVENT_RTF_DEFAULT] = "Route Default",
	[TI_EVENT_RTF_ALLONLINK] = "Route All on Link",
	[TI_EVENT_RTF_ADDRCONF] = "Route by Address Configuration",
	[TI_EVENT_RTF_NONEXTHOP] = "Route without Next Hop",
	[TI_EVENT_RTF_EXPIRES] = "Route Expires",
	[TI_EVENT_RTF_CACHE] = "Route Cached",
	[TI_EVENT_RTF_FLOW] = "Route of Flow",
	[TI_EVENT_RTF_POLICY] = "Route by Policy",
	[TI_EVENT_RTF_LOCAL] = "Route Local",
	[TI_EVENT_RTMSG_NEWDEVICE] = "New Device",
	[TI_EVENT_RTMSG_DELDEVICE] = "Deleted Device",
	[TI_EVENT_RTMSG_NEWROUTE] = "New Route",
	[TI_EVENT_RTMSG_DELROUTE] = "Deleted Route",
	[TI_EVENT_TI_SHUTDOWN] = "Transport Shutdown",
	[TI_EVENT_PROTO_SHUTDOWN] = "Protocol Shutdown",
};

static const char *addr_text(const ti_inet_addr_t *a, char buf[INET6_ADDRSTRLEN])
{
	int family = a->IP_addr_type == TI_ADDR_IPV4 ? AF_INET : AF_INET6;

	return inet_ntop(family, &a->inet_u, buf, INET6_ADDRSTRLEN);
}

/* What the data of an event say, in a few words. */
static void describe(ti_event_t event, const void *data, char *buf, size_t len)
{
	const ti_transport_desc_t *desc = data;
	const ti_inet_route_event_t *route = data;
	const net_device_t *dev = data;
	char addr[INET6_ADDRSTRLEN] = "";

	*buf = '\0';
	if (!data)
		return;
	if (event == TI_EVENT_NETDEV_ONLINE)
		snprintf(buf, len, "%s %s", desc->dev ? desc->dev->name : "",
			desc->IP_addr ? addr_text(desc->IP_addr, addr) : "");
	else if (event >= TI_EVENT_TI_SHUTDOWN)
		snprintf(buf, len, "%s", (const char *)data);
	else if ((event >= TI_EVENT_RTF_UP && event <= TI_EVENT_RTF_LOCAL) ||
		 event == TI_EVENT_RTMSG_NEWROUTE || event == TI_EVENT_RTMSG_DELROUTE)
		snprintf(buf, len, "%s %s", addr_text(&route->ipaddr, addr),
			route->dev ? route->dev->name : "");
	else if (event >= TI_EVENT_NETDEV_UP &&
		 (event < TI_EVENT_SYS_DOWN || event > TI_EVENT_RTF_LOCAL))
		snprintf(buf, len, "%s", dev->name);
}

char *ti_event_to_str(ti_event_t event, void *data, char *buf, u32 buf_len)
{
	char text[128];

	if (!buf || !buf_len)
		return NULL;
	if ((unsigned)event >= sizeof events / sizeof events[0]) {
		snprintf(buf, buf_len, "Unknown Event %d", (int)event);
		return buf;
	}
	describe(event, data, text, sizeof text);
	snprintf(buf, buf_len, "%s%s%s", events[event], *text ? ": " : "", text);
	return buf;
}

char *mk_inet_addr_p(unchar *IPv4_addr, char *buf)
{
	if (!IPv4_addr || !buf)
		return NULL;
	snprintf(buf, INET_ADDRSTRLEN, "%u.%u.%u.%u", IPv4_addr[0], IPv4_addr[1], IPv4_addr[2],
		IPv4_addr[3]);
	return buf;
}
