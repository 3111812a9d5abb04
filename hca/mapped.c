// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* struct procmap_query of <linux/fs.h>, which Debian 12's headers do not have yet. */
struct map_query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t vma_start, vma_end, vma_flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};

enum { Q_COVERING_OR_NEXT = 0x10, Q_READABLE = 0x01, Q_WRITABLE = 0x02 };
#define MAP_QUERY_IOCTL _IOWR('f', 17, struct map_query)

/* Walks the areas that cover a range; each must begin where the last ended. */
struct walk {
	uint64_t at, end;
	bool writable;
};

/* Takes one area; true while the walk goes on, with *rc set when it does not. */
static bool walk_area(
	struct walk *w, uint64_t start, uint64_t end, bool readable, bool writable, int *rc)
{
	if (end <= w->at)
		return true;
	*rc = -EFAULT;
	if (start > w->at || !readable || (w->writable && !writable))
		return false;
	w->at = end;
	if (end < w->end)
		return true;
	*rc = 0;
	return false;
}

/* One query; 1 go on, 0 finished with *rc, negative errno if the kernel cannot. */
static int query_once(int fd, struct walk *w, int *rc)
{
	struct map_query q = {.size = sizeof q, .flags = Q_COVERING_OR_NEXT, .addr = w->at};

	if (ioctl(fd, MAP_QUERY_IOCTL, &q)) {
		if (errno != ENOENT)
			return -errno;
		*rc = -EFAULT;
		return 0;
	}
	return walk_area(
		w, q.vma_start, q.vma_end, q.vma_flags & Q_READABLE, q.vma_flags & Q_WRITABLE, rc);
}

static int by_query(struct walk w, int *result)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int more;

	if (fd < 0)
		return -errno;
	do
		more = query_once(fd, &w, result);
	while (more > 0);
	close(fd);
	return more;
}

static int by_text(struct walk w)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[4352], perm[5];
	int rc = -EFAULT;

	if (!f)
		return 0;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %4s", &start, &end, perm) == 3 &&
			!walk_area(&w, start, end, perm[0] == 'r', perm[1] == 'w', &rc))
			break;
	fclose(f);
	return rc;
}

int mapped_check(uint64_t addr, uint64_t len, bool writable)
{
	const struct walk w = {.at = addr, .end = addr + len, .writable = writable};
	int saved = errno;
	int rc = -EFAULT;

	if (by_query(w, &rc) < 0)
		rc = by_text(w);
	errno = saved;
	return rc;
}
