// SPDX-License-Identifier: BSD-3-Clause
#include "ti/event/link.h"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/rtnl.h"
#include "ti/event/events.h"

struct addr {
	struct addr *next;
	bool heard; /* since links_forget() */
	uint8_t family, prefix, rank;
	uint8_t bytes[16];
};

/* What programs see of it, dev and desc, changes with its events alone. */
struct link {
	struct link *next;
	unsigned refs;
	bool heard, gone;
	struct addr *addrs; /* in the kernel's order */
	struct in6_addr hops[2];
	bool has_hop[2]; /* IPv4, IPv6 */
	net_device_t dev;
	ti_inet_addr_t ip, mask, hop;
	ti_transport_desc_t desc;
};

static struct {
	pthread_mutex_t lock;
	struct link *list; /* in the order of their registering */
} links = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list; under lock ---- */

static void free_addrs(struct link *l)
{
	struct addr *a;

	while ((a = l->addrs) != NULL) {
		l->addrs = a->next;
		free(a);
	}
}

static void put(struct link *l)
{
	if (--l->refs)
		return;
	free_addrs(l);
	free(l);
}

static struct link *find(int ifindex)
{
	struct link *l = links.list;

	while (l && l->dev.ifindex != ifindex)
		l = l->next;
	return l;
}

static struct link *add(int ifindex)
{
	struct link *l = calloc(1, sizeof *l), **end = &links.list;

	if (!l)
		return NULL;
	l->refs = 1;
	l->dev.ifindex = ifindex;
	while (*end)
		end = &(*end)->next;
	*end = l;
	return l;
}

static void take_out(struct link *l)
{
	struct link **at = &links.list;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	l->gone = true;
	put(l);
}

/* ---- tidings; under lock ---- */

static void begin(struct tidings *t, struct link *l)
{
	*t = (struct tidings){.link = l};
	if (l)
		l->refs++;
}

static void say(struct tidings *t, ti_event_t event)
{
	if (t->n < TIDINGS_MAX)
		t->events[t->n++] = event;
}

/* ---- addresses; under lock ---- */

/* The primary one: of the lowest rank, the first. */
static uint8_t rank_of(const struct ifaddrmsg *ifa)
{
	if (ifa->ifa_family == AF_INET)
		return ifa->ifa_flags & IFA_F_SECONDARY ? 1 : 0;
	return ifa->ifa_scope == RT_SCOPE_UNIVERSE ? 2 : 3;
}

static const struct addr *primary(const struct link *l)
{
	const struct addr *best = l->addrs;

	for (const struct addr *a = l->addrs; a; a = a->next)
		if (a->rank < best->rank)
			best = a;
	return best;
}

static void set_ip(ti_inet_addr_t *ip, int family, const void *bytes)
{
	*ip = (ti_inet_addr_t){.IP_addr_type = family == AF_INET ? TI_ADDR_IPV4 : TI_ADDR_IPV6};
	memcpy(&ip->inet_u, bytes, family == AF_INET ? 4 : 16);
}

static void set_mask(ti_inet_addr_t *mask, const struct addr *a)
{
	uint8_t bytes[16] = {0};

	for (int bit = 0; bit < a->prefix && bit < 128; bit++)
		bytes[bit / 8] |= 0x80 >> bit % 8;
	set_ip(mask, a->family, bytes);
}

/* Makes the descriptor anew; true: the primary address, or its mask, is another. */
static bool describe(struct link *l)
{
	const struct addr *a = primary(l);
	ti_inet_addr_t ip = l->ip, mask = l->mask;
	bool had = l->desc.IP_addr, six = a && a->family == AF_INET6;

	l->desc = (ti_transport_desc_t){.dev = &l->dev};
	if (a) {
		set_ip(&l->ip, a->family, a->bytes);
		set_mask(&l->mask, a);
		l->desc.IP_addr = &l->ip;
		l->desc.IP_netmask = &l->mask;
	}
	if (a && l->has_hop[six]) {
		set_ip(&l->hop, a->family, &l->hops[six]);
		l->desc.first_hop_IP_route_addr = &l->hop;
	}
	return had != !!a ||
	       (a && (memcmp(&ip, &l->ip, sizeof ip) || memcmp(&mask, &l->mask, sizeof mask)));
}

static bool is_online(const struct link *l)
{
	return (l->dev.flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING) && !l->gone;
}

/* After a change of addresses.  The descriptor alone has them: ONLINE comes with the new ones. */
static void say_address(struct tidings *t, struct link *l)
{
	if (!describe(l))
		return;
	say(t, TI_EVENT_NETDEV_CHANGEADDR);
	if (is_online(l))
		say(t, TI_EVENT_NETDEV_ONLINE);
}

static struct addr **find_addr(struct link *l, const struct addr *like)
{
	struct addr **at = &l->addrs;

