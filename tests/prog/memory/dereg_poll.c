// SPDX-License-Identifier: BSD-3-Clause
/*
 * One thread polls, another registers and deregisters other memory of the same protection domain,
 * which copies out what has come: each message arrives once, in its own receive.
 */
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/region_churn.h"
#include "tests/lib/verbs_pair.h"

enum {
	DEPTH = 64,
	ROOM = 256,
	LEN = 200, /* by the ring of payload; an eighth of them, in the slot */
	TIME_MS = 700,
};

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.recv_wr = DEPTH;
	o.send_wr = DEPTH;
	return o;
}

static uint32_t length_of(uint64_t n)
{
	return n % 8 ? LEN : 8;
}

/* Sends message after message until it is killed, or nobody takes them any more. */
static void sender(int fd, void *arg)
{
	struct vp_opts o = options();
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	vp_sync(fd);
	for (uint64_t n = 0;; n++) {
		pattern_fill(e.buf, length_of(n), (uint32_t)n);
		CHECK_EQ(vp_post_send(
				 &e, n, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, length_of(n), NULL, 0),
			0);
		if (!vp_want(e.scq, &wc, IBV_WC_SUCCESS, n))
			return;
	}
}

static void post(struct vp_end *e, uint64_t n)
{
	CHECK_EQ(vp_post_recv(e, n, n % DEPTH * ROOM, ROOM), 0);
}

/* The next message, in its own receive, and nothing elsewhere in that. */
static void check_message(struct vp_end *e, uint64_t n, const struct ibv_wc *wc)
{
	uint8_t *at = e->buf + n % DEPTH * ROOM;

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	CHECK_EQ(wc->wr_id, n);
	CHECK_EQ(wc->byte_len, length_of(n));
	CHECK(pattern_filled(at, length_of(n), (uint32_t)n));
	CHECK(pattern_all(at + length_of(n), ROOM - length_of(n), 0));
	memset(at, 0, ROOM);
}

static void beside_polling(struct vp_end *e)
{
	double end = now_ms() + TIME_MS;
	struct ibv_wc wc;
	uint64_t n;

	for (n = 0; (n < DEPTH || now_ms() < end) && !check_failures(); n++) {
		if (!vp_poll(e->rcq, &wc, VP_DEADLINE_MS))
			die("nothing comes any more");
		check_message(e, n, &wc);
		post(e, n + DEPTH);
	}
}

int main(void)
{
	struct vp_child c = vp_fork(sender, NULL);
	struct region_churn churn;
	struct vp_opts o = options();
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	for (uint64_t n = 0; n < DEPTH; n++)
		post(&e, n);
	region_churn_begin(&churn, e.pd);
	vp_sync(c.fd);
	beside_polling(&e);
	region_churn_end(&churn);
	vp_kill_join(&c);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
	return check_result();
}
