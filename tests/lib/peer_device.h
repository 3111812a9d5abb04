/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device with memory of its own and its peer client.  What the program registers are addresses
 * that nobody can load from; the bytes lie elsewhere in the process, where the client's tables say.
 * Compiled as a plug-in it registers itself.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEER_DEVICE_REGIONS = 64, PEER_DEVICE_PAGE = 65536 };

/* What it does wrong; of the registration alone that comes next, unless said otherwise. */
enum peer_fault {
	PEER_GOOD,
	PEER_NO_PAGES,     /* get_pages: -ENOMEM */
	PEER_POSITIVE,     /* get_pages: 5 */
	PEER_NO_MAP,       /* dma_map: -EIO */
	PEER_NO_TABLE,     /* no entries */
	PEER_NO_NMAP,      /* none mapped */
	PEER_SHORT,        /* half of what is needed */
	PEER_MISALIGNED,   /* an address within a page */
	PEER_EMPTY,        /* an entry of no bytes */
	PEER_PIECES,       /* in the other order */
	PEER_NOWHERE,      /* addresses that are no memory */
	PEER_PAGE_SIZE,    /* 3000 */
	PEER_TAKEN_EARLY,  /* takes it away inside dma_map, from another thread before it returns */
	PEER_TAKEN_INSIDE, /* ... in the same thread */
	PEER_FAULTS
};

struct peer_device {
	uint8_t *addr;  /* what programs register: PROT_NONE */
	uint8_t *store; /* where the bytes are */
	size_t size;
	enum peer_fault fault;
	void (*in_acquire)(void); /* called there, once */
	void (*in_unmap)(void);
	void (*in_copy)(void); /* PEER_DEVICE_WINDOW */
	/* Calls so far. */
	unsigned acquires, gets, maps, unmaps, puts, releases;
	int inside_answer; /* what the callback answered to PEER_TAKEN_INSIDE, or in a copy */
	/* PEER_DEVICE_WINDOW: */
	unsigned copies, inside, late; /* calls; that run just now; after dma_unmap */
	bool take_in_copy;             /* the next copy takes its own region away */
	int copy_answer;
	uint64_t last;    /* the context of get_pages */
	int write, force; /* what it got */
	void *handle;
};

extern struct peer_device peer_device;

enum peer_device_flags {
	PEER_DEVICE_KEEPS = 1,  /* never takes memory away: no callback */
	PEER_DEVICE_UNMAPS = 2, /* PEER_MEM_INVALIDATE_UNMAPS */
	PEER_DEVICE_WINDOW = 4, /* functions alone reach the bytes */
};

/* Makes size bytes and registers the client; false: refused. */
bool peer_device_open(const char *name, size_t size, unsigned flags);

/* Takes away the region whose context is given; what the callback answered. */
int peer_device_take(uint64_t context);

/* Unregisters the client; its memory stays. */
void peer_device_close(void);
