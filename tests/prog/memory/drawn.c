// SPDX-License-Identifier: BSD-3-Clause
/*
 * Keys and numbers that nobody guesses: those of one process say nothing of another's, and what a
 * key named once no later one names soon.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { PROCESSES = 8, QPS = 5, KEYS = 9000, PAGE = 4096, SMALL = 1 << 20 };

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

/* Registers and takes back a region, or every third time makes a window and takes that back. */
static uint32_t key_taken_back(struct ibv_pd *pd, int i)
{
	struct ibv_mr *mr = i % 3 ? ibv_reg_mr(pd, page, PAGE, 0) : NULL;
	struct ibv_mw *mw = i % 3 ? NULL : ibv_alloc_mw(pd, i & 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	uint32_t key = mr ? mr->rkey : mw ? mw->rkey : 0;

	CHECK(key && (!mr || mr->lkey == key));
	CHECK_EQ(mr ? ibv_dereg_mr(mr) : mw ? ibv_dealloc_mw(mw) : ENOMEM, 0);
	return key;
}

static int compare(const void *x, const void *y)
{
	const uint32_t *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

/* Each is taken back before the next comes, and none comes again: they come round many times. */
static void not_again_soon(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	static uint32_t key[KEYS];
	unsigned again = 0, steps = 0;

	check_case("one after the other");
	for (int i = 0; i < KEYS; i++) {
		key[i] = key_taken_back(pd, i);
		steps += i && key[i] - key[i - 1] == key[1] - key[0];
	}
	CHECK_RANGE(steps, 0, KEYS / 4); /* they do not go on as they begin */
	qsort(key, KEYS, sizeof *key, compare);
	for (int i = 1; i < KEYS; i++)
		again += key[i] == key[i - 1];
	CHECK_EQ(again, 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* Tells the first numbers of queue pairs of a process that has just begun. */
static void first_numbers(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e[QPS];

	(void)arg;
	for (int i = 0; i < QPS; i++) {
		vp_make(&e[i], i ? e[0].ctx : vp_open(), &o);
		vp_tell(fd, e[i].qp->qp_num);
	}
	vp_hear(fd);
	for (int i = 0; i < QPS; i++)
		vp_free(&e[i]);
}

/* All at once: no number is there twice. */
static void numbers(void)
{
	struct vp_child child[PROCESSES];
	uint32_t qpn[PROCESSES * QPS];
	uint32_t least = UINT32_MAX, most = 0;
	unsigned next = 0, n = 0;

	check_case("queue pairs");
	for (int i = 0; i < PROCESSES; i++) {
		child[i] = vp_fork(first_numbers, NULL);
		for (int k = 0; k < QPS; k++, n++) {
			qpn[n] = vp_hear(child[i].fd);
			next += k && qpn[n] == qpn[n - 1] + 1;
			least = qpn[n] < least ? qpn[n] : least;
			most = qpn[n] > most ? qpn[n] : most;
			for (unsigned j = 0; j < n; j++)
				CHECK(qpn[j] != qpn[n]);
		}
	}
	CHECK_RANGE(next, 0, n / 4);
	CHECK(most - least > SMALL);
	for (int i = 0; i < PROCESSES; i++) {
		vp_tell(child[i].fd, 0);
		vp_join(&child[i]);
	}
}

int main(void)
{
	in_each_process();
	numbers();
	not_again_soon();
	return check_result();
}
