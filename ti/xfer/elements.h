/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of elements that completed. */
#pragma once

#include "ti/mem/element.h"

struct elements {
	ti_data_element_t *first, *last;
};

static inline void elements_add(struct elements *l, ti_data_element_t *e)
{
	e->p_next_msg = NULL;
	if (l->first)
		l->last->p_next_msg = e;
	else
		l->first = e;
	l->last = e;
}

/* Moves all of from behind l. */
static inline void elements_move(struct elements *l, struct elements *from)
{
	if (!from->first)
		return;
	if (l->first)
		l->last->p_next_msg = from->first;
	else
		l->first = from->first;
	l->last = from->last;
	from->first = from->last = NULL;
}

/* Makes them the program's again; returns the list, and its length in *n. */
static inline ti_data_element_t *elements_hand_out(struct elements *l, uint32_t *n)
{
	ti_data_element_t *first = l->first;

	*n = 0;
	for (ti_data_element_t *e = first; e; e = e->p_next_msg) {
		element_unclaim((struct element *)e);
		++*n;
	}
	l->first = l->last = NULL;
	return first;
}
