// SPDX-License-Identifier: BSD-3-Clause
#include "pages/piece.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "pages/vma.h"

bool piece_file(int fd)
{
	int saved = errno;
	struct statfs fs;
	struct stat st;
	bool ok = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fstatfs(fd, &fs) == 0 &&
		  fs.f_type != HUGETLBFS_MAGIC;

	errno = saved;
	return ok;
}

static int64_t file_room(int fd)
{
	struct stat st;

	return piece_file(fd) && fstat(fd, &st) == 0 ? backing_whole_pages(st.st_size) : -ENXIO;
}

int64_t piece_room(const struct backing *b)
{
	int saved = errno;
	int64_t room = b->kind == BACKING_MEMFD  ? file_room(b->fd)
		       : b->kind == BACKING_SYSV ? backing_sysv_bytes(b)
						 : -ENXIO;

	errno = saved;
	return room;
}

void piece_seal(int fd)
{
	int saved = errno;

	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	errno = saved;
}

/* All of it, somewhere. */
static char *attach(const struct backing *b, uint64_t len, int prot)
{
	char *p = shmat(b->shmid, NULL, prot & PROT_WRITE ? 0 : SHM_RDONLY);

	if (p == (void *)-1)
		return NULL;
	if (backing_is_plain(p, len))
		return p;
	shmdt(p);
	errno = ENXIO;
	return NULL;
}

/* The piece, of a segment of `all` bytes, somewhere. */
static int attach_piece(
	const struct backing *b, uint64_t all, uint64_t offset, uint64_t len, int prot, void **out)
{
	char *whole = attach(b, all, prot), *p;
	int rc = 0;

	if (!whole)
		return -errno;
	p = whole + offset;
	if (offset)
		munmap(whole, offset);
	if (offset + len < all)
		munmap(p + len, all - offset - len);
	if (!(prot & PROT_READ) && mprotect(p, len, prot)) {
		rc = -errno;
		munmap(p, len);
	}
	*out = p;
	return rc;
}

/* Makes the place nobody's memory. */
static int claim(void *at, uint64_t len, int placed)
{
	void *p = mmap(
		at, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | placed, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	if (p == at)
		return 0;
	munmap(p, len); /* a kernel that does not know MAP_FIXED_NOREPLACE */
	return -EEXIST;
}

static int map_sysv(const struct backing *b, uint64_t all, uint64_t offset, uint64_t len, int prot,
	int placed, void *at, void **out)
{
	int rc = attach_piece(b, all, offset, len, prot, out);

	if (rc || !placed)
		return rc;
	/* It can be attached.  Now again, with its place taken, which may be where it lies. */
	munmap(*out, len);
	rc = claim(at, len, placed);
	if (rc)
		return rc;
	rc = attach_piece(b, all, offset, len, prot, out);
	if (!rc && mremap(*out, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED) {
		rc = -errno;
		munmap(*out, len);
	}
	if (rc)
		munmap(at, len);
	*out = at;
	return rc;
}

static int map_file(const struct backing *b, uint64_t offset, uint64_t len, int prot, int placed,
	void *at, void **out)
{
	*out = mmap(at, len, prot, MAP_SHARED | MAP_NORESERVE | placed, b->fd, offset);
	return *out == MAP_FAILED ? -errno : 0;
}

int piece_map(const struct backing *b, uint64_t offset, uint64_t len, int prot, int placed,
	void *at, void **out)
{
	int64_t room = piece_room(b);
	int saved = errno, ret;

	if (room < 0)
		return room;
	if (offset % PAGE_BYTES || offset > (uint64_t)room || len > room - offset)
		return -ENXIO;
	ret = b->kind == BACKING_SYSV ? map_sysv(b, room, offset, len, prot, placed, at, out)
				      : map_file(b, offset, len, prot, placed, at, out);
	if (!ret)
		madvise(*out, len, MADV_DONTFORK);
	errno = saved;
	return ret;
}
