// SPDX-License-Identifier: BSD-3-Clause
/*
 * Shared receive queues that match tags: eager messages that are expected and not, in the order in
 * which tags were added; the synchronisation with unexpected ones; rendezvous; what is refused; and
 * the same with peer processes, also such that die.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/tm_types.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	TMH = sizeof(struct ibv_tmh),
	HEADERS = TMH + sizeof(struct ibv_rvh),
	LEN = 1 << 18,
	TAGS = 16,
	OPS = 8,
	UNTAGGED = LEN, /* where in memory they go: above the tagged ones */
	PART = 4096,
};

static uint8_t memory[2 * LEN];
static struct vp_end a, b;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq_ex *cq;
static struct ibv_srq *srq;
static uint32_t unexpected; /* messages that we have dealt with */

/* ---- the queue ---- */

static struct ibv_srq_init_attr_ex srq_attr(void)
{
	return (struct ibv_srq_init_attr_ex){.attr = {.max_wr = 64, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
		.cq = ibv_cq_ex_to_cq(cq),
		.tm_cap = {.max_num_tags = TAGS, .max_ops = OPS}};
}

static void make_srq(struct ibv_context *ctx)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 256, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
	struct ibv_srq_init_attr_ex attr;

	memset(memory, 0, sizeof memory);
	unexpected = 0;
	pd = ibv_alloc_pd(ctx);
	mr = pd ? ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) : NULL;
	cq = mr ? ibv_create_cq_ex(ctx, &init) : NULL;
	if (!cq)
		die("set-up");
	attr = srq_attr();
	srq = ibv_create_srq_ex(ctx, &attr);
	if (!srq)
		die("ibv_create_srq_ex");
}

static void free_srq(void)
{
	CHECK_EQ(ibv_destroy_srq(srq), 0);
	CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	CHECK_EQ(ibv_dereg_mr(mr), 0);
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
}

static int sender_access; /* of its queue pair; 0: as usual */

static struct vp_opts sender_opts(void)
{
	struct vp_opts o = vp_defaults();

	o.len = LEN;
	o.qp_access =
		sender_access ? sender_access : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	o.rnr_retry = 7;
	return o;
}

static void set_up(void)
{
	struct ibv_context *ctx = vp_open();
	struct vp_opts o = sender_opts();
	struct vp_addr to_a, to_b;

	make_srq(ctx);
	vp_make(&a, ctx, &o);
	o.srq = srq;
	vp_make(&b, ctx, &o);
	to_a = vp_addr(&a);
	to_b = vp_addr(&b);
	vp_connect(&a, &to_b);
	vp_connect(&b, &to_a);
}

static void tear_down(void)
{
	struct ibv_context *ctx = a.ctx;

	vp_free(&a);
	vp_free(&b);
	free_srq();
	CHECK_EQ(ibv_close_device(ctx), 0);
}

/* ---- what one posts ---- */

