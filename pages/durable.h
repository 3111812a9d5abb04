/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What outlives a power failure: which memory of this process can be made durable, and doing so.
 * Knows addresses, not regions or requests.
 */
#pragma once

#include <stdint.h>

/* What a range of memory is to persistence; of a mixed one, the last that occurs in it. */
enum durability {
	DURABLE_NEVER, /* nothing to write back to: anonymous memory, tmpfs, a private mapping */
	DURABLE_PMEM,  /* persistent memory: CPU caches are written back, by libpmem */
	DURABLE_FILE,  /* a shared mapping of a file on a disk: written back by msync(2) */
};

/*
 * What [addr, addr+len) is, as this process has it mapped now.  Persistent memory is what libpmem
 * says it is (mapped by pmem_map_file(3), or PMEM_IS_PMEM_FORCE=1), and DAX devices; without
 * libpmem.so.1, which is loaded with the first call, that is DURABLE_FILE.  So is memory of which
 * nothing can be learned.  Blocks for some system calls; keeps errno.
 */
enum durability durable_kind(uint64_t addr, uint64_t len);

/*
 * Makes [addr, addr+len), memory of this process of that kind, durable before it returns.  Blocks
 * for the disk (DURABLE_FILE).  -ENOMEM: a page is not mapped; -EIO and others: it could not be
 * written, and nothing can be said of what is durable; -ENOSYS: there is no libpmem.  Keeps errno.
 */
int durable_write_back(enum durability kind, uint64_t addr, uint64_t len);

/* "volatile memory", ...: for the log. */
const char *durable_name(enum durability kind);
