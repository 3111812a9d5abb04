/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that processes and weftd itself sent and got, as the counters of weft0's port: files
 * counters/ and hw_counters/ of sysfs, by the names that rdma_rxe and mlx5 give them.  They count
 * on when a process ends, and from 0 when weftd is started anew, as those of a driver.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hca/seg/seg.h"

struct server;

enum { WIRE_COUNTER_FILES = 64 };

struct wire_counters {
	uint64_t ended[CTR_COUNT];          /* of processes that are gone */
	uint64_t shown[WIRE_COUNTER_FILES]; /* what the files say */
};

/* A process ends that counted that: keeps it. */
void wire_counters_keep(struct server *s, const uint64_t count[CTR_COUNT]);

/* Brings the files up to date: those that say something else, or all. */
void wire_counters_write(struct server *s, bool all);
