/* SPDX-License-Identifier: BSD-3-Clause */
/* The IP addresses of this network namespace, by rtnetlink; needs no privilege. */
#pragma once

#include "fabric/gid_table.h"

enum { ADDRS_MAX = 1024 };

/*
 * Lists the addresses of interfaces that are up, in the kernel's order, at most max, and counts in
 * *uplinks the interfaces but loopback that are up and have a carrier.  Returns how many
 * addresses, or a negative errno if the kernel refuses to tell.
 */
int addrs_list(struct gid_addr *addrs, size_t max, unsigned *uplinks);

/* A socket that becomes readable when an address or an interface changes; an fd or -errno. */
int addrs_watch(void);

/* Reads all that waits there: what changed does not matter, addrs_list() tells. */
void addrs_drain(int fd);
