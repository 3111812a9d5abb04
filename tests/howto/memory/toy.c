// SPDX-License-Identifier: BSD-3-Clause
#include "tests/howto/memory/toy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/mem/mr_owned.h"
#include "hca/obj/mr.h"
#include "hca/seg/seg_mr.h"
#include "verbs/objects.h"

void toy_put(struct toy *t, size_t off, const void *from, size_t n)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++)
		t->store[off + i] = ((const uint8_t *)from)[i] ^ TOY_MASK;
	pthread_mutex_unlock(&t->lock);
}

void toy_get(struct toy *t, size_t off, void *to, size_t n)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < n; i++)
		((uint8_t *)to)[i] = t->store[off + i] ^ TOY_MASK;
	pthread_mutex_unlock(&t->lock);
}

/* ---- the functions ---- */

static int toy_read(struct hca_mr *mr, uint64_t off, void *to, uint64_t n)
{
	struct toy *t = mr->of;

	atomic_fetch_add(&t->inside, 1);
	atomic_fetch_add(&t->calls, 1);
	toy_get(t, off, to, n);
	atomic_fetch_sub(&t->inside, 1);
	return atomic_load(&t->broken) ? -EIO : 0;
}

static int toy_write(struct hca_mr *mr, uint64_t off, const void *from, uint64_t n)
{
	struct toy *t = mr->of;

	if (atomic_load(&t->broken))
		return -EIO;
	atomic_fetch_add(&t->inside, 1);
	atomic_fetch_add(&t->calls, 1);
	toy_put(t, off, from, n);
	atomic_fetch_sub(&t->inside, 1);
	return 0;
}

static int toy_drop(struct hca_mr *mr)
{
	struct toy *t = mr->of;

	free(t->store);
	t->store = NULL;
	return 0;
}

static const struct mr_io toy_io = {.read = toy_read, .write = toy_write};
static const struct mr_kind toy_kind = {.flags = MR_OWNED, .io = &toy_io, .drop = toy_drop};

/* ---- registering ---- */

int toy_reg(struct toy *t, struct ibv_pd *pd, size_t len, uint64_t iova, int access)
{
	int rc;

	pthread_mutex_init(&t->lock, NULL);
	atomic_store(&t->broken, false);
	atomic_store(&t->calls, 0);
	atomic_store(&t->inside, 0);
	t->len = len;
	t->iova = iova;
	t->store = malloc(len ? len : 1);
	if (!t->store)
		return -ENOMEM;
	memset(t->store, TOY_MASK, len);
	rc = mr_add_owned(to_pd(pd)->hca, &toy_kind, t, len, iova, access, &t->mr);
	if (rc)
		free(t->store);
	else
		t->key = hca_mr_key(t->mr);
	return rc;
}

void toy_dereg(struct toy *t)
{
	hca_mr_dereg(t->mr);
}
