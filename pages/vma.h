/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The areas of this process's address space, as the kernel tells of them: PROCMAP_QUERY (Linux
 * 6.11) where there is, else the text of /proc/self/maps.  Nothing here allocates memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE_BYTES = 4096, PROBE_LEAST = 3 * PAGE_BYTES };

struct vma {
	uint64_t start, end;
	uint64_t offset, inode; /* inode 0: anonymous */
	uint32_t dev_major, dev_minor;
	uint32_t page_size; /* 0: not known */
	bool readable, writable, executable, shared;
};

struct vma_walk {
	int fd;
	bool keep; /* it is for other walks too */
	bool text;
	uint64_t at; /* areas that end at or below it are passed over */
	size_t len, pos;
	char buf[8192];
};

/*
 * Begins at the first area that ends above at.  Negative errno: there is no /proc.  Keeps an fd
 * open behind it, where the kernel takes queries.
 */
int vma_walk_begin(struct vma_walk *w, uint64_t at);
/* The next area in *v: 0, -ENOENT there is none, another negative errno. */
int vma_walk_next(struct vma_walk *w, struct vma *v);
void vma_walk_end(struct vma_walk *w);

/*
 * What the kernel calls the area: the path of a file, "" if it has no name.  -ENAMETOOLONG; another
 * negative errno: v is not there any more.
 */
int vma_name(const struct vma *v, char *name, size_t size);

/* What only smaps tells of an area. */
struct vma_attr {
	uint64_t start, end;
	bool dont_fork, dont_dump, locked, huge, no_huge;
	bool special; /* a flag that conversion would lose: wipe on fork, sealed, a pkey ... */
	bool stack;   /* grows down */
	bool hugetlb;
	bool userfault; /* a userfaultfd watches it */
};

/*
 * Calls fn for each area that overlaps [start, end), in order, until it returns false.  Slow: the
 * kernel counts pages of every area up to there.  0 or a negative errno.
 */
int vma_attrs(
	uint64_t start, uint64_t end, bool (*fn)(const struct vma_attr *a, void *arg), void *arg);

/* Gives [start, end) the attributes of a, as far as the kernel allows. */
void vma_attr_apply(const struct vma_attr *a, uint64_t start, uint64_t end);
