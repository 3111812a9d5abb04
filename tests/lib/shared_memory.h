/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that a program shares of its own accord, of all kinds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shared_kind {
	const char *name;
	/* len bytes of zeros, readable and writable; *fd: a descriptor that stays open, or -1. */
	uint8_t *(*make)(size_t len, int *fd);
	bool hidden; /* no descriptor or name leads to it: the kernel's help is needed */
	bool seals;  /* it may be kept from becoming shorter */
};

enum {
	SHARED_UNLINKED, /* POSIX */
	SHARED_NAMED,
	SHARED_CLOSED,
	SHARED_ANONYMOUS,
	SHARED_MEMFD,
	SHARED_SEALABLE,
	SHARED_SYSV,
	SHARED_FILE,
	SHARED_KINDS
};

extern const struct shared_kind shared_kinds[SHARED_KINDS];

/* Does the kernel open what this process has mapped (/proc/self/map_files)? */
bool can_open_mapped(void);
