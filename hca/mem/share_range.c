// SPDX-License-Identifier: BSD-3-Clause
#include "hca/mem/share_range.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/sparse.h"
#include "hca/mem/import.h"
#include "pages/vma_probe.h"
#include "pages/vma_process.h"
#include "rdv/rdv.h"

enum {
	AREAS_SHARE = 8, /* of max_map_count we use at most one part in so many */
	AREAS_DEFAULT = 65530,
	AREAS_PER_RUN = 2,
	LOOK_SHARE = 20 /* and so much of the time for looking at areas */
};
#define LOOK_START_NS (50 * (uint64_t)NSEC_PER_MSEC)
#define RECOUNT_NS    (100 * (uint64_t)NSEC_PER_MSEC)

/* Attributes of memory in the arena other than the usual ones, as they were before. */
struct note {
	struct note *next;
	struct vma_attr attr;
};

static struct {
	struct arena arena;
	bool open;
	uint64_t areas, areas_max; /* of ours at most, and how many may be */
	uint64_t counted_ns;
	uint64_t look_ns, look_since; /* time spent in vma_attrs(), and since when */
	struct note *notes;
} own;

static uint64_t areas_max(void)
{
	int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
	char buf[32] = "";
	uint64_t n;

	if (fd >= 0) {
		if (read(fd, buf, sizeof buf - 1) < 0)
			buf[0] = '\0';
		close(fd);
	}
	n = strtoull(buf, NULL, 10);
	return (n ? n : AREAS_DEFAULT) / AREAS_SHARE;
}

static bool arena_ready(void)
{
	int fd;

	if (own.open && arena_fd_ok(&own.arena))
		return true;
	if (sysconf(_SC_PAGESIZE) != PAGE_BYTES)
		return false;
	/* Lost: weftd gives it again when the connection to it is next made anew. */
	fd = rdv_arena_fd();
	if (fd < 0)
		return false;
	if (own.open) {
		own.arena.fd = fd;
		return arena_fd_ok(&own.arena);
	}
	own.open = arena_open(&own.arena, fd) == 0;
	own.areas_max = areas_max();
	own.look_since = clock_ns();
	return own.open;
}

static bool is_ours(const struct vma *v)
{
	return own.open && v->inode == own.arena.ino &&
	       makedev(v->dev_major, v->dev_minor) == own.arena.dev;
}

static bool in_place(const struct vma *v)
{
	return is_ours(v) && v->shared && v->offset == v->start;
}

static void clip(struct vma *v, uint64_t lo, uint64_t hi)
{
	if (v->start < lo) {
		v->offset += lo - v->start;
		v->start = lo;
	}
	if (v->end > hi)
		v->end = hi;
}

/* Our own windows are areas of the arena too. */
static bool is_window(const struct vma *v)
{
	return !((v->end - v->start) % ARENA_WINDOW) && !(v->offset % ARENA_WINDOW);
}

static void empty_arena(uint64_t lo, uint64_t hi)
{
	for (uint64_t at = lo, len; at < hi; at += len) {
		char *window;

		len = ARENA_WINDOW - at % ARENA_WINDOW;
		len = len < hi - at ? len : hi - at;
		window = arena_at(&own.arena, at, len);
		if (window)
			sparse_empty(window, len);
	}
}

/* ---- looking ---- */

/* What is mapped there, by the name that the kernel gives it. */
static enum share_reason kind_of_file(const struct vma *v)
{
	static const struct {
		const char *begins;
		enum share_reason why;
	} kinds[] = {{"/memfd:", SHARE_MEMFD}, {"/SYSV", SHARE_SYSV},
		{"/dev/zero", SHARE_SHARED_ANON}, {"/", SHARE_FILE}};
	char name[PATH_MAX];

	if (!vma_name(v, name, sizeof name))
		for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
			if (!strncmp(name, kinds[i].begins, strlen(kinds[i].begins)))
				return kinds[i].why;
	return SHARE_NOT_PRIVATE;
}

static enum share_reason judge(const struct vma *v)
{
	if (v->page_size > PAGE_BYTES)
		return SHARE_HUGETLB;
	if (!v->readable || !v->writable || v->executable)
		return SHARE_RIGHTS;
	return v->shared || (v->inode && !is_ours(v)) ? kind_of_file(v) : SHARE_MAPPED;
}

/* Takes one area into the plan. */
static enum share_reason plan_area(struct range_plan *p, const struct vma *v, uint64_t at)
{
	enum share_reason why = judge(v);
	struct vma part = *v;

