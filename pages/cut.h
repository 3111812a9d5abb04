/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the last bytes of a copy by the kernel are cut off, so that they become visible last.  The
 * kernel copies each piece of a list after the one before.  How it stores a piece depends on the
 * CPU:
 *
 * - With CPU_SHORT_STRINGS each piece is one string instruction, and that stores the last bytes of
 *   any piece but of a single byte twice, now and then far enough apart for a peer to see them and
 *   change them in between, which is undone then.  Aligned words of 2, 4 and 8 bytes are stored
 *   whole.  So the last byte comes by itself, after the rest of its word, after all other bytes;
 *   only what is an aligned word altogether is not cut.
 * - Without, pieces of less than 64 bytes are stored in ascending order, by words of 8 bytes
 * counted from the piece's first: so the last aligned word comes by itself.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CUTS = 2, CUT_WORD = 8 };

/* Where new pieces begin, in bytes from the start of the copy; ascending. */
struct cuts {
	unsigned n;
	uint64_t at[CUTS];
};

static inline void cut_add(struct cuts *c, uint64_t at)
{
	if (at && (!c->n || at > c->at[c->n - 1]))
		c->at[c->n++] = at;
}

/* The cuts of a copy of len bytes, at least 1, that ends before the address end. */
static inline struct cuts cuts_before(uint64_t end, uint64_t len, bool short_strings)
{
	uint64_t in_word = (end - 1) % CUT_WORD + 1;
	bool is_word = len <= CUT_WORD && !(len & (len - 1)) && end % len == 0;
	struct cuts c = {.n = 0};

	if (is_word)
		return c;
	cut_add(&c, len > in_word ? len - in_word : 0);
	if (short_strings)
		cut_add(&c, len - 1);
	return c;
}
