// SPDX-License-Identifier: BSD-3-Clause
/*
 * Who is gone, or stands still: requests to a stopped or killed process end in RETRY_EXC_ERR after
 * the requester's own time, while those to others go on; without weftd all of them do, and it is
 * there again for the next queue pair.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/weftd_from_outside.h"

enum {
	LEN = 5000,
	SEED = 5,
	READS = 30,
	TIMEOUT = 14, /* 67 ms */
	RETRIES = 3,
	LEAST_MS = 67 * RETRIES,
	ALL_MS = 10000,
};

/* A target, and our end of the connection with it. */
struct target {
	struct vp_child child;
	struct vp_end e;
	struct vp_addr to;
};

static void serve(int fd, void *arg)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	pattern_fill(e.buf, LEN, SEED);
	vp_meet(&e, fd);
	vp_sync(fd);
	vp_hear(fd);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

static struct vp_child start_target(void)
{
	return vp_fork(serve, NULL);
}

static void reach(struct target *t, struct vp_child child, uint8_t timeout, uint8_t retries)
{
	struct vp_opts o = vp_defaults();

	o.timeout = timeout;
	o.retry_cnt = retries;
	t->child = child;
	vp_make(&t->e, vp_open(), &o);
	t->to = vp_meet(&t->e, child.fd);
	vp_sync(child.fd);
}

static void leave(struct target *t)
{
	vp_free(&t->e);
	CHECK_EQ(ibv_close_device(t->e.ctx), 0);
}

static void finish(struct target *t)
{
	vp_tell(t->child.fd, 0);
	vp_join(&t->child);
	leave(t);
}

static void read_some(struct target *t, unsigned count)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < count; i++) {
		memset(t->e.buf, 0, LEN);
		CHECK_EQ(vp_post_send(
				 &t->e, i, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, LEN, &t->to, 0),
			0);
		vp_want(t->e.scq, &wc, IBV_WC_SUCCESS, i);
		CHECK(pattern_filled(t->e.buf, LEN, SEED));
	}
}

/* One READ of a target that is not to answer, while another one does. */
static void read_in_vain(struct target *t, struct target *other)
{
	double begin = now_ms();
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(&t->e, 1, IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 0, LEN, &t->to, 0), 0);
	CHECK_EQ(vp_post_send(&t->e, 2, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &t->to, 0), 0);
	read_some(other, READS);
	vp_want(t->e.scq, &wc, IBV_WC_RETRY_EXC_ERR, 1);
	CHECK_RANGE(now_ms() - begin, LEAST_MS, ALL_MS);
	vp_want(t->e.scq, &wc, IBV_WC_WR_FLUSH_ERR, 2);
	CHECK_EQ(vp_get_state(&t->e), IBV_QPS_ERR);
	read_some(other, READS);
}

static void stopped(struct target *other)
{
	struct target t;

	check_case("stopped");
	reach(&t, start_target(), TIMEOUT, RETRIES);
	read_some(&t, READS);
	vp_stop(&t.child);
	read_in_vain(&t, other);
	kill(t.child.pid, SIGCONT);
	finish(&t);
}

static void killed(struct target *other)
{
	struct target t, next;

	check_case("killed");
	reach(&t, start_target(), TIMEOUT, RETRIES);
	read_some(&t, READS);
	vp_kill_join(&t.child);
	read_in_vain(&t, other);
	check_case("the next process after one was killed");
	reach(&next, start_target(), vp_defaults().timeout, 7);
	read_some(&next, READS);
	finish(&next);
	leave(&t);
}

static void without_weftd(struct target *other)
{
	struct target t;

	check_case("weftd was killed");
	read_some(other, READS);
	weftd_kill(weftd_pid());
	read_some(other, READS);
	check_case("weftd comes again");
	reach(&t, start_target(), vp_defaults().timeout, 7);
	read_some(&t, READS);
	read_some(other, READS);
	finish(&t);
	read_some(other, READS);
}

int main(void)
{
	struct target other;

	reach(&other, start_target(), vp_defaults().timeout, 7);
	stopped(&other);
	killed(&other);
	without_weftd(&other);
	finish(&other);
	return check_result();
}