	clip(&part, at, p->hi);
	if (in_place(&part))
		return SHARE_MAPPED;
	if (why != SHARE_MAPPED)
		return why;
	if (p->n == RANGE_RUNS)
		return SHARE_AREAS;
	p->run[p->n++] = (struct range_run){.start = part.start, .end = part.end, .area = *v};
	return SHARE_MAPPED;
}

static enum share_reason plan_areas(struct range_plan *p)
{
	enum share_reason why = SHARE_MAPPED;
	uint64_t at = p->lo;
	struct vma_walk w;
	struct vma v;

	if (vma_walk_begin(&w, p->lo))
		return SHARE_KERNEL;
	while (why == SHARE_MAPPED && at < p->hi) {
		if (vma_walk_next(&w, &v) || v.start > at) {
			why = SHARE_NOT_PRIVATE;
			break;
		}
		why = plan_area(p, &v, at);
		at = v.end;
	}
	vma_walk_end(&w);
	return why;
}

/* Has the program moved memory that lies in the arena at [lo, hi) elsewhere? */
static bool moved_away(uint64_t lo, uint64_t hi)
{
	bool found = false;
	struct vma_walk w;
	struct vma v;

	if (vma_walk_begin(&w, 0))
		return true;
	while (!found && !vma_walk_next(&w, &v))
		found = is_ours(&v) && v.shared && !is_window(&v) && v.offset < hi &&
			v.offset + (v.end - v.start) > lo;
	vma_walk_end(&w);
	return found;
}

/*
 * Is the arena empty where the run would go, or what lies there nobody's?  A thread whose write
 * met the way back may have been given a page there that it did not need any more.
 */
static bool arena_free(const struct range_run *r, bool (*claimed)(uint64_t lo, uint64_t hi))
{
	off_t data = lseek(own.arena.fd, r->start, SEEK_DATA);

	if (data < 0 || (uint64_t)data >= r->end)
		return true;
	if (claimed(r->start, r->end) || moved_away(r->start, r->end))
		return false;
	empty_arena(r->start, r->end);
	return true;
}

/* Counts what we really have: areas merge, and the program unmaps some. */
static void recount(void)
{
	struct vma_walk w;
	struct vma v;

	if (clock_ns() - own.counted_ns < RECOUNT_NS || vma_walk_begin(&w, 0))
		return;
	own.areas = 0;
	while (!vma_walk_next(&w, &v))
		own.areas += is_ours(&v);
	vma_walk_end(&w);
	own.counted_ns = clock_ns();
}

static bool room_for_areas(unsigned runs)
{
	uint64_t more = AREAS_PER_RUN * runs;

	if (own.areas + more > own.areas_max)
		recount();
	return own.areas + more <= own.areas_max;
}

struct look {
	struct range_plan *p;
	enum share_reason why;
};

static enum share_reason judge_attr(const struct vma_attr *a)
{
	if (a->hugetlb)
		return SHARE_HUGETLB;
	if (a->stack)
		return SHARE_STACK;
	if (a->userfault)
		return SHARE_USERFAULTFD;
	return a->special ? SHARE_ATTRIBUTES : SHARE_MAPPED;
}

static bool take_attr(const struct vma_attr *a, void *arg)
{
	struct look *look = arg;

	for (unsigned i = 0; i < look->p->n; i++) {
		struct range_run *r = &look->p->run[i];

		if (a->start >= r->end || r->start >= a->end)
			continue;
		r->attr = *a;
		look->why = judge_attr(a);
	}
	return look->why == SHARE_MAPPED;
}

/* May we spend time on looking?  A process of many areas must not get slow by us. */
static bool time_to_look(void)
{
	return own.look_ns <= LOOK_START_NS + (clock_ns() - own.look_since) / LOOK_SHARE;
}

/* What a few system calls show, where there is nothing to be seen. */
static bool is_plain(const struct range_run *r)
{
	const struct vma *v = &r->area;

	/* Pieces that came back from the arena beside threads: too many to look at each. */
	if (is_ours(v) && v->end - v->start < PROBE_LEAST)
		return !time_to_look();
	return vma_probe_plain(v);
}

static bool all_plain(const struct range_plan *p)
{
	for (unsigned i = 0; i < p->n; i++)
		/* With other threads the conversion itself meets a userfaultfd. */
		if (!is_plain(&p->run[i]) || (!p->threads && convert_watched(p->run[i].start)))
			return false;
	return true;
}

static enum share_reason look_at(struct range_plan *p, bool eager)
{
	struct look look = {.p = p, .why = SHARE_MAPPED};
	uint64_t start = clock_ns();
	int rc;

	if (!eager && !time_to_look())
		return SHARE_SLOW;
	rc = vma_attrs(p->run[0].start, p->run[p->n - 1].end, take_attr, &look);
	own.look_ns += clock_ns() - start;
	return rc ? SHARE_KERNEL : look.why;
}

