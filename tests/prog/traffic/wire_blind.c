// SPDX-License-Identifier: BSD-3-Clause
/*
 * Somebody who does not see the packets of a connection sends some of his own into it, whole and
 * with the right addresses and numbers; what is left to guess is the PSN.  Counted is how many of
 * them are taken, and that of the true ones none is lost.  In a network namespace of its own, with
 * WEFT_WIRE=always.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/forger.h"
#include "tests/lib/pattern.h"
#include "tests/lib/share_status.h"
#include "tests/lib/verbs_pair.h"

enum { LEN = 64, FORGED = 99, AHEAD = 255, BEHIND = 40, TRUE = 300, AT_ONCE = 32 };
enum { RC_SEND_ONLY = 0x04, UC_SEND_ONLY = 0x24, UC_ROW = 64, NOBODY = 200 };

static const char ours[] = "198.51.100.1";

/* Messages go from the first to the second one. */
static struct vp_end rc[2], uc[2];
/* Of a user of the peer's host, and of root there, or of anybody whose network lets him. */
static struct forger ordinary, root;
static uint32_t sent[2]; /* true messages, of RC and UC */

static int64_t counted(const char *name)
{
	return status_of(getpid(), "counters", name);
}

static uint32_t *sent_of(const struct vp_end *end)
{
	return &sent[end == uc];
}

/* The PSN that the second one awaits. */
static uint32_t awaited(const struct vp_end *end)
{
	return roce_psn_add(end[0].qp->qp_num, *sent_of(end));
}

static void forge(struct forger *g, const struct vp_end *end, int32_t ahead)
{
	struct roce_packet p = {.opcode = end == uc ? UC_SEND_ONLY : RC_SEND_ONLY,
		.pkey = ROCE_PKEY_DEFAULT,
		.dest_qpn = end[1].qp->qp_num,
		.psn = roce_psn_add(awaited(end), ahead),
		.again = ahead & 1,
		.payload_len = LEN};

	p.op = roce_op(p.opcode);
	forger_send(g, &p, FORGED);
}

/* Waits until so many packets have come since there were `before`. */
static void have_come(int64_t before, int64_t n)
{
	double end = now_ms() + VP_DEADLINE_MS;

	while (counted("wire_came") < before + n && now_ms() < end)
		usleep(200);
	CHECK(counted("wire_came") >= before + n);
}

/* One with each of the PSNs from..to behind the one that is awaited; how many. */
static unsigned forge_all(struct forger *g, const struct vp_end *end, int32_t from, int32_t to)
{
	unsigned n = 0;

	while (from <= to) {
		int64_t came = counted("wire_came"), some = 0;

		for (; some < AT_ONCE && from <= to; some++)
			forge(g, end, from++);
		have_come(came, some);
		n += some;
	}
	return n;
}

/* What has come in: the seed of its bytes. */
static void take(struct vp_end *end, uint32_t seed)
{
	struct ibv_wc wc;

	CHECK(vp_poll(end[1].rcq, &wc, VP_DEADLINE_MS));
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	CHECK_EQ(wc.byte_len, LEN);
	CHECK(pattern_filled(end[1].buf, LEN, seed));
}

static void send_one(struct vp_end *end)
{
	struct vp_addr peer = vp_addr(&end[1]);
	struct ibv_wc wc;
	uint32_t i = (*sent_of(end))++;

	pattern_fill(end[0].buf, LEN, 1000 + i);
	CHECK_EQ(vp_post_send(&end[0], i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, LEN, &peer, 0), 0);
	vp_want(end[0].scq, &wc, IBV_WC_SUCCESS, i);
}

static void receive_posted(struct vp_end *end)
{
	CHECK_EQ(vp_post_recv(&end[1], 0, 0, LEN), 0);
}

/* Messages arrive, each of them and nothing else. */
static void all_true(struct vp_end *end, unsigned n)
{
	while (n-- && !check_failures()) {
		receive_posted(end);
		send_one(end);
		take(end, 1000 + *sent_of(end) - 1);
	}
	vp_quiet(end[1].rcq, 1);
}

