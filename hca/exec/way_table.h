/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way leads to memory: the rows, and the one place that chooses among them.  A kind of memory
 * that is reached otherwise is one row more, and a line that chooses it.
 */
#pragma once

#include "hca/exec/carry.h"
#include "hca/exec/resolve.h"
#include "hca/exec/way.h"

/*
 * How p is reached, memory of e.  If it is mapped here, p is a list of our own addresses from now
 * on.
 */
const struct way *way_choose(const struct end *e, struct payload *p, const struct held *held);

/* The same; memory of this very process, which is most, takes no call. */
static inline const struct way *way_of(
	const struct end *e, struct payload *p, const struct held *held)
{
	return end_is_here(e) && !(held->what & HELD_OWNED) ? &way_here : way_choose(e, p, held);
}

/* Chooses how p is reached, memory of e, the requester. */
static inline void way_of_requester(const struct end *e, struct payload *p, const struct held *held)
{
	p->at = e;
	p->way = way_of(e, p, held);
}

/* The same of w->mem, the responder's side. */
static inline void way_of_responder(
	const struct work *w, struct payload *p, const struct held *held)
{
	p->at = w->mem;
	p->way = way_of(w->mem, p, held);
	if (way_is_journaled(w)) {
		p->under = p->way;
		p->way = &way_journaled;
	}
}

/*
 * Must bytes for p, a receive of the responder, go straight there, and not where its owner copies
 * them out?
 */
bool way_is_direct(const struct work *w, const struct payload *p, const struct held *held);
