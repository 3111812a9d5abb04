// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that copies much at a time is at work all the while: the queue of its connection stays
 * unarmed, and does not ring for each copy.
 */
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/share_status.h"

enum { MUCH = 1 << 20, COPIES = 200, ROUNDS = 20, BOTH = SCIF_PROT_READ | SCIF_PROT_WRITE };

static int64_t rings(void)
{
	return status_of(getpid(), "counters", "events");
}

/* How often it rings for so many copies. */
static int64_t rings_for_copies(struct scif_pair *p, off_t from, off_t to)
{
	int64_t before = rings();

	for (int i = 0; i < COPIES; i++)
		CHECK_EQ(scif_writeto(p->a, from, MUCH, to, SCIF_RMA_SYNC), 0);
	return rings() - before;
}

int main(void)
{
	struct scif_pair p = scif_make_pair();
	off_t from = scif_register(p.a, scif_pages(MUCH), MUCH, 0, BOTH, 0);
	off_t to = scif_register(p.b, scif_pages(MUCH), MUCH, 0, BOTH, 0);
	int64_t rang = COPIES;

	CHECK_EQ(scif_writeto(p.a, from, MUCH, to, SCIF_RMA_SYNC), 0);
	/* While others have the CPU for long it seems to be away: not in every round. */
	for (int i = 0; i < ROUNDS && rang > COPIES / 2; i++)
		rang = rings_for_copies(&p, from, to);
	CHECK_RANGE(rang, 0, COPIES / 2);
	scif_end_pair(&p);
	return check_result();
}
