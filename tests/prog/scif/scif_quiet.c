// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that copies much at a time is at work all the while: the queue of its connection stays
 * unarmed, and does not ring for each copy.
 */
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/share_status.h"

enum { MUCH = 1 << 20, COPIES = 200, BOTH = SCIF_PROT_READ | SCIF_PROT_WRITE };

static int64_t rings(void)
{
	return status_of(getpid(), "counters", "events");
}

int main(void)
{
	struct scif_pair p = scif_make_pair();
	off_t from = scif_register(p.a, scif_pages(MUCH), MUCH, 0, BOTH, 0);
	off_t to = scif_register(p.b, scif_pages(MUCH), MUCH, 0, BOTH, 0);
	int64_t before;

	CHECK_EQ(scif_writeto(p.a, from, MUCH, to, SCIF_RMA_SYNC), 0);
	before = rings();
	for (int i = 0; i < COPIES; i++)
		CHECK_EQ(scif_writeto(p.a, from, MUCH, to, SCIF_RMA_SYNC), 0);
	/* Now and then others have the CPU for so long that it seems to be away. */
	CHECK_RANGE(rings() - before, 0, COPIES / 2);
	scif_end_pair(&p);
	return check_result();
}
