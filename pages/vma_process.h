/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of this process as a whole, before memory of it is converted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Its threads, and how many kB of it are pinned by io_uring and the like, or mlocked. */
struct vma_process {
	uint64_t threads, pinned_kb, locked_kb;
};

/* 0, or a negative errno: not known.  Keeps an fd open behind it.  Does not block. */
int vma_process(struct vma_process *p);

/* Is the calling thread the only one of this process?  False if that is not known. */
bool vma_alone(void);
