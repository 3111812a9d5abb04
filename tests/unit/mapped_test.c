// SPDX-License-Identifier: BSD-3-Clause
/* Pages made present: what is not mapped, or not with that right, is told, and nothing changes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "pages/mapped.h"
#include "pages/vma.h"

enum { PAGES = 6, READ_ONLY = 4, HOLE = 5 };

/* Pages 0 to 3 may be written, 4 read, and 5 is none. */
static uint8_t *fresh(void)
{
	uint8_t *p = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + READ_ONLY * PAGE_BYTES, PAGE_BYTES, PROT_READ), 0);
	assert_int_equal(munmap(p + HOLE * PAGE_BYTES, PAGE_BYTES), 0);
	return p;
}

static bool populate(const uint8_t *p, uint64_t len, bool write)
{
	bool there;

	errno = EXDEV;
	there = mapped_populate((uintptr_t)p, len, write);
	assert_int_equal(errno, EXDEV);
	return there;
}

static bool is_present(uint8_t *p)
{
	unsigned char there = 0;

	assert_int_equal(mincore(p, PAGE_BYTES, &there), 0);
	return there & 1;
}

static void what_may_be_written_is_present_then(void **state)
{
	uint8_t *p = fresh();

	(void)state;
	assert_true(populate(p, 0, true));
	assert_true(populate(p + 17, 8, true));
	assert_true(is_present(p));
	assert_true(populate(p + PAGE_BYTES - 1, 2, true));
	assert_true(is_present(p + PAGE_BYTES));
	assert_true(populate(p, 4 * PAGE_BYTES, true));
	assert_true(is_present(p + 3 * PAGE_BYTES));
}

static void what_is_there_stays(void **state)
{
	uint8_t *p = fresh(), before[PAGE_BYTES];

	(void)state;
	memset(p, 0xa5, PAGE_BYTES);
	memcpy(before, p, sizeof before);
	assert_true(populate(p + 100, 1, true));
	assert_memory_equal(p, before, sizeof before);
}

static void what_may_not_be_used_is_told(void **state)
{
	const uint8_t *p = fresh();

	(void)state;
	assert_false(populate(p + READ_ONLY * PAGE_BYTES, 8, true));
	assert_true(populate(p + READ_ONLY * PAGE_BYTES, 8, false));
	assert_false(populate(p + READ_ONLY * PAGE_BYTES - 4, 8, true));
	assert_false(populate(p + HOLE * PAGE_BYTES, 8, true));
	assert_false(populate(p + HOLE * PAGE_BYTES, 8, false));
	assert_false(populate(p, PAGES * PAGE_BYTES, true));
}

/* An emulator may take advice that it does not know, and do nothing. */
static bool kernel_populates(void)
{
	void *p = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool refused = p != MAP_FAILED && madvise(p, PAGE_BYTES, MADV_POPULATE_WRITE);

	munmap(p, PAGE_BYTES);
	return refused;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_may_be_written_is_present_then),
		cmocka_unit_test(what_is_there_stays),
		cmocka_unit_test(what_may_not_be_used_is_told),
	};

	if (!kernel_populates()) {
		printf("MADV_POPULATE_WRITE does nothing here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
