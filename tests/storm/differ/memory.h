/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of all the kinds that programs register. */
#pragma once

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum memory_kind {
	MEMORY_HEAP,
	MEMORY_PRIVATE,
	MEMORY_SEALED, /* a memfd that cannot become shorter */
	MEMORY_MEMFD,
	MEMORY_SYSV,
	MEMORY_POSIX,
	MEMORY_SHARED, /* MAP_SHARED | MAP_ANONYMOUS */
	MEMORY_STACK,
	MEMORY_DEVICE,
	MEMORIES
};

struct memory {
	enum memory_kind kind;
	uint8_t *at; /* NULL: of the device */
	size_t len;
	void *map;
	size_t map_len;
	int fd;
	struct ibv_dm *dm;
};

/*
 * Makes zeroed memory of that kind, which begins shift bytes behind the beginning of a page; stack
 * lends that of MEMORY_STACK.  What cannot be had ends the process (board_fail).
 */
void memory_make(struct memory *m, enum memory_kind kind, size_t len, size_t shift,
	struct ibv_context *ctx, void *stack);
void memory_free(struct memory *m);
/* Takes away what a process that was killed had not given up yet: objects with names. */
void memory_mop_up(pid_t dead);

/* The bytes of it, by loads and stores or by the calls for device memory. */
void memory_put(struct memory *m, size_t off, const void *from, size_t len);
void memory_get(struct memory *m, size_t off, void *to, size_t len);

/* Has a child of ours a copy of its own? */
bool memory_is_private(enum memory_kind kind);
const char *memory_name(enum memory_kind kind);
