// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "peermem/client.h"

enum { PAGE = 4096 };

static const char *wrong_table(const struct sg_table *table, int nmap)
{
	if (nmap < 1)
		return "nmap is less than 1";
	if (!table->sgl)
		return "the table has no entries";
	if ((unsigned)nmap > table->nents)
		return "nmap is more than the entries of the table";
	return NULL;
}

static const char *wrong_piece(const struct peer_piece *p)
{
	if (p->length == 0)
		return "an entry is empty";
	if (p->address % PAGE || p->length % PAGE)
		return "an entry is not of whole pages of 4096 bytes";
	if (p->address + p->length < p->address)
		return "an entry wraps";
	return NULL;
}

static void append(struct peer_pieces *to, struct peer_piece p)
{
	struct peer_piece *last = to->count ? &to->piece[to->count - 1] : NULL;

	if (last && last->address + last->length == p.address)
		last->length += p.length;
	else
		to->piece[to->count++] = p;
}

static const char *copy(
	const struct sg_table *table, int nmap, uint64_t need, struct peer_pieces *to)
{
	const char *why;
	uint64_t sum = 0;

	for (int i = 0; i < nmap; i++) {
		const struct scatterlist *s = &table->sgl[i];
		struct peer_piece p = {s->dma_address, s->dma_length};

		why = wrong_piece(&p);
		if (why)
			return why;
		sum += p.length;
		append(to, p);
	}
	return sum < need ? "the entries do not cover the range" : NULL;
}

int peer_table_take(const struct sg_table *table, int nmap, uint64_t need, struct peer_pieces *out,
	const char **why)
{
	struct peer_pieces pieces = {0};

	*why = wrong_table(table, nmap);
	if (*why)
		return -EINVAL;
	pieces.piece = calloc(nmap, sizeof *pieces.piece);
	if (!pieces.piece)
		return -ENOMEM;
	*why = copy(table, nmap, need, &pieces);
	if (*why) {
		free(pieces.piece);
		return -EINVAL;
	}
	*out = pieces;
	return 0;
}
