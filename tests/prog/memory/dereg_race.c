// SPDX-License-Identifier: BSD-3-Clause
/*
 * One process sends, writes and reads at full speed while the other takes the memory away:
 * deregister, unmap, map something else at the same address.  Not a byte may arrive there, and
 * nobody may hang.  The same with RESET, ERR and destruction of the queue pair.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { SIZE = 1 << 20, CANARY = 0xc7, ROUNDS = 60, PAYLOAD = 0x11 };

enum way { BY_DEREG, BY_RESET, BY_ERR, BY_DESTROY, WAYS };
enum kind { KIND_WRITE, KIND_READ, KIND_SEND, KIND_SMALL_SEND, KINDS };

static const char *const way_names[] = {"dereg", "RESET", "ERR", "destroy"};
static const char *const kind_names[] = {"WRITE", "READ", "SEND", "small SEND"};

struct job {
	enum way way;
	enum kind kind;
};

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.len = SIZE;
	o.rnr_retry = 7;
	o.timeout = 8; /* 1 ms */
	o.retry_cnt = 1;
	o.recv_wr = 256;
	o.cqe = 1024;
	return o;
}

static uint32_t length_of(enum kind kind)
{
	return kind == KIND_SMALL_SEND ? 1000 : SIZE / 2;
}

/* ---- the one whose memory goes ---- */

static void post_receives(struct vp_end *e, enum kind kind)
{
	if (kind < KIND_SEND)
		return;
	while (!vp_post_recv(e, 1, 0, length_of(kind)))
		;
}

static uint8_t *canary(void)
{
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	memset(p, CANARY, SIZE);
	return p;
}

/* Puts other memory at the place of the buffer, at once: a late byte shows in it. */
static void replace(struct vp_end *e, uint8_t *other)
{
	if (mremap(other, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, e->buf) != e->buf)
		die("mremap");
}

static void take_away(struct vp_end *e, enum way way)
{
	switch (way) {
	case BY_RESET:
		CHECK_EQ(vp_state(e, IBV_QPS_RESET), 0);
		break;
	case BY_ERR:
		CHECK_EQ(vp_state(e, IBV_QPS_ERR), 0);
		break;
	case BY_DESTROY:
		CHECK_EQ(ibv_destroy_qp(e->qp), 0);
		e->qp = NULL;
		break;
	default:
		break;
	}
	if (way == BY_DEREG) {
		static struct ibv_mr dead;

		dead = *e->mr; /* for its keys */
		CHECK_EQ(ibv_dereg_mr(e->mr), 0);
		e->mr = &dead;
	}
	/* No peer touches the buffer now, whether its region lives or not. */
}

static void empty(struct ibv_cq *cq)
{
	struct ibv_wc wc[16];

	while (ibv_poll_cq(cq, 16, wc) > 0)
		;
}

static void loser(int fd, void *arg)
{
	const struct job *job = arg;
	struct vp_opts o = options();
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	for (int round = 0; round < ROUNDS; round++) {
		uint8_t *other = canary();
		double until;

		check_case("%s while %s comes, round %d", way_names[job->way],
			kind_names[job->kind], round);
		vp_meet(&e, fd);
		memset(e.buf, 0x22, SIZE);
		post_receives(&e, job->kind);
		vp_sync(fd); /* go */
		until = now_ms() + 0.2 + round % 7 * 0.3;
		while (now_ms() < until) {
			empty(e.rcq);
			post_receives(&e, job->kind);
		}
		take_away(&e, job->way);
		replace(&e, other);
		for (int i = 0; i < 3; i++) {
			if (job->way == BY_DEREG)
				empty(e.rcq); /* what arrived before must not land now */
			CHECK(pattern_all(e.buf, SIZE, CANARY));
		}
		if (job->way == BY_DEREG && job->kind >= KIND_SEND)
			vp_post_recv(&e, 2, 0, length_of(job->kind)); /* ends its wait for one */
		vp_sync(fd);                                          /* the other has stopped */
		CHECK(pattern_all(e.buf, SIZE, CANARY));
		if (job->way == BY_DEREG)
			e.mr = ibv_reg_mr(e.pd, e.buf, SIZE, o.mr_access);
		if (!e.mr)
			die("reg_mr");
		if (!e.qp)
			e.qp = vp_extra_qp(&e);
		CHECK_EQ(vp_state(&e, IBV_QPS_RESET), 0);
		empty(e.rcq);
	}
	vp_free(&e);
	ibv_close_device(e.ctx);
}

/* ---- the one that goes on ---- */

static int post(struct vp_end *e, enum kind kind, const struct vp_addr *peer)
{
	static const enum ibv_wr_opcode op[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND, IBV_WR_SEND};

	return vp_post_send(e, 1, op[kind], IBV_SEND_SIGNALED, 0, length_of(kind),
		kind < KIND_SEND ? peer : NULL, 0);
}

/* Keeps posting until a request fails: then the memory, or the QP, has gone. */
static bool hammer(struct vp_end *e, enum kind kind, const struct vp_addr *peer)
{
	double end = now_ms() + VP_DEADLINE_MS;
	struct ibv_wc wc;

	for (int out = 0; now_ms() < end;) {
		if (out < 8 && !post(e, kind, peer))
			out++;
		while (ibv_poll_cq(e->scq, 1, &wc) > 0) {
			out--;
			if (wc.status == IBV_WC_SUCCESS)
				continue;
			CHECK(wc.status == IBV_WC_REM_ACCESS_ERR ||
				wc.status == IBV_WC_REM_OP_ERR ||
				wc.status == IBV_WC_RETRY_EXC_ERR);
			return true;
		}
	}
	return false;
}

static void race(enum way way, enum kind kind)
{
	struct job job = {way, kind};
	struct vp_child c = vp_fork(loser, &job);
	struct vp_opts o = options();
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	memset(e.buf, PAYLOAD, SIZE);
	for (int round = 0; round < ROUNDS; round++) {
		struct vp_addr mine = vp_addr(&e), peer;

		check_case("%s while %s goes, round %d", way_names[way], kind_names[kind], round);
		peer = vp_swap(c.fd, &mine);
		vp_connect(&e, &peer);
		vp_sync(c.fd);
		CHECK(hammer(&e, kind, &peer));
		vp_sync(c.fd);
		CHECK_EQ(vp_state(&e, IBV_QPS_RESET), 0);
		empty(e.scq);
	}
	vp_join(&c);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

int main(void)
{
	for (int way = 0; way < WAYS; way++)
		for (int kind = 0; kind < KINDS; kind++)
			race(way, kind);
	return check_result();
}