enum share_reason range_plan(struct range_plan *p, uint64_t lo, uint64_t hi, bool eager,
	bool (*claimed)(uint64_t lo, uint64_t hi))
{
	struct vma_process process;
	enum share_reason why;

	p->lo = lo;
	p->hi = hi;
	p->n = 0;
	if (hi > ARENA_SIZE || !arena_ready())
		return SHARE_NO_ARENA;
	why = plan_areas(p);
	if (why != SHARE_MAPPED || !p->n)
		return why;
	if (convert_own_pages(lo, hi))
		return SHARE_STACK;
	for (unsigned i = 0; i < p->n; i++)
		if (!arena_free(&p->run[i], claimed))
			return SHARE_ARENA_IN_USE;
	if (!room_for_areas(p->n))
		return SHARE_AREAS;
	if (vma_process(&process))
		return SHARE_KERNEL;
	p->threads = process.threads != 1;
	if (process.pinned_kb)
		return SHARE_PINNED;
	return !process.locked_kb && all_plain(p) ? SHARE_MAPPED : look_at(p, eager);
}

/* ---- moving ---- */

/* Remembers what [start, end) has to get back with its way back; lost if memory is short. */
static void note_attr(const struct vma_attr *a, uint64_t start, uint64_t end)
{
	struct note *n = NULL;

	if (start < end && (a->dont_fork || a->dont_dump || a->huge || a->no_huge || a->locked))
		n = malloc(sizeof *n);
	if (!n)
		return;
	*n = (struct note){.next = own.notes, .attr = *a};
	n->attr.start = start;
	n->attr.end = end;
	own.notes = n;
}

enum share_reason range_there(const struct range_plan *p, bool user, bool whole)
{
	enum share_reason why = SHARE_MAPPED;
	struct convert c;
	uint64_t done;
	int rc;

	if (!p->n)
		return why;
	if (convert_begin(&c, &own.arena, p->threads, user))
		return SHARE_THREADS;
	if (c.mode == CONVERT_USER && !whole)
		why = SHARE_EDGE;
	for (unsigned i = 0; why == SHARE_MAPPED && i < p->n; i++) {
		const struct range_run *r = &p->run[i];

		rc = convert_there(&c, r->start, r->end, &done);
		if (rc)
			why = rc == -EBUSY    ? SHARE_USERFAULTFD
			      : rc == -EPERM  ? SHARE_ATTRIBUTES /* sealed */
			      : rc == -EINVAL ? SHARE_THREADS
					      : SHARE_KERNEL;
		vma_attr_apply(&r->attr, r->start, done);
		note_attr(&r->attr, r->start, done);
		own.areas += AREAS_PER_RUN;
	}
	for (unsigned i = 0; why != SHARE_MAPPED && i < p->n; i++)
		range_back(p->run[i].start, p->run[i].end, false);
	return why;
}

/* Gives back [offset, offset+len) of the arena, now at `at`, what it had when it was moved. */
static void apply_notes(uint64_t offset, uint64_t at, uint64_t len)
{
	for (const struct note *n = own.notes; n; n = n->next) {
		uint64_t lo = n->attr.start > offset ? n->attr.start : offset;
		uint64_t hi = n->attr.end < offset + len ? n->attr.end : offset + len;

		if (lo < hi)
			vma_attr_apply(&n->attr, at + (lo - offset), at + (hi - offset));
	}
}

/* Nothing of [lo, hi) is in the arena any more. */
static void drop_notes(uint64_t lo, uint64_t hi)
{
	struct note *old = own.notes, *n;

	own.notes = NULL;
	while ((n = old)) {
		uint64_t start = n->attr.start, end = n->attr.end;

		old = n->next;
		note_attr(&n->attr, start, end < lo ? end : lo);
		note_attr(&n->attr, start > hi ? start : hi, end);
		free(n);
	}
}

static bool take_one(const struct vma_attr *a, void *arg)
{
	*(struct vma_attr *)arg = *a;
	return false;
}

/* Locked memory is one thing that no probe of an area shows. */
static bool may_be_locked(void)
{
	struct vma_process p;

	return vma_process(&p) || p.locked_kb;
}

/*
 * What the program has said about an area of arena pages since.  Of small ones that is looked for
 * only before a fork, when it matters most.
 */
static struct vma_attr attr_of(const struct vma *area, bool fork)
{
	bool small = area->end - area->start < PROBE_LEAST;
	struct vma_attr a = {.start = 0};
	uint64_t start;

