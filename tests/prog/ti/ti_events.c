// SPDX-License-Identifier: BSD-3-Clause
/* Events of links and routes.  Runs in a network namespace of its own: ti_events.sh. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/ti_ends.h"

enum { LOG_MAX = 20000, TEXT = 64 };

/* What one registration was told. */
struct log {
	struct tx_count n;
	struct {
		ti_event_t event;
		char text[TEXT]; /* "NAME ADDRESS ADDRESS ADDRESS" as far as there are */
	} told[LOG_MAX];
	unsigned seen; /* by await() */
};

static struct log all, some, extra;

/* ---- listening ---- */

static void append(char *text, const ti_inet_addr_t *a)
{
	char buf[INET6_ADDRSTRLEN];
	size_t len = strlen(text);

	if (a)
		snprintf(text + len, TEXT - len, " %s",
			inet_ntop(a->IP_addr_type == TI_ADDR_IPV4 ? AF_INET : AF_INET6, &a->inet_u,
				buf, sizeof buf));
}

static bool is_of_route(ti_event_t e)
{
	return (e >= TI_EVENT_RTF_UP && e <= TI_EVENT_RTF_LOCAL) || e == TI_EVENT_RTMSG_NEWROUTE ||
	       e == TI_EVENT_RTMSG_DELROUTE;
}

static void describe(ti_event_t event, const void *data, char *text)
{
	const ti_transport_desc_t *desc = data;
	const ti_inet_route_event_t *route = data;
	const net_device_t *dev = data;

	if (!data)
		return;
	if (event >= TI_EVENT_TI_SHUTDOWN) {
		snprintf(text, TEXT, "%s", (const char *)data);
	} else if (event == TI_EVENT_NETDEV_ONLINE) {
		snprintf(text, TEXT, "%s", desc->dev->name);
		append(text, desc->IP_addr);
		append(text, desc->IP_netmask);
		append(text, desc->first_hop_IP_route_addr);
	} else if (is_of_route(event)) {
		snprintf(text, TEXT, "%s", route->dev ? route->dev->name : "-");
		append(text, &route->ipaddr);
	} else {
		snprintf(text, TEXT, "%s", dev->name);
	}
}

static void hear(const ti_event_t event, const void *data, const void *context)
{
	struct log *log = (struct log *)context;
	unsigned n = tx_now(&log->n);

	if (n == LOG_MAX)
		die("too many events");
	log->told[n].event = event;
	describe(event, data, log->told[n].text);
	tx_add(&log->n, 1);
}

/* Waits for the next one like that behind those found before. */
static void await(struct log *log, ti_event_t event, const char *text)
{
	double until = now_ms() + TX_WAIT_MS;

	for (;; log->seen++) {
		while (log->seen >= tx_now(&log->n)) {
			if (now_ms() > until)
				die("event %d, \"%s\", does not come", (int)event, text);
			usleep(1000);
		}
		if (log->told[log->seen].event == event && !strcmp(log->told[log->seen].text, text))
			break;
	}
	log->seen++;
}

static void run(const char *command)
{
	if (system(command))
		die("%s", command);
}

/* ---- links ---- */

static void devices(void)
{
	TX_IS(tx->events_register(&all, hear), TI_SUCCESS);
	await(&all, TI_EVENT_NETDEV_ONLINE, "lo 127.0.0.1 255.0.0.0");
	run("ip link add wt0 type veth peer name pt0");
	await(&all, TI_EVENT_NETDEV_REGISTER, "wt0");
	await(&all, TI_EVENT_RTMSG_NEWDEVICE, "wt0");
	run("ip link set pt0 up && ip link set wt0 up");
	await(&all, TI_EVENT_NETDEV_UP, "wt0");
	await(&all, TI_EVENT_NETDEV_ONLINE, "wt0");
	run("ip address add 10.98.0.1/24 dev wt0");
	await(&all, TI_EVENT_NETDEV_CHANGEADDR, "wt0");
	await(&all, TI_EVENT_NETDEV_ONLINE, "wt0 10.98.0.1 255.255.255.0");
	run("ip link set wt0 mtu 1400");
	await(&all, TI_EVENT_NETDEV_CHANGEMTU, "wt0");
	run("ip link set wt0 address 02:00:00:00:00:09");
	await(&all, TI_EVENT_NETDEV_CHANGEADDR, "wt0");
	run("ip link set pt0 down");
	await(&all, TI_EVENT_NETDEV_CHANGE, "wt0");
	run("ip link set pt0 up");
	await(&all, TI_EVENT_NETDEV_ONLINE, "wt0 10.98.0.1 255.255.255.0");
}

