// SPDX-License-Identifier: BSD-3-Clause
/* GUIDs differ wherever places do, and not otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <endian.h>
#include <fcntl.h>

#include "daemon/tables/guid.h"

static const struct guid_place place = {
	.host = "0123456789abcdef0123456789abcdef",
	.boot = "f1b3b3e7-8d5e-4e53-9d5b-5d2f0e0d1a11",
	.netns_dev = 4,
	.netns_ino = 4026531840,
	.dir_dev = 26,
	.dir_ino = 4711,
	.fabric = "default",
};

static void differs(const struct guid_place *p)
{
	assert_int_not_equal(guid_make(p), guid_make(&place));
}

static void every_part_counts(void **state)
{
	struct guid_place p = place;

	(void)state;
	assert_int_equal(guid_make(&p), guid_make(&place));
	p.host[31] = '0';
	differs(&p);
	p = place;
	p.boot[0] = '\0';
	differs(&p);
	p = place;
	p.netns_ino++;
	differs(&p);
	p = place;
	p.dir_dev++;
	differs(&p);
	p = place;
	p.dir_ino++;
	differs(&p);
	p = place;
	p.fabric = "defaul";
	differs(&p);
}

/* What one part ends with, another may begin with. */
static void parts_are_apart(void **state)
{
	const struct guid_place a = {.host = "ab", .boot = "c", .fabric = "d"};
	const struct guid_place b = {.host = "a", .boot = "bc", .fabric = "d"};
	const struct guid_place c = {.host = "ab", .boot = "", .fabric = "cd"};

	(void)state;
	assert_int_not_equal(guid_make(&a), guid_make(&b));
	assert_int_not_equal(guid_make(&a), guid_make(&c));
}

static void is_a_local_eui64(void **state)
{
	struct guid_place p = place;

	(void)state;
	for (int i = 0; i < 100; i++, p.netns_ino++)
		assert_int_equal(be64toh(guid_make(&p)) >> 56 & 3, 2);
}

/* Of one place, at any time; of another directory another. */
static void looks(void **state)
{
	int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int other = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct guid_place a, b;

	(void)state;
	guid_look(&a, dir, "default");
	guid_look(&b, dir, "default");
	assert_true(a.host[0] && a.netns_ino && a.dir_ino);
	assert_int_equal(guid_make(&a), guid_make(&b));
	guid_look(&b, other, "default");
	assert_int_not_equal(guid_make(&a), guid_make(&b));
	guid_look(&b, -1, "default");
	assert_int_equal(b.dir_ino, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_counts),
		cmocka_unit_test(parts_are_apart),
		cmocka_unit_test(is_a_local_eui64),
		cmocka_unit_test(looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
