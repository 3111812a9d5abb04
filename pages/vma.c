// SPDX-License-Identifier: BSD-3-Clause
#include "pages/vma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

enum {
	Q_READABLE = 0x01,
	Q_WRITABLE = 0x02,
	Q_EXECUTABLE = 0x04,
	Q_SHARED = 0x08,
	Q_COVERING_OR_NEXT = 0x10
};
#define MAP_QUERY_IOCTL _IOWR('f', 17, struct map_query)

int vma_walk_begin(struct vma_walk *w, uint64_t at)
{
	struct map_query q = {.size = sizeof q, .flags = Q_COVERING_OR_NEXT, .addr = at};

	w->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	w->at = at;
	w->len = w->pos = 0;
	if (w->fd < 0)
		return -errno;
	w->text = ioctl(w->fd, MAP_QUERY_IOCTL, &q) && errno != ENOENT;
	return 0;
}

void vma_walk_end(struct vma_walk *w)
{
	close(w->fd);
}

static int next_by_query(struct vma_walk *w, struct vma *v)
{
	struct map_query q = {.size = sizeof q, .flags = Q_COVERING_OR_NEXT, .addr = w->at};

	if (ioctl(w->fd, MAP_QUERY_IOCTL, &q))
		return -errno;
	*v = (struct vma){.start = q.vma_start,
		.end = q.vma_end,
		.offset = q.offset,
		.inode = q.inode,
		.dev_major = q.dev_major,
		.dev_minor = q.dev_minor,
		.page_size = q.page_size,
		.readable = q.vma_flags & Q_READABLE,
		.writable = q.vma_flags & Q_WRITABLE,
		.executable = q.vma_flags & Q_EXECUTABLE,
		.shared = q.vma_flags & Q_SHARED};
	return 0;
}

/* The next line of w's text without its newline, or NULL at the end. */
static char *next_line(struct vma_walk *w)
{
	for (;;) {
		char *line = w->buf + w->pos, *end = memchr(line, '\n', w->len - w->pos);
		ssize_t n;

		if (end) {
			*end = '\0';
			w->pos = end + 1 - w->buf;
			return line;
		}
		memmove(w->buf, line, w->len - w->pos);
		w->len -= w->pos;
		w->pos = 0;
		n = w->len < sizeof w->buf ? read(w->fd, w->buf + w->len, sizeof w->buf - w->len)
					   : 0;
		if (n <= 0)
			return NULL;
		w->len += n;
	}
}

/* The head of an area, as maps and smaps have it; false: another line. */
static bool parse_head(const char *line, struct vma *v)
{
	unsigned long start, end, offset, inode;
	unsigned major, minor;
	char perm[5];

	if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu", &start, &end, perm, &offset, &major, &minor,
		    &inode) != 7)
		return false;
	*v = (struct vma){.start = start,
		.end = end,
		.offset = offset,
		.inode = inode,
		.dev_major = major,
		.dev_minor = minor,
		.readable = perm[0] == 'r',
		.writable = perm[1] == 'w',
		.executable = perm[2] == 'x',
		.shared = perm[3] == 's'};
	return true;
}

static int next_by_text(struct vma_walk *w, struct vma *v)
{
	char *line;

	while ((line = next_line(w)))
		if (parse_head(line, v) && v->end > w->at)
			return 0;
	return -ENOENT;
}

int vma_walk_next(struct vma_walk *w, struct vma *v)
{
	int saved = errno;
	int rc = w->text ? next_by_text(w, v) : next_by_query(w, v);

	errno = saved;
	if (!rc)
		w->at = v->end;
	return rc;
}

static void parse_flag(struct vma_attr *a, const char *f)
{
	/* What an ordinary area may have beside: it survives by itself, or says nothing. */
	static const char plain[] = " rd wr mr mw me ac nr sd ";
	char word[] = {' ', f[0], f[1], ' ', '\0'};

	switch (f[0] << 8 | f[1]) {
	case 'd' << 8 | 'c':
		a->dont_fork = true;
		break;
	case 'd' << 8 | 'd':
		a->dont_dump = true;
		break;
	case 'l' << 8 | 'o':
		a->locked = true;
		break;
	case 'h' << 8 | 'g':
		a->huge = true;
		break;
	case 'n' << 8 | 'h':
		a->no_huge = true;
		break;
	case 'g' << 8 | 'd':
		a->stack = true;
		break;
	case 'h' << 8 | 't':
		a->hugetlb = true;
		break;
	case 'u' << 8 | 'm':
	case 'u' << 8 | 'w':
	case 'u' << 8 | 'i':
		a->userfault = true;
		break;
	default:
		if (!strstr(plain, word))
			a->special = true;
	}
}

static void parse_flags(struct vma_attr *a, const char *line)
{
	for (; *line; line++)
		if (line[0] != ' ' && line[1] && line[1] != ' ') {
			parse_flag(a, line);
			line++;
		}
}

int vma_attrs(
	uint64_t start, uint64_t end, bool (*fn)(const struct vma_attr *a, void *arg), void *arg)
{
	static const char flags[] = "VmFlags:", pkey[] = "ProtectionKey:";
	struct vma_walk w = {.fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC), .text = true};
	struct vma_attr a = {.end = 0};
	int rc = -ENOENT;
	struct vma v;
	char *line;

	if (w.fd < 0)
		return -errno;
	while ((line = next_line(&w))) {
		if (parse_head(line, &v)) {
			a = (struct vma_attr){.start = v.start, .end = v.end};
			if (a.start >= end) {
				rc = 0;
				break;
			}
		}
		if (a.end <= start)
			continue;
		if (!strncmp(line, pkey, sizeof pkey - 1) && atoi(line + sizeof pkey - 1))
			a.special = true;
		if (strncmp(line, flags, sizeof flags - 1))
			continue;
		parse_flags(&a, line + sizeof flags - 1);
		rc = 0;
		if (!fn(&a, arg) || a.end >= end)
			break;
	}
	close(w.fd);
	return rc;
}

void vma_attr_apply(const struct vma_attr *a, uint64_t start, uint64_t end)
{
	void *p = (void *)(uintptr_t)start;
	size_t len = end - start;

	if (a->dont_fork)
		madvise(p, len, MADV_DONTFORK);
	if (a->dont_dump)
		madvise(p, len, MADV_DONTDUMP);
	if (a->huge || a->no_huge)
		madvise(p, len, a->huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	if (a->locked)
		mlock(p, len);
}

int vma_process(struct vma_process *p)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	char buf[4096], *threads, *pinned;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof buf - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	threads = strstr(buf, "\nThreads:");
	pinned = strstr(buf, "\nVmPin:");
	if (!threads || !pinned)
		return -ENOENT;
	p->threads = strtoull(threads + sizeof "\nThreads:" - 1, NULL, 10);
	p->pinned_kb = strtoull(pinned + sizeof "\nVmPin:" - 1, NULL, 10);
	return 0;
}
