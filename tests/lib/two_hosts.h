/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts for a test program that in_netns.sh has started: its own, and one in whose network
 * namespace a child runs, with a runtime directory, and so a weftd, of its own.
 *
 *   near  v0  198.51.100.1, 2001:db8:77::1  ----  v1  198.51.100.2, 2001:db8:77::2  far
 */
#pragma once

#include <netinet/in.h>

#include "tests/lib/t.h"

/*
 * Moves v1 away, and runs run(in, out, NULL) there; after t_start().  Packets get through both ways
 * then.
 */
void two_hosts(struct t_child *far, void (*run)(int in, int out, void *arg));

/* Address number `host` in the link, 1 near, 2 far, of that family; valid until the next call. */
struct sockaddr *host_addr(int family, int host, uint16_t port);

/* Runs a command of the shell; the test fails if it does. */
void host_do(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
