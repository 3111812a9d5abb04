/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocator in place of the C library's, for a program whose allocations are to fail: included
 * by its one source file.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static _Thread_local int left = -1; /* allocations of this thread until one fails; -1: none does */
static _Thread_local bool failed;
static bool (*refuses)(size_t n); /* what calloc() refuses besides; NULL: nothing */

static bool fails(void)
{
	if (left < 0 || left-- > 0)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

__attribute__((visibility("default"))) void *malloc(size_t n)
{
	return fails() ? NULL : __libc_malloc(n);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
	return (refuses && refuses(n * size)) || fails() ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
	return fails() ? NULL : __libc_realloc(p, n);
}
