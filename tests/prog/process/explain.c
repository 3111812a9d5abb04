// SPDX-License-Identifier: BSD-3-Clause
/* What completes in error, and what is not taken, is explained in the log, at both ends. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 4096, NO_QP = 0xfffff1 };

static char log_file[256];
static struct vp_end a, b;
static struct vp_addr to_b;

/* Exactly one line has the text. */
static void told(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void told(const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	check_case("the line: %s", text);
	CHECK_EQ(lines_with(log_file, text), 1);
}

static void fails(enum ibv_wr_opcode op, enum ibv_wc_status status, uint64_t id, size_t len)
{
	struct ibv_wc wc;

	CHECK_EQ(vp_post_send(&a, id, op, IBV_SEND_SIGNALED, 0, len, &to_b, 0), 0);
	vp_want(a.scq, &wc, status, id);
}

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	o.qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	o.timeout = 8;
	o.retry_cnt = 1;
	o.rnr_retry = 0;
	return o;
}

static void again(void)
{
	vp_reconnect(&a, &b);
	to_b = vp_addr(&b);
}

/* ---- keys ---- */

static void keys(void)
{
	uint32_t key = to_b.rkey;

	to_b.rkey ^= 0x100000;
	fails(IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0x101, 64);
	told("wr_id 0x101, RDMA WRITE of 64 bytes to QP %#x of process %d (explain), ends in "
	     "IBV_WC_REM_ACCESS_ERR: there is no region or window with the key %#x",
		b.qp->qp_num, (int)getpid(), to_b.rkey);
	again();
	fails(IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR, 0x102, 64);
	told("wr_id 0x102, RDMA READ of 64 bytes");
	told("0x102, RDMA READ of 64 bytes to QP %#x of process %d (explain), ends in "
	     "IBV_WC_REM_ACCESS_ERR: the key %#x does not give the right REMOTE_READ",
		b.qp->qp_num, (int)getpid(), key);
	again();
	to_b.addr += LEN - 63;
	fails(IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0x103, 64);
	told("[%#llx, +64) is not within the key %#x, which is for [%#llx, +%d)",
		(unsigned long long)to_b.addr, key, (unsigned long long)(uintptr_t)b.buf, LEN);
	again();
	a.mr->lkey ^= 0x100000;
	fails(IBV_WR_RDMA_WRITE, IBV_WC_LOC_PROT_ERR, 0x104, 64);
	told("wr_id 0x104, RDMA WRITE of 64 bytes to QP %#x of process %d (explain), ends in "
	     "IBV_WC_LOC_PROT_ERR: there is no region or window with the key %#x",
		b.qp->qp_num, (int)getpid(), a.mr->lkey);
	a.mr->lkey ^= 0x100000;
	again();
}

/* What the queue pair there does not allow is no matter of keys. */
static void rights(void)
{
	fails(IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_REM_INV_REQ_ERR, 0x151, 8);
	told("wr_id 0x151, FETCH AND ADD of 8 bytes to QP %#x of process %d (explain), ends in "
	     "IBV_WC_REM_INV_REQ_ERR: the QP there does not allow REMOTE_ATOMIC (qp_access_flags)",
		b.qp->qp_num, (int)getpid());
	again();
	told("asked for FETCH AND ADD of 8 bytes at %#llx, which gave it IBV_WC_REM_INV_REQ_ERR: "
	     "the QP does not allow REMOTE_ATOMIC (qp_access_flags)",
		(unsigned long long)(uintptr_t)b.buf);
}

/* ---- receives ---- */

static void receives(void)
{
	struct ibv_wc wc;

	fails(IBV_WR_SEND, IBV_WC_RNR_RETRY_EXC_ERR, 0x201, 64);
	told("IBV_WC_RNR_RETRY_EXC_ERR: no receive was posted there within 0 retries");
	again();
	CHECK_EQ(vp_post_recv(&b, 0x202, 0, 16), 0);
	fails(IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR, 0x203, 64);
	vp_want(b.rcq, &wc, IBV_WC_LOC_LEN_ERR, 0x202);
	told("the receive there is shorter than the message");
	told("wr_id 0x202, a receive, ends in IBV_WC_LOC_LEN_ERR: the message is longer");
	again();
}

/* ---- posts ---- */

static void posts(void)
{
	struct ibv_wc wc;
	int n = 0, rc;

	CHECK_EQ(vp_post_send(&a, 0x301, IBV_WR_RDMA_WRITE, 1 << 7, 0, 8, &to_b, 0), EINVAL);
	told("wr_id 0x301, RDMA WRITE, is refused");
	while (!(rc = vp_post_send(&a, 0x302, IBV_WR_RDMA_WRITE, 0, 0, 8, &to_b, 0)) && n < 100000)
		n++;
	CHECK_EQ(rc, ENOMEM);
	told("wr_id 0x302, RDMA WRITE, is refused (Cannot allocate memory): the send queue is "
	     "full");
	again();
	CHECK_EQ(vp_state(&a, IBV_QPS_RESET), 0);
	CHECK_EQ(vp_post_send(&a, 0x303, IBV_WR_SEND, 0, 0, 8, &to_b, 0), EINVAL);
	told("wr_id 0x303, SEND, is refused (Invalid argument): the QP is in state RESET, not RTS");
	CHECK(!vp_poll(a.scq, &wc, 0));
	again();
}

