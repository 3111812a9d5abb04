// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/heap.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/at_open.h"
#include "base/lock.h"
#include "base/sparse.h"

enum { MIN_LOG = 8, MAX_LOG = 33, PAGE_LOG = 12 };

/* A freed block, remembered outside the segment: freed pages are gone. */
struct freed {
	struct freed *next;
	uint64_t off;
};

static struct {
	struct lock lock;
	struct seg *seg;
	uint64_t top;
	struct freed *classes[MAX_LOG + 1];
} heap AT_OPEN_DATA;

static unsigned class_of(uint64_t size)
{
	unsigned log = MIN_LOG;

	while ((1ull << log) < size)
		log++;
	return log;
}

AT_OPEN void heap_reset(struct seg *seg)
{
	for (unsigned log = 0; log <= MAX_LOG; log++) {
		while (heap.classes[log]) {
			struct freed *f = heap.classes[log];

			heap.classes[log] = f->next;
			free(f);
		}
	}
	heap.seg = seg;
	heap.top = offsetof(struct seg, heap);
}

void heap_forked_child(void)
{
	/* A list that another thread was just changing is not touched any more. */
	if (atomic_load_explicit(&heap.lock.word, memory_order_relaxed))
		memset(heap.classes, 0, sizeof heap.classes);
	atomic_store_explicit(&heap.lock.word, 0, memory_order_relaxed);
}

static int take_fresh(unsigned log, uint64_t *off)
{
	uint64_t align = 1ull << (log > PAGE_LOG ? PAGE_LOG : log);
	uint64_t at = (heap.top + align - 1) & ~(align - 1);

	if (at + (1ull << log) > SEG_SIZE)
		return -ENOMEM;
	heap.top = at + (1ull << log);
	*off = at;
	return 0;
}

int heap_alloc(uint64_t size, uint64_t *off)
{
	unsigned log = class_of(size);
	struct freed *f;
	int rc = 0;

	if (log > MAX_LOG)
		return -ENOMEM;
	lock_take(&heap.lock);
	f = heap.classes[log];
	if (f) {
		heap.classes[log] = f->next;
		*off = f->off;
	} else {
		rc = take_fresh(log, off);
	}
	lock_drop(&heap.lock);
	free(f);
	return rc;
}

void heap_free(uint64_t off, uint64_t size)
{
	unsigned log = class_of(size);
	struct freed *f;

	if (!off)
		return;
	if (log >= PAGE_LOG)
		sparse_empty((char *)heap.seg + off, 1ull << log);
	else
		memset((char *)heap.seg + off, 0, 1ull << log);
	f = malloc(sizeof *f);
	if (!f)
		return; /* the space is lost until detach; its memory is not */
	f->off = off;
	lock_take(&heap.lock);
	f->next = heap.classes[log];
	heap.classes[log] = f;
	lock_drop(&heap.lock);
}
