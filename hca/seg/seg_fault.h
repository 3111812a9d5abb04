/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults to inject into the RoCE packets of a process (weft-fault(1)): what weftd wants, and what
 * its owner did.  A change of this file is a change of SEG_VERSION.
 *
 * weftd writes the text while `word` is 0.  Who copies it looks at `word` before and after.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/atomic.h"

enum { SEG_FAULT_TEXT = 480, SEG_FAULT_RULES = 16 };

struct seg_fault_count {
	_Atomic uint64_t seen; /* packets that the rule is for */
	_Atomic uint64_t done; /* ... to which it did something */
};

struct seg_faults {
	/* weftd */
	_Alignas(
		CACHE_LINE) _Atomic uint32_t word; /* 0: no rules; else another one for each text */
	uint32_t last;                             /* counts texts, empty ones too; 0: none yet */
	uint32_t of_all;                           /* 1: it is that of all processes */
	char text[SEG_FAULT_TEXT];                 /* as roce/fault/rules.h reads it, with a NUL */

	/* the owner */
	_Alignas(CACHE_LINE) _Atomic uint32_t taken; /* the word that count[] is about */
	struct seg_fault_count count[SEG_FAULT_RULES];
};

/* For weftd: other rules, or with an empty text none. */
static inline void seg_fault_write(struct seg_faults *f, const char *text, uint32_t of_all)
{
	size_t len = strnlen(text, sizeof f->text - 1);

	atomic_store_explicit(&f->word, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(f->text, text, len);
	f->text[len] = '\0';
	f->of_all = of_all;
	f->last += f->last == UINT32_MAX ? 2 : 1;
	if (len)
		atomic_store_explicit(&f->word, f->last, memory_order_release);
}

/* Copies the text of that word; false: it is another one by now, try again later. */
static inline bool seg_fault_read(
	const struct seg_faults *f, uint32_t word, char text[SEG_FAULT_TEXT])
{
	memcpy(text, f->text, SEG_FAULT_TEXT);
	text[SEG_FAULT_TEXT - 1] = '\0';
	atomic_thread_fence(memory_order_acquire);
	return word && atomic_load_explicit(&f->word, memory_order_relaxed) == word;
}
