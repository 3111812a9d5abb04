// SPDX-License-Identifier: BSD-3-Clause
/*
 * Datagrams come in bursts while another thread of their receiver registers and deregisters other
 * memory of the same protection domain, which copies out what has come: they complete in the order
 * of their receives, each with its own bytes.
 */
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/region_churn.h"
#include "tests/lib/verbs_pair.h"

enum { BURST = 32, ROOM = 256, LEN = 100, GRH = 40, TIME_MS = 1500 };

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UD;
	return o;
}

/* A burst for each word that it hears, until it is killed. */
static void sender(int fd, void *arg)
{
	struct vp_opts o = options();
	struct vp_addr to;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	to = vp_meet(&e, fd);
	ah = vp_ah(&e, &to.gid);
	for (;;) {
		uint64_t first = vp_hear(fd);

		for (unsigned i = 0; i < BURST; i++) {
			pattern_fill(e.buf + i * ROOM, LEN, (uint32_t)first + i);
			CHECK_EQ(vp_post_ud(&e, i, ah, to.qpn, VP_QKEY, i * ROOM, LEN), 0);
		}
		for (unsigned i = 0; i < BURST; i++)
			vp_want(e.scq, &wc, IBV_WC_SUCCESS, i);
	}
}

static void take_burst(struct vp_end *e, int fd, uint32_t first)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < BURST; i++)
		CHECK_EQ(vp_post_recv(e, i, i * ROOM, ROOM), 0);
	vp_tell(fd, first);
	for (unsigned i = 0; i < BURST && !check_failures(); i++) {
		if (!vp_want(e->rcq, &wc, IBV_WC_SUCCESS, i))
			return;
		CHECK_EQ(wc.byte_len, GRH + LEN);
		CHECK(pattern_filled(e->buf + i * ROOM + GRH, LEN, first + i));
	}
}

int main(void)
{
	struct vp_child c = vp_fork(sender, NULL);
	struct region_churn churn;
	struct vp_opts o = options();
	struct vp_end e;
	double end;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	region_churn_begin(&churn, e.pd);
	end = now_ms() + TIME_MS;
	for (uint32_t n = 0; now_ms() < end && !check_failures(); n += BURST)
		take_burst(&e, c.fd, n);
	region_churn_end(&churn);
	vp_kill_join(&c);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
	return check_result();
}
