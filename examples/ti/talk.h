/* SPDX-License-Identifier: BSD-3-Clause */
/* What the server and the client have in common. */
#pragma once

#include "sample.h"

#include <stdbool.h>

/* A socket bound to that address; ends the program if it cannot be. */
struct sock *bound_socket(const char *ipv4, unsigned short port);
void make_address(struct sockaddr_in *sin, const char *ipv4, unsigned short port);

/* All bytes; false: the connection ended.  What is longer than a message is one call at both ends.
 */
bool send_all(struct sock *sk, void *data, int len);
bool recv_all(struct sock *sk, void *data, int len);