/* ---- routes ---- */

static const struct {
	const char *route; /* NULL: of the one before */
	ti_event_t event;
	const char *text;
} routes[] = {
	{"add default via 10.98.0.2 dev wt0 mtu 1300 advmss 1200 window 1000 rtt 100",
		TI_EVENT_RTMSG_NEWROUTE, "wt0 0.0.0.0"},
	{NULL, TI_EVENT_RTF_UP, "wt0 0.0.0.0"},
	{NULL, TI_EVENT_RTF_GATEWAY, "wt0 10.98.0.2"},
	{NULL, TI_EVENT_RTF_MTU, "wt0 0.0.0.0"},
	{NULL, TI_EVENT_RTF_MSS, "wt0 0.0.0.0"},
	{NULL, TI_EVENT_RTF_WINDOW, "wt0 0.0.0.0"},
	{NULL, TI_EVENT_RTF_IRTT, "wt0 0.0.0.0"},
	{"add 10.96.0.1/32 dev wt0 table 77", TI_EVENT_RTF_HOST, "wt0 10.96.0.1"},
	{NULL, TI_EVENT_RTF_POLICY, "wt0 10.96.0.1"},
	{"add 10.95.0.0/16 via 10.98.0.2 proto redirect", TI_EVENT_RTF_DYNAMIC, "wt0 10.95.0.0"},
	{"add unreachable 10.97.0.0/16", TI_EVENT_RTF_REJECT, "- 10.97.0.0"},
	{"del 10.95.0.0/16", TI_EVENT_RTMSG_DELROUTE, "wt0 10.95.0.0"},
	{"add 10.92.0.0/16 dev wt0 realm 7", TI_EVENT_RTF_FLOW, "wt0 10.92.0.0"},
	{"add local 10.94.0.1 dev wt0 table local", TI_EVENT_RTF_LOCAL, "wt0 10.94.0.1"},
};
static const struct {
	const char *route;
	ti_event_t event;
	const char *text;
} routes6[] = {
	{"add fd00:97::/64 dev wt0 expires 1000", TI_EVENT_RTF_NONEXTHOP, "wt0 fd00:97::"},
	{NULL, TI_EVENT_RTF_EXPIRES, "wt0 fd00:97::"},
	{"add default dev wt0 proto ra", TI_EVENT_RTF_DEFAULT, "wt0 ::"},
	{"add fd00:96::/64 dev wt0 proto ra", TI_EVENT_RTF_ADDRCONF, "wt0 fd00:96::"},
};

static void change_route(const char *options, const char *route)
{
	char command[160];

	if (!route)
		return;
	snprintf(command, sizeof command, "ip %s route %s", options, route);
	run(command);
}

static void all_routes(void)
{
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
		change_route("", routes[i].route);
		await(&all, routes[i].event, routes[i].text);
	}
	for (size_t i = 0; has_ipv6() && i < sizeof routes6 / sizeof routes6[0]; i++) {
		change_route("-6", routes6[i].route);
		await(&all, routes6[i].event, routes6[i].text);
	}
}

/* ---- who is told ---- */

/* One that goes during its first call; the one behind it is told all the same. */
static void once(const ti_event_t event, const void *data, const void *context)
{
	(void)data;
	CHECK_EQ(event, TI_EVENT_NETDEV_ONLINE);
	tx_add((struct tx_count *)context, 1);
	TX_IS(tx->events_deregister(context, once), TI_SUCCESS);
}

/* A listener for devices "wt" is told of the first hop, and of nothing else's. */
static void prefix(void)
{
	static char name[] = "wt";
	char *before = tx->link_dev_name;

	check_case("prefix");
	CHECK(!*before);
	tx->link_dev_name = name;
	TX_IS(tx->events_register(&some, hear), TI_SUCCESS);
	tx->link_dev_name = before;
	await(&some, TI_EVENT_NETDEV_ONLINE, "wt0 10.98.0.1 255.255.255.0 10.98.0.2");
	CHECK_EQ(some.seen, 1);
	run("ip link set pt0 mtu 1401 && ip link set wt0 mtu 1402");
	await(&some, TI_EVENT_NETDEV_CHANGEMTU, "wt0");
	for (unsigned i = 0; i < some.seen; i++)
		CHECK(!strncmp(some.told[i].text, "wt", 2));
}

