// SPDX-License-Identifier: BSD-3-Clause
#include "hca/exec/way_table.h"

#include "hca/exec/exec_agent.h"
#include "hca/exec/journaled.h"
#include "hca/exec/owned.h"
#include "hca/exec/persist.h"
#include "hca/exec/word.h"

const struct way way_here = {
	.here = true,
	.rank = 0,
	.move = carry_here,
	.update = word_update_here,
	.store = word_store_here,
	.persist = persist_here,
};

const struct way way_mapped = {
	.here = true,
	.shared = true,
	.rank = 1,
	.move = carry_shared,
	.update = word_update_shared,
	.store = word_store_shared,
	.persist = persist_shared,
};

const struct way way_cma = {
	.rank = 2,
	.move = carry_cma,
	.update = word_update_cma,
	.store = word_store_cma,
	.persist = persist_by_owner,
};

const struct way way_agent = {
	.rank = 2,
	.move = carry_agent,
	.update = word_update_agent,
	.store = word_store_agent,
	.persist = persist_by_owner,
};

const struct way way_journaled = {
	.rank = 3,
	.move = journaled_move,
	.update = journaled_update,
	.store = journaled_store,
	.pushed = journaled_pushed,
};

const struct way way_functions = {
	.rank = 5,
	.move = owned_move,
	.update = owned_update,
	.store = owned_store,
	.persist = owned_persist,
	.later = owned_later,
};

const struct way way_owner = {
	.rank = 4,
	.move = owner_move,
	.update = owner_update,
	.store = owner_store,
	.persist = persist_by_owner,
	.later = owner_later,
};

static __attribute__((noinline)) bool is_owned(const struct payload *p, const struct held *held)
{
	return held_flagged(held, p->held_at, MR_OWNED);
}

const struct way *way_choose(const struct end *e, struct payload *p, const struct held *held)
{
	if (__builtin_expect(held->what & HELD_OWNED, 0) && is_owned(p, held))
		return end_is_here(e) ? &way_functions : &way_owner;
	if (end_is_here(e))
		return &way_here;
	if (resolve_mapped(&e->view, held, p->held_at, &p->l))
		return &way_mapped;
	return view_by_agent(&e->view) ? &way_agent : &way_cma;
}

bool way_is_direct(const struct work *w, const struct payload *p, const struct held *held)
{
	return (held->what & HELD_OWNED && is_owned(p, held)) ||
	       (way_is_journaled(w) && held_flagged(held, p->held_at, MR_JOURNALED));
}
