// SPDX-License-Identifier: BSD-3-Clause
/*
 * Two programs that sleep between messages, with one channel for all their CQs: the completion of
 * a send comes before the answer to it, as on an adapter, and each event has one.
 */
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { MESSAGES = 400, LEN = 64, SEND = 1, RECV = 2, ENOUGH_S = 15 };

static void make(struct vp_end *e)
{
	struct vp_opts o = vp_defaults();

	o.channel = true;
	vp_make(e, vp_open(), &o);
	CHECK_EQ(ibv_req_notify_cq(e->scq, 0), 0);
	CHECK_EQ(ibv_req_notify_cq(e->rcq, 0), 0);
}

static void end(struct vp_end *e)
{
	vp_free(e);
	CHECK_EQ(ibv_close_device(e->ctx), 0);
}

/* Sleeps for an event, and takes the one completion that it is about.  False: another CQ's. */
static bool await(struct vp_end *e, struct ibv_cq *want, uint64_t id)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(e->channel, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	CHECK_EQ(ibv_req_notify_cq(cq, 0), 0);
	if (cq != want)
		return false;
	CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 1);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, id);
	return true;
}

static bool say(struct vp_end *e)
{
	CHECK_EQ(vp_post_send(e, SEND, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
	return await(e, e->scq, SEND);
}

static bool hear(struct vp_end *e)
{
	bool came = await(e, e->rcq, RECV);

	CHECK_EQ(vp_post_recv(e, RECV, LEN, LEN), 0);
	return came;
}

static void talk(int fd, bool first)
{
	unsigned n = 0;
	struct vp_end e;

	alarm(ENOUGH_S); /* the other one's failure leaves us asleep */
	make(&e);
	vp_meet(&e, fd);
	CHECK_EQ(vp_post_recv(&e, RECV, LEN, LEN), 0);
	vp_sync(fd);
	while (n < MESSAGES && (first ? say(&e) && hear(&e) : hear(&e) && say(&e)))
		n++;
	CHECK_EQ(n, MESSAGES);
	vp_sync(fd);
	end(&e);
}

static void answer(int fd, void *arg)
{
	(void)arg;
	talk(fd, false);
}

int main(void)
{
	struct vp_child child = vp_fork(answer, NULL);

	talk(child.fd, true);
	vp_join(&child);
	return check_result();
}
