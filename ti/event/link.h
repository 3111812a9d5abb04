/* SPDX-License-Identifier: BSD-3-Clause */
/* Link devices, as the kernel's messages have them, and what each message changed. */
#pragma once

#include <libmnl/libmnl.h>
#include <net/if.h>

#include "ti/core/ti.h"

struct link;

/* The events that a message raises, in order. */
enum { TIDINGS_MAX = 10 };
struct tidings {
	struct link *link; /* with a reference; NULL: nothing to tell */
	unsigned n;
	ti_event_t events[TIDINGS_MAX];
	char old_name[IFNAMSIZ]; /* not empty: before it was renamed */
};

/* Learns of RTM_NEWLINK, RTM_DELLINK.  *t is to be told or dropped. */
void link_heed(const struct nlmsghdr *nlh, struct tidings *t);

/* RTM_NEWADDR, RTM_DELADDR. */
void link_heed_addr(const struct nlmsghdr *nlh, struct tidings *t);

/* The gateway of the device's default route of that family (AF_INET, AF_INET6); NULL: none. */
void link_set_hop(int ifindex, int family, const void *gateway);

/* Calls the callbacks, on the system thread; the device stays as long.  Then drops it. */
void tidings_tell(struct tidings *t);
void tidings_drop(struct tidings *t);

/* What is not heard of until links_lost() is gone: fills *t, for one device a call; false: no more.
 */
void links_forget(void);
bool links_lost(struct tidings *t);

/* The device with a reference, NULL. */
struct link *link_get(int ifindex);
void link_put(struct link *l);

/* The first device that is online behind prev (NULL: of all), whose reference is given back. */
struct link *link_next_online(struct link *prev);

/* As events have them; theirs as long as the reference. */
net_device_t *link_device(struct link *l);
const ti_transport_desc_t *link_desc(struct link *l);

/* After a fork. */
void links_forked(void);
