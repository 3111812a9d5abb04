/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that a rule holds back: until a time, or until others have overtaken them.  One list for
 * each way; one thread at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct fault_held;

struct fault_line {
	struct fault_held *first; /* in the order in which they came */
	unsigned n;
};

enum { FAULT_HELD_MAX = 256, FAULT_TAG_MAX = 64 };

/*
 * Takes a copy of a packet, and of tag_len bytes (at most FAULT_TAG_MAX) of the caller's beside it,
 * until due, or if behind is not 0 until so many others have passed, whichever is first.  -ENOMEM;
 * -ENOSPC: so many are held that this one goes on now.
 */
int fault_line_hold(struct fault_line *, const void *packet, size_t len, const void *tag,
	size_t tag_len, uint64_t due, uint32_t behind);

/* A packet has passed those that are held. */
void fault_line_passed(struct fault_line *);

/*
 * Takes out one whose time has come: its bytes and their number, and the tag.  They are valid until
 * fault_line_free() of what it returns.  NULL: there is none.
 */
struct fault_held *fault_line_take(struct fault_line *, uint64_t now);
const void *fault_held_packet(const struct fault_held *, size_t *len);
const void *fault_held_tag(const struct fault_held *);
void fault_held_free(struct fault_held *);

/* When the next one is due; UINT64_MAX: none is held. */
uint64_t fault_line_due(const struct fault_line *);

/* Frees all. */
void fault_line_clear(struct fault_line *);
