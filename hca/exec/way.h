/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways in which memory that a request touches is reached.  Which one it is follows from whose
 * memory it is, how this process reaches that one, and what its region is: it is chosen once, when
 * the memory has been resolved, in hca/exec/way_table.c, and nothing else asks for it.
 */
#pragma once

#include "hca/exec/work.h"
#include "pages/durable.h"
#include "pages/mover.h"

struct way {
	bool here;    /* the list is of addresses of this process */
	bool shared;  /* ... in memory of another, who may be dead */
	uint8_t rank; /* of a transfer's two ends, that of the higher rank carries the bytes */

	/* Moves all of src to dst, one of which is reached so; as carry(). */
	enum move_result (*move)(
		struct work *w, struct payload *src, struct payload *dst, const struct held *held);
	/* w's atomic on the word target, the last that held allows; *before: its old value. */
	enum move_result (*update)(
		struct work *w, struct payload *target, const struct held *held, uint64_t *before);
	/* Writes that word, all of it at once. */
	enum move_result (*store)(
		struct work *w, struct payload *target, const struct held *held, uint64_t word);
	/* Makes range durable, as persist_range().  NULL: as the way beneath. */
	enum move_result (*persist)(struct work *w, struct payload *range, const struct held *held,
		enum durability kind);
	/* Must another thread do it, because of p, reached so?  NULL: none must. */
	bool (*later)(struct work *w, const struct payload *p, const struct held *held);
	/* w, a READ or FLUSH of it, was carried out.  NULL: nobody wants to know. */
	void (*pushed)(struct work *w);
};

/* Memory of this process. */
extern const struct way way_here;
/* Of another one, mapped: in its arena, or in an object of its own. */
extern const struct way way_mapped;
/* Of another one, by a system call; by its agent. */
extern const struct way way_cma, way_agent;
/* Of this process, or of another one, where functions of its owner alone reach the bytes. */
extern const struct way way_functions, way_owner;
/* Of a process under the power-failure simulator: by one of those above, with a record of it. */
extern const struct way way_journaled;

/* A word or a buffer of the executor's own. */
static inline void payload_of_bytes(struct payload *p, void *bytes, uint64_t len)
{
	p->way = &way_here;
	p->held_at = 0;
	sgl_reset(&p->l);
	sgl_add(&p->l, (uintptr_t)bytes, len);
}

/*
 * The first len bytes of *p, or what is left of it; without a copy of its whole list.  A piece is a
 * region there: not for way_mapped, which cuts them.
 */
static inline void payload_head(const struct payload *p, uint64_t len, struct payload *to)
{
	to->held_at = p->held_at + p->l.at; /* its first piece's region */
	to->way = p->way;
	to->under = p->under;
	to->at = p->at;
	sgl_head(&p->l, len, &to->l);
}

/* No memory yet; that which will be added is resolved as held->mr[held->n] and on. */
static inline void payload_begin(struct payload *p, const struct held *held)
{
	p->held_at = held->n;
	sgl_reset(&p->l);
}

/* The way in which the memory itself is reached. */
static inline const struct way *way_beneath(const struct payload *p)
{
	return p->way == &way_journaled ? p->under : p->way;
}

/* Must another thread carry w out, because of that memory?  Asked before anything is done. */
static inline bool way_is_later(struct work *w, const struct payload *p, const struct held *held)
{
	const struct way *way = way_beneath(p);

	return way->later && way->later(w, p, held);
}

/* Is what happens at w's responder to be noted?  By a word that every request reads. */
static inline bool way_is_journaled(const struct work *w)
{
	return __builtin_expect(w->resp->qp->access & QPA_JOURNALED, 0);
}
