/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams to and from other hosts: one packet each, whoever runs the engine. */
#pragma once

#include <stdbool.h>

#include "hca/run/far_datagram.h"
#include "roce/port/socket.h"
#include "wire/roce.h"

/* What roce's struct far_ops has of datagrams. */
extern const struct datagram_ops ud_ops;

/* A rx_datagram_fn: gives it to its queue pair or group. */
bool ud_take(struct exec *x, const struct roce_packet *p, const struct roce_from *from);
