// SPDX-License-Identifier: BSD-3-Clause
/*
 * What a program has seen as received is a success for its sender, though it ends at once: a thread
 * of the receiver's posts the receive, and with it carries out the request that waits for it; as
 * soon as another one sees the message, the process is gone.  In some rounds the thread that posts
 * makes a step at a time, so that the other one always comes in between.
 *
 * usage: seen_then_gone [ROUNDS]     of each kind of message, beside one of steps
 */
#include <endian.h>
#include <fcntl.h>
#include <infiniband/tm_types.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stepper.h"
#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"
#include "tests/lib/xrc_ends.h"

enum { ROUNDS = 6, LEN = 64, TAG = 77, STEPS_MAX = 400000 };

enum kind { SENDS, SENDS_IMM, SENDS_INV, WRITES_IMM, TO_SRQ, TO_TAG, TO_XRC, KINDS };
enum ending { EXITS, IS_KILLED, CLOSES, ENDINGS };

static const char *const kind_names[] = {"SEND", "SEND with immediate", "SEND with invalidate",
	"WRITE with immediate", "SEND to a shared queue", "SEND to a tag", "SEND by XRC"};
static const char *const ending_names[] = {"_exit()", "kill -9", "closing all"};

static struct round {
	enum kind kind;
	enum ending ending;
	bool steps;
	bool early; /* the receive is there when the request comes */
} now;

/* What the sender must know beside the address. */
struct more {
	uint32_t srqn, window;
	pid_t poster;
};

/* ---- the receiver ---- */

static struct vp_end b;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static struct ibv_qp *target;
static struct ibv_cq *cq; /* of what is received */
static struct ibv_mw *window;
static struct ibv_mr *mr; /* of what is received into */
static _Atomic int go;
static _Atomic pid_t poster_tid;

static void make_window(struct more *m)
{
	struct ibv_send_wr wr = {
		.wr_id = 5, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};

	window = ibv_alloc_mw(b.pd, IBV_MW_TYPE_2);
	if (!window)
		die("ibv_alloc_mw");
	m->window = wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
	wr.bind_mw.mw = window;
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = b.mr,
		.addr = (uintptr_t)b.buf,
		.length = LEN,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	CHECK_EQ(vp_run(&b, &wr), IBV_WC_SUCCESS);
}

static void make_srq(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 16, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
		.cq = cq,
		.tm_cap = {.max_num_tags = 16, .max_ops = 8}};

	if (now.kind == TO_TAG) {
		a.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
		a.srq_type = IBV_SRQT_TM;
	}
	srq = ibv_create_srq_ex(ctx, &a);
	if (!srq)
		die("ibv_create_srq_ex");
}

static void make_receiver(struct more *m)
{
	struct ibv_context *ctx = vp_open();
	struct vp_opts o = vp_defaults();
	struct ibv_pd *pd = NULL;

	o.mr_access |= IBV_ACCESS_MW_BIND;
	if (now.kind == TO_SRQ || now.kind == TO_TAG) {
		cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
		pd = ibv_alloc_pd(ctx);
		make_srq(ctx, pd);
		o.srq = srq;
	}
	vp_make(&b, ctx, &o);
	mr = pd ? ibv_reg_mr(pd, b.buf, b.len, IBV_ACCESS_LOCAL_WRITE) : b.mr;
	if (now.kind != TO_TAG)
		cq = b.rcq;
	if (now.kind != TO_XRC)
		return;
	xrcd = xrc_domain(ctx, -1, O_CREAT);
	srq = xrc_srq(b.pd, xrcd, cq);
	target = xrc_target(xrcd);
	CHECK_EQ(ibv_get_srq_num(srq, &m->srqn), 0);
}

static int post_tag(struct ibv_sge *sge)
{
	struct ibv_ops_wr wr = {.wr_id = 2, .opcode = IBV_WR_TAG_ADD}, *bad;

	wr.tm.add.recv_wr_id = 1;
	wr.tm.add.sg_list = sge;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = TAG;
	wr.tm.add.mask = UINT64_MAX;
	return ibv_post_srq_ops(srq, &wr, &bad);
}

static void post_receive(void)
{
	struct ibv_sge sge = {.addr = (uintptr_t)b.buf, .length = LEN, .lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	int rc;

	if (now.kind == TO_TAG)
		rc = post_tag(&sge);
	else
		rc = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(b.qp, &wr, &bad);
	if (rc)
		die("a receive: %d", rc);
}

static void *poster(void *arg)
{
	(void)arg;
	atomic_store(&poster_tid, (pid_t)syscall(SYS_gettid));
	while (!atomic_load(&go))
		sched_yield();
	if (!now.early)
		post_receive();
	for (;;)
		pause();
	return NULL;
}

static void close_all(void)
{
	if (target)
		CHECK_EQ(ibv_destroy_qp(target), 0);
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	if (srq)
		CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_close_device(b.ctx), 0);
}

