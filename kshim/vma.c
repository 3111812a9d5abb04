// SPDX-License-Identifier: BSD-3-Clause
/*
 * Areas of this process, as /proc/self/maps has them, and a device whose memory they are: shared
 * mappings of memory files.  Clients hold such memory by a reference to the file, or are told by a
 * notifier when it goes.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/cdev.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kshim/devices.h"
#include "kshim/hook.h"

/* What find_vma() gave out: it stays, as a client may keep the pointer. */
struct area {
	struct area *next;
	struct vm_area_struct vma;
	struct file file;
	struct inode inode;
	struct cdev cdev;
	char path[128];
};

struct allocation {
	struct allocation *next;
	uint64_t addr;
	size_t size;
};

static struct {
	pthread_mutex_t lock;
	struct area *areas;
	struct allocation *allocations;
	_Atomic long references; /* to files */
} space = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Held while notifiers are called, so that one that is unregistered is not running. */
static pthread_rwlock_t notifying = PTHREAD_RWLOCK_INITIALIZER;

/* ---- areas ---- */

static unsigned long flags_of(const char *perms)
{
	return (perms[0] == 'r' ? VM_READ : 0) | (perms[1] == 'w' ? VM_WRITE : 0) |
	       (perms[2] == 'x' ? VM_EXEC : 0) | (perms[3] == 's' ? VM_SHARED | VM_MIXEDMAP : 0);
}

static void describe_file(struct area *a)
{
	struct stat st;

	if (stat(a->path, &st))
		st = (struct stat){.st_mode = S_IFREG};
	a->inode = (struct inode){.i_mode = (umode_t)st.st_mode, .i_rdev = st.st_rdev};
	a->cdev.kobj.name = strrchr(a->path, '/') + 1;
	if (S_ISCHR(st.st_mode))
		a->inode.i_cdev = &a->cdev;
	a->file.f_inode = &a->inode;
	a->vma.vm_file = &a->file;
}

/* One line of /proc/self/maps. */
static bool parse(const char *line, struct area *a)
{
	char perms[5];
	int at = 0;

	memset(a, 0, sizeof *a);
	if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %*u %n", &a->vma.vm_start, &a->vma.vm_end, perms,
		    &a->vma.vm_pgoff, &at) < 4)
		return false;
	a->vma.vm_pgoff >>= PAGE_SHIFT;
	a->vma.vm_flags = flags_of(perms);
	snprintf(a->path, sizeof a->path, "%.*s", (int)strcspn(line + at, "\n"), line + at);
	return true;
}

static struct area *known(const struct area *like)
{
	struct area *a = space.areas;

	while (a &&
		(a->vma.vm_start != like->vma.vm_start || a->vma.vm_end != like->vma.vm_end ||
			a->vma.vm_flags != like->vma.vm_flags || strcmp(a->path, like->path) != 0))
		a = a->next;
	return a;
}

static struct area *keep(const struct area *like)
{
	struct area *a = known(like);

	if (a)
		return a;
	a = malloc(sizeof *a);
	if (!a)
		return NULL;
	*a = *like;
	a->vma.vm_mm = current->mm;
	if (a->path[0] == '/')
		describe_file(a);
	a->next = space.areas;
	space.areas = a;
	return a;
}

static bool find_line(unsigned long addr, struct area *a)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool found = false;

	if (!maps)
		return false;
	while (!found && fgets(line, sizeof line, maps))
		found = parse(line, a) && a->vma.vm_end > addr;
	fclose(maps);
	return found;
}

KSHIM_EXPORT struct vm_area_struct *find_vma(struct mm_struct *mm, unsigned long addr)
{
	struct area like, *a = NULL;

	(void)mm;
	pthread_mutex_lock(&space.lock);
	if (find_line(addr, &like))
		a = keep(&like);
	pthread_mutex_unlock(&space.lock);
	return a ? &a->vma : NULL;
}

static bool is_there(unsigned long addr)
{
	char byte;
	const struct iovec mine = {&byte, 1}, theirs = {(void *)addr, 1};

	return process_vm_readv(getpid(), &mine, 1, &theirs, 1, 0) == 1;
}

KSHIM_EXPORT int follow_pfn(struct vm_area_struct *vma, unsigned long addr, unsigned long *pfn)
{
	int rc = -EINVAL;

	if (!hook_before("follow_pfn") && addr >= vma->vm_start && addr < vma->vm_end &&
		is_there(addr)) {
		*pfn = addr >> PAGE_SHIFT;
		rc = 0;
	}
	return hook_after("follow_pfn", rc);
}

KSHIM_EXPORT int handle_mm_fault(
	struct mm_struct *mm, struct vm_area_struct *vma, unsigned long addr, unsigned int flags)
{
	(void)mm;
	(void)vma;
	(void)flags;
	is_there(addr);
	return 0;
}

KSHIM_EXPORT struct file *get_file(struct file *f)
{
	atomic_fetch_add(&f->f_count.counter, 1);
	atomic_fetch_add_explicit(&space.references, 1, memory_order_relaxed);
	return f;
}

KSHIM_EXPORT void fput(struct file *f)
{
	hook_enter("fput");
	if (atomic_load(&f->f_count.counter) < 1) {
		hook_wrong(KSHIM_STALE, "fput of a file without a reference");
	} else {
		atomic_fetch_sub(&f->f_count.counter, 1);
		atomic_fetch_sub_explicit(&space.references, 1, memory_order_relaxed);
	}
	hook_after("fput", 0);
}

/* ---- notifiers ---- */

