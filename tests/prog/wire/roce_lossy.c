// SPDX-License-Identifier: BSD-3-Clause
/*
 * UC and UD where packets are lost: a message of which one is lost is lost as a whole, and takes no
 * receive; those before and behind it arrive, in order, also into shared receive queues.
 */
#include <endian.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum {
	PACKETS = 3, /* of a long message */
	LONG = 2500,
	SHORT = 100,
	MESSAGES = 4, /* long and short ones in turn */
	UD_DATAGRAMS = 5,
	SLOT = 4096,
	THERE = 8 * SLOT, /* where WRITEs go, one after the other */
	MANY = 300,
	BATCH = 20,
	LIMIT = 2 * MANY,
	PATIENCE_MS = 100, /* before what has not come counts as lost */
	RECEIVES = 64,     /* posted at a time; of MANY */
	GRH = 40,
};

enum kind { UC_SEND, UC_WRITE, UD_SEND, KINDS };

static const char *const kinds[] = {"UC, SEND", "UC, WRITE with immediate", "UD"};

static struct {
	enum kind kind;
	bool shared; /* receives of an SRQ */
} run;

static struct vp_end a, b;
static struct vp_addr to_b;
static struct ibv_ah *ah;
static struct ibv_srq *srq;
static struct ibv_mr *mr; /* of b's buffer, in the domain of srq */

static bool is_ud(void)
{
	return run.kind == UD_SEND;
}

static uint32_t length(unsigned i)
{
	return is_ud() || i % 2 ? SHORT + i : LONG + i;
}

/* ---- the two ends, which are of this process ---- */

static void make_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 2 * RECEIVES, .max_sge = 1}};

	srq = ibv_create_srq(pd, &init);
	if (!srq)
		die("ibv_create_srq");
}

static void set_up(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct vp_opts o = vp_defaults();

	o.type = is_ud() ? IBV_QPT_UD : IBV_QPT_UC;
	o.send_wr = o.recv_wr = 2 * RECEIVES;
	o.cqe = 4 * RECEIVES;
	o.len = THERE + LIMIT * SLOT;
	vp_make(&a, ctx, &o);
	if (run.shared) {
		make_srq(pd);
		o.srq = srq;
	}
	vp_make(&b, ctx, &o);
	mr = srq ? ibv_reg_mr(pd, b.buf, b.len, IBV_ACCESS_LOCAL_WRITE) : NULL;
	to_b = vp_addr(&b);
	vp_connect(&b,
		&(struct vp_addr){.qpn = a.qp->qp_num, .gid = to_b.gid, .psn = vp_addr(&a).psn});
	vp_connect(&a, &to_b);
	ah = is_ud() ? vp_ah(&a, &to_b.gid) : NULL;
}

static void tear_down(void)
{
	if (ah)
		CHECK_EQ(ibv_destroy_ah(ah), 0);
	if (mr)
		CHECK_EQ(ibv_dereg_mr(mr), 0);
	vp_free(&a);
	vp_free(&b);
	if (srq)
		CHECK_EQ(ibv_destroy_srq(srq), 0);
}

static void receive(unsigned id)
{
	struct ibv_sge sge = vp_sge(&b, id % 8 * SLOT, SLOT);
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	if (mr)
		sge.lkey = mr->lkey;
	CHECK_EQ(srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(b.qp, &wr, &bad), 0);
}

static void transmit(unsigned i)
{
	uint32_t len = length(i);
	struct ibv_wc wc;

	pattern_fill(a.buf, len, i);
	if (is_ud())
		CHECK_EQ(vp_post_ud(&a, i, ah, to_b.qpn, VP_QKEY, 0, len), 0);
	else
		CHECK_EQ(vp_post_send(&a, i,
				 run.kind == UC_SEND ? IBV_WR_SEND_WITH_IMM
						     : IBV_WR_RDMA_WRITE_WITH_IMM,
				 IBV_SEND_SIGNALED, 0, len, &to_b, THERE + i * SLOT),
			0);
	vp_want(a.scq, &wc, IBV_WC_SUCCESS, i);
}

/* The next that arrives is message i, whole, in a receive with that id. */
static void arrives(unsigned i, unsigned id)
{
	uint32_t got = length(i) + (is_ud() ? GRH : 0);
	struct ibv_wc wc;

	if (!vp_want(b.rcq, &wc, IBV_WC_SUCCESS, id))
		return;
	CHECK_EQ(be32toh(wc.imm_data), i);
	CHECK_EQ(wc.byte_len, got);
	if (run.kind == UC_WRITE)
		CHECK(pattern_filled(b.buf + THERE + i * SLOT, length(i), i));
	else
		CHECK(pattern_filled(b.buf + id % 8 * SLOT + (is_ud() ? GRH : 0), length(i), i));
}

/* ---- each packet, one at a time ---- */

static unsigned messages(void)
{
	return is_ud() ? UD_DATAGRAMS : MESSAGES;
}

static unsigned packets_of(unsigned i)
{
	return is_ud() || i % 2 ? 1 : PACKETS;
}

static unsigned packets(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < messages(); i++)
		n += packets_of(i);
	return n;
}

/* The message that packet nth is of. */
static unsigned message_of(unsigned nth)
{
	unsigned i = 0;

	for (unsigned n = packets_of(0); n < nth; n += packets_of(i))
		i++;
	return i;
}

