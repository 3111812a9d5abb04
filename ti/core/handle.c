// SPDX-License-Identifier: BSD-3-Clause
#include "ti/core/handle.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/lock.h"
#include "ti/core/fork.h"

/*
 * A handle is index + 1, kind and generation.  A slot's word is generation and references; its
 * table has one of those while the handle is open.  The generation moves when the handle is closed,
 * and the slot is used anew when its references are gone.
 */
enum {
	CHUNK_LOG = 8,
	CHUNK = 1 << CHUNK_LOG,
	CHUNKS = 4096,
	INDEX_BITS = sizeof(uintptr_t) == 8 ? 24 : 16,
	KIND_BITS = 4,
	GEN_SHIFT = INDEX_BITS + KIND_BITS,
};

struct slot {
	_Atomic uint64_t word; /* generation << 32 | references */
	_Atomic uint32_t kind;
	uint32_t next_free; /* index + 1 */
	struct object *object;
	struct lock lock; /* of the object: here, since this memory is never freed */
};

static struct {
	struct lock lock;
	uint32_t count, free; /* slots made; the first free one + 1 */
	_Atomic(struct slot *) chunks[CHUNKS];
} table;

static const uintptr_t INDEX_MASK = ((uintptr_t)1 << INDEX_BITS) - 1;
static const uintptr_t GEN_MASK = UINTPTR_MAX >> GEN_SHIFT;

static struct slot *slot_at(uint32_t index)
{
	struct slot *chunk = NULL;

	if (index >> CHUNK_LOG < CHUNKS)
		chunk = atomic_load_explicit(
			&table.chunks[index >> CHUNK_LOG], memory_order_acquire);
	return chunk ? &chunk[index & (CHUNK - 1)] : NULL;
}

static uint32_t generation(uint64_t word)
{
	return word >> 32 & GEN_MASK;
}

static uint32_t references(uint64_t word)
{
	return (uint32_t)word;
}

/* Makes one more slot.  Under the lock. */
static int grow(uint32_t *index)
{
	uint32_t n = table.count >> CHUNK_LOG;
	struct slot *chunk;

	if (n >= CHUNKS || table.count >= INDEX_MASK)
		return -ENFILE;
	if (!slot_at(table.count)) {
		chunk = calloc(CHUNK, sizeof *chunk);
		if (!chunk)
			return -ENOMEM;
		atomic_store_explicit(&table.chunks[n], chunk, memory_order_release);
	}
	*index = table.count++;
	return 0;
}

static int take_slot(uint32_t *index)
{
	int ret = 0;

	lock_take(&table.lock);
	if (table.free) {
		*index = table.free - 1;
		table.free = slot_at(*index)->next_free;
	} else {
		ret = grow(index);
	}
	lock_drop(&table.lock);
	return ret;
}

int object_open(struct object *o, enum handle_kind kind, void (*release)(struct object *o))
{
	struct slot *s;
	uint32_t index;
	uint64_t word;
	int ret = take_slot(&index);

	if (ret)
		return ret;
	s = slot_at(index);
	word = atomic_load_explicit(&s->word, memory_order_relaxed);
	o->index = index;
	o->forks = fork_count();
	o->release = release;
	o->handle = (void *)((uintptr_t)generation(word) << GEN_SHIFT |
			     (uintptr_t)kind << INDEX_BITS | (index + 1));
	s->object = o;
	atomic_store_explicit(&s->kind, kind, memory_order_relaxed);
	atomic_store_explicit(&s->word, word + 1, memory_order_release);
	return 0;
}

/* The slot that a handle of that kind would have; NULL: none. */
static struct slot *slot_of(const void *handle, enum handle_kind kind)
{
	uintptr_t h = (uintptr_t)handle;

	if ((h >> INDEX_BITS & ((1 << KIND_BITS) - 1)) != kind || !(h & INDEX_MASK))
		return NULL;
	return slot_at((h & INDEX_MASK) - 1);
}

/* Does the slot have what the handle names?  word is the slot's. */
static bool names(const void *handle, enum handle_kind kind, struct slot *s, uint64_t word)
{
	return generation(word) == (uintptr_t)handle >> GEN_SHIFT && references(word) &&
	       atomic_load_explicit(&s->kind, memory_order_relaxed) == kind;
}

void *object_get(const void *handle, enum handle_kind kind)
{
	struct slot *s = slot_of(handle, kind);
	uint64_t word;

	if (!s)
		return NULL;
	word = atomic_load_explicit(&s->word, memory_order_relaxed);
	do {
		if (!names(handle, kind, s, word))
			return NULL;
	} while (!atomic_compare_exchange_weak_explicit(
		&s->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	return s->object;
}

void *object_lock(const void *handle, enum handle_kind kind)
{
	struct slot *s = slot_of(handle, kind);

	if (!s)
		return NULL;
	lock_take(&s->lock);
	if (names(handle, kind, s, atomic_load_explicit(&s->word, memory_order_acquire)))
		return s->object;
	lock_drop(&s->lock);
	return NULL;
}

void object_relock(struct object *o)
{
	lock_take(&slot_at(o->index)->lock);
}

void object_unlock(struct object *o)
{
	if (o->forks == fork_count())
		lock_drop(&slot_at(o->index)->lock);
}

bool object_is_open(const struct object *o)
{
	uint64_t word = atomic_load_explicit(&slot_at(o->index)->word, memory_order_acquire);

	return generation(word) == (uintptr_t)o->handle >> GEN_SHIFT;
}

void object_hold(struct object *o)
{
	atomic_fetch_add_explicit(&slot_at(o->index)->word, 1, memory_order_relaxed);
}

static void free_slot(struct slot *s, uint32_t index)
{
	s->object = NULL;
	lock_take(&table.lock);
	s->next_free = table.free;
	table.free = index + 1;
	lock_drop(&table.lock);
}

void object_put(struct object *o)
{
	uint32_t index = o->index;
	struct slot *s = slot_at(index);

	if (o->forks != fork_count())
		return;
	if (references(atomic_fetch_sub_explicit(&s->word, 1, memory_order_acq_rel)) > 1)
		return;
	o->release(o);
	free_slot(s, index);
}

bool object_close(struct object *o)
{
	struct slot *s = slot_at(o->index);
	bool closed;

	lock_take(&s->lock);
	closed = object_close_locked(o);
	lock_drop(&s->lock);
	return closed;
}

bool object_close_locked(struct object *o)
{
	struct slot *s = slot_at(o->index);
	uint64_t word = atomic_load_explicit(&s->word, memory_order_relaxed);
	uint32_t gen = (uintptr_t)o->handle >> GEN_SHIFT;

	do {
		if (generation(word) != gen)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&s->word, &word, word + (1ull << 32), memory_order_acq_rel, memory_order_relaxed));
	return true;
}

void handles_forked(void)
{
	table.lock = (struct lock){0};
	table.free = 0;
	for (uint32_t i = 0; i < table.count; i++) {
		struct slot *s = slot_at(i);
		uint64_t word = atomic_load_explicit(&s->word, memory_order_relaxed);

		atomic_store_explicit(&s->word, ((word >> 32) + 1) << 32, memory_order_relaxed);
		s->object = NULL;
		s->lock = (struct lock){0};
		s->next_free = table.free;
		table.free = i + 1;
	}
}
