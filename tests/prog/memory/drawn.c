// SPDX-License-Identifier: BSD-3-Clause
/*
 * Keys that nobody guesses: those of one process say nothing of another's, and what a key named
 * once no later one names soon.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { PROCESSES = 8, REGIONS = 6000, LATELY = 30, PAGE = 4096, SMALL = 1 << 20 };

static uint8_t page[PAGE];

/* Tells the first key of a process that has just begun. */
static void first_key(int fd, void *arg)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, page, PAGE, 0);

	(void)arg;
	vp_tell(fd, mr ? mr->rkey : 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

static void in_each_process(void)
{
	uint32_t key[PROCESSES];
	unsigned small = 0;

	check_case("first keys");
	for (int i = 0; i < PROCESSES; i++) {
		struct vp_child child = vp_fork(first_key, NULL);

		key[i] = vp_hear(child.fd);
		vp_join(&child);
		CHECK(key[i]);
		small += key[i] < SMALL;
		for (int k = 0; k < i; k++)
			CHECK(key[i] != key[k]);
	}
	CHECK_RANGE(small, 0, PROCESSES / 2);
}

/* Each is taken back before the next comes. */
static void not_again_soon(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	static uint32_t key[REGIONS];
	unsigned again = 0, steps = 0;

	check_case("one after the other");
	for (int i = 0; i < REGIONS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pd, page, PAGE, 0);

		CHECK(mr && mr->rkey && mr->lkey == mr->rkey);
		key[i] = mr ? mr->rkey : 0;
		CHECK_EQ(ibv_dereg_mr(mr), 0);
		for (int k = i > LATELY ? i - LATELY : 0; k < i; k++)
			again += key[i] == key[k];
		steps += i && key[i] - key[i - 1] == key[1] - key[0];
	}
	CHECK_EQ(again, 0);
	CHECK_RANGE(steps, 0, REGIONS / 4); /* they do not go on as they begin */
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	in_each_process();
	not_again_soon();
	return check_result();
}
