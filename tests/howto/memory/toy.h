/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kind of memory whose bytes only functions reach: docs/howto/new-kind-of-memory.md explains each
 * step.  Its bytes lie in a store, each xor TOY_MASK, so that nobody finds them who does not ask.
 */
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_mr;

enum { TOY_MASK = 0xa5 };

struct toy {
	struct hca_mr *mr;
	uint32_t key;  /* lkey and rkey */
	uint64_t iova; /* where work requests find the first byte */
	uint8_t *store;
	size_t len;
	pthread_mutex_t lock; /* of the bytes */
	atomic_bool broken;   /* the functions fail */
	atomic_uint inside;   /* functions that run just now */
	atomic_uint calls;
};

/* Registers len zero bytes at iova.  0 or a negative errno, as mr_add_owned(). */
int toy_reg(struct toy *t, struct ibv_pd *pd, size_t len, uint64_t iova, int access);

/* As ibv_dereg_mr(), and the bytes are gone. */
void toy_dereg(struct toy *t);

/* The program's own look at the bytes. */
void toy_put(struct toy *t, size_t off, const void *from, size_t n);
void toy_get(struct toy *t, size_t off, void *to, size_t n);
