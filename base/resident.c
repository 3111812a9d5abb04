// SPDX-License-Identifier: BSD-3-Clause
#include "base/resident.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_traced(void)
{
	char line[128];
	int tracer = 0;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	if (f)
		fclose(f);
	return !f || tracer;
}

/* Nothing is ever written there, so that the file has it all. */
static void drop_segment(uintptr_t base, const ElfW(Phdr) * ph)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), lo = (base + ph->p_vaddr) & ~(page - 1);
	uintptr_t hi = (base + ph->p_vaddr + ph->p_memsz + page - 1) & ~(page - 1);

	if (ph->p_type == PT_LOAD && !(ph->p_flags & PF_W))
		(void)madvise((void *)lo, hi - lo, MADV_DONTNEED);
}

static int drop_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++)
		drop_segment(info->dlpi_addr, &info->dlpi_phdr[i]);
	return 0;
}

void resident_give_back(void)
{
	if (is_traced())
		return;
	malloc_trim(0);
	dl_iterate_phdr(drop_object, NULL);
}
