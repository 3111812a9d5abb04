// SPDX-License-Identifier: BSD-3-Clause
#include "roce/kept.h"

#include <stdlib.h>
#include <string.h>

bool kept_put(struct kept_list *l, const uint8_t *bytes, size_t len, unsigned max)
{
	struct kept *k = l->n < max ? malloc(sizeof *k + len) : NULL;

	if (!k)
		return false;
	k->next = NULL;
	k->len = len;
	memcpy(k->bytes, bytes, len);
	if (l->first)
		l->last->next = k;
	else
		l->first = k;
	l->last = k;
	l->n++;
	return true;
}

void kept_take_off(struct kept_list *l)
{
	struct kept *k = l->first;

	l->first = k->next;
	l->n--;
	free(k);
}

void kept_clear(struct kept_list *l)
{
	while (l->first)
		kept_take_off(l);
}
