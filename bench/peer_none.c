// SPDX-License-Identifier: BSD-3-Clause
/* peer_none: nanoseconds that a registration takes to find out that there is no peer client. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "peermem/region.h"

enum { TIMES = 10000000 };

int main(void)
{
	struct peer_region *region = NULL;
	struct peer_trace trace;
	uint64_t begin = clock_ns();

	for (uint64_t i = 0; i < TIMES; i++) {
		const struct peer_request q = {.addr = 4096 * i, .length = 4096, .writable = true};

		if (peer_region_make(&q, &region, &trace) || region)
			exit(1);
		__asm__ volatile("" ::: "memory");
	}
	printf("none_ns %.1f\n", (double)(clock_ns() - begin) / TIMES);
	return 0;
}
