// SPDX-License-Identifier: BSD-3-Clause
#include "pages/durable.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/log.h"
#include "pages/dax.h"
#include "pages/mapped.h"
#include "pages/vma.h"

/* ---- libpmem ---- */

/* Loaded when first needed: few programs have persistent memory, all have libibverbs. */
static struct {
	int (*is_pmem)(const void *addr, size_t len);
	void (*persist)(const void *addr, size_t len);
} pmem;
static pthread_once_t pmem_once = PTHREAD_ONCE_INIT;

static void load_pmem(void)
{
	void *lib = dlopen("libpmem.so.1", RTLD_NOW | RTLD_LOCAL);
	void *is_pmem = lib ? dlsym(lib, "pmem_is_pmem") : NULL;
	void *persist = lib ? dlsym(lib, "pmem_persist") : NULL;

	if (!is_pmem || !persist) {
		log_line(LOG_LVL_INFO,
			"libpmem.so.1 is not there: memory is made durable by msync(2) alone");
		return;
	}
	memcpy(&pmem.is_pmem, &is_pmem, sizeof is_pmem);
	memcpy(&pmem.persist, &persist, sizeof persist);
}

static bool have_pmem(void)
{
	pthread_once(&pmem_once, load_pmem);
	return pmem.persist;
}

/* ---- what memory is ---- */

static bool is_memory_fs(const char *dir)
{
	struct statfs fs;

	return !statfs(dir, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
					    fs.f_type == HUGETLBFS_MAGIC);
}

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

/* A file that has a name no more: its directory tells where it was. */
static bool cut_to_directory(char *name)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(name);
	char *slash = strrchr(name, '/');

	if (!slash || len < sizeof deleted || strcmp(name + len - strlen(deleted), deleted) != 0)
		return false;
	slash[slash == name] = '\0';
	return true;
}

static enum durability kind_of_file(char *name)
{
	static const char *const memory[] = {"/memfd:", "/SYSV", "/dev/zero", "/anon_hugepage"};
	struct stat st;

	for (unsigned i = 0; i < sizeof memory / sizeof *memory; i++)
		if (begins(name, memory[i]))
			return DURABLE_NEVER;
	if (!stat(name, &st) && dax_is_device(&st))
		return have_pmem() ? DURABLE_PMEM : DURABLE_FILE;
	cut_to_directory(name);
	return is_memory_fs(name) ? DURABLE_NEVER : DURABLE_FILE;
}

static enum durability kind_of_area(const struct vma *v)
{
	char name[PATH_MAX];

	if (!v->shared || !v->inode)
		return DURABLE_NEVER;
	return vma_name(v, name, sizeof name) ? DURABLE_FILE : kind_of_file(name);
}

static enum durability kind_of_part(const struct vma *v, uint64_t from, uint64_t to)
{
	if (have_pmem() && pmem.is_pmem((void *)(uintptr_t)from, to - from))
		return DURABLE_PMEM;
	return kind_of_area(v);
}

enum durability durable_kind(uint64_t addr, uint64_t len)
{
	enum durability kind = DURABLE_NEVER;
	int saved = errno;
	struct vma_walk w;
	struct vma v;

	if (vma_walk_begin(&w, addr)) {
		errno = saved;
		return DURABLE_FILE;
	}
	while (kind < DURABLE_FILE && !vma_walk_next(&w, &v) && v.start < addr + len) {
		uint64_t from = v.start > addr ? v.start : addr;
		uint64_t to = v.end < addr + len ? v.end : addr + len;
		enum durability part = kind_of_part(&v, from, to);

		if (part > kind)
			kind = part;
	}
	vma_walk_end(&w);
	errno = saved;
	return kind;
}

const char *durable_name(enum durability kind)
{
	static const char *const names[] = {[DURABLE_NEVER] = "volatile memory",
		[DURABLE_PMEM] = "persistent memory",
		[DURABLE_FILE] = "a file"};

	return names[kind];
}

/* ---- writing back ---- */

static int write_back_pmem(uint64_t addr, uint64_t len)
{
	if (!have_pmem())
		return -ENOSYS;
	/* A hole is an error, not a signal. */
	if (!mapped_populate(addr, len, false))
		return -ENOMEM;
	pmem.persist((void *)(uintptr_t)addr, len);
	return 0;
}

static int write_back_file(uint64_t addr, uint64_t len)
{
	uint64_t skip = addr % PAGE_BYTES;

	return msync((void *)(uintptr_t)(addr - skip), len + skip, MS_SYNC) ? -errno : 0;
}

int durable_write_back(enum durability kind, uint64_t addr, uint64_t len)
{
	int saved = errno, rc = 0;

	if (kind == DURABLE_PMEM)
		rc = write_back_pmem(addr, len);
	else if (kind == DURABLE_FILE)
		rc = write_back_file(addr, len);
	errno = saved;
	return rc;
}
