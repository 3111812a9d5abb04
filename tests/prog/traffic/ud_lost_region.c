// SPDX-License-Identifier: BSD-3-Clause
/*
 * A receive of a UD QP whose region has gone completes in LOC_PROT_ERR, and the QP is in error,
 * also where the datagram came into the slot of another receive: its sender looked at that one's
 * region.  One whose region is there completes, whatever became of the other one's.  The slots are
 * one ahead of the receives once a sender died that had taken one.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 64, ROOM = 256, PAGE = 4096, RECV_1 = 1, RECV_2, RECV_3, PAUSE_MS = 20 };

static struct vp_opts ud_opts(void)
{
	struct vp_opts o = vp_defaults();

	o.type = IBV_QPT_UD;
	return o;
}

static void stop(int sig)
{
	(void)sig;
	kill(getpid(), SIGSTOP);
}

/* Sends one datagram, and stops in the middle of copying its payload. */
static void sender(int fd, void *arg)
{
	struct vp_opts o = ud_opts();
	struct vp_addr mine, to;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	mine = vp_addr(&e);
	to = vp_swap(fd, &mine);
	vp_connect(&e, &to);
	signal(SIGSEGV, stop);
	CHECK_EQ(mprotect(e.buf, PAGE, PROT_NONE), 0);
	vp_sync(fd);
	vp_post_ud(&e, 0, vp_ah(&e, &to.gid), to.qpn, VP_QKEY, 0, LEN);
}

static void post(struct vp_end *e, uint64_t id, void *at, uint32_t lkey)
{
	struct ibv_sge s = {.addr = (uintptr_t)at, .length = ROOM, .lkey = lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;

	CHECK_EQ(ibv_post_recv(e->qp, &wr, &bad), 0);
}

/* Sends datagrams of ours to ourselves until one is received. */
static void receive_own(struct vp_end *e, struct ibv_ah *ah, struct ibv_wc *wc)
{
	double end = now_ms() + VP_DEADLINE_MS;

	do {
		if (now_ms() > end)
			die("nothing is received");
		CHECK_EQ(vp_post_ud(e, 0, ah, e->qp->qp_num, VP_QKEY, PAGE, LEN), 0);
		vp_want(e->scq, wc, IBV_WC_SUCCESS, 0);
	} while (!vp_poll(e->rcq, wc, PAUSE_MS));
}

/* Three receives; the second is in a region of its own, or the first. */
static void with_own_region(unsigned which, enum ibv_wc_status second)
{
	static uint8_t memory[ROOM];
	struct vp_child c = vp_fork(sender, NULL);
	struct vp_opts o = ud_opts();
	struct vp_addr mine;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct vp_end e;
	int status;

	vp_make(&e, vp_open(), &o);
	mine = vp_addr(&e);
	vp_connect(&e, &mine);
	ah = vp_ah(&e, &mine.gid);
	mr = ibv_reg_mr(e.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
	if (!ah || !mr)
		die("no address handle or no region");
	for (unsigned id = RECV_1; id <= RECV_3; id++)
		post(&e, id, id == which ? memory : e.buf, id == which ? mr->lkey : e.mr->lkey);
	vp_swap(c.fd, &mine);
	vp_sync(c.fd);
	if (waitpid(c.pid, &status, WUNTRACED) != c.pid || !WIFSTOPPED(status))
		die("the sender did not stop");
	receive_own(&e, ah, &wc);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.wr_id, RECV_1);
	vp_kill_join(&c);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	receive_own(&e, ah, &wc); /* once the slot is free again */
	CHECK_EQ(wc.status, second);
	CHECK_EQ(wc.wr_id, RECV_2);
	if (second == IBV_WC_LOC_PROT_ERR) {
		CHECK_EQ(vp_get_state(&e), IBV_QPS_ERR);
		vp_want(e.rcq, &wc, IBV_WC_WR_FLUSH_ERR, RECV_3);
	}
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	vp_free(&e);
	CHECK_EQ(ibv_close_device(e.ctx), 0);
}

int main(void)
{
	check_case("the region of the receive has gone");
	with_own_region(RECV_2, IBV_WC_LOC_PROT_ERR);
	check_case("the region of the receive that was posted in the slot has gone");
	with_own_region(RECV_1, IBV_WC_SUCCESS);
	return check_result();
}
