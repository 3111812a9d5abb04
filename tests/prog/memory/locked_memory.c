// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that locks its memory, ours included: what objects took is as new for the next ones,
 * though the kernel does not take locked pages back.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { EXIT_SKIP = 77, MESSAGES = 100 };

/* All of our segment that is there or comes to be; false: no right to. */
static bool lock_segment(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long start, end;
	char line[512];
	int locked = 0, rc = 0;

	if (!f)
		die("/proc/self/maps");
	while (!rc && fgets(line, sizeof line, f)) {
		if (!strstr(line, "weft-segment") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		rc = mlock2((void *)start, end - start, MLOCK_ONFAULT);
		locked++;
	}
	fclose(f);
	CHECK_RANGE(locked, 1, 1000);
	return !rc;
}

static void exchange(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end a, b;
	struct ibv_wc wc;

	o.len = 64;
	vp_pair(&a, &b, &o);
	for (int i = 0; i < MESSAGES; i++) {
		CHECK_EQ(vp_post_recv(&b, i, 0, 64), 0);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 64, NULL, 0), 0);
		if (!vp_want(a.scq, &wc, IBV_WC_SUCCESS, i) ||
			!vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i))
			break;
	}
	vp_pair_free(&a, &b);
}

int main(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);

	if (!channel)
		die("ibv_create_comp_channel");
	if (!lock_segment()) {
		printf("locking memory takes CAP_IPC_LOCK: %s\n", strerror(errno));
		return EXIT_SKIP;
	}
	for (int i = 0; i < 3; i++) {
		check_case("objects of round %d", i);
		exchange();
	}
	CHECK_EQ(ibv_destroy_comp_channel(channel), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
	return check_result();
}
