// SPDX-License-Identifier: BSD-3-Clause
#include "sm/sm.h"

#include <errno.h>
#include <stdlib.h>

#include "sm/answer.h"
#include "sm/bringup.h"
#include "sm/port.h"
#include "sm/yield.h"

struct sm {
	struct bringup bringup;
	struct yield yield;
	struct sm_ops ops;
	uint32_t answers;
	uint64_t longest; /* ns that a unit took of late */
};

int sm_create(
	struct sm **out, struct subnet *s, struct lids *lids, const struct sm_ops *ops, bool off)
{
	struct sm *sm = calloc(1, sizeof *sm);

	if (!sm)
		return -ENOMEM;
	if (bringup_make(&sm->bringup, s, lids)) {
		sm_free(sm);
		return -ENOMEM;
	}
	sm->ops = *ops;
	sm->yield = yield_begin(off);
	if (!off)
		bringup_begin(&sm->bringup, false);
	*out = sm;
	return 0;
}

void sm_free(struct sm *sm)
{
	bringup_free(&sm->bringup);
	free(sm);
}

static uint64_t now(const struct sm *sm)
{
	return sm->ops.now(sm->ops.arg);
}

static bool is_due(const struct sm *sm)
{
	return sm->yield.state == YIELD_WORKS && bringup_due(&sm->bringup);
}

/* The next unit may take as long as the longest of late. */
static bool fits(const struct sm *sm, uint64_t spent, uint64_t budget)
{
	return !spent || spent + sm->longest <= budget;
}

bool sm_step(struct sm *sm, uint64_t budget)
{
	uint64_t begin, last;

	if (sm->yield.state != YIELD_GRACE && !is_due(sm))
		return false;
	begin = last = now(sm);
	if (yield_returns(&sm->yield, begin))
		bringup_begin(&sm->bringup, true);
	sm->longest /= 2;
	while (is_due(sm) && fits(sm, last - begin, budget)) {
		uint64_t before = last;

		bringup_unit(&sm->bringup);
		last = now(sm);
		if (last - before > sm->longest)
			sm->longest = last - before;
	}
	return is_due(sm);
}

uint64_t sm_next(const struct sm *sm)
{
	if (sm->yield.state == YIELD_GRACE)
		return sm->yield.back;
	return is_due(sm);
}

void sm_issm_opened(struct sm *sm)
{
	yield_opened(&sm->yield);
}

void sm_issm_closed(struct sm *sm)
{
	yield_closed(&sm->yield, now(sm));
}

bool sm_take(struct sm *sm, uint32_t node, uint8_t port, const uint8_t mad[MAD_SIZE],
	uint8_t reply[MAD_SIZE])
{
	struct bringup *b = &sm->bringup;
	struct sm_info self = {.state = SM_MASTER};

	if (sm->yield.state != YIELD_WORKS || !b->sm_port || b->t->ports[b->sm_port].node != node ||
		port_number(b->t, b->sm_port) != port)
		return false;
	self.guid = port_guid(b->s, b->t, b->sm_port);
	self.act_count = b->acts + ++sm->answers;
	return answer_smp(&self, mad, reply);
}

const char *sm_state_name(const struct sm *sm)
{
	static const char *const names[] = {
		[YIELD_NEVER] = "off",
		[YIELD_WORKS] = "works",
		[YIELD_AWAY] = "gives way",
		[YIELD_GRACE] = "comes back",
	};

	return names[sm->yield.state];
}
