// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/leases.h"

#include <errno.h>

void leases_init(struct leases *l, uint32_t epoch)
{
	l->cursor = (epoch & 15) << 12;
}

int lease_take(struct leases *l, uint32_t attach_id)
{
	for (uint32_t i = 0; i < LEASE_BLOCKS; i++) {
		uint32_t block = (l->cursor + i) % LEASE_BLOCKS;

		if (block == 0 || l->owner[block])
			continue;
		l->owner[block] = attach_id;
		l->cursor = block + 1;
		l->count++;
		return block;
	}
	return -ENOSPC;
}

int lease_claim(struct leases *l, uint32_t block, uint32_t attach_id)
{
	if (block == 0 || block >= LEASE_BLOCKS)
		return -EINVAL;
	if (l->owner[block])
		return l->owner[block] == attach_id ? 0 : -EEXIST;
	l->owner[block] = attach_id;
	l->count++;
	return 0;
}

int lease_return(struct leases *l, uint32_t block, uint32_t attach_id)
{
	if (block == 0 || block >= LEASE_BLOCKS || l->owner[block] != attach_id)
		return -ENOENT;
	l->owner[block] = 0;
	l->count--;
	return 0;
}

void lease_drop(struct leases *l, uint32_t attach_id)
{
	for (uint32_t i = 1; i < LEASE_BLOCKS; i++)
		if (l->owner[i] == attach_id)
			lease_return(l, i, attach_id);
}

uint32_t lease_owner(const struct leases *l, uint32_t qpn)
{
	uint32_t block = qpn / LEASE_QPNS;

	return block < LEASE_BLOCKS ? l->owner[block] : 0;
}
