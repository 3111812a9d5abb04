// SPDX-License-Identifier: BSD-3-Clause
/*
 * Random requests of all kinds, both ways at once, by a wire that loses, repeats, reorders, delays
 * and changes packets: all bytes arrive once and in order, and nothing ends in an error.
 *
 * usage: roce_loss [SEED [MESSAGES [RULES]]]
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum {
	MESSAGES = 200, /* of each end, by default */
	LIMIT = 5000,
	SLOT = 12 << 10, /* of a message, in each of the areas */
	WINDOW = 24,     /* requests posted at a time */
	RECEIVES = 32,   /* posted at a time, and sometimes but one: then the peer waits */
	PAGE = 4096,
	RUN_MS = 60000,
	READ_SEED = 1000000,
};

/* Of the buffer, one after the other: words for atomics, what peers read, what is sent or got,
 * where peers write, where receives go. */
enum area { WORDS, SOURCE, OWN, WRITTEN, RECEIVED, AREAS };

enum kind { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, FETCH_ADD, COMPARE_SWAP, KINDS };

static const enum ibv_wr_opcode opcodes[KINDS] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};

static struct {
	uint64_t seed;
	uint32_t messages;
	const char *rules;
} run;

/* What request i of an end is: both know it. */
struct message {
	enum kind kind;
	uint32_t len;
};

struct party {
	struct vp_end e;
	struct vp_addr to;
	unsigned me; /* 0, 1 */
	uint32_t posted, done;
	uint64_t adds, swaps;     /* that were posted */
	uint64_t added, swapped;  /* and that completed */
	uint32_t expected;        /* the peer's message that the next receive is for */
	uint32_t receives, taken; /* posted; completed */
	uint32_t to_take;         /* how many the peer has for us */
};

static uint64_t mixed(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static struct message message(unsigned end, uint32_t i)
{
	uint64_t r = mixed(run.seed * 2 + end + ((uint64_t)i << 20));
	struct message m = {.kind = r % KINDS};

	r >>= 8;
	if (m.kind >= FETCH_ADD)
		m.len = 8;
	else if (r % 4 == 0)
		m.len = r / 4 % 64;
	else
		m.len = r / 4 % SLOT;
	return m;
}

static bool receives(struct message m)
{
	return m.kind == SEND || m.kind == SEND_IMM || m.kind == WRITE_IMM;
}

static uint32_t seed_of(unsigned end, uint32_t i)
{
	return end * LIMIT + i + 1;
}

static size_t area_size(void)
{
	return (size_t)run.messages * SLOT;
}

static size_t place(enum area area, uint32_t i)
{
	return area == WORDS ? 8 * i : PAGE + (area - SOURCE) * area_size() + (size_t)i * SLOT;
}

/* ---- posting ---- */

static int post_atomic(struct party *p, uint32_t i, bool swap)
{
	struct ibv_sge sge = vp_sge(&p->e, place(OWN, i), 8);
	struct ibv_send_wr wr = {.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcodes[swap ? COMPARE_SWAP : FETCH_ADD],
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {.remote_addr = p->to.addr + place(WORDS, swap),
			.rkey = p->to.rkey,
			.compare_add = swap ? p->swaps : 1,
			.swap = p->swaps + 1}};
	struct ibv_send_wr *bad;

	*(swap ? &p->swaps : &p->adds) += 1;
	return ibv_post_send(p->e.qp, &wr, &bad);
}

static void post_next(struct party *p)
{
	uint32_t i = p->posted++;
	struct message m = message(p->me, i);
	size_t own = place(OWN, i), there = place(m.kind == READ ? SOURCE : WRITTEN, i);

	if (m.kind < READ)
		pattern_fill(p->e.buf + own, m.len, seed_of(p->me, i));
	if (m.kind >= FETCH_ADD)
		CHECK_EQ(post_atomic(p, i, m.kind == COMPARE_SWAP), 0);
	else
		CHECK_EQ(vp_post_send(&p->e, i, opcodes[m.kind], IBV_SEND_SIGNALED, own, m.len,
				 &p->to, there),
			0);
}

static void post_receives(struct party *p)
{
	uint32_t want = p->taken + (mixed(run.seed + p->taken) % 4 ? RECEIVES : 1);

	while (p->receives < p->to_take && p->receives < want) {
		CHECK_EQ(vp_post_recv(&p->e, p->receives, place(RECEIVED, p->receives), SLOT), 0);
		p->receives++;
	}
}

/* ---- what completes ---- */

static uint64_t word(const struct party *p, size_t at)
{
	uint64_t w;

	memcpy(&w, p->e.buf + at, sizeof w);
	return w;
}

static void check_sent(struct party *p, const struct ibv_wc *wc)
{
	uint32_t i = p->done++;
	struct message m = message(p->me, i);

	check_case("end %u, request %u, kind %d of %u bytes", p->me, i, m.kind, m.len);
	if (!CHECK_EQ(wc->status, IBV_WC_SUCCESS))
		die("%s", ibv_wc_status_str(wc->status));
	CHECK_EQ(wc->wr_id, i);
	if (m.kind == READ)
		CHECK(pattern_filled(p->e.buf + place(OWN, i), m.len, READ_SEED + i));
	else if (m.kind == FETCH_ADD)
		CHECK_EQ(word(p, place(OWN, i)), p->added++);
	else if (m.kind == COMPARE_SWAP)
		CHECK_EQ(word(p, place(OWN, i)), p->swapped++);
}

static void check_taken(struct party *p, const struct ibv_wc *wc)
{
	uint32_t n = p->taken++, i = p->expected;
	struct message m = message(!p->me, i);

	while (!receives(m))
		m = message(!p->me, ++i);
	p->expected = i + 1;
	check_case("end %u, receive %u for request %u, kind %d", p->me, n, i, m.kind);
	if (!CHECK_EQ(wc->status, IBV_WC_SUCCESS))
		die("%s", ibv_wc_status_str(wc->status));
	CHECK_EQ(wc->wr_id, n);
	CHECK_EQ(wc->byte_len, m.len);
	if (m.kind != SEND)
		CHECK_EQ(be32toh(wc->imm_data), i);
	CHECK(pattern_filled(p->e.buf + place(m.kind == WRITE_IMM ? WRITTEN : RECEIVED,
						m.kind == WRITE_IMM ? i : n),
		m.len, seed_of(!p->me, i)));
}

/* What requests without a receive have left: once all have completed. */
static void check_written(struct party *p)
{
	uint64_t adds = 0, swaps = 0;

	for (uint32_t i = 0; i < run.messages; i++) {
		struct message m = message(!p->me, i);

		check_case("end %u, after the peer's request %u", p->me, i);
		adds += m.kind == FETCH_ADD;
		swaps += m.kind == COMPARE_SWAP;
		if (m.kind == WRITE)
			CHECK(pattern_filled(
				p->e.buf + place(WRITTEN, i), m.len, seed_of(!p->me, i)));
	}
	CHECK_EQ(word(p, place(WORDS, 0)), adds);
	CHECK_EQ(word(p, place(WORDS, 1)), swaps);
}

/* ---- an end ---- */

static bool take_one(
	struct party *p, struct ibv_cq *cq, void (*check)(struct party *, const struct ibv_wc *))
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq, 1, &wc);

	if (n < 0)
		die("ibv_poll_cq");
	if (n)
		check(p, &wc);
	return n;
}

