/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peer clients of all processes, by name: what they counted, those of ended processes too.  It is
 * shown by weft status and as files, as the kernel has them:
 * sys/kernel/mm/memory_peers/NAME/ in the tree of device files, and, for a client nv_mem,
 * sys/module/{nvidia_peermem,nv_peer_mem}/version.
 */
#pragma once

#include <jansson.h>

#include "daemon/server.h"

struct process;

/* The clients as a JSON array of objects; NULL when memory is short. */
json_t *peer_stats_status(const struct server *s);

/* The process ends: keeps what its clients counted; its regions end with it, and count so. */
void peer_stats_keep(struct server *s, const struct process *p);

/* Brings the files up to date.  Nothing is written while there never was a client. */
void peer_stats_write(const struct server *s);
