// SPDX-License-Identifier: BSD-3-Clause
/*
 * A program that closes every fd it does not know, as daemons do, and then opens its own files:
 * data flows on, nobody is taken for dead, and nothing of ours lands in those files.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { FILES = 700, LEN = 65536, ROUNDS = 50 };

static struct vp_end a, b;

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.channel = true;
	o.len = LEN;
	o.rnr_retry = 7;
	return o;
}

/* The receiver: alive all the time, late with its receives, asleep on its channel. */
static void receiver(int fd, void *arg)
{
	struct vp_opts o = options();

	(void)arg;
	vp_make(&b, vp_open(), &o);
	vp_meet(&b, fd);
	vp_sync(fd);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc;

		CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
		vp_hear(fd);
		if (i % 2)
			usleep(2000);
		CHECK_EQ(vp_post_recv(&b, i, 0, LEN), 0);
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, i);
	}
	vp_sync(fd);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	vp_free(&b);
}

/* Closes all but 0 to 2 and keep. */
static void close_all(int keep)
{
	for (int fd = 3; fd < 4096; fd++)
		if (fd != keep)
			close(fd);
}

static void open_files(int *files, char *dir)
{
	char name[64];

	if (!mkdtemp(dir))
		die("mkdtemp");
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof name, "%s/%d", dir, i);
		files[i] = open(name, O_RDWR | O_CREAT, 0600);
		if (files[i] < 0)
			die("open");
		unlink(name);
	}
	rmdir(dir);
}

/* The device opens again, all of it. */
static void again(void)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	struct ibv_context *ctx = vp_open();
	struct ibv_dm *dm = ibv_alloc_dm(ctx, &attr);

	CHECK(dm);
	CHECK_EQ(ibv_free_dm(dm), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	char dir[] = "/tmp/weft-closed-XXXXXX";
	struct vp_child c = vp_fork(receiver, NULL);
	struct vp_opts o = options();
	struct vp_addr peer;
	int files[FILES];
	struct ibv_wc wc;
	struct stat st;

	vp_make(&a, vp_open(), &o);
	peer = vp_meet(&a, c.fd);
	vp_sync(c.fd);
	close_all(c.fd);
	open_files(files, dir);
	for (int i = 0; i < ROUNDS; i++) {
		vp_tell(c.fd, i);
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, i % 3 ? 64 : LEN,
				 &peer, 0),
			0);
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, i);
	}
	again();
	vp_sync(c.fd);
	vp_join(&c);
	ibv_destroy_qp(a.qp);
	ibv_dereg_mr(a.mr);
	for (int i = 0; i < FILES; i++) {
		CHECK_EQ(fstat(files[i], &st), 0);
		CHECK_EQ(st.st_size, 0);
	}
	return check_result();
}
