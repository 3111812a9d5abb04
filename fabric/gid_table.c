// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/gid_table.h"

#include <string.h>

#include "base/gid.h"

enum { GID_LINK_LOCAL, GID_MAIN_IPV4 };

static const uint8_t none[16];
static const uint8_t v4_loopback[4] = {127, 0, 0, 1};

void gid_from_ipv4(uint8_t raw[16], const void *ipv4)
{
	gid_put_ipv4_prefix(raw);
	memcpy(raw + 12, ipv4, 4);
}

static bool is_free(const struct fabric_gid *g)
{
	return memcmp(g->raw, none, 16) == 0;
}

static struct gid_addr loopback_addr(bool ipv4)
{
	struct gid_addr a = {.ifindex = 1, .ifname = "lo", .loopback = true};

	if (ipv4)
		gid_from_ipv4(a.raw, v4_loopback);
	else
		a.raw[15] = 1;
	return a;
}

const struct gid_addr *gid_main_ipv4(const struct gid_addr *addrs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (gid_is_ipv4(addrs[i].raw) && !gid_is_loopback(addrs[i].raw) &&
			!addrs[i].loopback)
			return &addrs[i];
	return NULL;
}

/* The link-local address of that interface, or NULL. */
static const struct gid_addr *find_link_local(
	uint32_t ifindex, const struct gid_addr *addrs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (addrs[i].ifindex == ifindex && gid_is_link_local(addrs[i].raw))
			return &addrs[i];
	return NULL;
}

static void set_entry(struct fabric_gid *g, const uint8_t *raw, const struct gid_addr *a)
{
	memcpy(g->raw, raw, 16);
	memcpy(g->ifname, a->ifname, sizeof g->ifname);
	g->ifindex = a->ifindex;
	g->type = GID_TYPE_ROCE_V2;
}

/* The address of entry g as it is now: on the interface it was on, else on another, or NULL. */
static const struct gid_addr *find_addr(
	const struct fabric_gid *g, const struct gid_addr *addrs, size_t n)
{
	const struct gid_addr *other = NULL;

	for (size_t i = 0; i < n; i++) {
		if (memcmp(g->raw, addrs[i].raw, 16) != 0)
			continue;
		if (g->ifindex == addrs[i].ifindex)
			return &addrs[i];
		if (!other)
			other = &addrs[i];
	}
	return other;
}

static void drop_gone(struct fabric_port *port, const struct gid_addr *addrs, size_t n)
{
	const struct gid_addr lo[2] = {loopback_addr(true), loopback_addr(false)};

	for (uint32_t i = GID_MAIN_IPV4; i < port->n_gids; i++) {
		struct fabric_gid *g = &port->gid[i];
		const struct gid_addr *a = find_addr(g, addrs, n);

		if (!a)
			a = find_addr(g, lo, 2);
		if (a)
			set_entry(g, a->raw, a);
		else
			memset(g, 0, sizeof *g);
	}
}

/* Gives the address the first free entry unless it has one; false: no room. */
static bool put(struct fabric_port *port, const struct gid_addr *a)
{
	uint32_t first = gid_is_ipv4(a->raw) ? GID_MAIN_IPV4 : GID_MAIN_IPV4 + 1;
	uint32_t free_at = FABRIC_MAX_GIDS;

	for (uint32_t i = GID_LINK_LOCAL; i < FABRIC_MAX_GIDS; i++) {
		if (memcmp(port->gid[i].raw, a->raw, 16) == 0)
			return true;
		if (free_at == FABRIC_MAX_GIDS && i >= first && is_free(&port->gid[i]))
			free_at = i;
	}
	if (free_at == FABRIC_MAX_GIDS)
		return false;
	set_entry(&port->gid[free_at], a->raw, a);
	return true;
}

static uint32_t count_used(const struct fabric_port *port)
{
	uint32_t n = FABRIC_MAX_GIDS;

	while (n && is_free(&port->gid[n - 1]))
		n--;
	return n;
}

size_t gid_table_update(
	struct fabric_port *port, uint64_t node_guid, const struct gid_addr *addrs, size_t n)
{
	struct gid_addr lo4 = loopback_addr(true), lo6 = loopback_addr(false);
	const struct gid_addr *main4 = gid_main_ipv4(addrs, n), *own = NULL;
	uint8_t link_local[16] = {0xfe, 0x80};
	size_t lost = 0;

	if (main4)
		own = find_link_local(main4->ifindex, addrs, n);
	else
		main4 = &lo4;
	memcpy(link_local + 8, &node_guid, 8);
	drop_gone(port, addrs, n);
	set_entry(&port->gid[GID_LINK_LOCAL], own ? own->raw : link_local, main4);
	lost += !put(port, main4);
	lost += !put(port, &lo4);
	lost += !put(port, &lo6);
	for (size_t i = 0; i < n; i++)
		lost += !put(port, &addrs[i]);
	port->n_gids = count_used(port);
	return lost;
}
