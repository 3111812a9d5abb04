// SPDX-License-Identifier: BSD-3-Clause
/* What weftd believes of the peer clients that a process shows: no name that is no file's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/peer_stats.h"
#include "daemon/process.h"
#include "peermem/stats.h"

enum { LOOKS = 20000 };

static struct process process;
static struct server server = {.processes = &process};
static atomic_bool over;

static void show(unsigned entry, const char *name)
{
	struct seg_peer *p = &process.seg->peer[entry];

	memcpy(p->name, name, strlen(name) + 1);
	atomic_store(&p->shown, 1);
}

/* Could all that weftd shows be names of files? */
static bool all_are_names(void)
{
	json_t *all = peer_stats_status(&server), *one;
	bool good = true;
	size_t i;

	json_array_foreach(all, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));

		good &= name && *name && !strchr(name, '/') && strcmp(name, "..");
	}
	json_decref(all);
	return good;
}

static size_t shown(void)
{
	json_t *all = peer_stats_status(&server);
	size_t n = json_array_size(all);

	json_decref(all);
	return n;
}

static void names(void **state)
{
	static const char *const bad[] = {"", ".", "..", "/", " "};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		show(0, bad[i]);
		assert_int_equal(shown(), 0);
	}
	show(0, "a");
	assert_int_equal(shown(), 1);
}

static void *change(void *arg)
{
	volatile char *name = process.seg->peer->name;

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		name[1] = '/';
		name[1] = 'b';
	}
	return arg;
}

static void names_that_change(void **state)
{
	pthread_t t;
	bool good = true;

	(void)state;
	show(0, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");
	assert_int_equal(pthread_create(&t, NULL, change, NULL), 0);
	for (unsigned i = 0; i < LOOKS && good; i++)
		good = all_are_names();
	atomic_store(&over, true);
	pthread_join(t, NULL);
	assert_true(good);
}

static void comes_again(void **state)
{
	json_t *all, *one;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		show(i, "again");
		atomic_store(&process.seg->peer[i].count[0], 2);
	}
	all = peer_stats_status(&server);
	assert_int_equal(json_array_size(all), 1);
	one = json_array_get(all, 0);
	assert_int_equal(json_integer_value(json_object_get(one, "processes")), 1);
	assert_int_equal(json_integer_value(json_object_get(one, peer_stat_name(1))), 6);
	json_decref(all);
}

static int begin(void **state)
{
	(void)state;
	process.seg = mmap(NULL, SEG_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return process.seg == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(names_that_change),
		cmocka_unit_test(comes_again),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
