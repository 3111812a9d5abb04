/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that cannot be served yet, in the order in which they came.  All zero: none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kept {
	struct kept *next;
	size_t len;
	uint8_t bytes[];
};

struct kept_list {
	struct kept *first, *last; /* last: only where there is a first */
	unsigned n;
};

/* Adds a copy.  False: max of them are there, or there is no memory. */
bool kept_put(struct kept_list *l, const uint8_t *bytes, size_t len, unsigned max);

/* Takes the first one, which there is, off the list and frees it. */
void kept_take_off(struct kept_list *l);

/* Frees all of them. */
void kept_clear(struct kept_list *l);
