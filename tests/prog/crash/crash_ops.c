// SPDX-License-Identifier: BSD-3-Clause
/*
 * What the adapter notes of memory under the power-failure simulator: every operation that writes
 * there, READs and FLUSHes, and nothing of memory that is not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crash/journal.h"
#include "crash/keep.h"
#include "include/weft/verbs_ext.h"
#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	LEN = 8192,
	SIZE = 2 << 20,
	REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		 IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT
};

static struct journal j;
static struct vp_end a, b;
static struct ibv_mr *pmem; /* of b */
static uint8_t *mem;
static uint64_t seen; /* records */

/* The next record, which is of that kind and of that request. */
static const struct journal_record *next(enum journal_kind kind, uint64_t wr_id)
{
	const struct journal_record *r;

	if (seen >= journal_count(&j) || !(r = journal_at(&j, seen++)))
		die("a record is missing: kind %d, wr_id %d", kind, (int)wr_id);
	CHECK_EQ(r->kind, kind);
	CHECK_EQ(r->owner, getpid());
	CHECK_EQ(r->wr_id, wr_id);
	if (kind == JOURNAL_WRITE || kind == JOURNAL_PUSH) {
		CHECK_EQ(r->qpn, a.qp->qp_num);
		CHECK_EQ(r->target_qpn, b.qp->qp_num);
		CHECK_EQ(r->pid, getpid());
	}
	return r;
}

static void no_more(void)
{
	CHECK_EQ(seen, journal_count(&j));
}

static void post(enum ibv_wr_opcode op, unsigned flags, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = vp_sge(&a, 0, len);
	struct ibv_send_wr *bad, wr = {.wr_id = id,
					 .opcode = op,
					 .send_flags = IBV_SEND_SIGNALED | flags,
					 .sg_list = &sge,
					 .num_sge = 1};
	struct ibv_wc wc;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)mem + off;
		wr.wr.atomic.rkey = pmem->rkey;
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.swap = 77;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)mem + off;
		wr.wr.rdma.rkey = pmem->rkey;
	}
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, id);
}

/* The record's bytes are what is in memory now. */
static void same_bytes(const struct journal_record *r, size_t off, size_t len)
{
	CHECK_EQ(r->addr, (uintptr_t)mem + off);
	CHECK_EQ(r->len, len);
	CHECK(journal_bytes(&j, r) && !memcmp(journal_bytes(&j, r), mem + off, len));
}

static void post_receive(uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)mem + off, .length = len, .lkey = pmem->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	CHECK_EQ(ibv_post_recv(b.qp, &wr, &bad), 0);
}

static void writes(void)
{
	const struct journal_record *r;
	struct ibv_wc wc;

	pattern_fill(a.buf, LEN, 1);
	post(IBV_WR_RDMA_WRITE, 0, 1, 3, 100);
	CHECK(pattern_filled(mem + 3, 100, 1));
	same_bytes(next(JOURNAL_WRITE, 1), 3, 100);
	post(IBV_WR_RDMA_WRITE, IBV_SEND_FENCE, 2, 256, 8);
	r = next(JOURNAL_WRITE, 2);
	CHECK(r->fenced);
	CHECK_EQ(r->pos, 1);
	CHECK_EQ(r->seen, 1); /* the first one was polled before this was posted */
	post_receive(3, 0, 0);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, 4, 512, 64);
	vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 3);
	same_bytes(next(JOURNAL_WRITE, 4), 512, 64);
	no_more();
}

/* Also those that would travel in the receive queue. */
static void sends(void)
{
	static const uint32_t sizes[] = {16, 1000, LEN / 2};
	struct ibv_wc wc;

	for (unsigned i = 0; i < 3; i++) {
		pattern_fill(a.buf, LEN, 10 + i);
		post_receive(20 + i, 1024, LEN / 2);
		post(IBV_WR_SEND, 0, 10 + i, 0, sizes[i]);
		vp_want(b.rcq, &wc, IBV_WC_SUCCESS, 20 + i);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK(pattern_filled(mem + 1024, sizes[i], 10 + i));
		same_bytes(next(JOURNAL_WRITE, 10 + i), 1024, sizes[i]);
	}
	no_more();
}

static void atomics(void)
{
	uint64_t *word = (uint64_t *)(void *)(mem + 7000), *old = (uint64_t *)(void *)a.buf;

	*word = 5;
	post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 30, 7000, 8);
	CHECK_EQ(*word, 6);
	CHECK_EQ(*old, 5);
	same_bytes(next(JOURNAL_WRITE, 30), 7000, 8);
	*word = 1;
	post(IBV_WR_ATOMIC_CMP_AND_SWP, 0, 31, 7000, 8);
	CHECK_EQ(*word, 77);
	CHECK_EQ(*old, 1);
	same_bytes(next(JOURNAL_WRITE, 31), 7000, 8);
	*old = 99;
	post(IBV_WR_ATOMIC_WRITE, 0, 32, 7000, 8);
	CHECK_EQ(*word, 99);
	same_bytes(next(JOURNAL_WRITE, 32), 7000, 8);
	no_more();
}

