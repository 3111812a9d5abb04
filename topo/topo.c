// SPDX-License-Identifier: BSD-3-Clause
#include "topo/topo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void topo_free(struct topo *t)
{
	for (uint32_t n = 0; n < t->n_nodes; n++) {
		free(t->nodes[n].id);
		free(t->nodes[n].description);
		free(t->nodes[n].ports);
	}
	for (uint32_t n = 0; n < t->n_aliases; n++)
		free(t->aliases[n].name);
	free(t->aliases);
	free(t->nodes);
	*t = (struct topo){0};
}

static uint32_t find_text(const struct topo *t, const char *text, bool description)
{
	for (uint32_t n = 0; n < t->n_nodes; n++)
		if (!strcmp(description ? t->nodes[n].description : t->nodes[n].id, text))
			return n;
	return TOPO_NONE;
}

static uint32_t find_guid(const struct topo *t, uint64_t guid)
{
	for (uint32_t n = 0; n < t->n_nodes; n++) {
		const struct topo_node *node = &t->nodes[n];

		if (node->guid == guid)
			return n;
		for (int p = 1; node->kind != TOPO_SWITCH && p <= node->n_ports; p++)
			if (node->ports[p].guid == guid)
				return n;
	}
	return TOPO_NONE;
}

uint32_t topo_find(const struct topo *t, const char *name)
{
	bool guid = !strncmp(name, "0x", 2);
	uint32_t n = find_text(t, name, false);
	unsigned long long v;
	char *end;

	if (n == TOPO_NONE)
		n = find_text(t, name, true);
	if (n != TOPO_NONE || !strchr("0123456789", *name) || !*name)
		return n;
	errno = 0;
	v = strtoull(name, &end, guid ? 16 : 10);
	if (errno || *end)
		return TOPO_NONE;
	return guid ? find_guid(t, v) : v < t->n_nodes ? v : TOPO_NONE;
}

const struct topo_alias *topo_find_alias(const struct topo *t, const char *name)
{
	for (uint32_t n = 0; n < t->n_aliases; n++)
		if (!strcmp(t->aliases[n].name, name))
			return &t->aliases[n];
	return NULL;
}
