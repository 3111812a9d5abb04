// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_backing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hca/proc/proc.h"
#include "pages/backing.h"
#include "pages/convert.h"
#include "pages/piece.h"
#include "pages/vma.h"
#include "rdv/proto.h"

enum { GENERATIONS = (1u << 31) / SEG_BACKINGS };

/* What the program shares, and regions use. */
struct own_backing {
	uint32_t id;    /* 0: the entry is free */
	uint32_t users; /* regions */
	uint32_t generation;
	uint32_t windows; /* that a peer needs, if it reaches all of the regions */
	dev_t dev;
	ino_t ino;
	struct backing what;
	struct own_fd fd; /* of a memfd */
};

static struct own_backing backings[SEG_BACKINGS];

/* Memory of the program: where in which object. */
struct stretch {
	enum backing_kind kind;
	dev_t dev;
	ino_t ino;
	uint64_t offset; /* of the first page */
	uint64_t length;
	struct vma first; /* area */
	bool piece;       /* for an export: programs map it, and not we (pages/piece.h) */
	bool written;     /* by peers, too */
};

/* ---- looking ---- */

static enum backing_kind kind_of(const struct vma *v, bool piece)
{
	static const struct {
		const char *begins;
		enum backing_kind kind;
	} kinds[] = {{"/memfd:weft-", 0}, /* arenas and the like, which have rules of their own */
		{"/memfd:", BACKING_MEMFD}, {"/SYSV", BACKING_SYSV}};
	char name[PATH_MAX];

	name[0] = '\0';
	if (!vma_name(v, name, sizeof name))
		for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
			if (!strncmp(name, kinds[i].begins, strlen(kinds[i].begins)))
				return kinds[i].kind;
	return piece && name[0] == '/' ? BACKING_MEMFD : 0;
}

static bool goes_on(const struct vma *v, const struct vma *first)
{
	return v->shared && v->inode == first->inode && v->dev_major == first->dev_major &&
	       v->dev_minor == first->dev_minor &&
	       v->offset - first->offset == v->start - first->start;
}

static bool take_userfault(const struct vma_attr *a, void *arg)
{
	*(bool *)arg |= a->userfault;
	return true;
}

/* A peer that maps a missing page by itself would go past who waits for that. */
static bool is_watched(const struct vma *v)
{
	bool watched = false;

	if (!convert_watched(v->start))
		return false;
	/* Or that cannot be asked for. */
	return vma_attrs(v->start, v->end, take_userfault, &watched) || watched;
}

static enum share_reason judge_area(const struct vma *v, const struct stretch *s)
{
	if (!goes_on(v, &s->first))
		return SHARE_NOT_PRIVATE;
	if (v->page_size > PAGE_BYTES)
		return SHARE_HUGETLB;
	if (!v->readable || (s->written && !v->writable) || (!s->piece && v->executable))
		return SHARE_RIGHTS;
	return is_watched(v) ? SHARE_USERFAULTFD : SHARE_MAPPED;
}

/* SHARE_REASONS: there is no such object at lo. */
static enum share_reason find_stretch(uint64_t lo, uint64_t hi, struct stretch *s)
{
	enum share_reason why = SHARE_REASONS;
	struct vma *first = &s->first;
	struct vma_walk w;
	struct vma v;

	if (vma_walk_begin(&w, lo))
		return why;
	if (!vma_walk_next(&w, first) && first->start <= lo && first->shared && first->inode) {
		s->kind = kind_of(first, s->piece);
		why = s->kind ? judge_area(first, s) : SHARE_REASONS;
	}
	for (v = *first; why == SHARE_MAPPED && v.end < hi;) {
		uint64_t at = v.end;

		why = vma_walk_next(&w, &v) || v.start > at ? SHARE_NOT_PRIVATE : judge_area(&v, s);
	}
	vma_walk_end(&w);
	s->dev = makedev(first->dev_major, first->dev_minor);
	s->ino = first->inode;
	s->offset = first->offset + (lo - first->start);
	s->length = hi - lo;
	return why;
}

