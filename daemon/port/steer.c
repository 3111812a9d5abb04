// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/port/steer.h"

#include <errno.h>

#include "daemon/port/group.h"

/* One block more for a seat. */
static void add_block(struct wire_ranges *r, uint32_t block, uint32_t seat)
{
	const uint32_t first = block * LEASE_QPNS, last = first + LEASE_QPNS - 1;
	struct steer_range *before = r->n ? &r->at[r->n - 1] : NULL;

	if (before && before->index == seat && before->last + 1 == first)
		before->last = last;
	else if (r->n < STEER_RANGES_MAX)
		r->at[r->n++] = (struct steer_range){first, last, seat};
	else
		r->left_out++;
}

void wire_ranges_make(
	struct wire_ranges *r, const struct leases *l, wire_seat_of seat_of, void *arg)
{
	uint32_t owner = 0, seat = 0;

	r->n = r->left_out = 0;
	for (uint32_t block = 1; block < LEASE_BLOCKS; block++) {
		if (!l->owner[block])
			continue;
		if (l->owner[block] != owner) {
			owner = l->owner[block];
			seat = seat_of(arg, owner);
		}
		if (seat)
			add_block(r, block, seat);
	}
}

static int attach(const struct wire_ranges *r, const struct wire_group *g)
{
	static struct sock_filter code[STEER_CODE_MAX];
	int len = steer_program(r->at, r->n, code, STEER_CODE_MAX), ret = 0;

	if (len < 0)
		return len;
	for (int i = 0; !ret && i < WIRE_FAMILIES; i++)
		if (g->has[i])
			ret = steer_attach(g->seat[0]->fd[i], code, len);
	return ret;
}

int wire_ranges_attach(struct wire_ranges *r, const struct wire_group *g)
{
	int ret;

	while ((ret = attach(r, g)) && (ret == -E2BIG || ret == -ENOMEM) && r->n) {
		size_t fewer = r->n / 4 + 1;

		r->n -= fewer;
		r->left_out += fewer;
	}
	return ret;
}
