/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer client that does what a test wants.  peermem_fake_client.c is compiled once for each
 * generation's header; all its copies report to fake.
 */
#pragma once

#include <stdint.h>

enum fake_call {
	FAKE_ACQUIRE,
	FAKE_GET_PAGES,
	FAKE_DMA_MAP,
	FAKE_DMA_UNMAP,
	FAKE_PUT_PAGES,
	FAKE_GET_PAGE_SIZE,
	FAKE_RELEASE,
	FAKE_CALLS
};

enum { FAKE_ENTRIES = 4 };

struct fake {
	char calls[4096]; /* a letter each: a g m u p s r */
	int answer[FAKE_CALLS];
	unsigned long page_size;
	int nmap; /* 0: all entries */
	unsigned entries;
	struct {
		uint64_t address;
		unsigned length;
	} entry[FAKE_ENTRIES];
	void (*inside[FAKE_CALLS])(void); /* called in that function; once */
	/* What get_pages was given last. */
	uint64_t context;
	int write, force, had_table;
};

extern struct fake fake;

enum { FAKE_NULL_CALLBACK = 1, FAKE_UNMAPS = 2, FAKE_NO_PAGE_SIZE = 4, FAKE_NO_RELEASE = 8 };

/* One generation's client. */
struct fake_generation {
	char letter;
	/* Registers it by the header's own prototype; a handle or NULL. */
	void *(*open)(const char *name, unsigned flags);
	/* Calls what registration put into the slot. */
	int (*invalidate)(void *handle, uint64_t context);
};

extern const struct fake_generation fake_A, fake_B, fake_C, fake_D, fake_E;

/* Reports a call; returns its answer. */
int fake_called(enum fake_call call);

/* Everything succeeds again, no call is noted; two entries of 8 KiB, not adjacent. */
void fake_reset(void);

/* The calls since, as letters, which are then forgotten. */
const char *fake_calls(void);
