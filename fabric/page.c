// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/page.h"

#include <string.h>

enum { READ_TRIES = 10000 };

void fabric_read(const struct fabric_page *page, struct fabric_page *out)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint32_t before = atomic_load_explicit(&page->seq, memory_order_acquire);

		memcpy((void *)out, (const void *)page, sizeof *out);
		atomic_thread_fence(memory_order_acquire);
		if (!(before & 1) &&
			atomic_load_explicit(&page->seq, memory_order_relaxed) == before)
			return;
		cpu_relax();
	}
}
