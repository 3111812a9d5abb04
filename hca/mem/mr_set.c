// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/mr_set.h"

#include "hca/obj/mr.h"

static void update(struct hca_mr *n)
{
	n->top = n->hi;
	if (n->left && n->left->top > n->top)
		n->top = n->left->top;
	if (n->right && n->right->top > n->top)
		n->top = n->right->top;
}

/* A total order: by beginning, then by identity. */
static bool before(const struct hca_mr *a, const struct hca_mr *b)
{
	return a->lo != b->lo ? a->lo < b->lo : (uintptr_t)a < (uintptr_t)b;
}

/* Splits n into what lies before key and the rest. */
static void split(
	struct hca_mr *n, const struct hca_mr *key, struct hca_mr **low, struct hca_mr **high)
{
	if (!n) {
		*low = *high = NULL;
	} else if (before(n, key)) {
		split(n->right, key, &n->right, high);
		*low = n;
		update(n);
	} else {
		split(n->left, key, low, &n->left);
		*high = n;
		update(n);
	}
}

static struct hca_mr *merge(struct hca_mr *a, struct hca_mr *b)
{
	struct hca_mr *top = !b || (a && a->prio > b->prio) ? a : b;

	if (!a || !b)
		return top;
	if (top == a)
		a->right = merge(a->right, b);
	else
		b->left = merge(a, b->left);
	update(top);
	return top;
}

static struct hca_mr *insert(struct hca_mr *n, struct hca_mr *mr)
{
	if (!n || mr->prio > n->prio) {
		split(n, mr, &mr->left, &mr->right);
		n = mr;
	} else if (before(mr, n)) {
		n->left = insert(n->left, mr);
	} else {
		n->right = insert(n->right, mr);
	}
	update(n);
	return n;
}

static struct hca_mr *remove_from(struct hca_mr *n, const struct hca_mr *mr)
{
	if (!n)
		return NULL;
	if (n == mr)
		return merge(n->left, n->right);
	if (before(mr, n))
		n->left = remove_from(n->left, mr);
	else
		n->right = remove_from(n->right, mr);
	update(n);
	return n;
}

void mr_set_add(struct mr_set *s, struct hca_mr *mr)
{
	/* xorshift: what order regions come in must not decide the depth. */
	s->seed = s->seed ? s->seed : 0x9e3779b9;
	s->seed ^= s->seed << 13;
	s->seed ^= s->seed >> 17;
	s->seed ^= s->seed << 5;
	mr->prio = s->seed;
	mr->left = mr->right = NULL;
	s->root = insert(s->root, mr);
}

void mr_set_del(struct mr_set *s, struct hca_mr *mr)
{
	s->root = remove_from(s->root, mr);
}

static bool each(struct hca_mr *n, uint64_t lo, uint64_t hi,
	bool (*fn)(struct hca_mr *mr, void *arg), void *arg)
{
	if (!n || n->top <= lo)
		return true;
	if (!each(n->left, lo, hi, fn, arg))
		return false;
	if (n->lo >= hi)
		return true;
	if (n->hi > lo && !fn(n, arg))
		return false;
	return each(n->right, lo, hi, fn, arg);
}

void mr_set_each(const struct mr_set *s, uint64_t lo, uint64_t hi,
	bool (*fn)(struct hca_mr *mr, void *arg), void *arg)
{
	each(s->root, lo, hi, fn, arg);
}
