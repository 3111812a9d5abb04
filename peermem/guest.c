// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/guest.h"

#include <stddef.h>
#include <unistd.h>

void peer_guest_add(struct peer_guest **list, struct peer_guest *g, unsigned roles, const char *in)
{
	*g = (struct peer_guest){.next = *list, .tid = gettid(), .roles = roles, .in = in};
	*list = g;
}

void peer_guest_remove(struct peer_guest **list, struct peer_guest *g)
{
	while (*list && *list != g)
		list = &(*list)->next;
	if (*list) /* else of the process that this one was forked from */
		*list = g->next;
}

/* Its operation in this list; NULL: it runs none. */
static struct peer_guest *own_op(struct peer_guest *g)
{
	const pid_t me = gettid();

	while (g && (!(g->roles & PEER_OP) || g->tid != me))
		g = g->next;
	return g;
}

bool peer_guest_calls(struct peer_guest *list)
{
	struct peer_guest *op = own_op(list);

	if (!op || !(op->roles & PEER_RUNS))
		return false;
	op->roles &= ~PEER_RUNS;
	return true;
}

void peer_guest_calls_not(struct peer_guest *list)
{
	own_op(list)->roles |= PEER_RUNS;
}

static const struct peer_guest *find(const struct peer_guest *g, unsigned roles, bool other)
{
	pid_t me = gettid();

	while (g && (!(g->roles & roles) || (g->tid != me) != other))
		g = g->next;
	return g;
}

const struct peer_guest *peer_guest_other(const struct peer_guest *list, unsigned roles)
{
	return find(list, roles, true);
}

const struct peer_guest *peer_guest_self(const struct peer_guest *list, unsigned roles)
{
	return find(list, roles, false);
}