static void the_end_of_devices(void)
{
	run("ip link set wt0 down");
	await(&all, TI_EVENT_NETDEV_GOING_DOWN, "wt0");
	await(&all, TI_EVENT_NETDEV_DOWN, "");
	run("ip link set wt0 name xt0");
	await(&all, TI_EVENT_NETDEV_CHANGENAME, "xt0");
	await(&some, TI_EVENT_NETDEV_CHANGENAME, "xt0"); /* its name was wt0 */
	run("ip link delete xt0");
	await(&all, TI_EVENT_NETDEV_UNREGISTER, "xt0");
	await(&all, TI_EVENT_RTMSG_DELDEVICE, "xt0");
}

static void registering(void)
{
	struct tx_count n = TX_COUNT;

	check_case("registering");
	TX_IS(tx->events_register(&extra, NULL), TI_INVALID_PARAMETER);
	TX_IS(tx->events_deregister(&extra, hear), TI_FAILURE);
	TX_IS(tx->events_deregister(&all, once), TI_FAILURE);
	TX_IS(tx->events_register(&n, once), TI_SUCCESS);
	TX_IS(tx->events_register(&extra, hear), TI_SUCCESS);
	await(&extra, TI_EVENT_NETDEV_ONLINE, "lo 127.0.0.1 255.0.0.0");
	CHECK_EQ(tx_now(&n), 1);
	TX_IS(tx->events_deregister(&n, once), TI_FAILURE);
}

/* ---- more messages than are kept ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void wait_at_gate(const ti_event_t event, const void *data, const void *context)
{
	(void)event;
	(void)data;
	tx_add((struct tx_count *)context, 1);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
}

/* What is lost while a callback takes its time is found out afterwards. */
static void lost(void)
{
	struct tx_count n = TX_COUNT;

	check_case("lost messages");
	run("ip link add wt1 type veth peer name pt1 && ip link set wt1 up && ip link set pt1 up "
	    "&& "
	    "ip address add 10.93.0.1/24 dev pt1");
	await(&all, TI_EVENT_NETDEV_ONLINE, "pt1 10.93.0.1 255.255.255.0");
	pthread_mutex_lock(&gate);
	TX_IS(tx->events_register(&n, wait_at_gate), TI_SUCCESS);
	tx_await(&n, 1);
	run("i=1; while [ $i -lt 200 ]; do echo link set lo mtu $((60000 + i)); i=$((i + 1)); done "
	    "| "
	    "ip -batch -");
	run("i=1; while [ $i -lt 200 ]; do echo link set lo mtu $((60000 + i)); i=$((i + 1)); done "
	    "| "
	    "ip -batch -");
	run("ip address delete 10.93.0.1/24 dev pt1 && ip link add wt2 type dummy 2>/dev/null || "
	    "ip link add wt2 type veth peer name pt2");
	run("ip address add 10.93.0.2/24 dev pt1");
	pthread_mutex_unlock(&gate);
	await(&all, TI_EVENT_NETDEV_REGISTER, "wt2");
	await(&all, TI_EVENT_NETDEV_ONLINE, "pt1 10.93.0.2 255.255.255.0");
	run("ip link delete wt1");
	await(&all, TI_EVENT_NETDEV_UNREGISTER, "pt1");
	TX_IS(tx->events_deregister(&n, wait_at_gate), TI_SUCCESS);
}

/* ---- a provider's end ---- */

static ti_event_cb_t notify;

static void add(ti_ops_t *ops, ti_event_cb_t ti_event_notify)
{
	(void)ops;
	notify = ti_event_notify;
}

static void provider(void)
{
	unsigned n;

	check_case("provider");
	TX_IS(ti_provider_add(add, NULL), TI_SUCCESS);
	notify(TI_EVENT_PROTO_SHUTDOWN, "tired", NULL);
	await(&all, TI_EVENT_PROTO_SHUTDOWN, "tired");
	await(&some, TI_EVENT_PROTO_SHUTDOWN, "tired");
	TX_IS(tx->events_deregister(&some, hear), TI_SUCCESS);
	n = tx_now(&some.n);
	notify(TI_EVENT_PROTO_SHUTDOWN, "asleep", NULL);
	await(&all, TI_EVENT_PROTO_SHUTDOWN, "asleep");
	CHECK_EQ(tx_now(&some.n), n);
}

int main(void)
{
	tx = ti_ops_get();
	all.n = some.n = extra.n = (struct tx_count)TX_COUNT;
	devices();
	all_routes();
	prefix();
	the_end_of_devices();
	registering();
	lost();
	provider();
	TX_IS(tx->events_deregister(&all, hear), TI_SUCCESS);
	TX_IS(tx->events_deregister(&extra, hear), TI_SUCCESS);
	return check_result();
}
