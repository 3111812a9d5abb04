// SPDX-License-Identifier: BSD-3-Clause
#include "base/loaded.h"

#include <link.h>
#include <stdint.h>
#include <string.h>

struct search {
	const char *soname;
	bool found;
};

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *info)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static const char *soname_of(const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *d = dynamic_of(info);
	ElfW(Addr) strings = 0;
	ElfW(Xword) name = 0;

	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_STRTAB)
			strings = d->d_un.d_ptr;
		else if (d->d_tag == DT_SONAME)
			name = d->d_un.d_val;
	}
	if (!name)
		return "";
	/* An address, but for what the loader may not write to: the kernel's own library. */
	return (const char *)((strings < info->dlpi_addr ? info->dlpi_addr : 0) + strings + name);
}

static int compare(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	s->found = strcmp(soname_of(info), s->soname) == 0;
	return s->found;
}

bool loaded_has(const char *soname)
{
	struct search s = {.soname = soname};

	dl_iterate_phdr(compare, &s);
	return s.found;
}
