// SPDX-License-Identifier: BSD-3-Clause
#include <sched.h>

#include "take_storm.h"
#include "tests/lib/check.h"

enum { SENDS = 4 /* the owner has so many receives for each connection */ };

struct user {
	struct take_world *w;
	struct take_user *shared;
	struct vp_end e;
	struct vp_addr owner;
	unsigned sends;
	uint64_t seed;
};

/* False: it is over. */
static bool connect_anew(struct user *u)
{
	if (vp_get_state(&u->e) != IBV_QPS_RESET && vp_state(&u->e, IBV_QPS_RESET))
		die("to RESET");
	u->shared->user = vp_addr(&u->e);
	atomic_store(&u->shared->link, LINK_WANTED);
	while (atomic_load(&u->shared->link) != LINK_READY) {
		if (atomic_load(&u->w->stop))
			return false;
		sched_yield();
	}
	u->owner = u->shared->owner;
	vp_connect(&u->e, &u->owner);
	u->sends = 0;
	return true;
}

static int post(struct user *u, const struct take_region *r)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND};
	static const uint32_t sizes[] = {8, 700, 8192, TAKE_BYTES};
	const struct vp_addr to = {.addr = atomic_load(&r->addr), .rkey = atomic_load(&r->rkey)};
	enum ibv_wr_opcode op = ops[take_random(&u->seed) % 4];
	uint32_t len = sizes[take_random(&u->seed) % 4];

	if (!to.rkey)
		return 1;
	if (op == IBV_WR_SEND && u->sends++ >= SENDS)
		op = IBV_WR_RDMA_WRITE;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		len = 8;
	if (vp_post_send(&u->e, 1, op, IBV_SEND_SIGNALED, 0, len, &to, 0))
		die("ibv_post_send");
	return 0;
}

/* What may become of a request whose memory, or whose owner, goes. */
static bool is_expected(enum ibv_wc_status s)
{
	return s == IBV_WC_REM_ACCESS_ERR || s == IBV_WC_REM_OP_ERR || s == IBV_WC_RETRY_EXC_ERR ||
	       s == IBV_WC_WR_FLUSH_ERR || s == IBV_WC_RNR_RETRY_EXC_ERR;
}

/* False: it failed, and the queue pair is in ERR. */
static bool request(struct user *u)
{
	struct ibv_wc wc;

	if (post(u, &u->w->region[take_random(&u->seed) % TAKE_REGIONS])) {
		sched_yield();
		return true;
	}
	if (!vp_poll(u->e.scq, &wc, 2 * VP_DEADLINE_MS))
		die("a request never ended");
	if (wc.status == IBV_WC_SUCCESS) {
		atomic_fetch_add(&u->shared->done, 1);
		return true;
	}
	if (!is_expected(wc.status))
		die("a request ended in %s", ibv_wc_status_str(wc.status));
	atomic_fetch_add(&u->shared->failed, 1);
	return false;
}

void take_user(struct take_world *w, unsigned n, uint64_t seed)
{
	struct vp_opts o = vp_defaults();
	struct user u = {.w = w, .shared = &w->user[n], .seed = seed};

	o.len = TAKE_BYTES;
	o.timeout = 12;
	o.retry_cnt = 1;
	o.rnr_retry = 1;
	vp_make(&u.e, vp_open(), &o);
	while (!atomic_load(&w->stop) && connect_anew(&u))
		while (!atomic_load(&w->stop) && request(&u))
			;
	vp_free(&u.e);
	CHECK_EQ(ibv_close_device(u.e.ctx), 0);
}
