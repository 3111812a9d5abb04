// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/leases.h"

#include <errno.h>

#include "base/draw.h"

/* Where all claims are others': one that we have not leased, at a drawn place. */
static int take_unclaimed(const struct leases *l)
{
	uint32_t first = draw_below(LEASE_BLOCKS - 1);

	for (uint32_t i = 0; i < LEASE_BLOCKS - 1; i++) {
		uint32_t block = 1 + (first + i) % (LEASE_BLOCKS - 1);

		if (!l->owner[block] && claims_socket(&l->claims, block) < 0)
			return block;
	}
	return -ENOSPC;
}

int lease_take(struct leases *l, uint32_t attach_id)
{
	int block = claims_take(&l->claims, l->owner);

	if (block == -ENOSPC)
		block = take_unclaimed(l);
	if (block < 0)
		return block;
	l->owner[block] = attach_id;
	l->count++;
	return block;
}

int lease_claim(struct leases *l, uint32_t block, uint32_t attach_id, int fd, bool unclaimed)
{
	int ret = 0;

	if (block == 0 || block >= LEASE_BLOCKS)
		return -EINVAL;
	if (l->owner[block] && l->owner[block] != attach_id)
		return -EEXIST;
	if (!unclaimed)
		ret = claims_keep(&l->claims, block, fd);
	if (ret)
		return ret;
	l->count += !l->owner[block];
	l->owner[block] = attach_id;
	return 0;
}

int lease_return(struct leases *l, uint32_t block, uint32_t attach_id)
{
	if (block == 0 || block >= LEASE_BLOCKS || l->owner[block] != attach_id)
		return -ENOENT;
	l->owner[block] = 0;
	l->count--;
	claims_rest(&l->claims, block);
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

bool lease_is_ours(const struct leases *l, uint32_t qpn)
{
	return claims_are_ours(&l->claims, qpn / LEASE_QPNS);
}
