// SPDX-License-Identifier: BSD-3-Clause
/* The table of SCIF endpoints with many of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "scif/ep/ep.h"

/* More per bucket than are visited at once, however few of the buckets were used. */
enum { MANY = 6000 };

static uint64_t inos[MANY];
static size_t visits;

static void count(struct scif_ep *ep)
{
	assert_true(ep->inherited);
	ep->look.wins++;
	visits++;
}

/* One that nobody visits twice, or at all, once it is out of the table. */
static void count_and_remove(struct scif_ep *ep)
{
	count(ep);
	if (ep_remove(ep))
		ep_put(ep);
}

static void each_is_visited_once(void **state)
{
	(void)state;
	for (int i = 0; i < MANY; i++) {
		int pair[2];
		struct stat st;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		assert_int_equal(fstat(pair[0], &st), 0);
		inos[i] = st.st_ino;
		assert_int_equal(ep_inherit(pair[0], -1), 0);
		close(pair[0]);
		close(pair[1]);
	}
	ep_each(count);
	assert_int_equal(visits, MANY);
	for (int i = 0; i < MANY; i++) {
		struct scif_ep *ep = ep_find_ino(inos[i]);

		assert_non_null(ep);
		assert_int_equal(ep->look.wins, 1);
		ep_put(ep);
	}
	visits = 0;
	ep_each(count_and_remove);
	assert_int_equal(visits, MANY);
	visits = 0;
	ep_each(count);
	assert_int_equal(visits, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_visited_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
