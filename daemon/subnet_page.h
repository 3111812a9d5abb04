/* SPDX-License-Identifier: BSD-3-Clause */
/* What the page of a node says, from the node's own agent in the subnet. */
#pragma once

#include "fabric/page.h"
#include "subnet/subnet.h"

/* Fills in a page that nobody has seen yet, by subnet_page_update(), too. */
void subnet_page_fill(
	struct fabric_page *page, struct subnet *s, const struct topo_node *topo, uint32_t node);

/*
 * Brings its ports, GUIDs and description up to date, under its sequence lock.  True: something was
 * new.  Whoever calls it when subnet_changes() says another number misses nothing.
 */
bool subnet_page_update(struct fabric_page *page, struct subnet *s, uint32_t node);