KSHIM_EXPORT int mmu_notifier_register(struct mmu_notifier *n, struct mm_struct *mm)
{
	if (hook_before("mmu_notifier_register"))
		return hook_after("mmu_notifier_register", -ENOMEM);
	pthread_rwlock_wrlock(&notifying);
	n->next = mm->notifiers;
	mm->notifiers = n;
	pthread_rwlock_unlock(&notifying);
	return hook_after("mmu_notifier_register", 0);
}

KSHIM_EXPORT void mmu_notifier_unregister(struct mmu_notifier *n, struct mm_struct *mm)
{
	struct mmu_notifier **at = &mm->notifiers;
	bool found;

	hook_enter("mmu_notifier_unregister");
	pthread_rwlock_wrlock(&notifying);
	while (*at && *at != n)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = n->next;
	pthread_rwlock_unlock(&notifying);
	if (!found)
		hook_wrong(KSHIM_STALE, "mmu_notifier_unregister of what is not registered");
	hook_after("mmu_notifier_unregister", 0);
}

static void notify(struct mmu_notifier *n, const struct mmu_notifier_range *range)
{
	const struct mmu_notifier_ops *ops = n->ops;

	if (ops->invalidate_range_start)
		ops->invalidate_range_start(n, range);
	if (ops->invalidate_range)
		ops->invalidate_range(n, range->mm, range->start, range->end);
	for (unsigned long at = range->start; ops->invalidate_page && at < range->end;
		at += PAGE_SIZE)
		ops->invalidate_page(n, range->mm, at);
	if (ops->invalidate_range_end)
		ops->invalidate_range_end(n, range);
}

static void notify_all(uint64_t addr, size_t n)
{
	struct mm_struct *mm = current->mm;
	const struct mmu_notifier_range range = {mm, addr, addr + n};

	pthread_rwlock_rdlock(&notifying);
	hook_enter("mmu_notifier");
	for (struct mmu_notifier *at = mm->notifiers, *next; at; at = next) {
		next = at->next;
		notify(at, &range);
	}
	hook_after("mmu_notifier", 0);
	pthread_rwlock_unlock(&notifying);
}

/* ---- the device ---- */

enum { GUARD = 65536 };

/* Between addresses that are nobody's, and stay so. */
static void *map_shared(size_t n)
{
	int fd = memfd_create("weft-kshim", MFD_CLOEXEC);
	char *p = mmap(
		NULL, n + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *at = MAP_FAILED;

	if (fd >= 0 && p != MAP_FAILED && ftruncate(fd, (off_t)n) == 0)
		at = mmap(p + GUARD, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static int vma_alloc(size_t n, uint64_t *addr)
{
	struct allocation *a = calloc(1, sizeof *a);
	void *p = a && n ? map_shared(PAGE_ALIGN(n)) : NULL;

	if (!p) {
		free(a);
		return -ENOMEM;
	}
	a->addr = *addr = (uintptr_t)p;
	a->size = PAGE_ALIGN(n);
	pthread_mutex_lock(&space.lock);
	a->next = space.allocations;
	space.allocations = a;
	pthread_mutex_unlock(&space.lock);
	return 0;
}

static struct allocation *find(uint64_t addr, size_t n)
{
	struct allocation *a = space.allocations;

	while (a && (addr < a->addr || n > a->size || addr - a->addr > a->size - n))
		a = a->next;
	return a;
}

/* Takes the allocation that begins at addr off the list. */
static struct allocation *take(uint64_t addr)
{
	struct allocation **at = &space.allocations, *a;

	pthread_mutex_lock(&space.lock);
	while (*at && (*at)->addr != addr)
		at = &(*at)->next;
	a = *at;
	if (a)
		*at = a->next;
	pthread_mutex_unlock(&space.lock);
	return a;
}

/* Holders of the file keep its pages in a kernel; here they keep the addresses. */
static bool is_held(const struct allocation *a)
{
	bool held = false;

	pthread_mutex_lock(&space.lock);
	for (struct area *at = space.areas; at && !held; at = at->next)
		held = at->vma.vm_start <= a->addr && at->vma.vm_end > a->addr &&
		       atomic_load(&at->file.f_count.counter) > 0;
	pthread_mutex_unlock(&space.lock);
	return held;
}

static int vma_free(uint64_t addr)
{
	struct allocation *a = take(addr);

	if (!a)
		return -EINVAL;
	notify_all(a->addr, a->size);
	if (!is_held(a))
		mmap((void *)a->addr, a->size, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	free(a);
	return 0;
}

static int vma_write(uint64_t addr, const void *from, size_t n)
{
	bool ok;

	pthread_mutex_lock(&space.lock);
	ok = find(addr, n);
	if (ok)
		memcpy((void *)addr, from, n);
	pthread_mutex_unlock(&space.lock);
	return ok ? 0 : -EFAULT;
}

static int vma_read(uint64_t addr, void *to, size_t n)
{
	bool ok;

	pthread_mutex_lock(&space.lock);
	ok = find(addr, n);
	if (ok)
		memcpy(to, (const void *)addr, n);
	pthread_mutex_unlock(&space.lock);
	return ok ? 0 : -EFAULT;
}

static long pinned(void)
{
	return atomic_load_explicit(&space.references, memory_order_relaxed);
}

const struct weft_peer_device vma_device = {
	.size = sizeof vma_device,
	.name = "vma",
	.alloc = vma_alloc,
	.free = vma_free,
	.write = vma_write,
	.read = vma_read,
	.pinned = pinned,
	.fail_nth = hook_fail_nth,
};
