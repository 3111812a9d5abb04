// SPDX-License-Identifier: BSD-3-Clause
/*
 * SQD while a request is under way: the queue drains until that has ended, and the event says when;
 * what was posted meanwhile waits for RTS.
 */
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 64, HELD = 1, LATER = 2, QUIET_MS = 30 };

static struct vp_end a, b;

static struct ibv_qp_attr attr_of(struct vp_end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN, &init), 0);
	return attr;
}

static void post(uint64_t id)
{
	CHECK_EQ(vp_post_send(&a, id, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, NULL, 0), 0);
}

/* Its receiver has no receive for it. */
static void send_what_waits(void)
{
	uint32_t psn = attr_of(&a).sq_psn;

	post(HELD);
	while (attr_of(&a).sq_psn == psn)
		;
}

static void go_to_sqd(bool notify)
{
	struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	CHECK_EQ(ibv_modify_qp(a.qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
}

static void want_drained(void)
{
	struct ibv_async_event ev;

	CHECK(vp_async(a.ctx, &ev, VP_DEADLINE_MS));
	CHECK_EQ(ev.event_type, IBV_EVENT_SQ_DRAINED);
	CHECK(ev.element.qp == a.qp);
	ibv_ack_async_event(&ev);
}

static void drains(void)
{
	struct ibv_async_event ev;
	struct ibv_wc wc;

	check_case("a request is under way");
	send_what_waits();
	go_to_sqd(true);
	CHECK(!vp_async(a.ctx, &ev, QUIET_MS));
	CHECK_EQ(attr_of(&a).sq_draining, 1);
	post(LATER);
	CHECK_EQ(vp_post_recv(&b, HELD, 0, LEN), 0);
	CHECK_EQ(vp_post_recv(&b, LATER, 0, LEN), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, HELD);
	want_drained();
	CHECK_EQ(attr_of(&a).sq_draining, 0);
	vp_quiet(a.scq, QUIET_MS);
	CHECK_EQ(vp_state(&a, IBV_QPS_RTS), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, LATER);
	CHECK(!vp_async(a.ctx, &ev, 0));
}

static void is_empty(void)
{
	check_case("nothing is under way");
	go_to_sqd(true);
	want_drained();
	CHECK_EQ(attr_of(&a).sq_draining, 0);
}

/* One that comes all the same is acknowledged, else its queue pair could not go. */
static void want_silence(void)
{
	struct ibv_async_event ev;

	if (!CHECK(!vp_async(a.ctx, &ev, QUIET_MS)))
		ibv_ack_async_event(&ev);
}

/* Who does not ask for the event asks whether the queue still drains. */
static void drains_in_silence(void)
{
	struct ibv_wc wc;

	check_case("a request is under way, and nobody asks for the event");
	CHECK_EQ(vp_state(&a, IBV_QPS_RTS), 0);
	send_what_waits();
	go_to_sqd(false);
	CHECK_EQ(attr_of(&a).sq_draining, 1);
	CHECK_EQ(vp_post_recv(&b, HELD, 0, LEN), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, HELD);
	while (attr_of(&a).sq_draining)
		;
	want_silence();
	check_case("nothing is under way, and nobody asks for the event");
	CHECK_EQ(vp_state(&a, IBV_QPS_RTS), 0);
	go_to_sqd(false);
	CHECK_EQ(attr_of(&a).sq_draining, 0);
	want_silence();
}

int main(void)
{
	struct vp_opts o = vp_defaults();

	o.rnr_retry = 7;
	o.min_rnr_timer = 1;
	vp_pair(&a, &b, &o);
	drains();
	is_empty();
	drains_in_silence();
	vp_pair_free(&a, &b);
	return check_result();
}
