// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/page.h"

#include <errno.h>
#include <string.h>

enum { READ_TRIES = 10000 };

/* Copies a part of the page. */
static void read_part(const struct fabric_page *page, const void *part, void *out, size_t size)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint32_t before = atomic_load_explicit(&page->seq, memory_order_acquire);

		memcpy(out, part, size);
		atomic_thread_fence(memory_order_acquire);
		if (!(before & 1) &&
			atomic_load_explicit(&page->seq, memory_order_relaxed) == before)
			return;
		cpu_relax();
	}
}

void fabric_read(const struct fabric_page *page, struct fabric_page *out)
{
	read_part(page, page, out, sizeof *out);
}

void fabric_read_node(const struct fabric_page *page, struct fabric_page *out)
{
	read_part(page, page, out, offsetof(struct fabric_page, port));
}

int fabric_read_port(const struct fabric_page *page, uint32_t number, struct fabric_port *out)
{
	const struct fabric_port *port = fabric_port(page, number);

	if (!port)
		return -EINVAL;
	read_part(page, port, out, sizeof *out);
	return 0;
}
