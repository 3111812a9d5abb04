/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings that are far larger than what is in use of them. */
#pragma once

#include <stddef.h>

/*
 * The mmap(2) protection of a sparse mapping that is read and written.  Under valgrind it is
 * PROT_WRITE alone, with which x86-64 and arm64 allow reads too: memcheck looks for pointers in all
 * that is PROT_READ and PROT_WRITE, and each page of a memfd that is read comes into being.
 */
int sparse_prot(void);

/*
 * Gives the memory of the shared, writable pages [p, p+len) back; they read as zeros from then on,
 * also where the kernel keeps them because they are locked (mlockall).  Leaves errno as it is.
 */
void sparse_empty(void *p, size_t len);
