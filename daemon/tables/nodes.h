/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes of a fabric, by number, each with its page (fabric/page.h).  A fabric without a
 * topology has node 0 alone, made at the start; others are made when somebody first asks for them.
 */
#pragma once

#include <stdint.h>

#include "fabric/page.h"

enum { NODES_MAX = 1 << 16 };

struct node {
	uint32_t number;
	struct fabric_page *page; /* for writing */
	int page_fd;              /* can only be mapped read-only */
	int files;                /* -errno: its device files could not be written */
};

struct nodes {
	struct node **node; /* by number; NULL: not made yet */
	uint32_t room;
};

/*
 * Makes the node of that number, with that GUID: an Ethernet HCA with one port and no GIDs.  *out
 * belongs to the table and stays where it is.  -EINVAL: no such number; -EEXIST; -ENOMEM; what
 * identity_create() answers.
 */
int nodes_make(
	struct nodes *t, uint32_t number, const char *fabric, uint64_t guid, struct node **out);

/* NULL: there is none of that number. */
struct node *nodes_find(const struct nodes *t, uint32_t number);

/* Who finds weftd gone need not start another: says so on all pages. */
void nodes_leave(struct nodes *t);

/* Ends all: their pages stay with those who have them mapped. */
void nodes_end(struct nodes *t);
