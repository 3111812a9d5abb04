// SPDX-License-Identifier: BSD-3-Clause
/*
 * The receives of a UD QP complete in the order in which they were posted, with the bytes of one
 * datagram each, however many senders there are, while some are stopped, and while memory of the
 * protection domain goes.
 */
#include <endian.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	SENDERS = 3,
	GRH = 40,
	LEN_MAX = 1000, /* less than the MTU of a port whose link has 1500 */
	ROOM = 4096,
	DEPTH = 64,
	WANTED = 20000, /* receives; of so many dozens completed in another order */
	TIME_MS = 1500, /* fewer on a slow machine */
	ROUND = 500,    /* between two regions that go, and two stops of a sender */
};

static struct vp_opts ud_opts(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UD;
	o.recv_wr = DEPTH;
	o.len = DEPTH * ROOM;
	return o;
}

/* Sends datagrams of several lengths until it is killed; each tells whose it is. */
static void sender(int fd, void *arg)
{
	static const uint32_t lens[] = {8, 150, 400, LEN_MAX};
	uint32_t me = *(uint32_t *)arg;
	struct vp_opts o = ud_opts();
	struct vp_addr mine, to;
	struct ibv_ah *ah;
	struct vp_end e;
	struct ibv_wc wc;

	vp_make(&e, vp_open(), &o);
	mine = vp_addr(&e);
	to = vp_swap(fd, &mine);
	vp_connect(&e, &to);
	ah = vp_ah(&e, &to.gid);
	pattern_fill(e.buf, LEN_MAX, me);
	vp_sync(fd);
	for (unsigned n = me;; n++) {
		CHECK_EQ(vp_post_ud(&e, me, ah, to.qpn, VP_QKEY, 0,
				 lens[n % (sizeof lens / sizeof *lens)]),
			0);
		while (!vp_poll(e.scq, &wc, VP_DEADLINE_MS))
			;
	}
}

struct receiver {
	struct vp_end e;
	uint64_t posted, polled;
};

static void post(struct receiver *r)
{
	size_t at = r->posted % DEPTH * ROOM;

	memset(r->e.buf + at, 0, ROOM);
	CHECK_EQ(vp_post_recv(&r->e, r->posted, at, ROOM), 0);
	r->posted++;
}

/* The oldest receive, and nothing but one datagram in it. */
static void check_completion(struct receiver *r, const struct ibv_wc *wc)
{
	const uint8_t *got = r->e.buf + r->polled % DEPTH * ROOM;
	uint32_t len = wc->byte_len - GRH;

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	CHECK_EQ(wc->wr_id, r->polled);
	CHECK_RANGE(wc->byte_len, GRH + 8, GRH + LEN_MAX);
	CHECK(pattern_filled(got + GRH, len, be32toh(wc->imm_data)));
	CHECK(pattern_all(got + GRH + len, ROOM - GRH - len, 0));
	r->polled++;
	post(r);
}

/* What came and was not polled is copied out before. */
static void take_a_region_away(struct receiver *r)
{
	static uint8_t other[64];
	struct ibv_mr *mr = ibv_reg_mr(r->e.pd, other, sizeof other, IBV_ACCESS_LOCAL_WRITE);

	usleep(300);
	CHECK(mr && ibv_dereg_mr(mr) == 0);
}

static void receive(struct receiver *r, struct vp_child *c)
{
	double end = now_ms() + TIME_MS;
	unsigned round = 0;
	struct ibv_wc wc;

	while (r->polled <= ROUND || (r->polled < WANTED && now_ms() < end)) {
		if (!vp_poll(r->e.rcq, &wc, VP_DEADLINE_MS))
			die("nobody sends any more");
		check_completion(r, &wc);
		/* One of them is stopped for a while, perhaps with a receive that it had taken. */
		if (r->polled % ROUND == 0)
			vp_stop(&c[++round % SENDERS]);
		if (r->polled % ROUND == ROUND / 2) {
			kill(c[round % SENDERS].pid, SIGCONT);
			take_a_region_away(r);
		}
	}
	kill(c[round % SENDERS].pid, SIGCONT);
}

int main(void)
{
	struct vp_child c[SENDERS];
	struct vp_opts o = ud_opts();
	struct receiver r = {.posted = 0};
	struct vp_addr mine;

	for (uint32_t i = 0; i < SENDERS; i++)
		c[i] = vp_fork(sender, &i);
	vp_make(&r.e, vp_open(), &o);
	mine = vp_addr(&r.e);
	vp_connect(&r.e, &mine);
	for (int i = 0; i < DEPTH; i++)
		post(&r);
	for (int i = 0; i < SENDERS; i++)
		vp_swap(c[i].fd, &mine);
	for (int i = 0; i < SENDERS; i++)
		vp_sync(c[i].fd);
	receive(&r, c);
	for (int i = 0; i < SENDERS; i++)
		vp_kill_join(&c[i]);
	vp_free(&r.e);
	CHECK_EQ(ibv_close_device(r.e.ctx), 0);
	return check_result();
}
