/* SPDX-License-Identifier: BSD-3-Clause */
/* A registered client, as the registry and its regions know it. */
#pragma once

#define PEER_MEM_GENERATION E
#include "include/rdma/peer_mem.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "peermem/stats.h"

/* Clients are compiled elsewhere, to other headers of the same layout. */
static_assert(offsetof(struct peer_memory_client, version) == 64, "as in MLNX_OFED");
static_assert(offsetof(struct peer_memory_client, acquire) == 80, "as in MLNX_OFED");
static_assert(offsetof(struct peer_memory_client, release) == 80 + 6 * sizeof(void *), "the same");
static_assert(sizeof(struct peer_memory_client) == 80 + 7 * sizeof(void *), "136 bytes on LP64");
static_assert(offsetof(struct peer_memory_client_ex, ex_size) == sizeof(struct peer_memory_client),
	"directly behind it, where generation C has a function");

struct peer_region;

struct peer_client {
	struct peer_memory_client ops;        /* a copy: the client's may go away */
	char version[IB_PEER_MEMORY_VER_MAX]; /* terminated */
	bool invalidates;                     /* it asked for the callback */
	bool unmaps;                          /* PEER_MEM_INVALIDATE_UNMAPS */
	struct peer_stats stats;
	struct peer_client *next; /* in the order of registration */
	/* Of registry.c, under its lock: */
	struct peer_region *regions;
	unsigned refs;            /* of the registration and of each region */
	_Atomic uint32_t changes; /* counts regions that went */
};

/*
 * Checks what a client hands in, and copies it; free() it.  NULL: no memory, or refused, with the
 * reason in the log: a function is missing, the name is no name of a file.
 */
struct peer_client *peer_client_copy(const struct peer_memory_client *from, bool invalidates);
