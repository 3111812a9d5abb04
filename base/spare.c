// SPDX-License-Identifier: BSD-3-Clause
#include "base/spare.h"

#include <stdlib.h>
#include <string.h>

static void *next_of(const void *block)
{
	void *next;

	memcpy(&next, block, sizeof next);
	return next;
}

void *spare_get(struct spare *s, size_t size)
{
	void *block = s->first;

	if (!block)
		return malloc(size);
	s->first = next_of(block);
	s->n--;
	return block;
}

void spare_put(struct spare *s, void *block, uint32_t most)
{
	if (s->n >= most) {
		free(block);
		return;
	}
	memcpy(block, &s->first, sizeof s->first);
	s->first = block;
	s->n++;
}

void spare_free(struct spare *s)
{
	for (void *block = s->first, *next; block; block = next) {
		next = next_of(block);
		free(block);
	}
	*s = (struct spare){0};
}