static void receiver(int fd, void *arg)
{
	unsigned before = check_failures();
	struct vp_addr mine, theirs;
	struct more m = {0};
	pthread_t thread;
	struct ibv_wc wc;

	(void)arg;
	make_receiver(&m);
	mine = vp_addr(&b);
	if (target)
		mine.qpn = target->qp_num;
	theirs = vp_swap(fd, &mine);
	if (target)
		xrc_connect(target, theirs.qpn, &theirs.gid);
	else
		vp_connect(&b, &theirs);
	if (now.kind == SENDS_INV)
		make_window(&m);
	if (pthread_create(&thread, NULL, poster, NULL))
		die("pthread_create");
	while (!(m.poster = atomic_load(&poster_tid)))
		sched_yield();
	if (now.early)
		post_receive();
	vp_put(fd, &m, sizeof m);
	vp_hear(fd); /* the request has been posted */
	atomic_store(&go, 1);
	do
		while (ibv_poll_cq(cq, 1, &wc) != 1)
			;
	while (!wc.status && now.kind == TO_TAG && wc.opcode != IBV_WC_TM_RECV);
	if (now.ending == IS_KILLED)
		kill(getpid(), SIGKILL);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	if (now.ending == CLOSES)
		close_all();
	_exit(check_failures() != before);
}

/* ---- the sender ---- */

static struct vp_end a;
static struct ibv_qp *initiator;

static void make_sender(int fd, struct vp_addr *to)
{
	struct vp_opts o = vp_defaults();
	struct vp_addr mine;

	o.timeout = 14; /* 67 ms, eight times */
	vp_make(&a, vp_open(), &o);
	mine = vp_addr(&a);
	if (now.kind == TO_XRC) {
		initiator = xrc_initiator(a.pd, a.scq);
		mine.qpn = initiator->qp_num;
	}
	*to = vp_swap(fd, &mine);
	if (initiator)
		xrc_connect(initiator, to->qpn, &to->gid);
	else
		vp_connect(&a, to);
}

static void post_request(const struct vp_addr *to, const struct more *m)
{
	static const enum ibv_wr_opcode ops[] = {[SENDS_IMM] = IBV_WR_SEND_WITH_IMM,
		[SENDS_INV] = IBV_WR_SEND_WITH_INV,
		[WRITES_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[TO_XRC] = IBV_WR_SEND};
	struct ibv_tmh tag = {.opcode = IBV_TMH_EAGER, .tag = htobe64(TAG)};
	struct ibv_sge sge = vp_sge(&a, 0, LEN);
	struct ibv_send_wr wr = {.wr_id = 9,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = ops[now.kind] ? ops[now.kind] : IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = m->srqn};
	struct ibv_send_wr *bad;

	if (now.kind == SENDS_INV)
		wr.invalidate_rkey = m->window;
	if (now.kind == WRITES_IMM)
		vp_aim(&wr, to->addr, to->rkey, 0);
	memcpy(a.buf, &tag, sizeof tag);
	CHECK_EQ(ibv_post_send(initiator ? initiator : a.qp, &wr, &bad), 0);
}

static void free_sender(void)
{
	struct ibv_context *ctx = a.ctx;

	if (initiator)
		CHECK_EQ(ibv_destroy_qp(initiator), 0);
	initiator = NULL;
	vp_free(&a);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* ---- a round ---- */

static bool ended_well(int status)
{
	if (now.ending == IS_KILLED)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static void play(void)
{
	struct vp_child child = vp_fork(receiver, NULL);
	struct vp_addr to;
	struct more m;
	struct ibv_wc wc;
	int status;

	make_sender(child.fd, &to);
	vp_get(child.fd, &m, sizeof m);
	post_request(&to, &m);
	if (now.steps && stepper_begin(m.poster))
		now.steps = false;
	vp_tell(child.fd, 1);
	if (now.steps)
		CHECK(stepper_to_its_end(m.poster, STEPS_MAX));
	CHECK_EQ(waitpid(child.pid, &status, 0), child.pid);
	if (!CHECK(ended_well(status)))
		fprintf(stderr, "its wait status is %#x\n", (unsigned)status);
	close(child.fd);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 9);
	free_sender();
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : ROUNDS;
	bool can_step = stepper_works();

	for (unsigned i = 0; i < KINDS * (rounds + 1); i++) {
		unsigned turn = i / KINDS;

		now = (struct round){.kind = i % KINDS,
			.ending = (i + turn) % ENDINGS,
			.steps = turn == 0 && can_step,
			.early = turn % 4 == 3};
		check_case("%s, %s%s", kind_names[now.kind], ending_names[now.ending],
			now.steps   ? ", by steps"
			: now.early ? ", posted before"
				    : "");
		play();
	}
	return check_result();
}
