// SPDX-License-Identifier: BSD-3-Clause
/* Attributes of areas, found by a probe and by reading smaps; neither changes any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pages/vma.h"
#include "pages/vma_probe.h"
#include "pages/vma_process.h"

enum { PAGES = 8, LEN = PAGES * PAGE_BYTES };

struct place {
	uint8_t *p;
	struct vma v;
};

static struct vma area_at(const void *p)
{
	struct vma_walk w;
	struct vma v;

	assert_int_equal(vma_walk_begin(&w, (uintptr_t)p), 0);
	assert_int_equal(vma_walk_next(&w, &v), 0);
	vma_walk_end(&w);
	return v;
}

/* An area of its own: what lies on either side has no access. */
static struct place fresh(void)
{
	struct place a;
	uint8_t *p =
		mmap(NULL, LEN + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	a.p = p + PAGE_BYTES;
	assert_int_equal(mprotect(a.p, LEN, PROT_READ | PROT_WRITE), 0);
	memset(a.p, 1, LEN);
	a.v = area_at(a.p);
	assert_int_equal(a.v.start, (uintptr_t)a.p);
	assert_int_equal(a.v.end, (uintptr_t)a.p + LEN);
	return a;
}

static bool take(const struct vma_attr *a, void *arg)
{
	*(struct vma_attr *)arg = *a;
	return false;
}

static struct vma_attr look(const struct place *a)
{
	struct vma_attr attr = {0};

	assert_int_equal(vma_attrs(a->v.start, a->v.end, take, &attr), 0);
	return attr;
}

/* Is it as it was, in one piece? */
static void assert_whole(const struct place *a)
{
	struct vma now = area_at(a->p);

	assert_int_equal(now.start, a->v.start);
	assert_int_equal(now.end, a->v.end);
}

static bool has_queries(void)
{
	struct vma_walk w;
	bool text;

	assert_int_equal(vma_walk_begin(&w, 0), 0);
	text = w.text;
	vma_walk_end(&w);
	return !text;
}

/* Does /proc/self/smaps show what was said of an area?  Not in an emulator of user programs. */
static bool kernel_tells(void)
{
	struct place a = fresh();
	FILE *f = fopen("/proc/self/smaps", "re");
	bool here = false, told = false;
	unsigned long start, end;
	char line[512];

	assert_int_equal(madvise(a.p, LEN, MADV_DONTDUMP), 0);
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start == (uintptr_t)a.p;
		else if (here && !strncmp(line, "VmFlags:", 8))
			told = strstr(line, " dd");
	}
	if (f)
		fclose(f);
	munmap(a.p, LEN);
	return told;
}

static void ordinary_memory_is_plain(void **state)
{
	struct place a = fresh();
	struct vma_attr attr = look(&a);

	(void)state;
	assert_false(attr.dont_fork || attr.dont_dump || attr.locked || attr.special);
	if (has_queries())
		assert_true(vma_probe_plain(&a.v));
	assert_whole(&a);
}

static void advice_is_seen_and_stays(void **state)
{
	static const int advice[] = {MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct place a = fresh();
		struct vma_attr attr;

		assert_int_equal(madvise(a.p, LEN, advice[i]), 0);
		assert_false(vma_probe_plain(&a.v));
		assert_whole(&a);
		attr = look(&a);
		assert_int_equal(attr.dont_fork, advice[i] == MADV_DONTFORK);
		assert_int_equal(attr.dont_dump, advice[i] == MADV_DONTDUMP);
		assert_int_equal(attr.special, advice[i] == MADV_WIPEONFORK);
	}
}

static void small_areas_are_not_judged(void **state)
{
	struct place a = fresh();
	struct vma v;

	(void)state;
	assert_int_equal(madvise(a.p, 2 * PAGE_BYTES, MADV_DONTFORK), 0);
	v = area_at(a.p);
	assert_int_equal(v.end - v.start, 2 * PAGE_BYTES);
	assert_false(vma_probe_plain(&v));
}

/* An area that is not any more what the caller saw. */
static void what_has_changed_is_not_plain(void **state)
{
	struct place a = fresh();

	(void)state;
	assert_int_equal(munmap(a.p + PAGE_BYTES, PAGE_BYTES), 0);
	assert_false(vma_probe_plain(&a.v));
}

static void the_first_stack_is_not_plain(void **state)
{
	struct vma v = area_at(&state);

	assert_false(vma_probe_plain(&v));
	v = area_at(&state);
	assert_true(v.readable && v.writable);
}

static void keys_are_seen(void **state)
{
	struct place a = fresh();
	int key = pkey_alloc(0, 0);

	(void)state;
	if (key < 0)
		skip();
	assert_int_equal(pkey_mprotect(a.p, LEN, PROT_READ | PROT_WRITE, key), 0);
	assert_false(vma_probe_plain(&a.v));
	assert_true(look(&a).special);
	pkey_free(key);
}

static void one_thread_is_alone(void **state)
{
	struct vma_process p;

	(void)state;
	assert_true(vma_alone());
	assert_int_equal(vma_process(&p), 0);
	assert_int_equal(p.threads, 1);
}

static uint64_t locked_kb(void)
{
	struct vma_process p;

	return vma_process(&p) ? UINT64_MAX : p.locked_kb;
}

/* By the kernel itself: under a sanitizer mlock() and munlock() do nothing. */
static bool lock_pages(const void *p, bool lock)
{
	return !syscall(lock ? SYS_mlock : SYS_munlock, p, (size_t)LEN);
}

/* Not what was true when it was asked first, and not what is true of another process. */
static void each_process_hears_of_itself_and_of_now(void **state)
{
	struct place a = fresh();
	uint64_t before = locked_kb();
	int status;
	pid_t pid;

	(void)state;
	if (!lock_pages(a.p, true))
		skip();
	assert_int_equal(locked_kb(), before + LEN / 1024);
	pid = fork(); /* locks are not inherited */
	if (!pid)
		_exit(locked_kb() != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(lock_pages(a.p, false));
	assert_int_equal(locked_kb(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_memory_is_plain),
		cmocka_unit_test(advice_is_seen_and_stays),
		cmocka_unit_test(small_areas_are_not_judged),
		cmocka_unit_test(what_has_changed_is_not_plain),
		cmocka_unit_test(the_first_stack_is_not_plain),
		cmocka_unit_test(keys_are_seen),
		cmocka_unit_test(one_thread_is_alone),
		cmocka_unit_test(each_process_hears_of_itself_and_of_now),
	};

	if (!kernel_tells()) {
		printf("/proc/self/smaps does not tell of areas here what Linux does\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
