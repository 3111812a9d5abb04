// SPDX-License-Identifier: BSD-3-Clause
#include "topo/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "topo/topo.h"

/* The name's slot: its own, or the empty one that it would get. */
static uint32_t *slot_of(const struct names *names, const char *text, size_t len)
{
	uint32_t mask = 2 * names->room - 1;

	for (uint32_t at = hash_bytes(text, len, 0);; at++) {
		uint32_t *slot = &names->slots[at & mask];

		if (!*slot || (!strncmp(names->list[*slot - 1].text, text, len) &&
				      !names->list[*slot - 1].text[len]))
			return slot;
	}
}

static int grow(struct names *names)
{
	uint32_t room = names->room ? 2 * names->room : 64;
	uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
	struct name *list = slots ? reallocarray(names->list, room, sizeof *list) : NULL;

	if (!list) {
		free(slots);
		return -ENOMEM;
	}
	free(names->slots);
	names->slots = slots;
	names->list = list;
	names->room = room;
	for (uint32_t n = 0; n < names->n; n++)
		*slot_of(names, list[n].text, strlen(list[n].text)) = n + 1;
	return 0;
}

int names_add(struct names *names, const char *text, size_t len, uint32_t *n)
{
	uint32_t *slot;
	char *copy;

	if (names->n == names->room && grow(names))
		return -ENOMEM;
	slot = slot_of(names, text, len);
	if (!*slot) {
		copy = strndup(text, len);
		if (!copy)
			return -ENOMEM;
		names->list[names->n] = (struct name){.text = copy, .node = TOPO_NONE};
		*slot = ++names->n;
	}
	*n = *slot - 1;
	return 0;
}

void names_free(struct names *names)
{
	for (uint32_t n = 0; n < names->n; n++)
		free(names->list[n].text);
	free(names->list);
	free(names->slots);
	*names = (struct names){0};
}
