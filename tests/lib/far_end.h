/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A far end: another process of a test, which obeys orders one after the other and answers each.
 * What they are is the test's; both are structs, or a word each.
 */
#pragma once

#include "tests/lib/verbs_pair.h"

enum { FAR_MAX = 128 };

struct far_kind {
	size_t order, answer; /* bytes of each, at most FAR_MAX */
	/* In the far end: makes what it works on, `self` of the others; fd is the socket to us. */
	void *(*begin)(int fd, void *arg);
	/* Does one.  *answer is zeros; it goes when this returns, after what this says itself. */
	void (*obey)(void *self, int fd, const void *order, void *answer);
	/* Nobody is there any more to hear that answer; NULL: whatever it is. */
	void (*unheard)(void *self, const void *answer);
	/* The last one, also if nobody is there any more; NULL: nothing to do. */
	void (*end)(void *self);
};

/* Starts one; as vp_fork(). */
struct vp_child far_start(const struct far_kind *kind, void *arg);

/* Gives an order, and takes the answer of the first one that was not taken; or both. */
void far_tell(const struct vp_child *c, const struct far_kind *kind, const void *order);
void far_hear(const struct vp_child *c, const struct far_kind *kind, void *answer);
void far_ask(
	const struct vp_child *c, const struct far_kind *kind, const void *order, void *answer);

/* Of a kind whose orders and answers are a word each. */
static inline uint64_t far_ask_word(
	const struct vp_child *c, const struct far_kind *kind, uint64_t order)
{
	uint64_t answer;

	far_ask(c, kind, &order, &answer);
	return answer;
}

/* Waits until it has obeyed all, and for its end; counts its failures. */
void far_end(struct vp_child *c);
