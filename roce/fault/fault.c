// SPDX-License-Identifier: BSD-3-Clause
#include "roce/fault/fault.h"

#include <string.h>

#include "wire/roce.h"

/* How long one that is to be overtaken waits where nothing follows. */
#define REORDER_HOLD_NS (20 * 1000000ull)

/* splitmix64: any seed is good, and each rule has a stream of its own. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void fault_start(struct fault_set *s, const struct fault_rules *rules)
{
	uint64_t from = rules->seed;

	*s = (struct fault_set){.rules = *rules};
	for (uint32_t i = 0; i < rules->n; i++)
		s->state[i].random = draw(&from);
}

static bool is_for(
	const struct fault_rule *r, enum fault_way way, const uint8_t *packet, size_t len)
{
	if (!(r->ways & way) || !len)
		return false;
	if (r->one_qpn && (len < ROCE_BTH_LEN || roce_peek_qpn(packet, len) != r->qpn))
		return false;
	return r->opcodes[packet[0] / 64] >> packet[0] % 64 & 1;
}

/* Does it do something to this one, which it is for? */
static bool applies(const struct fault_rule *r, struct fault_state *s)
{
	s->seen++;
	if ((r->nth && s->seen != r->nth) || (r->every && s->seen % r->every) ||
		(r->count && s->done >= r->count))
		return false;
	return r->odds == FAULT_ALWAYS || draw(&s->random) % FAULT_ALWAYS < r->odds;
}

static enum fault_act act_of(
	const struct fault_rule *r, struct fault_state *s, size_t len, struct fault_how *how)
{
	switch (r->deed) {
	case FAULT_DROP:
		return FAULT_LOSE;
	case FAULT_DUPLICATE:
		return FAULT_TWICE;
	case FAULT_REORDER:
		how->hold_ns = REORDER_HOLD_NS;
		how->behind = r->behind;
		return FAULT_HOLD;
	case FAULT_DELAY:
		how->hold_ns = r->delay_ns;
		return FAULT_HOLD;
	default:
		how->bit = draw(&s->random) % (len * 8);
		return FAULT_FLIP;
	}
}

enum fault_act fault_on(struct fault_set *set, enum fault_way way, const uint8_t *packet,
	size_t len, struct fault_how *how)
{
	for (uint32_t i = 0; i < set->rules.n && i < FAULT_RULES; i++) {
		const struct fault_rule *r = &set->rules.rule[i];
		struct fault_state *s = &set->state[i];

		if (!is_for(r, way, packet, len) || !applies(r, s))
			continue;
		s->done++;
		*how = (struct fault_how){.rule = i};
		return act_of(r, s, len, how);
	}
	return FAULT_PASS;
}
