// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "peermem/generation.h"

static const char *missing(const struct peer_memory_client *c)
{
	if (!c->acquire)
		return "acquire";
	if (!c->get_pages)
		return "get_pages";
	if (!c->put_pages)
		return "put_pages";
	if (!c->dma_map)
		return "dma_map";
	if (!c->dma_unmap)
		return "dma_unmap";
	return !c->get_page_size && peer_generation()->page_size_needed ? "get_page_size" : NULL;
}

/* The name is one of a folder, too. */
static bool good_name(const char *name)
{
	return memchr(name, '\0', IB_PEER_MEMORY_NAME_MAX) && *name && !strchr(name, '/') &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool refuse(const struct peer_memory_client *c)
{
	const char *gap = missing(c);
	const bool named = good_name(c->name);

	if (!named)
		log_line(LOG_LVL_WARN,
			"peer client refused: its name is empty, unterminated or no file name");
	else if (gap)
		log_line(LOG_LVL_WARN, "peer client %s refused: it has no %s", c->name, gap);
	return !named || gap;
}

/* Later clients say by the last byte of version that their structure goes on. */
static uint32_t flags_of(const struct peer_memory_client *c)
{
	const struct peer_memory_client_ex *ex = (const void *)c;
	const size_t need = offsetof(struct peer_memory_client_ex, flags) + sizeof ex->flags;

	if (!peer_generation()->extended || !c->version[IB_PEER_MEMORY_VER_MAX - 1])
		return 0;
	return ex->ex_size >= need ? ex->flags : 0;
}

struct peer_client *peer_client_copy(const struct peer_memory_client *from, bool invalidates)
{
	struct peer_client *c;

	if (!from || refuse(from))
		return NULL;
	c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->ops = *from;
	memcpy(c->version, from->version, sizeof c->version - 1);
	c->invalidates = invalidates;
	c->unmaps = flags_of(from) & PEER_MEM_INVALIDATE_UNMAPS;
	c->refs = 1;
	return c;
}