	while (*at && ((*at)->family != like->family || (*at)->prefix != like->prefix ||
			      memcmp((*at)->bytes, like->bytes, sizeof like->bytes) != 0))
		at = &(*at)->next;
	return at;
}

/* False: not an address that can be used. */
static bool parse_addr(const struct nlmsghdr *nlh, struct addr *out, int *ifindex)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a;
	size_t len;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof *ifa ||
		(ifa->ifa_family != AF_INET && ifa->ifa_family != AF_INET6))
		return false;
	len = ifa->ifa_family == AF_INET ? 4 : 16;
	a = rtnl_own_address(nlh, len);
	if (!a || (nlh->nlmsg_type == RTM_NEWADDR &&
			  ifa->ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)))
		return false;
	*ifindex = (int)ifa->ifa_index;
	*out = (struct addr){.heard = true,
		.family = ifa->ifa_family,
		.prefix = ifa->ifa_prefixlen,
		.rank = rank_of(ifa)};
	memcpy(out->bytes, mnl_attr_get_payload(a), len);
	return true;
}

static void set_addr(struct link *l, const struct addr *new, bool there)
{
	struct addr **at = find_addr(l, new), *a = *at, *next;

	if (a && there) {
		next = a->next;
		*a = *new;
		a->next = next;
	} else if (a) {
		*at = a->next;
		free(a);
	} else if (there) {
		a = malloc(sizeof *a);
		if (a) {
			*a = *new;
			*at = a;
		}
	}
}

void link_heed_addr(const struct nlmsghdr *nlh, struct tidings *t)
{
	struct addr new;
	struct link *l;
	int ifindex;

	*t = (struct tidings){0};
	if (!parse_addr(nlh, &new, &ifindex))
		return;
	pthread_mutex_lock(&links.lock);
	l = find(ifindex);
	begin(t, l);
	if (l) {
		set_addr(l, &new, nlh->nlmsg_type == RTM_NEWADDR);
		say_address(t, l);
	}
	pthread_mutex_unlock(&links.lock);
}

void link_set_hop(int ifindex, int family, const void *gateway)
{
	bool six = family == AF_INET6;
	struct link *l;

	pthread_mutex_lock(&links.lock);
	l = find(ifindex);
	if (l) {
		l->has_hop[six] = gateway;
		if (gateway)
			memcpy(&l->hops[six], gateway, six ? 16 : 4);
	}
	pthread_mutex_unlock(&links.lock);
}

/* ---- devices; under lock ---- */

static void parse_device(const struct nlmsghdr *nlh, net_device_t *dev)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a;

	*dev = (net_device_t){
		.ifindex = ifi->ifi_index, .flags = ifi->ifi_flags, .type = ifi->ifi_type};
	a = rtnl_attr(nlh, sizeof *ifi, IFLA_IFNAME, 1);
	if (a)
		strncpy(dev->name, mnl_attr_get_str(a), sizeof dev->name - 1);
	a = rtnl_attr(nlh, sizeof *ifi, IFLA_MTU, sizeof(uint32_t));
	if (a)
		dev->mtu = mnl_attr_get_u32(a);
	a = rtnl_attr(nlh, sizeof *ifi, IFLA_ADDRESS, 0);
	if (a && mnl_attr_get_payload_len(a) <= sizeof dev->dev_addr) {
		dev->addr_len = mnl_attr_get_payload_len(a);
		memcpy(dev->dev_addr, mnl_attr_get_payload(a), dev->addr_len);
	}
}

static void say_down(struct tidings *t, struct link *l)
{
	say(t, TI_EVENT_NETDEV_GOING_DOWN);
	say(t, TI_EVENT_NETDEV_DOWN);
	l->has_hop[0] = l->has_hop[1] = false; /* its routes go without a message */
}

/* What differs between two states of a device that was known, but for its coming and going. */
static void say_changes(struct tidings *t, const net_device_t *old, const net_device_t *new)
{
	if (strcmp(old->name, new->name) != 0) {
		memcpy(t->old_name, old->name, sizeof t->old_name);
		say(t, TI_EVENT_NETDEV_CHANGENAME);
	}
	if (old->mtu != new->mtu)
		say(t, TI_EVENT_NETDEV_CHANGEMTU);
	if (old->addr_len != new->addr_len ||
		memcmp(old->dev_addr, new->dev_addr, sizeof old->dev_addr) != 0)
		say(t, TI_EVENT_NETDEV_CHANGEADDR);
	if (!((old->flags ^ new->flags) & IFF_UP) &&
		(old->flags != new->flags || old->type != new->type))
		say(t, TI_EVENT_NETDEV_CHANGE);
}

