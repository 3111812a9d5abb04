// SPDX-License-Identifier: BSD-3-Clause
#include "sm/yield.h"

struct yield yield_begin(bool off)
{
	return (struct yield){.state = off ? YIELD_NEVER : YIELD_WORKS};
}

void yield_opened(struct yield *y)
{
	y->open++;
	if (y->state != YIELD_NEVER)
		y->state = YIELD_AWAY;
}

void yield_closed(struct yield *y, uint64_t now)
{
	if (!y->open || --y->open || y->state == YIELD_NEVER)
		return;
	y->state = YIELD_GRACE;
	y->back = now + YIELD_GRACE_NS;
}

bool yield_returns(struct yield *y, uint64_t now)
{
	if (y->state != YIELD_GRACE || now < y->back)
		return false;
	y->state = YIELD_WORKS;
	return true;
}