static int post_untagged(uint64_t id, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory + UNTAGGED + id % 64 * PART,
		.length = len,
		.lkey = mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int operate(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int rc = ibv_post_srq_ops(srq, wr, &bad);

	CHECK((rc != 0) == (bad == wr));
	return rc;
}

/* A receive of len bytes at off of memory; its handle. */
static int add(uint64_t id, uint64_t tag, uint64_t mask, size_t off, uint32_t len, int flags,
	uint32_t *handle)
{
	struct ibv_sge sge = {.addr = (uintptr_t)memory + off, .length = len, .lkey = mr->lkey};
	struct ibv_ops_wr wr = {.wr_id = 1000 + id, .opcode = IBV_WR_TAG_ADD, .flags = flags};
	int rc;

	wr.tm.unexpected_cnt = unexpected;
	wr.tm.add.recv_wr_id = id;
	wr.tm.add.sg_list = &sge;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = tag;
	wr.tm.add.mask = mask;
	rc = operate(&wr);
	if (handle)
		*handle = wr.tm.handle;
	return rc;
}

static int add_tag(uint64_t id, uint64_t tag, size_t off, uint32_t len)
{
	return add(id, tag, UINT64_MAX, off, len, IBV_OPS_TM_SYNC, NULL);
}

static int del(uint64_t id, uint32_t handle)
{
	struct ibv_ops_wr wr = {.wr_id = id, .opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_SIGNALED};

	wr.tm.handle = handle;
	return operate(&wr);
}

static int sync_count(uint64_t id, uint32_t count)
{
	struct ibv_ops_wr wr = {.wr_id = id,
		.opcode = IBV_WR_TAG_SYNC,
		.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC};

	wr.tm.unexpected_cnt = count;
	return operate(&wr);
}

static void write_header(uint8_t *at, uint8_t opcode, uint64_t tag, uint32_t priv)
{
	struct ibv_tmh h = {.opcode = opcode, .app_ctx = htobe32(priv), .tag = htobe64(tag)};

	memcpy(at, &h, sizeof h);
}

/* A message of len bytes after its header, which is pattern seed; not waited for. */
static void post_eager(struct vp_end *e, uint8_t opcode, uint64_t tag, uint32_t seed, uint32_t len)
{
	write_header(e->buf, opcode, tag, seed);
	pattern_fill(e->buf + TMH, len, seed);
	CHECK_EQ(vp_post_send(e, seed, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, TMH + len, NULL, 0), 0);
}

static void sent(struct vp_end *e, uint64_t id)
{
	struct ibv_wc wc;

	vp_want(e->scq, &wc, IBV_WC_SUCCESS, id);
}

static void send_eager(uint64_t tag, uint32_t seed, uint32_t len)
{
	post_eager(&a, IBV_TMH_EAGER, tag, seed, len);
	sent(&a, seed);
}

/* ---- what one polls ---- */

struct done {
	uint64_t wr_id, tag;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned flags;
	uint32_t len, priv, qpn;
};

static bool poll_done(struct done *d, int ms)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_wc_tm_info info;
	double until = now_ms() + ms;
	int rc;

	while ((rc = ibv_start_poll(cq, &attr)) == ENOENT && now_ms() < until)
		;
	if (rc)
		return false;
	ibv_wc_read_tm_info(cq, &info);
	*d = (struct done){.wr_id = cq->wr_id,
		.tag = info.tag,
		.priv = info.priv,
		.status = cq->status,
		.opcode = ibv_wc_read_opcode(cq),
		.flags = ibv_wc_read_wc_flags(cq),
		.qpn = ibv_wc_read_qp_num(cq),
		.len = ibv_wc_read_byte_len(cq)};
	ibv_end_poll(cq);
	return true;
}

static struct done want(enum ibv_wc_opcode opcode, uint64_t id, unsigned flags)
{
	struct done d = {0};

	if (CHECK(poll_done(&d, VP_DEADLINE_MS))) {
		CHECK_EQ(d.status, IBV_WC_SUCCESS);
		CHECK_EQ(d.opcode, opcode);
		CHECK_EQ(d.wr_id, id);
		CHECK_EQ(d.flags, flags);
	}
	return d;
}

/* Receive id, at off, has the message of that tag and pattern. */
static void want_match(uint64_t id, uint64_t tag, uint32_t seed, size_t off, uint32_t len)
{
	struct done d = want(IBV_WC_TM_RECV, id, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);

	CHECK_EQ(d.tag, tag);
	CHECK_EQ(d.priv, seed);
	CHECK_EQ(d.len, len);
	CHECK_EQ(d.qpn, b.qp->qp_num);
	CHECK(pattern_filled(memory + off, len, seed));
}

/* Untagged receive id has it, header and all. */
static void want_unexpected(uint64_t id, uint64_t tag, uint32_t seed, uint32_t len)
{
	const uint8_t *at = memory + UNTAGGED + id % 64 * PART;
	struct done d = want(IBV_WC_TM_RECV, id, 0);
	struct ibv_tmh h;

	CHECK_EQ(d.tag, 0);
	CHECK_EQ(d.len, TMH + len);
	memcpy(&h, at, sizeof h);
	CHECK_EQ(be64toh(h.tag), tag);
	CHECK_EQ(be32toh(h.app_ctx), seed);
	CHECK(pattern_filled(at + TMH, len, seed));
}

static void want_nothing(void)
{
	struct done d;

	CHECK(!poll_done(&d, 5));
}

/* ---- cases ---- */