static void update(struct link *l, const net_device_t *new, bool is_new, struct tidings *t)
{
	net_device_t old = l->dev;
	bool was_online = !is_new && is_online(l);

	l->dev = *new;
	(void)describe(l);
	if (is_new) {
		say(t, TI_EVENT_NETDEV_REGISTER);
		say(t, TI_EVENT_RTMSG_NEWDEVICE);
	} else {
		say_changes(t, &old, new);
	}
	if (~old.flags & new->flags & IFF_UP)
		say(t, TI_EVENT_NETDEV_UP);
	if (old.flags & ~new->flags & IFF_UP)
		say_down(t, l);
	if (is_online(l) && !was_online)
		say(t, TI_EVENT_NETDEV_ONLINE);
}

static void remove_link(struct link *l, struct tidings *t)
{
	begin(t, l);
	if (l->dev.flags & IFF_UP)
		say_down(t, l);
	say(t, TI_EVENT_NETDEV_UNREGISTER);
	say(t, TI_EVENT_RTMSG_DELDEVICE);
	take_out(l);
}

static void set_link(const struct nlmsghdr *nlh, struct tidings *t)
{
	net_device_t new;
	struct link *l;
	bool is_new;

	parse_device(nlh, &new);
	l = find(new.ifindex);
	is_new = !l;
	if (is_new)
		l = add(new.ifindex);
	begin(t, l);
	if (!l)
		return;
	l->heard = true;
	update(l, &new, is_new, t);
}

void link_heed(const struct nlmsghdr *nlh, struct tidings *t)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct link *l;

	*t = (struct tidings){0};
	/* bridges have messages of their own about the same device */
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof *ifi || ifi->ifi_family != AF_UNSPEC)
		return;
	pthread_mutex_lock(&links.lock);
	if (nlh->nlmsg_type == RTM_NEWLINK) {
		set_link(nlh, t);
	} else {
		l = find(ifi->ifi_index);
		if (l)
			remove_link(l, t);
	}
	pthread_mutex_unlock(&links.lock);
}

/* ---- telling ---- */

void tidings_tell(struct tidings *t)
{
	struct link *l = t->link;
	const char *old_name = *t->old_name ? t->old_name : NULL;
	const void *data;

	for (unsigned i = 0; i < t->n; i++) {
		data = &l->dev;
		if (t->events[i] == TI_EVENT_NETDEV_ONLINE)
			data = &l->desc;
		else if (t->events[i] == TI_EVENT_NETDEV_DOWN)
			data = NULL;
		events_tell(t->events[i], data, l->dev.name, old_name);
	}
	tidings_drop(t);
}

void tidings_drop(struct tidings *t)
{
	if (t->link)
		link_put(t->link);
	*t = (struct tidings){0};
}

/* ---- messages that were lost ---- */

void links_forget(void)
{
	pthread_mutex_lock(&links.lock);
	for (struct link *l = links.list; l; l = l->next) {
		l->heard = false;
		l->has_hop[0] = l->has_hop[1] = false;
		for (struct addr *a = l->addrs; a; a = a->next)
			a->heard = false;
	}
	pthread_mutex_unlock(&links.lock);
}

static bool drop_unheard(struct link *l)
{
	struct addr **at = &l->addrs, *a;
	bool any = false;

	while ((a = *at) != NULL) {
		if (a->heard) {
			at = &a->next;
			continue;
		}
		any = true;
		*at = a->next;
		free(a);
	}
	return any;
}

bool links_lost(struct tidings *t)
{
	struct link *l;

	*t = (struct tidings){0};
	pthread_mutex_lock(&links.lock);
	for (l = links.list; l; l = l->next) {
		if (!l->heard) {
			remove_link(l, t);
			break;
		}
		if (drop_unheard(l)) {
			begin(t, l);
			say_address(t, l);
			break;
		}
	}
	pthread_mutex_unlock(&links.lock);
	return l;
}

/* ---- for others ---- */

struct link *link_get(int ifindex)
{
	struct link *l;

	pthread_mutex_lock(&links.lock);
	l = find(ifindex);
	if (l)
		l->refs++;
	pthread_mutex_unlock(&links.lock);
	return l;
}

void link_put(struct link *l)
{
	pthread_mutex_lock(&links.lock);
	put(l);
	pthread_mutex_unlock(&links.lock);
}

/* One that was taken out is behind nobody. */
struct link *link_next_online(struct link *prev)
{
	struct link *l;

	pthread_mutex_lock(&links.lock);
	l = !prev ? links.list : prev->gone ? NULL : prev->next;
	while (l && !is_online(l))
		l = l->next;
	if (l) {
		l->refs++;
		(void)describe(l);
	}
	if (prev)
		put(prev);
	pthread_mutex_unlock(&links.lock);
	return l;
}

net_device_t *link_device(struct link *l)
{
	return &l->dev;
}

const ti_transport_desc_t *link_desc(struct link *l)
{
	return &l->desc;
}

/* The parent's callbacks may have had pointers to them: they stay. */
void links_forked(void)
{
	links.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	links.list = NULL;
}