/* As many receives as messages, and the last one is there for a message that comes later. */
static void lose_one(unsigned nth)
{
	unsigned lost = message_of(nth), last = messages(), id = 0;
	struct ibv_wc wc;

	check_case("%s%s, packet %u lost", kinds[run.kind], run.shared ? ", SRQ" : "", nth);
	for (unsigned i = 0; i < last; i++)
		receive(i);
	for (unsigned i = 0; i <= last; i++)
		transmit(i);
	for (unsigned i = 0; i <= last; i++)
		if (i != lost)
			arrives(i, id++);
	CHECK_EQ(id, last);
	CHECK(!vp_poll(b.rcq, &wc, 0));
}

static void lose_each(void)
{
	for (unsigned nth = 1; nth <= packets(); nth++)
		lose_one(nth);
}

/* The last rule first: each sees also what is lost by those behind it. */
static void put_rules(char *text, size_t room)
{
	unsigned all = packets() + packets_of(messages());
	size_t n = 0;

	for (unsigned nth = packets(); nth; nth--)
		n += snprintf(text + n, room - n, "drop out opcode=%s nth=%u; ",
			is_ud() ? "ud" : "uc", (nth - 1) * all + nth);
}

/*
 * Until weftd has steered our packets to us: before, it hands them over, and those that come after
 * overtake them.
 */
static void await_steering(void)
{
	struct vp_opts o = vp_defaults();
	int64_t handed, before;
	struct vp_end c, d;
	struct vp_addr to;
	struct ibv_wc wc;

	vp_pair(&c, &d, &o);
	to = vp_addr(&d);
	handed = status_of_all("wire", "handed_over");
	do {
		before = handed;
		CHECK_EQ(
			vp_post_send(&c, 1, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 8, &to, 0), 0);
		vp_want(c.scq, &wc, IBV_WC_SUCCESS, 1);
		handed = status_of_all("wire", "handed_over");
	} while (handed != before);
	vp_pair_free(&c, &d);
}

static void with_rules(const char *rules, void (*work)(void))
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	setenv("WEFT_FAULT", rules, 1);
	ctx = vp_open();
	pd = ibv_alloc_pd(ctx);
	if (!pd)
		die("ibv_alloc_pd");
	set_up(ctx, pd);
	await_steering();
	work();
	CHECK_EQ(vp_get_state(&a), IBV_QPS_RTS);
	CHECK_EQ(vp_get_state(&b), IBV_QPS_RTS);
	tear_down();
	CHECK_EQ(ibv_dealloc_pd(pd), 0);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

static void with_each_lost(int fd, void *arg)
{
	char rules[1024];

	(void)fd;
	(void)arg;
	put_rules(rules, sizeof rules);
	with_rules(rules, lose_each);
}

/* ---- one in ten ---- */

/*
 * Takes what comes, until message `end` does or nothing more: each whole, and behind those before.
 * The number of the last one.
 */
static int take(int last, unsigned *taken, int end)
{
	struct ibv_wc wc;

	while (last < end && vp_poll(b.rcq, &wc, PATIENCE_MS)) {
		int i = (int)be32toh(wc.imm_data);

		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.wr_id, *taken);
		CHECK_RANGE(i, last + 1, LIMIT - 1);
		CHECK_EQ(wc.byte_len, length(i) + (is_ud() ? GRH : 0));
		if (run.kind == UC_WRITE)
			CHECK(pattern_filled(b.buf + THERE + i * SLOT, length(i), i));
		last = i;
		receive(RECEIVES + (*taken)++);
	}
	return last;
}

/* So few at a time that no socket overflows; one behind them says that no more of them will come.
 */
static void lose_many(void)
{
	unsigned taken = 0, n = 0, end;
	int last = -1;

	check_case("%s%s, one in ten lost", kinds[run.kind], run.shared ? ", SRQ" : "");
	for (unsigned i = 0; i < RECEIVES; i++)
		receive(i);
	while (n < MANY) {
		for (end = n + BATCH; n < end; n++)
			transmit(n);
		do {
			transmit(n);
			last = take(last, &taken, (int)end);
		} while (last < (int)end && ++n < LIMIT);
		n++;
	}
	CHECK_RANGE(last, MANY - 1, LIMIT - 1);
	CHECK_RANGE(taken, MANY / 2, n - 1); /* of long ones, three in four arrive */
}

static void with_many_lost(int fd, void *arg)
{
	(void)fd;
	(void)arg;
	with_rules(is_ud() ? "seed=1; drop out opcode=ud 10%" : "seed=1; drop out opcode=uc 10%",
		lose_many);
}

static void in_process(void (*work)(int fd, void *arg))
{
	struct vp_child child = vp_fork(work, NULL);

	vp_join(&child);
}

/* What two CPUs send, the kernel's loopback may deliver in another order, which UC loses. */
static void stay_on_one_cpu(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus))
		die("sched_setaffinity");
}

int main(void)
{
	stay_on_one_cpu();
	for (unsigned i = 0; i < 2 * KINDS; i++) {
		run.kind = i / 2;
		run.shared = i % 2;
		in_process(with_each_lost);
		in_process(with_many_lost);
	}
	return check_result();
}
