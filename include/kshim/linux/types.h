/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Headers of the Linux kernel's names, for peer clients that are compiled as plug-ins of a program:
 * docs/peercheck.md.  Types and limits, and what the kernel's own header says to programs.
 */
#pragma once

#include_next <linux/types.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What <rdma/peer_mem.h> would define for programs without kernel headers. */
#define PEER_MEM_KERNEL_TYPES

typedef uint8_t u8;
typedef uint16_t u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int s32;
typedef long long s64;
typedef u64 dma_addr_t;
typedef u64 phys_addr_t;
typedef u64 resource_size_t;
typedef unsigned int gfp_t;
typedef unsigned short umode_t;
typedef unsigned int fmode_t;

typedef struct {
	_Atomic int counter;
} atomic_t;

typedef struct {
	_Atomic s64 counter;
} atomic64_t;

struct list_head {
	struct list_head *next, *prev;
};
