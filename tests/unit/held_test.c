// SPDX-License-Identifier: BSD-3-Clause
/* Regions that change over while a request looks whether it may go on: it is told to begin anew. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hca/exec/carry.h"

enum { LOOKS = 2000000, KEY = 0x100 };

static struct seg_mr mr;
static _Atomic bool stop;

static void *change_over(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		atomic_store(&mr.share, MR_BUSY);
		atomic_store(&mr.share, MR_COPY);
	}
	return NULL;
}

static void busy_is_never_gone(void **state)
{
	static struct seg_qp qp = {.state = QPS_LIVE | IBV_QPS_RTS};
	const struct end e = {.qp = &qp};
	struct work w = {.req = &e, .resp = &e, .mem = &e};
	struct held held = {.n = 1, .mr = {{.mr = &mr, .key = KEY, .share = MR_COPY}}};
	pthread_t thread;
	unsigned busy = 0;

	(void)state;
	atomic_store(&mr.key, KEY);
	assert_int_equal(pthread_create(&thread, NULL, change_over, NULL), 0);
	for (int i = 0; i < LOOKS; i++) {
		enum move_result r = carry_goes_on(&w, &held);

		assert_true(r == MOVE_OK || r == MOVE_ANEW);
		busy += r == MOVE_ANEW;
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	print_message("busy %u times\n", busy);
	atomic_store(&mr.share, MR_BUSY);
	assert_int_equal(carry_goes_on(&w, &held), MOVE_ANEW);
	atomic_store(&mr.key, 0);
	assert_int_equal(carry_goes_on(&w, &held), MOVE_TAKEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(busy_is_never_gone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