/* ---- one line for each status, and a count ---- */

static void counts(void)
{
	struct ibv_wc wc;
	unsigned flushed = lines_with(log_file, "IBV_WC_WR_FLUSH_ERR: the QP is in ERR");

	CHECK_EQ(vp_state(&a, IBV_QPS_ERR), 0);
	for (int i = 0; i < 25; i++) {
		CHECK_EQ(
			vp_post_send(&a, 0x401, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 8, &to_b, 0), 0);
		vp_want(a.scq, &wc, IBV_WC_WR_FLUSH_ERR, 0x401);
	}
	CHECK_EQ(lines_with(log_file, "IBV_WC_WR_FLUSH_ERR: the QP is in ERR"), flushed + 1);
	told("IBV_WC_WR_FLUSH_ERR, 10 times by now");
	again();
	told("25 completions in all ended in IBV_WC_WR_FLUSH_ERR");
}

/* ---- nobody answers ---- */

static void to_nobody(void)
{
	struct vp_addr none = vp_addr(&b);
	struct vp_addr ours = vp_addr(&a);

	none.qpn = NO_QP;
	vp_state(&a, IBV_QPS_RESET);
	vp_connect(&a, &none);
	fails(IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR, 0x501, 8);
	told("wr_id 0x501, RDMA WRITE of 8 bytes to QP %#x of no known process, ends in "
	     "IBV_WC_RETRY_EXC_ERR: no QP %#x in this fabric: is the peer of another user, "
	     "fabric or runtime directory?",
		NO_QP, NO_QP);
	again();
	vp_state(&b, IBV_QPS_ERR);
	fails(IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR, 0x502, 8);
	told("ends in IBV_WC_RETRY_EXC_ERR: the QP is in state ERR, not RTR");
	vp_state(&a, IBV_QPS_RESET);
	vp_state(&b, IBV_QPS_RESET);
	ours.psn += 5;
	vp_connect(&b, &ours);
	to_b = vp_addr(&b);
	vp_connect(&a, &to_b);
	fails(IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR, 0x503, 8);
	told("ends in IBV_WC_RETRY_EXC_ERR: the QP expects PSN %#x, and ours is %#x", ours.psn,
		ours.psn - 5);
}

/* ---- what is in use, and what is lost ---- */

static void in_use(void)
{
	CHECK_EQ(ibv_destroy_cq(a.scq), EBUSY);
	told("ibv_destroy_cq refused: QPs or SRQs use the CQ");
	CHECK_EQ(ibv_dealloc_pd(a.pd), EBUSY);
	told("ibv_dealloc_pd refused: QPs, SRQs, regions, windows or address handles are of the "
	     "PD");
}

static void wrong_qkey(void)
{
	struct vp_opts o = options();
	double until = now_ms() + VP_DEADLINE_MS;
	struct vp_end from, to;
	struct vp_addr peer;
	struct ibv_wc wc;
	struct ibv_ah *ah;
	char line[200];

	o.type = IBV_QPT_UD;
	vp_pair(&from, &to, &o);
	peer = vp_addr(&to);
	ah = vp_ah(&from, &peer.gid);
	snprintf(line, sizeof line,
		"a datagram from QP %#x to QP %#x is dropped: its Q_Key is %#x, that of the QP %#x "
		"(the 1. of such)",
		from.qp->qp_num, to.qp->qp_num, VP_QKEY + 1, VP_QKEY);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(vp_post_ud(&from, i, ah, to.qp->qp_num, VP_QKEY + 1, 0, 8), 0);
		vp_want(from.scq, &wc, IBV_WC_SUCCESS, i);
	}
	while (!lines_with(log_file, line) && now_ms() < until) /* a packet may be on its way */
		CHECK(!vp_poll(to.rcq, &wc, 0));
	told("%s", line);
	CHECK_EQ(ibv_destroy_ah(ah), 0);
	vp_pair_free(&from, &to);
}

/* Its receives are the SRQ's. */
static void shared(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct vp_opts o = options();

	vp_make(&a, vp_open(), &o);
	o.srq = ibv_create_srq(a.pd, &init);
	CHECK(o.srq);
	vp_make(&b, a.ctx, &o);
	CHECK_EQ(vp_post_recv(&b, 0x601, 0, 16), EINVAL);
	told("QP %#x: wr_id 0x601, a receive, is refused (Invalid argument): the QP takes its "
	     "receives from an SRQ; post them there, by ibv_post_srq_recv",
		b.qp->qp_num);
	vp_free(&b);
	CHECK_EQ(ibv_destroy_srq(o.srq), 0);
	vp_free(&a);
	ibv_close_device(a.ctx);
}