	if (small ? !fork : vma_probe_plain(area) && !may_be_locked())
		return a;
	start = clock_ns();
	if (time_to_look() && !vma_attrs(area->start, area->end, take_one, &a))
		own.look_ns += clock_ns() - start;
	return a;
}

static bool back_one(const struct vma *v, const struct vma_attr *attr, bool alone)
{
	int rc = convert_back(&own.arena, v, alone);

	if (rc) {
		log_line(LOG_LVL_WARN,
			"memory at %#llx+%#llx, which peers had mapped, cannot be made private "
			"again (error %d); it stays shared memory",
			(unsigned long long)v->start, (unsigned long long)(v->end - v->start), -rc);
		return false;
	}
	apply_notes(v->offset, v->start, v->end - v->start);
	vma_attr_apply(attr, v->start, v->end);
	return true;
}

struct way_back {
	uint64_t lo, hi;
	bool alone, fork;
};

/* Where the arena is mapped is not known: nothing of it may be thrown away. */
static void cannot_look(const struct way_back *b, int rc)
{
	log_line(LOG_LVL_WARN,
		"memory at %#llx+%#llx, which peers had mapped, stays shared memory: "
		"/proc/self/maps cannot be read (error %d)",
		(unsigned long long)b->lo, (unsigned long long)(b->hi - b->lo), -rc);
}

/*
 * Finds what lies in the arena at [lo, hi) and takes it back; elsewhere: wherever it is mapped.
 * Adds to *found; false: something stays.
 */
static bool back_areas(const struct way_back *b, bool elsewhere, uint64_t *found)
{
	uint64_t lo = b->lo, hi = b->hi;
	struct vma_walk w;
	bool ok = true;
	struct vma v;
	int rc = vma_walk_begin(&w, elsewhere ? 0 : lo);

	if (rc) {
		cannot_look(b, rc);
		return false;
	}
	while (!(rc = vma_walk_next(&w, &v)) && (elsewhere || v.start < hi)) {
		uint64_t shift = v.start - v.offset;
		struct vma_attr attr;

		if (!is_ours(&v) || !v.shared || (elsewhere ? !shift : shift))
			continue;
		if (elsewhere && (is_window(&v) || import_covers(v.start, v.end)))
			continue;
		if (v.offset >= hi || v.offset + (v.end - v.start) <= lo)
			continue;
		attr = attr_of(&v, b->fork);
		clip(&v, lo + shift, hi + shift);
		ok = back_one(&v, &attr, b->alone) && ok;
		*found += v.end - v.start;
	}
	vma_walk_end(&w);
	if (!rc || rc == -ENOENT)
		return ok;
	cannot_look(b, rc);
	return false;
}

bool range_back(uint64_t lo, uint64_t hi, bool fork)
{
	const struct way_back b = {.lo = lo, .hi = hi, .alone = vma_alone(), .fork = fork};
	uint64_t found = 0;
	int saved = errno;
	bool ok;

	arena_ready(); /* its fd, if it can be had; alone we need none */
	ok = back_areas(&b, false, &found);
	if (found < hi - lo) {
		ok = back_areas(&b, true, &found) && ok;
		if (ok)
			empty_arena(lo, hi); /* the program unmapped the rest */
	}
	if (ok)
		drop_notes(lo, hi);
	errno = saved;
	return ok;
}

static void copy_in_child(const struct vma *v)
{
	int rc = convert_in_child(v);

	if (rc)
		log_line(LOG_LVL_WARN,
			"memory at %#llx+%#llx this child shares with its parent: it cannot be "
			"copied (error %d)",
			(unsigned long long)v->start, (unsigned long long)(v->end - v->start), -rc);
}

/* What could not be taken back before the fork.  Negative errno: it is not known what there is. */
static int private_in_child(void)
{
	struct vma_walk w;
	struct vma v;
	int rc = vma_walk_begin(&w, 0);

	if (rc)
		return rc;
	while (!(rc = vma_walk_next(&w, &v)))
		if (is_ours(&v))
			copy_in_child(&v);
	vma_walk_end(&w);
	return rc == -ENOENT ? 0 : rc;
}

void range_forked_child(bool left)
{
	if (own.open && own.areas) {
		int rc = private_in_child();

		if (rc && left)
			log_line(LOG_LVL_WARN,
				"what stayed shared memory this child shares with its parent: "
				"/proc/self/maps cannot be read (error %d)",
				-rc);
	}
	/* The windows were not inherited. */
	for (unsigned i = 0; i < ARENA_WINDOWS; i++)
		atomic_store_explicit(&own.arena.window[i].base, NULL, memory_order_relaxed);
	own.open = false;
	own.notes = NULL; /* malloc's locks may be held by nobody here */
	own.areas = 0;
}
