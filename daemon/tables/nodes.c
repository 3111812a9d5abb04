// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/tables/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/tables/identity.h"

static int make_room(struct nodes *t, uint32_t number)
{
	uint32_t room = t->room ? t->room : 1;
	struct node **node;

	if (number < t->room)
		return 0;
	while (room <= number)
		room *= 2;
	node = realloc(t->node, room * sizeof *node);
	if (!node)
		return -ENOMEM;
	memset(node + t->room, 0, (room - t->room) * sizeof *node);
	t->node = node;
	t->room = room;
	return 0;
}

int nodes_make(
	struct nodes *t, uint32_t number, const char *fabric, uint64_t guid, struct node **out)
{
	struct node *n;
	int ret;

	if (number >= NODES_MAX)
		return -EINVAL;
	if (nodes_find(t, number))
		return -EEXIST;
	ret = make_room(t, number);
	if (ret)
		return ret;
	n = calloc(1, sizeof *n);
	if (!n)
		return -ENOMEM;
	n->number = number;
	ret = identity_create(fabric, guid, &n->page, &n->page_fd);
	if (ret) {
		free(n);
		return ret;
	}
	t->node[number] = *out = n;
	return 0;
}

struct node *nodes_find(const struct nodes *t, uint32_t number)
{
	return number < t->room ? t->node[number] : NULL;
}

void nodes_leave(struct nodes *t)
{
	for (uint32_t i = 0; i < t->room; i++)
		if (t->node[i])
			atomic_store_explicit(&t->node[i]->page->left, 1, memory_order_release);
}

void nodes_end(struct nodes *t)
{
	for (uint32_t i = 0; i < t->room; i++) {
		if (!t->node[i])
			continue;
		identity_end(t->node[i]->page);
		close(t->node[i]->page_fd);
		free(t->node[i]);
	}
	free(t->node);
	*t = (struct nodes){0};
}
