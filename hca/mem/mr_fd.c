// SPDX-License-Identifier: BSD-3-Clause
/*
 * Regions behind a file descriptor, for ibv_reg_dmabuf_mr: dma-bufs that can be mapped, and, which
 * no adapter takes, files whose pages stay where they are: memfds and other files of tmpfs and
 * hugetlbfs, DAX devices and DAX files.
 */
#include "hca/mem/mr_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/mem/mr.h"
#include "hca/mem/mr_kinds.h"
#include "include/weft/verbs_ext.h"
#include "pages/dax.h"

#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif
#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

static bool is_dax_file(int fd)
{
	struct statx stx;

	return !statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &stx) &&
	       stx.stx_attributes & STATX_ATTR_DAX;
}

static bool holds_memory(int fd, const struct stat *st)
{
	struct statfs fs;

	if (dax_is_device(st))
		return true;
	if (fstatfs(fd, &fs))
		return false;
	if (fs.f_type == DMA_BUF_MAGIC)
		return true;
	return S_ISREG(st->st_mode) &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC || is_dax_file(fd));
}

/* 0 for a DAX device, whose size its file does not tell: the mapping decides. */
static uint64_t size_of(int fd, const struct stat *st)
{
	off_t end;

	if (S_ISREG(st->st_mode))
		return st->st_size;
	end = lseek(fd, 0, SEEK_END); /* that is how a dma-buf tells */
	return end > 0 ? end : 0;
}

static int check_range(int fd, uint64_t offset, uint64_t length, uint64_t iova)
{
	uint64_t page = sysconf(_SC_PAGESIZE);
	struct stat st;
	uint64_t size;

	if (fstat(fd, &st))
		return -errno;
	if (!holds_memory(fd, &st)) {
		log_line(LOG_LVL_INFO,
			"reg_dmabuf_mr refused: fd %d is no dma-buf, memfd, tmpfs file or DAX", fd);
		return -EINVAL;
	}
	if (!length || offset + length < offset || (offset ^ iova) & (page - 1))
		return -EINVAL;
	size = size_of(fd, &st);
	return size && offset + length > size ? -EINVAL : 0;
}

/* *at: whole pages; *p: what of them is meant. */
static int map_range(
	int fd, uint64_t offset, uint64_t length, bool writable, void **at, uint8_t **p)
{
	uint64_t skip = offset & (sysconf(_SC_PAGESIZE) - 1);
	int prot = PROT_READ | (writable ? PROT_WRITE : 0);

	*at = mmap(NULL, length + skip, prot, MAP_SHARED, fd, (off_t)(offset - skip));
	if (*at == MAP_FAILED)
		return -errno;
	*p = (uint8_t *)*at + skip;
	return 0;
}

int mr_fd_drop(struct hca_mr *mr)
{
	munmap(mr->of, mr->addr - (uintptr_t)mr->of + mr->length);
	return 0;
}

int hca_mr_from_fd(struct hca_pd *pd, int fd, uint64_t offset, uint64_t length, uint64_t iova,
	unsigned access, struct hca_mr **out)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT |
			       IBV_ACCESS_RELAXED_ORDERING;
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	struct mr_region r = {.length = length, .iova = iova, .access = access, .kind = &mr_of_fd};
	int saved = errno;
	uint8_t *p = NULL;
	int rc;

	if (access & ~known || (access & writes && !(access & IBV_ACCESS_LOCAL_WRITE)))
		return -EINVAL;
	rc = check_range(fd, offset, length, iova);
	if (!rc)
		rc = map_range(fd, offset, length, access & IBV_ACCESS_LOCAL_WRITE, &r.of, &p);
	errno = saved;
	if (rc)
		return rc;
	r.addr = (uintptr_t)p;
	rc = mr_add(pd, &r, out);
	if (rc)
		munmap(r.of, r.addr - (uintptr_t)r.of + length);
	return rc;
}
