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

#include "base/lock.h"
#include "base/own_fd.h"

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

/*
 * /proc/self/maps, kept open for queries.  It is about the process that opened it: a forked child
 * opens its own, and where the lock may have been inherited as taken, one for each walk.
 */
static struct {
	struct lock lock;
	struct own_fd fd;
	struct own_fd proc; /* /proc itself, for who has another root directory since */
	pid_t pid;
} kept = {.fd = {.fd = -1}, .proc = {.fd = -1}};

static int open_maps(void)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* With the lock held: the same, as long as we ever could. */
static int open_maps_again(void)
{
	int fd = -1;

	if (own_fd_ok(&kept.proc))
		fd = openat(kept.proc.fd, "self/maps", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = open_maps();
	if (fd >= 0) {
		own_fd_close(&kept.proc);
		kept.proc = own_fd(open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
	}
	return fd;
}

static bool takes_queries(int fd)
{
	struct map_query q = {.size = sizeof q, .flags = Q_COVERING_OR_NEXT};

	return !ioctl(fd, MAP_QUERY_IOCTL, &q);
}

/* With the lock held. */
static int kept_fd(void)
{
	int fd;

	if (kept.pid == getpid() && own_fd_ok(&kept.fd))
		return kept.fd.fd;
	/* First, so that its number is free where no other is. */
	own_fd_close(&kept.fd);
	fd = open_maps_again();
	if (fd < 0 || !takes_queries(fd))
		return fd;
	kept.fd = own_fd(fd);
	kept.pid = getpid();
	return kept.fd.fd;
}

int vma_walk_begin(struct vma_walk *w, uint64_t at)
{
	bool locked = lock_try(&kept.lock);

	w->at = at;
	w->len = w->pos = 0;
	w->fd = locked ? kept_fd() : open_maps();
	w->keep = locked && w->fd >= 0 && w->fd == kept.fd.fd;
	if (locked)
		lock_drop(&kept.lock);
	if (w->fd < 0)
		return w->fd;
	w->text = !w->keep && !takes_queries(w->fd);
	return 0;
}

void vma_walk_end(struct vma_walk *w)
{
	if (!w->keep)
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

/* The line of an area in maps; false: another line. */
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

/* Where the name of an area begins in its line: behind the inode and blanks. */
static const char *name_in(const char *line)
{
	for (int field = 0; field < 5; field++) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return line;
}

static int name_by_text(struct vma_walk *w, uint64_t start, char *name, size_t size)
{
	char *line;
	struct vma v;

	while ((line = next_line(w))) {
		const char *found = name_in(line);

		if (!parse_head(line, &v) || v.start != start)
			continue;
		if (strlen(found) >= size)
			return -ENAMETOOLONG;
		strcpy(name, found);
		return 0;
	}
	return -ENOENT;
}

static int name_by_query(int fd, uint64_t start, char *name, size_t size)
{
	struct map_query q = {
		.size = sizeof q, .addr = start, .name_size = size, .name_addr = (uintptr_t)name};

	if (ioctl(fd, MAP_QUERY_IOCTL, &q))
		return -errno;
	if (!q.name_size)
		name[0] = '\0';
	return 0;
}

int vma_name(const struct vma *v, char *name, size_t size)
{
	struct vma_walk w;
	int saved = errno, rc = vma_walk_begin(&w, v->start);

	if (rc)
		return rc;
	rc = w.text ? name_by_text(&w, v->start, name, size)
		    : name_by_query(w.fd, v->start, name, size);
	vma_walk_end(&w);
	errno = saved;
	return rc;
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

/*
 * The bounds of an area, if the line is the head of one.  In smaps one line of 20 is: all others
 * begin with a capital.
 */
static bool parse_bounds(const char *line, struct vma_attr *a)
{
	char *end;

	if (line[0] >= 'A' && line[0] <= 'Z')
		return false;
	*a = (struct vma_attr){.start = strtoul(line, &end, 16)};
	if (*end != '-')
		return false;
	a->end = strtoul(end + 1, &end, 16);
	return *end == ' ';
}

int vma_attrs(
	uint64_t start, uint64_t end, bool (*fn)(const struct vma_attr *a, void *arg), void *arg)
{
	static const char flags[] = "VmFlags:", pkey[] = "ProtectionKey:";
	struct vma_walk w = {.fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC), .text = true};
	struct vma_attr a = {.end = 0};
	int rc = -ENOENT;
	char *line;

	if (w.fd < 0)
		return -errno;
	while ((line = next_line(&w))) {
		if (parse_bounds(line, &a) && a.start >= end) {
			rc = 0;
			break;
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