/* ---- finding a descriptor ---- */

static bool is_it(int fd, const struct stretch *s)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

/* Can peers map it with the rights that they are to have? */
static bool has_rights(int fd, const struct stretch *s)
{
	int mode = fcntl(fd, F_GETFL) & O_ACCMODE;

	return mode == O_RDWR || (!s->written && mode == O_RDONLY);
}

/* A duplicate of one that the program has open, or -1. */
static int dup_of_open(const struct stretch *s)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int found = -1;

	while (dir && found < 0 && (e = readdir(dir))) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] == '.' || fd == dirfd(dir) || !is_it(fd, s) || !has_rights(fd, s))
			continue;
		found = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		/* The program may have closed it just now, and another come in its place. */
		if (found >= 0 && !(is_it(found, s) && has_rights(found, s))) {
			close(found);
			found = -1;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Opened anew by a path, if that leads there. */
static int open_path(const char *path, const struct stretch *s)
{
	int fd = open(path, (s->written ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || is_it(fd, s))
		return fd;
	close(fd);
	return -1;
}

/* What the kernel gives to privileged processes alone. */
static int open_map_file(const struct stretch *s)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/self/map_files/%llx-%llx",
		(unsigned long long)s->first.start, (unsigned long long)s->first.end);
	return open_path(path, s);
}

/* By the name that it still has. */
static int open_name(const struct stretch *s)
{
	char name[PATH_MAX];
	struct stat st;

	if (vma_name(&s->first, name, sizeof name) || name[0] != '/' || stat(name, &st) ||
		!S_ISREG(st.st_mode) || st.st_dev != s->dev || st.st_ino != s->ino)
		return -1;
	return open_path(name, s);
}

static int find_fd(const struct stretch *s)
{
	int fd = dup_of_open(s);

	if (fd < 0)
		fd = open_map_file(s);
	return fd < 0 && s->piece ? open_name(s) : fd;
}

/* ---- records ---- */

static struct own_backing *known(const struct stretch *s)
{
	for (unsigned i = 0; i < SEG_BACKINGS; i++) {
		struct own_backing *b = &backings[i];

		if (b->id && b->what.kind == s->kind && b->dev == s->dev && b->ino == s->ino)
			return b;
	}
	return NULL;
}

static void forget(struct own_backing *b)
{
	own_fd_close(&b->fd);
	b->id = 0;
}

static struct seg_backing *record(const struct own_backing *b)
{
	return &proc_seg()->backing[b - backings];
}

/* Lets peers find it.  Those that come after weftd has lost it copy. */
static int publish(struct own_backing *b)
{
	struct seg_backing *r = record(b);
	int rc = 0;

	if (b->what.kind == BACKING_MEMFD)
		rc = rdv_add_backing(b->id, b->fd.fd);
	if (rc)
		return rc;
	r->kind = b->what.kind;
	r->shmid = b->what.shmid;
	r->ipc_ns = b->what.ipc_ns;
	atomic_store_explicit(&r->id, b->id, memory_order_release);
	atomic_fetch_add_explicit(&proc_seg()->hdr.n_backings, 1, memory_order_relaxed);
	return 0;
}

static enum share_reason enter(const struct stretch *s, struct own_backing **out)
{
	struct own_backing *b = backings;

	while (b < backings + SEG_BACKINGS && b->id)
		b++;
	if (b == backings + SEG_BACKINGS)
		return SHARE_BUDGET;
	b->what = (struct backing){.kind = s->kind, .fd = -1};
	b->fd = OWN_FD_NONE;
	if (s->kind == BACKING_SYSV) {
		b->what.shmid = (int)s->ino;
		b->what.ipc_ns = backing_ipc_ns();
	} else {
		b->fd = own_fd(find_fd(s));
		b->what.fd = b->fd.fd;
		if (b->fd.fd < 0)
			return SHARE_NO_FD;
	}
	b->dev = s->dev;
	b->ino = s->ino;
	b->users = b->windows = 0;
	b->generation = b->generation % (GENERATIONS - 1) + 1;
	b->id = b->generation * SEG_BACKINGS + (b - backings);
	*out = b;
	return SHARE_MAPPED;
}