static void creation(void)
{
	struct ibv_context *ctx = vp_open();
	struct ibv_ops_wr wr = {.opcode = IBV_WR_TAG_SYNC}, *bad = NULL;
	struct ibv_srq_init_attr plain = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_init_attr_ex attr;
	struct ibv_qp_init_attr qp = {
		.qp_type = IBV_QPT_UC, .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
	struct ibv_device_attr_ex dev;
	struct ibv_srq *basic;

	check_case("what is refused");
	make_srq(ctx);
	CHECK_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	CHECK(dev.tm_caps.flags & IBV_TM_CAP_RC);
	CHECK(dev.tm_caps.max_num_tags >= TAGS && dev.tm_caps.max_ops >= OPS);
	CHECK(dev.tm_caps.max_rndv_hdr_size >= HEADERS && dev.tm_caps.max_sge >= 1);
	attr = srq_attr();
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_TM;
	CHECK(!ibv_create_srq_ex(ctx, &attr) && errno == EINVAL);
	attr = srq_attr();
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	CHECK(!ibv_create_srq_ex(ctx, &attr) && errno == EINVAL);
	attr = srq_attr();
	attr.tm_cap.max_num_tags = 0;
	CHECK(!ibv_create_srq_ex(ctx, &attr) && errno == EINVAL);
	attr.tm_cap.max_num_tags = dev.tm_caps.max_num_tags + 1;
	CHECK(!ibv_create_srq_ex(ctx, &attr) && errno == EINVAL);
	attr = srq_attr();
	attr.tm_cap.max_ops = dev.tm_caps.max_ops + 1;
	CHECK(!ibv_create_srq_ex(ctx, &attr) && errno == EINVAL);
	qp.srq = srq;
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(cq);
	CHECK(!ibv_create_qp(pd, &qp) && errno == EINVAL);
	basic = ibv_create_srq(pd, &plain);
	CHECK_EQ(ibv_post_srq_ops(basic, &wr, &bad), EOPNOTSUPP);
	CHECK(bad == &wr);
	CHECK_EQ(ibv_destroy_srq(basic), 0);
	wr.opcode = IBV_WR_TAG_SYNC + 1;
	CHECK_EQ(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
	wr = (struct ibv_ops_wr){.opcode = IBV_WR_TAG_SYNC, .flags = 1 << 5};
	CHECK_EQ(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
	wr = (struct ibv_ops_wr){.opcode = IBV_WR_TAG_ADD};
	wr.tm.add.num_sge = (int)dev.tm_caps.max_sge + 1;
	CHECK_EQ(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
	check_case("full lists");
	for (uint64_t i = 0; i < TAGS; i++)
		CHECK_EQ(add_tag(i, i, 0, 8), 0);
	CHECK_EQ(add_tag(TAGS, 1, 0, 8), ENOMEM);
	for (uint64_t i = 0; i < OPS; i++)
		CHECK_EQ(sync_count(i, 0), 0);
	CHECK_EQ(sync_count(9, 0), ENOMEM);
	for (uint64_t i = 0; i < OPS; i++)
		want(IBV_WC_TM_SYNC, i, 0);
	CHECK_EQ(sync_count(9, 0), 0);
	free_srq();
	ibv_close_device(ctx);
}

static void expected(void)
{
	static const uint32_t lengths[] = {0, 1, 20, 36, 37, 1000, 4096, 5000, 100000};

	check_case("expected messages of all lengths");
	set_up();
	for (uint32_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		CHECK_EQ(add(i, 0x1234000000000000 + i, UINT64_MAX, 64, LEN - 64,
				 IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC, NULL),
			0);
		want(IBV_WC_TM_ADD, 1000 + i, 0);
		send_eager(0x1234000000000000 + i, i + 1, lengths[i]);
		want_match(i, 0x1234000000000000 + i, i + 1, 64, lengths[i]);
	}
	check_case("the first that fits, in the order of adding");
	CHECK_EQ(add_tag(1, 5, 0, PART), 0);
	CHECK_EQ(add_tag(2, 7, PART, PART), 0);
	CHECK_EQ(add_tag(3, 5, 2 * PART, PART), 0);
	CHECK_EQ(add(4, 0x100, 0xff00, 3 * PART, PART, 0, NULL), 0);
	CHECK_EQ(add(5, 0, 0, 4 * PART, PART, 0, NULL), 0);
	send_eager(5, 50, 100);
	send_eager(5, 51, 100);
	send_eager(0x177, 52, 100);
	send_eager(5, 53, 100);
	send_eager(7, 54, 100);
	want_match(1, 5, 50, 0, 100);
	want_match(3, 5, 51, 2 * PART, 100);
	want_match(4, 0x177, 52, 3 * PART, 100);
	want_match(5, 5, 53, 4 * PART, 100);
	want_match(2, 7, 54, PART, 100);
	check_case("one that stays long, while others go round");
	CHECK_EQ(add_tag(99, 99, 0, PART), 0);
	for (uint32_t i = 0; i < 100; i++) {
		CHECK_EQ(add_tag(i, i % 7, PART, PART), 0);
		send_eager(i % 7, i, 10 + i);
		want_match(i, i % 7, i, PART, 10 + i);
	}
	send_eager(99, 7, 77);
	want_match(99, 99, 7, 0, 77);
	check_case("a receive that is too small");
	CHECK_EQ(add_tag(1, 5, 0, 10), 0);
	post_eager(&a, IBV_TMH_EAGER, 5, 1, 11);
	{
		struct ibv_wc wc;
		struct done d;

		vp_want(a.scq, &wc, IBV_WC_REM_INV_REQ_ERR, 1);
		CHECK(poll_done(&d, VP_DEADLINE_MS));
		CHECK_EQ(d.status, IBV_WC_LOC_LEN_ERR);
		CHECK_EQ(d.wr_id, 1);
	}
	tear_down();
}

static void not_expected(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	struct done d;

	check_case("unexpected messages");
	set_up();
	for (uint64_t id = 0; id < 20; id++)
		CHECK_EQ(post_untagged(id, PART), 0);
	CHECK_EQ(add_tag(1, 5, 0, PART), 0);
	send_eager(6, 60, 100);
	want_unexpected(0, 6, 60, 100);
	check_case("a receive added before that is dealt with is kept apart");
	CHECK_EQ(add(2, 7, UINT64_MAX, PART, PART, IBV_OPS_SIGNALED, NULL), 0);
	want(IBV_WC_TM_ADD, 1002, IBV_WC_TM_SYNC_REQ);
	send_eager(7, 61, 100);
	want_unexpected(1, 7, 61, 100);
	send_eager(5, 62, 100); /* this one is older */
	want_match(1, 5, 62, 0, 100);
	CHECK_EQ(sync_count(77, 1), 0);
	want(IBV_WC_TM_SYNC, 77, IBV_WC_TM_SYNC_REQ);
	send_eager(7, 63, 100);
	want_unexpected(2, 7, 63, 100);
	unexpected = 3;
	CHECK_EQ(sync_count(78, 3), 0);
	want(IBV_WC_TM_SYNC, 78, 0);
	send_eager(7, 64, 100);
	want_match(2, 7, 64, PART, 100);
	check_case("messages without a tag");
	CHECK_EQ(add(3, 0, 0, 0, PART, 0, NULL), 0);
	post_eager(&a, IBV_TMH_NO_TAG, 7, 65, 100);
	sent(&a, 65);
	d = want(IBV_WC_TM_NO_TAG, 3, 0);
	CHECK_EQ(d.len, TMH + 100);
	a.buf[0] = IBV_TMH_NO_TAG;
	CHECK_EQ(vp_post_send(&a, 66, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 1, NULL, 0), 0);
	sent(&a, 66);
	d = want(IBV_WC_TM_NO_TAG, 4, 0);
	CHECK_EQ(d.len, 1);
	a.buf[0] = IBV_TMH_EAGER; /* but not a whole header */
	CHECK_EQ(vp_post_send(&a, 67, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 15, NULL, 0), 0);
	sent(&a, 67);
	want(IBV_WC_TM_NO_TAG, 5, 0);
	check_case("with immediate data, inline");
	write_header(a.buf, IBV_TMH_EAGER, 9, 9);
	sge = vp_sge(&a, 0, TMH);
	wr = (struct ibv_send_wr){.wr_id = 68,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = htobe32(0xabcd),
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
	CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
	sent(&a, 68);
	d = want(IBV_WC_TM_RECV, 3, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID | IBV_WC_WITH_IMM);
	CHECK_EQ(d.len, 0);
	CHECK_EQ(d.tag, 9);
	tear_down();
}

static void deletion(void)
{
	uint32_t handle, other;
	struct done d;

	check_case("a tag is taken out");
	set_up();
	CHECK_EQ(post_untagged(0, PART), 0);
	CHECK_EQ(add(1, 5, UINT64_MAX, 0, PART, 0, &handle), 0);
	CHECK_EQ(add(2, 5, UINT64_MAX, PART, PART, 0, &other), 0);
	CHECK(handle != other);
	CHECK_EQ(del(10, handle), 0);
	want(IBV_WC_TM_DEL, 10, 0);
	send_eager(5, 1, 100);
	want_match(2, 5, 1, PART, 100);
	check_case("one that a message has, or that is not there");
	CHECK_EQ(del(11, other), 0);
	CHECK(poll_done(&d, VP_DEADLINE_MS));
	CHECK_EQ(d.status, IBV_WC_TM_ERR);
	CHECK_EQ(d.opcode, IBV_WC_TM_DEL);
	CHECK_EQ(del(12, handle), 0);
	CHECK(poll_done(&d, VP_DEADLINE_MS));
	CHECK_EQ(d.status, IBV_WC_TM_ERR);
	send_eager(5, 2, 100);
	want_unexpected(0, 5, 2, 100);
	check_case("a requester that waits for a receive goes on when its tag is added");
	post_eager(&a, IBV_TMH_EAGER, 5, 3, 100);
	vp_quiet(a.scq, 10);
	unexpected = 1;
	CHECK_EQ(add_tag(3, 5, 0, PART), 0);
	sent(&a, 3);
	want_match(3, 5, 3, 0, 100);
	post_eager(&a, IBV_TMH_EAGER, 6, 4, 100);
	vp_quiet(a.scq, 10);
	CHECK_EQ(post_untagged(1, PART), 0);
	sent(&a, 4);
	want_unexpected(1, 6, 4, 100);
	check_case("what was completed for a QP that goes, goes");
	unexpected = 2;
	CHECK_EQ(add_tag(4, 8, 0, PART), 0);
	send_eager(8, 5, 10);
	CHECK_EQ(ibv_destroy_qp(b.qp), 0);
	b.qp = NULL;
	want_nothing();
	tear_down();
}

/* ---- rendezvous ---- */

static void post_rendezvous(
	struct vp_end *e, uint64_t tag, uint32_t seed, size_t off, uint32_t len, uint32_t rkey)
{
	struct ibv_rvh rvh = {
		.va = htobe64((uintptr_t)e->buf + off), .rkey = htobe32(rkey), .len = htobe32(len)};

	pattern_fill(e->buf + off, len, seed);
	write_header(e->buf, IBV_TMH_RNDV, tag, seed);
	memcpy(e->buf + TMH, &rvh, sizeof rvh);
	CHECK_EQ(vp_post_send(e, seed, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, HEADERS, NULL, 0), 0);
}

/* The data came, by two completions, and the requester was told. */
static void want_rendezvous(uint64_t id, uint64_t tag, uint32_t seed, size_t off, uint32_t len)
{
	struct done d = want(IBV_WC_TM_RECV, id, IBV_WC_TM_MATCH);

	CHECK_EQ(d.tag, tag);
	CHECK_EQ(d.priv, seed);
	d = want(IBV_WC_TM_RECV, id, IBV_WC_TM_DATA_VALID);
	CHECK_EQ(d.len, len);
	CHECK(pattern_filled(memory + off, len, seed));
}

static void told(struct vp_end *e, uint64_t id, size_t at, uint64_t tag)
{
	struct ibv_tmh h;
	struct ibv_wc wc;

	if (!vp_want(e->rcq, &wc, IBV_WC_SUCCESS, id))
		return;
	CHECK_EQ(wc.byte_len, HEADERS);
	memcpy(&h, e->buf + at, sizeof h);
	CHECK_EQ(h.opcode, IBV_TMH_FIN);
	CHECK_EQ(be64toh(h.tag), tag);
}

enum { FIN_AT = 1024, DATA_AT = 2048 };

static void rendezvous(void)
{
	static const uint32_t lengths[] = {1, 36, 4000, 5000, 150000};
	struct ibv_wc wc;
	struct done d;

	check_case("rendezvous of all lengths");
	set_up();
	for (uint64_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		CHECK_EQ(vp_post_recv(&a, 40 + i, FIN_AT, 64), 0);
		CHECK_EQ(add_tag(i, 100 + i, 8, LEN - 8), 0);
		post_rendezvous(&a, 100 + i, (uint32_t)i + 1, DATA_AT, lengths[i], a.mr->rkey);
		sent(&a, i + 1);
		want_rendezvous(i, 100 + i, (uint32_t)i + 1, 8, lengths[i]);
		told(&a, 40 + i, FIN_AT, 100 + i);
	}
	check_case("a receive that is too small for the data gets the headers");
	CHECK_EQ(vp_post_recv(&a, 50, FIN_AT, 64), 0);
	CHECK_EQ(add_tag(1, 5, 0, 100), 0);
	post_rendezvous(&a, 5, 9, DATA_AT, 101, a.mr->rkey);
	sent(&a, 9);
	CHECK(poll_done(&d, VP_DEADLINE_MS));
	CHECK_EQ(d.status, IBV_WC_TM_RNDV_INCOMPLETE);
	CHECK_EQ(d.wr_id, 1);
	CHECK(!memcmp(memory, a.buf, HEADERS));
	vp_quiet(a.rcq, 5);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	check_case("one that nobody expects");
	CHECK_EQ(post_untagged(3, PART), 0);
	post_rendezvous(&a, 6, 10, DATA_AT, 50, a.mr->rkey);
	sent(&a, 10);
	d = want(IBV_WC_TM_RECV, 3, 0);
	CHECK_EQ(d.len, HEADERS);
	unexpected = 1;
	CHECK_EQ(add_tag(7, 7, 0, PART), 0);
	post_rendezvous(&a, 7, 11, DATA_AT, 50, a.mr->rkey);
	sent(&a, 11);
	want_rendezvous(7, 7, 11, 0, 50);
	told(&a, 50, FIN_AT, 7);
	check_case("one whose sender takes no answer: as if nobody expected it");
	CHECK_EQ(add_tag(8, 8, 0, PART), 0);
	CHECK_EQ(post_untagged(4, PART), 0);
	post_rendezvous(&a, 8, 12, DATA_AT, 50, a.mr->rkey);
	sent(&a, 12);
	want(IBV_WC_TM_RECV, 4, 0);
	check_case("data that may not be read");
	CHECK_EQ(vp_post_recv(&a, 51, FIN_AT, 64), 0);
	post_rendezvous(&a, 8, 13, DATA_AT, 50, a.mr->rkey ^ 1);
	vp_want(a.scq, &wc, IBV_WC_REM_OP_ERR, 13);
	CHECK(poll_done(&d, VP_DEADLINE_MS));
	CHECK_EQ(d.status, IBV_WC_REM_ACCESS_ERR);
	CHECK_EQ(d.wr_id, 8);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_ERR);
	tear_down();
}

/* The key allows it, and the sender's queue pair does not. */
static void rendezvous_without_right(void)
{
	struct ibv_async_event ev;
	struct done d;
	struct ibv_wc wc;

	check_case("data that the queue pair does not let anybody read");
	sender_access = IBV_ACCESS_REMOTE_WRITE;
	set_up();
	sender_access = 0;
	CHECK_EQ(add_tag(8, 8, 0, PART), 0);
	CHECK_EQ(vp_post_recv(&a, 51, FIN_AT, 64), 0);
	post_rendezvous(&a, 8, 13, DATA_AT, 50, a.mr->rkey);
	vp_want(a.scq, &wc, IBV_WC_REM_OP_ERR, 13);
	CHECK(poll_done(&d, VP_DEADLINE_MS));
	CHECK_EQ(d.status, IBV_WC_REM_INV_REQ_ERR);
	CHECK_EQ(d.wr_id, 8);
	if (CHECK(vp_async(a.ctx, &ev, VP_DEADLINE_MS))) {
		CHECK_EQ(ev.event_type, IBV_EVENT_QP_REQ_ERR);
		ibv_ack_async_event(&ev);
	}
	tear_down();
}

/* ---- peer processes ---- */

enum { ROUNDS = 1500 };

static uint32_t length_of(uint32_t n)
{
	static const uint32_t lengths[] = {8, 0, 3000, 36, 6000};

	return lengths[n % 5];
}

/* Tag 1 each time, every third by rendezvous. */
static void sender(int fd, void *arg)
{
	struct vp_opts o = sender_opts();
	struct ibv_wc wc;

	(void)arg;
	vp_make(&a, vp_open(), &o);
	vp_meet(&a, fd);
	vp_sync(fd);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		if (n % 3 == 2) {
			CHECK_EQ(vp_post_recv(&a, n, FIN_AT, 64), 0);
			post_rendezvous(&a, 1, n, DATA_AT, length_of(n), a.mr->rkey);
			sent(&a, n);
			vp_want(a.rcq, &wc, IBV_WC_SUCCESS, n);
		} else {
			post_eager(&a, IBV_TMH_EAGER, 1, n, length_of(n));
			sent(&a, n);
		}
	}
	vp_sync(fd);
	vp_free(&a);
	ibv_close_device(a.ctx);
}

static void connect_to(struct vp_child *c, struct vp_end *e, struct ibv_context *ctx)
{
	struct vp_opts o = sender_opts();

	o.srq = srq;
	vp_make(e, ctx, &o);
	vp_meet(e, c->fd);
	vp_sync(c->fd);
}

/* All are expected, in order. */
static void across(void)
{
	struct vp_child c = vp_fork(sender, NULL);
	struct ibv_context *ctx = vp_open();
	uint64_t added = 0;

	check_case("a peer process");
	make_srq(ctx);
	connect_to(&c, &b, ctx);
	for (uint32_t n = 0; n < ROUNDS; n++) {
		while (added < ROUNDS && added < n + 8) {
			CHECK_EQ(add_tag(added, 1, added % 16 * 8192, 8192), 0);
			added++;
		}
		if (n % 3 == 2)
			want_rendezvous(n, 1, n, n % 16 * 8192, length_of(n));
		else
			want_match(n, 1, n, n % 16 * 8192, length_of(n));
	}
	vp_sync(c.fd);
	vp_free(&b);
	free_srq();
	ibv_close_device(ctx);
	vp_join(&c);
}

/* Sends with tags that are there and tags that are not, until it is killed. */
static void doomed(int fd, void *arg)
{
	struct vp_opts o = sender_opts();
	struct ibv_wc wc;

	(void)arg;
	vp_make(&a, vp_open(), &o);
	vp_meet(&a, fd);
	vp_sync(fd);
	for (uint32_t n = 0;; n++) {
		post_eager(&a, IBV_TMH_EAGER, n % 3, n, n * 7 % 4000);
		while (!ibv_poll_cq(a.scq, 1, &wc))
			;
	}
}

static void take(struct done *d, uint64_t *next)
{
	CHECK_EQ(d->opcode, IBV_WC_TM_RECV);
	CHECK_EQ(d->status, IBV_WC_SUCCESS);
	if (d->flags & IBV_WC_TM_MATCH) {
		CHECK_EQ(add_tag(d->wr_id, d->wr_id % 2, d->wr_id * 8192, 8192), 0);
	} else {
		CHECK_EQ(post_untagged((*next)++, PART), 0);
		unexpected++;
	}
}

/* However often a sender dies, tags match in the end. */
static void deaths(void)
{
	struct ibv_context *ctx = vp_open();
	uint64_t next = 0;
	struct done d;

	check_case("senders are killed");
	make_srq(ctx);
	for (; next < 16; next++)
		CHECK_EQ(post_untagged(next, PART), 0);
	for (uint64_t id = 0; id < 4; id++)
		CHECK_EQ(add_tag(id, id % 2, id * 8192, 8192), 0);
	for (int round = 0; round < 10; round++) {
		struct vp_child c = vp_fork(doomed, NULL);
		double until;

		connect_to(&c, &b, ctx);
		for (until = now_ms() + 3 + round; now_ms() < until;)
			if (poll_done(&d, 0))
				take(&d, &next);
		vp_kill_join(&c);
		while (poll_done(&d, 20))
			take(&d, &next);
		vp_free(&b);
	}
	check_case("all tags are there");
	{
		struct vp_opts o = sender_opts();
		struct vp_addr to_a, to_b;

		vp_make(&a, ctx, &o);
		o.srq = srq;
		vp_make(&b, ctx, &o);
		to_a = vp_addr(&a);
		to_b = vp_addr(&b);
		vp_connect(&a, &to_b);
		vp_connect(&b, &to_a);
	}
	CHECK_EQ(sync_count(500, unexpected), 0);
	want(IBV_WC_TM_SYNC, 500, 0);
	for (uint32_t n = 0; n < 4; n++) {
		send_eager(n % 2, n, 10);
		CHECK(poll_done(&d, VP_DEADLINE_MS));
		CHECK_EQ(d.flags, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
		CHECK_EQ(d.wr_id % 2, n % 2);
	}
	vp_free(&a);
	vp_free(&b);
	free_srq();
	ibv_close_device(ctx);
}

int main(void)
{
	struct ibv_context *ctx;

	across();
	deaths();
	ctx = vp_open(); /* keeps the process attached */
	creation();
	expected();
	not_expected();
	deletion();
	rendezvous();
	rendezvous_without_right();
	ibv_close_device(ctx);
	return check_result();
}
