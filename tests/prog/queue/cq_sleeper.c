// SPDX-License-Identifier: BSD-3-Clause
/*
 * A process asleep in ibv_get_cq_event() when weftd is killed goes to the next weftd by itself:
 * who connects to it afterwards is heard.
 */
#include <signal.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum { LEN = 64, ASLEEP_MS = 300 };

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.channel = o.one_cq = true;
	o.timeout = 18; /* a second */
	o.retry_cnt = 3;
	return o;
}

/* Sleeps until a message comes. */
static void sleeper(int fd, void *arg)
{
	const struct vp_opts o = options();
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct vp_end e;
	void *ctx;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	CHECK_EQ(vp_post_recv(&e, 7, 0, LEN), 0);
	CHECK_EQ(ibv_req_notify_cq(e.rcq, 0), 0);
	vp_tell(fd, 1);
	CHECK_EQ(ibv_get_cq_event(e.channel, &cq, &ctx), 0);
	ibv_ack_cq_events(cq, 1);
	vp_want(cq, &wc, IBV_WC_SUCCESS, 7);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

int main(void)
{
	struct vp_child child = vp_fork(sleeper, NULL);
	const struct vp_opts o = options();
	struct vp_addr mine, peer;
	struct ibv_wc wc;
	struct vp_end e;
	pid_t old;

	vp_make(&e, vp_open(), &o);
	mine = vp_addr(&e);
	peer = vp_swap(child.fd, &mine);
	CHECK_EQ(vp_hear(child.fd), 1);
	usleep(ASLEEP_MS * 1000);
	old = weftd_pid();
	weftd_kill(old);
	vp_connect(&e, &peer); /* asks a new weftd who that is */
	CHECK(weftd_pid() != old);
	CHECK_EQ(vp_post_send(&e, 3, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 3);
	vp_join(&child);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
	return check_result();
}
