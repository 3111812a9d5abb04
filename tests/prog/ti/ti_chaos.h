/* SPDX-License-Identifier: BSD-3-Clause */
/* What ti_chaos does at random with a service; see ti_chaos.c. */
#pragma once

#include "tests/lib/ti_ends.h"

enum { CHAOS_PORTS = 3, CHAOS_PORT = 7800, CHAOS_PEER_PORT = 7850, CHAOS_TIMEOUT_MS = 600 };

/* 0 to n - 1; each thread has numbers of its own, which follow from the seed. */
void chaos_seed(unsigned seed);
unsigned chance(unsigned n);

/* A new service with something of all. */
void chaos_begin(void);

/* Makes, uses or destroys something, of any thread. */
void chaos_act(void);

/* Any connection of the service, or what was one. */
ti_conn_handle_t chaos_conn(void);

/* destroy_ti(), if nobody has called it. */
void chaos_end(void);

/* Waits until the service has gone. */
void chaos_await_end(void);