static void exchange(struct party *p)
{
	double end = now_ms() + RUN_MS;
	bool came;

	while (p->done < run.messages || p->taken < p->to_take) {
		while (p->posted < run.messages && p->posted - p->done < WINDOW)
			post_next(p);
		post_receives(p);
		came = take_one(p, p->e.scq, check_sent);
		if (take_one(p, p->e.rcq, check_taken) || came)
			continue;
		if (now_ms() > end)
			die("end %u: %u of %u requests, %u of %u receives in time", p->me, p->done,
				run.messages, p->taken, p->to_take);
	}
}

static void set_up(struct party *p, int fd)
{
	struct vp_opts o = vp_defaults();

	o.len = PAGE + (AREAS - SOURCE) * area_size();
	o.min_rnr_timer = 5;
	vp_make(&p->e, vp_open(), &o);
	for (uint32_t i = 0; i < run.messages; i++) {
		pattern_fill(p->e.buf + place(SOURCE, i), SLOT, READ_SEED + i);
		p->to_take += receives(message(!p->me, i));
	}
	p->to = vp_meet(&p->e, fd);
	vp_sync(fd);
}

static void live(int fd, void *arg)
{
	struct party p = {.me = arg != NULL};

	setenv("WEFT_FAULT", run.rules, 1);
	set_up(&p, fd);
	exchange(&p);
	vp_sync(fd);
	CHECK_EQ(vp_get_state(&p.e), IBV_QPS_RTS); /* a call: what was placed, we see */
	check_written(&p);
	vp_free(&p.e);
	CHECK_EQ(ibv_close_device(p.e.ctx), 0);
}

/* Two processes, neither of which is ours: each set of rules is to begin anew. */
static void live_with_peer(int fd, void *arg)
{
	struct vp_child peer = vp_fork(live, &run);

	(void)fd;
	live(peer.fd, arg);
	vp_join(&peer);
}

static void run_with(const char *rules)
{
	double start = now_ms();
	struct vp_child child;
	char text[256];

	snprintf(text, sizeof text, "seed=%llu; %s", (unsigned long long)run.seed, rules);
	run.rules = text;
	child = vp_fork(live_with_peer, NULL);
	vp_join(&child);
	printf("%s: %.0f ms\n", text, now_ms() - start);
}

static const char *const all_rules[] = {
	"drop in 1%",
	"drop in 10%",
	"duplicate in 10%",
	"reorder in 10%",
	"corrupt in 10%",
	"drop in 3%; duplicate 5%; reorder 5%; corrupt in 2%; delay 2ms 3%",
};

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	run.seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	run.messages = argc > 2 ? strtoul(argv[2], NULL, 0) : MESSAGES;
	if (run.messages > LIMIT)
		run.messages = LIMIT;
	for (unsigned i = 0; argc < 4 && i < sizeof all_rules / sizeof *all_rules; i++)
		run_with(all_rules[i]);
	if (argc > 3)
		run_with(argv[3]);
	return check_result();
}
