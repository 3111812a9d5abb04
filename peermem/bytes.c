// SPDX-License-Identifier: BSD-3-Clause
#include "peermem/bytes.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "pages/copy.h"
#include "peermem/region.h"
#include "peermem/window.h"

enum { CALL_BYTES = 1 << 20, MAX_ERRNO = 4095 };

/* A piece's bytes from some offset on: n of them, at a bus address. */
struct part {
	const struct peer_window *window;
	uint64_t at; /* address, or offset in the window */
	uint64_t n;
};

static struct part part_of(const struct peer_region *r, uint64_t off, uint64_t n)
{
	uint64_t at = off + (r->request.addr & (r->page_size - 1));
	const struct peer_piece *p = &r->pieces.piece[peer_piece_of(&r->pieces, at)];
	uint64_t in = at - p->begin, left = p->length - in;
	struct part part = {.window = p->window, .at = p->address + in, .n = n < left ? n : left};

	if (p->window) {
		part.at -= p->window->bus;
		part.n = part.n < CALL_BYTES ? part.n : CALL_BYTES;
	}
	return part;
}

static int checked(const struct peer_region *r, const char *in, int answer)
{
	if (answer <= 0 && answer >= -MAX_ERRNO) {
		if (answer)
			log_line(LOG_LVL_INFO, "peer client %s: %s answered %s",
				r->client->ops.name, in, strerror(-answer));
		return answer;
	}
	log_line(LOG_LVL_WARN, "peer client %s: %s answered %d, which is neither 0 nor an errno",
		r->client->ops.name, in, answer);
	return -EIO;
}

/* ---- one part ---- */

static int read_part(struct peer_region *r, const struct part *p, void *to)
{
	if (p->window)
		return checked(
			r, "copy_from", p->window->ops.copy_from(p->window->priv, p->at, to, p->n));
	copy_ordered(to, (const void *)(uintptr_t)p->at, p->n);
	return 0;
}

static int write_part(struct peer_region *r, const struct part *p, const void *from)
{
	if (p->window)
		return checked(
			r, "copy_to", p->window->ops.copy_to(p->window->priv, p->at, from, p->n));
	copy_ordered((void *)(uintptr_t)p->at, from, p->n);
	return 0;
}

/* ---- many: inside the region ---- */

/* If that is gone the caller looks at nothing of it any more. */
static int after_call(struct peer_region *r, int rc)
{
	return rc || !peer_region_is_gone(r) ? rc : -ENOENT;
}

static int read_parts(struct peer_region *r, uint64_t off, void *to, uint64_t n)
{
	int rc = 0;

	for (uint64_t done = 0; done < n && !rc;) {
		const struct part p = part_of(r, off + done, n - done);

		rc = after_call(r, read_part(r, &p, (char *)to + done));
		done += p.n;
	}
	return rc;
}

static int write_parts(struct peer_region *r, uint64_t off, const void *from, uint64_t n)
{
	int rc = 0;

	for (uint64_t done = 0; done < n && !rc;) {
		const struct part p = part_of(r, off + done, n - done);

		rc = after_call(r, write_part(r, &p, (const char *)from + done));
		done += p.n;
	}
	return rc;
}

static int flush_windows(struct peer_region *r)
{
	int rc = 0;

	for (unsigned i = 0; i < r->pieces.flushes && !rc; i++) {
		const struct peer_window *w = r->pieces.flush[i];

		rc = after_call(r, checked(r, "flush", w->ops.flush(w->priv)));
	}
	return rc;
}

static uint64_t update_word(_Atomic uint64_t *word, bool add, uint64_t a, uint64_t b)
{
	uint64_t old = a;

	if (add)
		return atomic_fetch_add_explicit(word, a, memory_order_seq_cst);
	atomic_compare_exchange_strong_explicit(
		word, &old, b, memory_order_seq_cst, memory_order_seq_cst);
	return old;
}

static int update_by_copies(struct peer_region *r, struct peer_guest *g, uint64_t off, bool add,
	uint64_t a, uint64_t b, uint64_t *old)
{
	uint64_t after;
	int rc;

	peer_region_goes_into(r, g, "copy_from");
	rc = read_parts(r, off, old, sizeof *old);
	after = add ? *old + a : b;
	if (rc || (!add && *old != a))
		return rc;
	peer_region_goes_into(r, g, "copy_to");
	return write_parts(r, off, &after, sizeof after);
}

static int update(struct peer_region *r, struct peer_guest *g, uint64_t off, bool add, uint64_t a,
	uint64_t b, uint64_t *old)
{
	const struct part p = part_of(r, off, sizeof *old);
	const struct weft_dma_ops *ops = p.window ? &p.window->ops : NULL;
	int rc;

	/* (The address that requests name is aligned; the memory need not be.) */
	if (p.n < sizeof *old || p.at % sizeof *old || (ops && !ops->atomic64))
		return update_by_copies(r, g, off, add, a, b, old);
	if (!ops) {
		*old = update_word((_Atomic uint64_t *)(uintptr_t)p.at, add, a, b);
		return 0;
	}
	rc = ops->atomic64(
		p.window->priv, p.at, add ? WEFT_DMA_FETCH_ADD : WEFT_DMA_CMP_SWAP, a, b, old);
	return after_call(r, checked(r, "atomic64", rc));
}

/* ---- calls ---- */

int peer_bytes_read(struct peer_region *r, uint64_t off, void *to, uint64_t n)
{
	struct peer_guest g;
	int rc;

	if (!peer_region_enter(r, &g, "copy_from"))
		return -ENOENT;
	rc = read_parts(r, off, to, n);
	peer_region_leave(r, &g);
	return rc;
}

int peer_bytes_write(struct peer_region *r, uint64_t off, const void *from, uint64_t n)
{
	struct peer_guest g;
	int rc;

	if (!peer_region_enter(r, &g, "copy_to"))
		return -ENOENT;
	rc = write_parts(r, off, from, n);
	peer_region_leave(r, &g);
	return rc;
}

int peer_bytes_flush(struct peer_region *r)
{
	struct peer_guest g;
	int rc;

	if (!r->pieces.flushes)
		return 0;
	if (!peer_region_enter(r, &g, "flush"))
		return -ENOENT;
	rc = flush_windows(r);
	peer_region_leave(r, &g);
	return rc;
}

int peer_bytes_update(
	struct peer_region *r, uint64_t off, bool add, uint64_t a, uint64_t b, uint64_t *old)
{
	struct peer_guest g;
	int rc;

	if (!peer_region_enter(r, &g, "atomic64"))
		return -ENOENT;
	rc = update(r, &g, off, add, a, b, old);
	if (!rc && r->pieces.flushes) {
		peer_region_goes_into(r, &g, "flush");
		rc = flush_windows(r);
	}
	peer_region_leave(r, &g);
	return rc;
}
