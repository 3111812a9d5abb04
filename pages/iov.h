/* SPDX-License-Identifier: BSD-3-Clause */
/* Scatter/gather lists as the movers take them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

enum { SGL_MAX = 33 }; /* 32 SGEs, one split for the last bytes */

/* Pieces of one process's memory, with a cursor. */
struct sgl {
	struct iovec v[SGL_MAX];
	unsigned n;    /* pieces in use */
	unsigned at;   /* first piece not yet consumed */
	uint64_t left; /* bytes not yet consumed */
};

static inline void sgl_reset(struct sgl *l)
{
	l->n = 0;
	l->at = 0;
	l->left = 0;
}

/* Appends a piece; empty ones vanish.  The caller keeps to 32 pieces. */
static inline void sgl_add(struct sgl *l, uint64_t addr, uint64_t len)
{
	if (!len)
		return;
	l->v[l->n].iov_base = (void *)(uintptr_t)addr;
	l->v[l->n].iov_len = len;
	l->n++;
	l->left += len;
}

/* Moves the cursor on by len bytes, at most what is left. */
static inline void sgl_consume(struct sgl *l, uint64_t len)
{
	l->left -= len;
	while (len) {
		struct iovec *v = &l->v[l->at];
		uint64_t step = len < v->iov_len ? len : v->iov_len;

		v->iov_base = (char *)v->iov_base + step;
		v->iov_len -= step;
		len -= step;
		if (!v->iov_len)
			l->at++;
	}
}

/* All that is left is one piece. */
static inline bool sgl_is_one(const struct sgl *l)
{
	return l->n - l->at == 1;
}

/* Takes that piece: where it is.  Nothing is left. */
static inline void *sgl_take_one(struct sgl *l)
{
	l->left = 0;
	return l->v[l->at++].iov_base;
}

/* Copies the first len bytes, at most what is left, as a list; *to begins anew. */
static inline void sgl_head(const struct sgl *l, uint64_t len, struct sgl *to)
{
	sgl_reset(to);
	for (unsigned i = l->at; i < l->n && len; i++) {
		uint64_t step = len < l->v[i].iov_len ? len : l->v[i].iov_len;

		sgl_add(to, (uintptr_t)l->v[i].iov_base, step);
		len -= step;
	}
}

/* Copies from a list of this process into a flat buffer; consumes nothing. */
static inline void sgl_gather(const struct sgl *l, uint8_t *to)
{
	for (unsigned i = l->at; i < l->n; i++) {
		memcpy(to, l->v[i].iov_base, l->v[i].iov_len);
		to += l->v[i].iov_len;
	}
}

/* Copies a flat buffer into a list of this process, as far as both reach. */
static inline void sgl_scatter(const struct sgl *l, const uint8_t *from, uint64_t len)
{
	for (unsigned i = l->at; i < l->n && len; i++) {
		uint64_t step = len < l->v[i].iov_len ? len : l->v[i].iov_len;

		memcpy(l->v[i].iov_base, from, step);
		from += step;
		len -= step;
	}
}
