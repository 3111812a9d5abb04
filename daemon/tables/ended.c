// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/ended.h"

#include <stddef.h>

struct ended_process *ended_add(struct ended *e, const struct seg *seg)
{
	struct ended_process *row = &e->at[e->n++ % ENDED_KEPT];

	*row = (struct ended_process){0};
	for (int i = 0; i < CTR_COUNT; i++)
		row->count[i] = seg_counter(seg, i);
	for (int i = 0; i < SHARE_REASONS; i++)
		row->not_mapped[i] =
			atomic_load_explicit(&seg->hdr.not_mapped[i], memory_order_relaxed);
	return row;
}

const struct ended_process *ended_at(const struct ended *e, uint32_t back)
{
	if (back >= ENDED_KEPT || back >= e->n)
		return NULL;
	return &e->at[(e->n - 1 - back) % ENDED_KEPT];
}
