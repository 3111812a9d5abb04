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
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "hca/api/hca.h"
#include "hca/mem/mr.h"
#include "hca/mem/mr_kinds.h"
#include "hca/mem/mr_peer.h"
#include "include/weft/verbs_ext.h"
#include "pages/dax.h"
#include "peermem/gpu.h"

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

enum file {
	OTHER_FILE,
	MEMORY_FILE, /* its pages stay where they are */
	DMA_BUF,
};

static enum file kind_of(int fd, const struct stat *st)
{
	struct statfs fs;

	if (dax_is_device(st))
		return MEMORY_FILE;
	if (fstatfs(fd, &fs))
		return OTHER_FILE;
	if (fs.f_type == DMA_BUF_MAGIC)
		return DMA_BUF;
	if (!S_ISREG(st->st_mode))
		return OTHER_FILE;
	return fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC || is_dax_file(fd)
		       ? MEMORY_FILE
		       : OTHER_FILE;
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

static int check_range(uint64_t offset, uint64_t length, uint64_t iova)
{
	uint64_t page = sysconf(_SC_PAGESIZE);

	if (length && offset + length >= offset && !((offset ^ iova) & (page - 1)))
		return 0;
	return log_refused(-EINVAL,
		"reg_dmabuf_mr refused: %s (offset %#llx, length %#llx, iova %#llx)",
		!length ? "there is nothing to register"
		: offset + length < offset
			? "the range wraps"
			: "offset and iova differ by what is no multiple of a page",
		(unsigned long long)offset, (unsigned long long)length, (unsigned long long)iova);
}

static int check_file(int fd, const struct stat *st, enum file kind, uint64_t end)
{
	uint64_t size;

	if (kind == OTHER_FILE) {
		log_refusal(
			"reg_dmabuf_mr refused: fd %d is no dma-buf, memfd, tmpfs file or DAX", fd);
		return -EINVAL;
	}
	size = size_of(fd, st);
	if (size && end > size)
		return log_refused(-EINVAL, "reg_dmabuf_mr refused: fd %d has %llu bytes, not %llu",
			fd, (unsigned long long)size, (unsigned long long)end);
	return 0;
}

/* Who made a dma-buf, as its fdinfo says. */
static void read_exporter(int fd, char *to, size_t size)
{
	static const char key[] = "exp_name:";
	char path[64], line[256];
	FILE *f;

	snprintf(to, size, "an unknown exporter");
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, key, strlen(key))) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(to, size, "%.60s",
				line + strlen(key) + strspn(line + strlen(key), "\t "));
		}
	if (f)
		fclose(f);
}

static int refuse_mapping(int fd, enum file kind, int err)
{
	char exporter[64];

	if (kind != DMA_BUF)
		return -err;
	read_exporter(fd, exporter, sizeof exporter);
	log_line(LOG_LVL_WARN,
		"reg_dmabuf_mr refused: fd %d is a dma-buf of %s that cannot be mapped (%s), "
		"and iova is not the address of a GPU's memory",
		fd, exporter, strerror(err));
	return -EOPNOTSUPP;
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

/* ---- registering ---- */

static int check_access(unsigned access)
{
	const unsigned known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			       IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT |
			       IBV_ACCESS_RELAXED_ORDERING;
	const unsigned writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (access & ~known)
		return log_refused(-EINVAL,
			"reg_dmabuf_mr refused: the rights %#x are unknown, or not for such a "
			"region",
			access & ~known);
	if (access & writes && !(access & IBV_ACCESS_LOCAL_WRITE))
		return log_refused(-EINVAL, "reg_dmabuf_mr refused: REMOTE_WRITE and REMOTE_ATOMIC "
					    "want LOCAL_WRITE, too");
	return 0;
}

/*
 * A GPU's memory has an address, which those who register its dma-buf take for iova: that leads to
 * it, and the file does not.  1: r is that; 0: it is not.
 */
static int claim_of_gpu(struct mr_region *r)
{
	struct peer_trace t;

	gpu_look();
	if (r->iova + r->length < r->iova || !gpu_owns(r->iova, r->length))
		return 0;
	r->addr = r->iova;
	r->call = "ibv_reg_dmabuf_mr";
	return mr_peer_claim(r, &t);
}

static int add_mapping(struct hca_pd *pd, int fd, uint64_t offset, enum file kind,
	struct mr_region *r, struct hca_mr **out)
{
	uint8_t *p = NULL;
	int rc = map_range(fd, offset, r->length, r->access & IBV_ACCESS_LOCAL_WRITE, &r->of, &p);

	if (rc)
		return refuse_mapping(fd, kind, -rc);
	r->addr = (uintptr_t)p;
	r->kind = &mr_of_fd;
	rc = mr_add(pd, r, out);
	if (rc)
		munmap(r->of, r->addr - (uintptr_t)r->of + r->length);
	return rc;
}

static int add_file(
	struct hca_pd *pd, int fd, uint64_t offset, struct mr_region *r, struct hca_mr **out)
{
	struct stat st;
	enum file kind;
	int rc;

	if (fstat(fd, &st))
		return log_refused(-errno, "reg_dmabuf_mr refused: fd %d: %s", fd, strerror(errno));
	rc = check_range(offset, r->length, r->iova);
	if (rc)
		return rc;
	kind = kind_of(fd, &st);
	rc = kind == MEMORY_FILE ? 0 : claim_of_gpu(r);
	if (rc)
		return rc < 0 ? rc : mr_add_found(pd, r, out);
	rc = check_file(fd, &st, kind, offset + r->length);
	return rc ? rc : add_mapping(pd, fd, offset, kind, r, out);
}

int hca_mr_from_fd(struct hca_pd *pd, int fd, uint64_t offset, uint64_t length, uint64_t iova,
	unsigned access, struct hca_mr **out)
{
	struct mr_region r = {.length = length, .iova = iova, .access = access};
	int saved = errno, rc = check_access(access);

	if (!rc)
		rc = add_file(pd, fd, offset, &r, out);
	errno = saved;
	return rc;
}
