/* SPDX-License-Identifier: BSD-3-Clause */
/* References. */
#pragma once

#include <linux/atomic.h>

struct kref {
	atomic_t refcount;
};

static inline void kref_init(struct kref *k)
{
	atomic_set(&k->refcount, 1);
}

static inline void kref_get(struct kref *k)
{
	atomic_inc(&k->refcount);
}

/* 1: that was the last one, and release was called. */
static inline int kref_put(struct kref *k, void (*release)(struct kref *k))
{
	if (!atomic_dec_and_test(&k->refcount))
		return 0;
	release(k);
	return 1;
}
