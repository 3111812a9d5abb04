// SPDX-License-Identifier: BSD-3-Clause
#include "rdv/grow.h"

#include <errno.h>
#include <stdlib.h>

int grow(void **array, size_t *room, size_t n, size_t size)
{
	size_t want = *room ? 2 * *room : 8;
	void *p;

	if (n < *room)
		return 0;
	p = realloc(*array, want * size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*room = want;
	return 0;
}
