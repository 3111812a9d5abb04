/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the releases of MLNX_OFED treated clients.  Everything in which they differ is a column here;
 * registry, regions and callback ask the row in force.  Weft's own row serves clients of all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The life of a region, in this order; DEAD is left out where nobody takes the memory away. */
enum peer_state {
	PEER_NEW,    /* a client acquired it */
	PEER_PINNED, /* get_pages done */
	PEER_MAPPED, /* dma_map done, the answer good */
	PEER_LIVE,
	PEER_DEAD,  /* taken away by the client; not deregistered yet */
	PEER_DEREG, /* being undone, or undone */
};

struct peer_generation {
	char letter; /* of PEER_MEM_GENERATION; 'W' */
	const char *name;
	bool peers_first;           /* asked before the HCA tries to pin pages of the CPU */
	bool acquire_is_one;        /* mine is 1; else all that is positive */
	bool page_size_needed;      /* a client without get_page_size is refused */
	bool page_size_first;       /* asked for before dma_map */
	bool table_at_pin;          /* get_pages gets the table, else NULL */
	bool force_always;          /* get_pages: write as the region, force 1; else 1, read-only */
	bool extended;              /* flags behind the structure are read */
	bool release_inside;        /* the callback releases, too */
	bool host_pages;            /* num_reg_pages in pages of 4096 bytes, else in entries */
	bool bytes_by_entry;        /* num_reg_bytes are entries * page size, else the length */
	enum peer_state mark_below; /* a callback in an earlier state does not wait: it spoils the
				       registration */
	uint32_t first_context;
	uint64_t no_context; /* of clients without callback */
};

/* The row in force: Weft's unless peer_generation_use() chose another. */
const struct peer_generation *peer_generation(void);

/*
 * Chooses the row of a letter, 'W' or 'A' to 'E', before any client registers.  For checkers of
 * clients.  0; -EINVAL: no such row.
 */
int peer_generation_use(char letter);