static void overrun(void)
{
	struct vp_opts o = options();
	struct ibv_async_event ev;
	struct ibv_wc wc;
	int n;

	o.cqe = 4;
	o.send_wr = 2000;
	vp_pair(&a, &b, &o);
	to_b = vp_addr(&b);
	vp_overrun(&a, &to_b);
	if (CHECK(vp_async(a.ctx, &ev, VP_DEADLINE_MS)))
		ibv_ack_async_event(&ev);
	while ((n = ibv_poll_cq(a.scq, 1, &wc)) > 0)
		;
	CHECK(n < 0);
	CHECK(ibv_poll_cq(a.scq, 1, &wc) < 0);
	told("a CQ of %d entries is lost: more completions came than it has room for", a.scq->cqe);
	vp_pair_free(&a, &b);
}

/* ---- another process ---- */

/* Where another process may have to answer, as soon as it gets a CPU. */
static struct vp_opts patient_options(void)
{
	struct vp_opts o = options();

	o.timeout = 18; /* a second */
	return o;
}

static void target(int fd, void *arg)
{
	struct vp_opts o = patient_options();
	struct ibv_async_event ev;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	vp_sync(fd);
	CHECK(vp_async(e.ctx, &ev, VP_DEADLINE_MS));
	CHECK_EQ(ev.event_type, IBV_EVENT_QP_ACCESS_ERR);
	ibv_ack_async_event(&ev);
	told("QP %#x goes to ERR: QP", e.qp->qp_num);
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void processes(struct vp_child kid)
{
	struct vp_opts o = patient_options();

	vp_make(&a, vp_open(), &o);
	to_b = vp_meet(&a, kid.fd);
	vp_sync(kid.fd);
	to_b.rkey ^= 0x100000;
	fails(IBV_WR_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR, 0x601, 64);
	told("wr_id 0x601, RDMA WRITE of 64 bytes to QP %#x of process %d (explain), ends in "
	     "IBV_WC_REM_ACCESS_ERR: there is no region or window with the key %#x",
		to_b.qpn, (int)kid.pid, to_b.rkey);
	vp_sync(kid.fd);
	told("QP %#x goes to ERR: QP %#x of process %d (explain) asked for RDMA WRITE of 64 bytes "
	     "at %#llx, which gave it IBV_WC_REM_ACCESS_ERR: there is no region or window with the "
	     "key %#x",
		to_b.qpn, a.qp->qp_num, (int)getpid(), (unsigned long long)to_b.addr, to_b.rkey);
	vp_join(&kid);
	vp_free(&a);
}

/* It dies while it is connected. */
static void victim(int fd, void *arg)
{
	struct vp_opts o = patient_options();
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	vp_sync(fd);
	vp_hear(fd); /* nothing comes */
}

static void to_the_dead(struct vp_child kid)
{
	struct vp_opts o = patient_options();
	struct ibv_wc wc;

	vp_make(&a, vp_open(), &o);
	to_b = vp_meet(&a, kid.fd);
	vp_sync(kid.fd);
	fails(IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS, 1, 8);
	vp_kill_join(&kid);
	/* What is mapped is written to until the death is seen. */
	do {
		CHECK_EQ(vp_post_send(
				 &a, 0x602, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &to_b, 0),
			0);
		CHECK(vp_poll(a.scq, &wc, VP_DEADLINE_MS));
	} while (wc.status == IBV_WC_SUCCESS);
	CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
	told("wr_id 0x602, RDMA WRITE of 8 bytes to QP %#x of process %d (explain), ends in "
	     "IBV_WC_RETRY_EXC_ERR: the process is dead",
		to_b.qpn, (int)kid.pid);
	vp_free(&a);
}

int main(void)
{
	struct vp_opts o = options();
	struct vp_child one, two;
	char how[300];

	snprintf(log_file, sizeof log_file, "%s/log", getenv("WEFT_RUNTIME_DIR"));
	snprintf(how, sizeof how, "info:%s", log_file);
	setenv("WEFT_LOG", how, 1);
	one = vp_fork(target, NULL);
	two = vp_fork(victim, NULL);
	processes(one);
	to_the_dead(two);
	check_case("in one process");
	vp_pair(&a, &b, &o);
	to_b = vp_addr(&b);
	keys();
	rights();
	receives();
	posts();
	counts();
	to_nobody();
	in_use();
	vp_pair_free(&a, &b);
	wrong_qkey();
	overrun();
	shared();
	return check_result();
}