/* Nobody knows yet who the peer is: what comes early is kept no more than by an adapter. */
static void before_it_is_known(void)
{
	check_case("an unknown peer");
	forge_all(&ordinary, rc, 1, AHEAD);
	forge_all(&root, rc, 1, AHEAD);
	all_true(rc, TRUE);
	CHECK_EQ(counted("wire_drop_ahead"), 0);
	CHECK_EQ(counted("wire_drop_port"), 0);
}

/* Weft is known by its port: whoever has another one gets nothing in, even with the right PSN. */
static void from_an_ordinary_socket(struct vp_end *end)
{
	int64_t before = counted("wire_drop_port");
	unsigned n;

	check_case("an ordinary socket: %s", end == uc ? "UC" : "RC");
	receive_posted(end);
	n = forge_all(&ordinary, end, -BEHIND, AHEAD);
	CHECK_EQ(counted("wire_drop_port"), before + n);
	send_one(end);
	take(end, 1000 + *sent_of(end) - 1);
	all_true(end, TRUE);
}

/* With the right port as well, what comes early is kept, and gives way to the true one. */
static void from_root(void)
{
	int64_t before = counted("wire_drop_ahead");

	check_case("the right port");
	forge_all(&root, rc, 1, AHEAD);
	all_true(rc, TRUE);
	CHECK_EQ(counted("wire_drop_ahead"), before + AHEAD);
	forge_all(&root, rc, -BEHIND, -1);
	all_true(rc, TRUE);
}

/* One of 16,777,216 is taken, in place of the true one: as of an adapter. */
static void with_the_right_psn(void)
{
	check_case("the right PSN");
	receive_posted(rc);
	forge(&root, rc, 0);
	take(rc, FORGED);
	send_one(rc);
	vp_quiet(rc[1].rcq, 1);
	all_true(rc, TRUE);
}

/* UC has a message of any PSN, from whomever, until its peer has been the only one for a while. */
static void unreliable(void)
{
	check_case("UC");
	receive_posted(uc);
	forge(&ordinary, uc, 1 << 20);
	take(uc, FORGED);
	all_true(uc, UC_ROW + 2); /* the first of them is out of sequence */
	from_an_ordinary_socket(uc);
}

/* An adapter changes its port when it likes: that is counted. */
static void as_an_adapter(void)
{
	struct vp_opts o = vp_defaults();
	struct vp_end e;
	struct forger other;
	struct vp_addr peer;
	int64_t before = counted("wire_other_port");
	struct ibv_wc wc;

	check_case("an adapter");
	vp_make(&e, vp_open(), &o);
	peer = vp_addr(&e);
	peer.qpn = e.qp->qp_num + NOBODY;
	vp_connect(&e, &peer);
	forger_open(&other, ours, 0, ours);
	for (uint32_t i = 0; i < 4; i++) {
		struct roce_packet p = {.op = roce_op(RC_SEND_ONLY),
			.opcode = RC_SEND_ONLY,
			.pkey = ROCE_PKEY_DEFAULT,
			.dest_qpn = e.qp->qp_num,
			.psn = roce_psn_add(peer.psn, i),
			.payload_len = LEN};

		CHECK_EQ(vp_post_recv(&e, i, 0, LEN), 0);
		forger_send(i < 2 ? &ordinary : i < 3 ? &other : &root, &p, i);
		vp_want(e.rcq, &wc, IBV_WC_SUCCESS, i);
		CHECK(pattern_filled(e.buf, LEN, i));
	}
	CHECK_EQ(counted("wire_other_port"), before + 2);
	forger_close(&other);
	struct ibv_context *ctx = e.ctx;
	vp_free(&e);
	CHECK_EQ(ibv_close_device(ctx), 0);
}

int main(void)
{
	struct vp_opts o = vp_defaults();

	o.len = 4096;
	vp_pair(&rc[0], &rc[1], &o);
	o.type = IBV_QPT_UC;
	vp_pair(&uc[0], &uc[1], &o);
	forger_open(&ordinary, ours, 0, ours);
	forger_open(&root, ours, ROCE_PORT, ours);
	before_it_is_known();
	from_an_ordinary_socket(rc);
	from_root();
	with_the_right_psn();
	unreliable();
	as_an_adapter();
	forger_close(&root);
	forger_close(&ordinary);
	vp_pair_free(&uc[0], &uc[1]);
	vp_pair_free(&rc[0], &rc[1]);
	return check_result();
}
