// SPDX-License-Identifier: BSD-3-Clause
#include "hca/proc/member.h"

#include <errno.h>
#include <string.h>

#include "base/lock.h"
#include "hca/proc/proc.h"

enum { KIND_SHIFT = 28, ID_MASK = (1 << KIND_SHIFT) - 1 };

static struct lock list_lock;

void member_forked_child(void)
{
	atomic_store_explicit(&list_lock.word, 0, memory_order_relaxed);
}

static uint32_t word_of(enum seg_member_kind kind, uint32_t id)
{
	return (uint32_t)kind << KIND_SHIFT | (id & ID_MASK);
}

/* Does entry i hold that word under that key?  The key is written before the word. */
static bool holds(const struct seg *seg, uint32_t i, uint32_t word, const uint8_t key[16])
{
	const struct seg_member *m = &seg->member[i];

	return atomic_load_explicit(&m->id, memory_order_acquire) == word &&
	       !memcmp(m->key, key, sizeof m->key) &&
	       atomic_load_explicit(&m->id, memory_order_acquire) == word;
}

static int64_t find(const struct seg *seg, uint32_t word, const uint8_t key[16])
{
	for (uint32_t i = 0; i < seg_members_used(seg); i++)
		if (holds(seg, i, word, key))
			return i;
	return -1;
}

int64_t member_find(enum seg_member_kind kind, uint32_t id, const uint8_t key[16])
{
	return find(proc_seg(), word_of(kind, id), key);
}

uint32_t member_count(enum seg_member_kind kind, uint32_t id)
{
	const struct seg *seg = proc_seg();
	uint32_t n = 0;

	for (uint32_t i = 0; i < seg_members_used(seg); i++)
		n += atomic_load_explicit(&seg->member[i].id, memory_order_relaxed) ==
		     word_of(kind, id);
	return n;
}

static int enter(uint32_t word, const uint8_t key[16], uint32_t *index)
{
	struct seg *seg = proc_seg();
	uint32_t i = 0;

	while (i < SEG_MEMBERS && atomic_load_explicit(&seg->member[i].id, memory_order_relaxed))
		i++;
	if (i == SEG_MEMBERS)
		return -ENOSPC;
	memcpy(seg->member[i].key, key, sizeof seg->member[i].key);
	atomic_store_explicit(&seg->member[i].id, word, memory_order_release);
	if (seg_members_used(seg) < i + 1)
		atomic_store_explicit(&seg->hdr.members_used, i + 1, memory_order_release);
	*index = i;
	return 0;
}

int member_add(enum seg_member_kind kind, uint32_t id, const uint8_t key[16], uint32_t *index)
{
	int rc;

	lock_take(&list_lock);
	rc = enter(word_of(kind, id), key, index);
	lock_drop(&list_lock);
	if (rc)
		return rc;
	rc = rdv_publish_member(*index);
	if (rc)
		member_del(*index);
	return rc;
}

void member_del(uint32_t index)
{
	atomic_store_explicit(&proc_seg()->member[index].id, 0, memory_order_release);
	rdv_publish_member(index);
}

static uint32_t next_in(
	const struct seg *seg, enum seg_member_kind kind, const uint8_t key[16], uint32_t *at)
{
	while (*at < seg_members_used(seg)) {
		uint32_t i = (*at)++;
		uint32_t word = atomic_load_explicit(&seg->member[i].id, memory_order_acquire);

		if (word >> KIND_SHIFT == (uint32_t)kind && holds(seg, i, word, key))
			return word & ID_MASK;
	}
	return 0;
}

uint32_t member_next(enum seg_member_kind kind, const uint8_t key[16], uint32_t *at)
{
	return next_in(proc_at()->hub, kind, key, at);
}

uint32_t member_next_own(enum seg_member_kind kind, const uint8_t key[16], uint32_t *at)
{
	return next_in(proc_seg(), kind, key, at);
}
