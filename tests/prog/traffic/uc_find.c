// SPDX-License-Identifier: BSD-3-Clause
/*
 * What a UC queue pair sends while a new weftd does not know yet where the other end is arrives:
 * an adapter would not lose it.
 */
#include <poll.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum { TRIES = 20, LEN = 100 };

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UC;
	return o;
}

/* Posts a receive and sleeps, so that it does not come to the new weftd; then looks what comes. */
static void receiver(int fd, void *arg)
{
	struct pollfd sent = {.fd = fd, .events = POLLIN};
	struct vp_opts o = options();
	struct vp_end e;

	(void)arg;
	for (;;) {
		struct vp_addr mine;
		bool came = false;
		struct ibv_wc wc;

		vp_make(&e, vp_open(), &o);
		mine = vp_addr(&e);
		mine = vp_swap(fd, &mine);
		vp_connect(&e, &mine);
		CHECK_EQ(vp_post_recv(&e, 0, 0, LEN), 0);
		vp_tell(fd, 0);
		vp_hear(fd);
		while (poll(&sent, 1, 0) == 0)
			came |= ibv_poll_cq(e.rcq, 1, &wc) == 1;
		vp_hear(fd);
		came |= ibv_poll_cq(e.rcq, 1, &wc) == 1;
		vp_tell(fd, came);
		vp_free(&e);
		CHECK_EQ(ibv_close_device(e.ctx), 0);
	}
}

/* A loaded machine may take longer than such a message waits. */
static bool arrives(int fd)
{
	struct vp_opts o = options();
	struct vp_addr mine, peer;
	struct vp_end e;
	struct ibv_wc wc;
	bool came;

	vp_make(&e, vp_open(), &o);
	mine = vp_addr(&e);
	peer = vp_swap(fd, &mine);
	vp_hear(fd);
	weftd_kill(weftd_pid());
	vp_connect(&e, &peer);
	CHECK_EQ(vp_post_send(&e, 1, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	vp_tell(fd, 0);
	vp_want(e.scq, &wc, IBV_WC_SUCCESS, 1);
	vp_tell(fd, 0);
	came = vp_hear(fd);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
	return came;
}

int main(void)
{
	struct vp_child c = vp_fork(receiver, NULL);
	bool came = false;

	for (int i = 0; i < TRIES && !came; i++)
		came = arrives(c.fd);
	CHECK(came);
	vp_kill_join(&c);
	return check_result();
}
