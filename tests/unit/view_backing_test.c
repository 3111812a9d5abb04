// SPDX-License-Identifier: BSD-3-Clause
/*
 * hca/exec/view_backing.c on a weftd that answers as it is told: what one request failed to get
 * from one that was just started is asked for again, whatever others got in the meantime.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "hca/exec/view_backing.h"
#include "rdv/proto.h"
#include "rdv/rdv.h"

enum { LEN = 4096, FIRST = SEG_BACKINGS + 1, SECOND };

static uint32_t answers; /* the one id of which weftd knows */

static int object(void)
{
	int fd = memfd_create("view-backing-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, LEN), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

int rdv_get_backing(uint32_t attach_id, uint32_t id, int *fd)
{
	assert_int_equal(attach_id, 7);
	if (!id || id != answers)
		return -ENOENT;
	*fd = object();
	return 0;
}

static struct view peer(struct backing_map *map)
{
	struct view v = {.attach = 7, .backings = map};

	v.seg = mmap(NULL, sizeof *v.seg, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(v.seg != MAP_FAILED);
	for (uint32_t id = FIRST; id <= SECOND; id++)
		v.seg->backing[id % SEG_BACKINGS] =
			(struct seg_backing){.id = id, .kind = BACKING_MEMFD};
	return v;
}

static void others_success_is_not_ours(void **state)
{
	static struct backing_map map;
	struct view v = peer(&map);

	(void)state;
	answers = 0;
	assert_false(view_backing_later(&v));
	assert_null(view_backing_reach(&v, FIRST, 0, 8));
	assert_true(view_backing_later(&v));
	answers = SECOND;
	assert_non_null(view_backing_reach(&v, SECOND, 0, 8));
	/* It was not to be had a moment ago, and is not asked for before a while. */
	assert_null(view_backing_reach(&v, FIRST, 0, 8));
	assert_true(view_backing_later(&v));
	munmap(v.seg, sizeof *v.seg);
}

static void success_alone_is_not_noted(void **state)
{
	static struct backing_map map;
	struct view v = peer(&map);

	(void)state;
	answers = FIRST;
	assert_non_null(view_backing_reach(&v, FIRST, 0, 8));
	assert_false(view_backing_later(&v));
	munmap(v.seg, sizeof *v.seg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_success_is_not_ours),
		cmocka_unit_test(success_alone_is_not_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
