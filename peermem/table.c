// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "peermem/client.h"
#include "peermem/window.h"

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

/* Takes over p's hold on its window. */
static void append(struct peer_pieces *to, struct peer_piece p)
{
	struct peer_piece *last = to->count ? &to->piece[to->count - 1] : NULL;

	if (last && last->window == p.window && last->address + last->length == p.address) {
		last->length += p.length;
		peer_window_put(p.window);
		return;
	}
	p.begin = last ? last->begin + last->length : 0;
	to->piece[to->count++] = p;
}

static const char *copy(
	const struct sg_table *table, int nmap, uint64_t need, struct peer_pieces *to)
{
	const char *why;
	uint64_t sum = 0;

	for (int i = 0; i < nmap; i++) {
		const struct scatterlist *s = &table->sgl[i];
		struct peer_piece p = {.address = s->dma_address, .length = s->dma_length};

		why = wrong_piece(&p);
		if (why)
			return why;
		if (peer_window_get(p.address, p.length, &p.window))
			return "an entry lies in a DMA window partly";
		sum += p.length;
		append(to, p);
	}
	return sum < need ? "the entries do not cover the range" : NULL;
}

static int add_flush(struct peer_pieces *p, struct peer_window *w)
{
	struct peer_window **more;

	for (unsigned i = 0; i < p->flushes; i++)
		if (p->flush[i] == w)
			return 0;
	more = realloc(p->flush, (p->flushes + 1) * sizeof(struct peer_window *));
	if (!more)
		return -ENOMEM;
	p->flush = more;
	p->flush[p->flushes++] = w;
	return 0;
}

static int list_flushes(struct peer_pieces *p)
{
	int rc = 0;

	for (unsigned i = 0; i < p->count && !rc; i++) {
		struct peer_window *w = p->piece[i].window;

		if (w && w->ops.flush)
			rc = add_flush(p, w);
	}
	return rc;
}

static bool all_anywhere(const struct peer_pieces *p)
{
	bool all = true;

	for (unsigned i = 0; i < p->count && all; i++)
		all = !p->piece[i].window || p->piece[i].window->flags & WEFT_DMA_ANY_THREAD;
	return all;
}

int peer_table_take(const struct sg_table *table, int nmap, uint64_t need, struct peer_pieces *out,
	const char **why)
{
	struct peer_pieces pieces = {.held = true};
	int rc;

	*why = wrong_table(table, nmap);
	if (*why)
		return -EINVAL;
	pieces.piece = calloc(nmap, sizeof *pieces.piece);
	if (!pieces.piece)
		return -ENOMEM;
	*why = copy(table, nmap, need, &pieces);
	rc = *why ? -EINVAL : list_flushes(&pieces);
	if (rc) {
		peer_pieces_let_go(&pieces);
		peer_pieces_free(&pieces);
		return rc;
	}
	pieces.anywhere = all_anywhere(&pieces);
	*out = pieces;
	return 0;
}

void peer_pieces_free(struct peer_pieces *p)
{
	free(p->piece);
	free(p->flush);
	*p = (struct peer_pieces){0};
}

void peer_pieces_let_go(struct peer_pieces *p)
{
	if (!p->held)
		return;
	p->held = false;
	for (unsigned i = 0; i < p->count; i++)
		peer_window_put(p->piece[i].window);
}

unsigned peer_piece_of(const struct peer_pieces *p, uint64_t off)
{
	unsigned lo = 0, hi = p->count - 1;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo + 1) / 2;

		if (p->piece[mid].begin <= off)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}