static void flush(uint64_t id, size_t off, size_t len, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *x = ibv_qp_to_qp_ex(a.qp);
	struct ibv_wc wc;

	ibv_wr_start(x);
	x->wr_id = id;
	x->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(x, pmem->rkey, (uintptr_t)mem + off, len, type, level);
	CHECK_EQ(ibv_wr_complete(x), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, id);
}

static void pushes(void)
{
	const struct journal_record *r;

	post(IBV_WR_RDMA_READ, 0, 40, 64, 64);
	CHECK(!memcmp(a.buf, mem + 64, 64));
	r = next(JOURNAL_PUSH, 40);
	CHECK_EQ(r->push, JOURNAL_READ);
	CHECK_EQ(r->addr, (uintptr_t)mem + 64);
	CHECK_EQ(r->len, 64);
	flush(41, 256, 128, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	r = next(JOURNAL_PUSH, 41);
	CHECK_EQ(r->push, JOURNAL_FLUSH_VISIBLE);
	flush(42, 256, 128, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE);
	r = next(JOURNAL_PUSH, 42);
	CHECK_EQ(r->push, JOURNAL_FLUSH_PERSISTENT);
	CHECK_EQ(r->addr, (uintptr_t)mem + 256);
	CHECK_EQ(r->len, 128);
	flush(43, 0, 0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR);
	r = next(JOURNAL_PUSH, 43);
	CHECK_EQ(r->addr, (uintptr_t)mem);
	CHECK_EQ(r->len, LEN);
	no_more();
}

/* Memory that is not persistent. */
static void others(void)
{
	struct vp_addr to = vp_addr(&b);
	struct ibv_wc wc;

	pattern_fill(a.buf, 64, 50);
	CHECK_EQ(vp_post_send(&a, 50, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 64, &to, 0), 0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, 50);
	CHECK(pattern_filled(b.buf, 64, 50));
	no_more();
}

/* Writing goes on when nothing can be noted any more. */
static void after_the_end(void)
{
	atomic_fetch_or(&j.head->flags, JOURNAL_STOPPED);
	pattern_fill(a.buf, 64, 60);
	post(IBV_WR_RDMA_WRITE, 0, 60, 0, 64);
	CHECK(pattern_filled(mem, 64, 60));
	*(uint64_t *)(void *)mem = 8;
	post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 61, 0, 8);
	CHECK_EQ(*(uint64_t *)(void *)mem, 9);
	post(IBV_WR_RDMA_READ, 0, 62, 64, 64);
	no_more();
}

static void make_memory(void)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/pmem", getenv("WEFT_RUNTIME_DIR"));
	f = fopen(path, "w+");
	if (!f)
		die("%s", path);
	CHECK_EQ(ftruncate(fileno(f), LEN), 0);
	mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	if (mem == MAP_FAILED)
		die("mmap");
	fclose(f);
	memset(mem, 0xaa, LEN);
	pmem = ibv_reg_mr(b.pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	if (!pmem)
		die("ibv_reg_mr");
}

/* With the operations that a plain queue pair has not. */
static void make_end(struct vp_end *e, const struct vp_opts *o)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_FLUSH};

	vp_make(e, vp_open(), o);
	CHECK_EQ(ibv_destroy_qp(e->qp), 0);
	init.send_cq = e->scq;
	init.recv_cq = e->rcq;
	init.pd = e->pd;
	e->qp = ibv_create_qp_ex(e->ctx, &init);
	if (!e->qp)
		die("ibv_create_qp_ex");
}

static void connect_ends(void)
{
	struct vp_addr to_a = vp_addr(&a), to_b = vp_addr(&b);

	vp_connect(&a, &to_b);
	vp_connect(&b, &to_a);
}

int main(void)
{
	struct vp_opts opts = vp_defaults();
	struct journal_keep keep;
	char path[256];

	snprintf(path, sizeof path, "%s/journal", getenv("WEFT_RUNTIME_DIR"));
	CHECK_EQ(journal_create(path, SIZE), 0);
	CHECK_EQ(journal_keep(&keep, path), 0);
	CHECK_EQ(journal_open(&j, path, true), 0);
	setenv(JOURNAL_ENV, path, 1);
	opts.len = LEN;
	opts.qp_access = IBV_ACCESS_LOCAL_WRITE | REMOTE;
	opts.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	make_end(&a, &opts);
	make_end(&b, &opts);
	connect_ends();
	no_more();
	make_memory();
	same_bytes(next(JOURNAL_REGION, 0), 0, LEN);
	writes();
	sends();
	atomics();
	pushes();
	others();
	after_the_end();
	CHECK_EQ(ibv_dereg_mr(pmem), 0);
	vp_pair_free(&a, &b);
	journal_close(&j);
	return check_result();
}
