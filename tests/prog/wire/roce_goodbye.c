// SPDX-License-Identifier: BSD-3-Clause
/*
 * The receiver of a last message says goodbye by other means, and the sender, which slept for that,
 * takes its queue pair to ERR: the acknowledgement came before, and the send has succeeded.
 */
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { ROUNDS = 300, LEN = 64, SEND = 1, RECV = 2, ENOUGH_S = 30, WORD = 7 };

static void meet(struct vp_end *e, int fd)
{
	CHECK_EQ(vp_state(e, IBV_QPS_RESET), 0);
	vp_meet(e, fd);
}

static void hear_once(struct vp_end *e, int fd)
{
	struct ibv_wc wc;

	meet(e, fd);
	CHECK_EQ(vp_post_recv(e, RECV, 0, LEN), 0);
	vp_sync(fd);
	vp_want(e->rcq, &wc, IBV_WC_SUCCESS, RECV);
	CHECK_EQ(vp_state(e, IBV_QPS_ERR), 0);
	vp_tell(fd, WORD);
}

static void say_once(struct vp_end *e, int fd)
{
	struct ibv_wc wc;

	meet(e, fd);
	vp_sync(fd);
	CHECK_EQ(vp_post_send(e, SEND, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	CHECK_EQ(vp_hear(fd), WORD);
	CHECK_EQ(vp_state(e, IBV_QPS_ERR), 0);
	vp_want(e->scq, &wc, IBV_WC_SUCCESS, SEND);
}

static void go_on(int fd, void (*once)(struct vp_end *e, int fd))
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	alarm(ENOUGH_S); /* the other one's failure leaves us asleep */
	vp_make(&e, vp_open(), &o);
	for (int i = 0; i < ROUNDS; i++)
		once(&e, fd);
	vp_sync(fd);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static void hear(int fd, void *arg)
{
	(void)arg;
	go_on(fd, hear_once);
}

int main(void)
{
	struct vp_child child = vp_fork(hear, NULL);

	go_on(child.fd, say_once);
	vp_join(&child);
	return check_result();
}
