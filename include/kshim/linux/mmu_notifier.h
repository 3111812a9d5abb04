/* SPDX-License-Identifier: BSD-3-Clause */
/* Being told that addresses of this process lose their memory: when the device "vma" frees some. */
#pragma once

#include <linux/mm.h>
#include <linux/types.h>

struct mmu_notifier_range {
	struct mm_struct *mm;
	unsigned long start, end;
};

/* Those that are not NULL are called, in this order. */
struct mmu_notifier_ops {
	int (*invalidate_range_start)(
		struct mmu_notifier *n, const struct mmu_notifier_range *range);
	void (*invalidate_range)(struct mmu_notifier *n, struct mm_struct *mm, unsigned long start,
		unsigned long end);
	void (*invalidate_page)(
		struct mmu_notifier *n, struct mm_struct *mm, unsigned long address);
	void (*invalidate_range_end)(
		struct mmu_notifier *n, const struct mmu_notifier_range *range);
	void (*release)(struct mmu_notifier *n, struct mm_struct *mm);
};

struct mmu_notifier {
	const struct mmu_notifier_ops *ops;
	struct mmu_notifier *next; /* the shim's */
};

/* From now on n is told; 0 or -errno.  After the second nobody is inside its functions. */
int mmu_notifier_register(struct mmu_notifier *n, struct mm_struct *mm);
void mmu_notifier_unregister(struct mmu_notifier *n, struct mm_struct *mm);