/* Can peers map so much of it, now and later? */
static enum share_reason judge(const struct own_backing *b, const struct stretch *s)
{
	int64_t bytes;

	if (s->piece && s->kind == BACKING_MEMFD)
		piece_seal(b->fd.fd);
	bytes = s->piece ? piece_room(&b->what) : backing_bytes(&b->what);
	if (bytes == -EFBIG)
		return SHARE_TOO_LARGE;
	if (bytes < 0)
		return b->what.kind == BACKING_SYSV ? SHARE_SYSV : SHARE_MEMFD;
	if (s->offset > (uint64_t)bytes || s->length > bytes - s->offset)
		return SHARE_NOT_PRIVATE;
	return SHARE_MAPPED;
}

/* A peer has so many windows for all that we share. */
static enum share_reason add_windows(struct own_backing *b, const struct stretch *s)
{
	uint64_t need = (s->offset + s->length + BACKING_WINDOW - 1) / BACKING_WINDOW, sum = 0;

	for (unsigned i = 0; i < SEG_BACKINGS; i++)
		if (backings[i].id && &backings[i] != b)
			sum += backings[i].windows;
	if (sum + need > BACKING_WINDOWS)
		return SHARE_BUDGET;
	if (need > b->windows)
		b->windows = need;
	return SHARE_MAPPED;
}

static enum share_reason take(const struct stretch *s, struct own_backing **out)
{
	struct own_backing *b = known(s);
	enum share_reason why = SHARE_MAPPED;

	/* The program closed ours, and weftd may have lost its own since; or it is for readers. */
	if (b && s->kind == BACKING_MEMFD && !(own_fd_ok(&b->fd) && has_rights(b->fd.fd, s)))
		return SHARE_NO_FD;
	if (!b)
		why = enter(s, &b);
	if (why != SHARE_MAPPED)
		return why;
	why = judge(b, s);
	if (why == SHARE_MAPPED && !s->piece)
		why = add_windows(b, s);
	if (why == SHARE_MAPPED && !b->users && publish(b))
		why = SHARE_NO_FD;
	if (why == SHARE_MAPPED)
		b->users++;
	else if (!b->users)
		forget(b);
	*out = b;
	return why;
}

enum share_reason share_backing_take(struct hca_mr *mr)
{
	struct seg_mr *s = &proc_seg()->mr[mr->index];
	struct stretch where = {.piece = mr->exported,
		.written = !mr->exported || mr->access & IBV_ACCESS_REMOTE_WRITE};
	struct own_backing *b = NULL;
	enum share_reason why;
	int saved = errno;

	why = find_stretch(mr->lo, mr->hi, &where);
	if (why == SHARE_MAPPED)
		why = take(&where, &b);
	if (why == SHARE_MAPPED) {
		mr->backing = b->id;
		s->backing = b->id;
		s->offset = where.offset + (mr->addr - mr->lo);
	}
	errno = saved;
	return why;
}

void share_backing_drop(struct hca_mr *mr)
{
	struct own_backing *b = &backings[mr->backing % SEG_BACKINGS];
	int saved = errno;

	mr->backing = 0;
	if (--b->users)
		return;
	atomic_store_explicit(&record(b)->id, 0, memory_order_release);
	atomic_fetch_sub_explicit(&proc_seg()->hdr.n_backings, 1, memory_order_relaxed);
	if (b->what.kind == BACKING_MEMFD)
		rdv_del_backing(b->id);
	forget(b);
	errno = saved;
}

void share_backing_forked_child(void)
{
	for (unsigned i = 0; i < SEG_BACKINGS; i++)
		if (backings[i].id)
			forget(&backings[i]);
}
