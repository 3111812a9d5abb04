// SPDX-License-Identifier: BSD-3-Clause
/*
 * Queues that fill, wrap and drain: completion order, unsignalled requests, ENOMEM with the bad
 * request named, and the payload ring overtaken by a sender that is not polled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/pattern.h"
#include "tests/lib/verbs_pair.h"

enum { DEPTH = 48, MESSAGE = 4096, LAPS = 30 };

static struct vp_opts options(void)
{
	struct vp_opts o = vp_defaults();

	o.send_wr = o.recv_wr = DEPTH;
	o.cqe = 4 * DEPTH;
	o.len = 1 << 20;
	return o;
}

static uint32_t depth_of(struct vp_end *e, bool recv)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(e->qp, &a, IBV_QP_CAP, &init))
		die("query_qp");
	return recv ? init.cap.max_recv_wr : init.cap.max_send_wr;
}

/* Every kind of request in one list; the completions come in the order of posting. */
static void order(struct vp_end *a, struct vp_end *b, const struct vp_addr *peer)
{
	static const enum ibv_wr_opcode kinds[] = {IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
		IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ};
	static const enum ibv_wc_opcode want[] = {IBV_WC_SEND, IBV_WC_RDMA_READ, IBV_WC_RDMA_WRITE,
		IBV_WC_FETCH_ADD, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ};
	enum { KINDS = 7, ROUNDS = 6 };
	uint64_t id = 0, recvs = 0;
	struct ibv_wc wc;

	check_case("order of mixed requests");
	for (int i = 0; i < ROUNDS * 3; i++)
		CHECK_EQ(vp_post_recv(b, 1000 + i, 4096, 64), 0);
	for (int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < KINDS; k++, id++)
			CHECK_EQ(vp_post_send(a, id, kinds[k],
					 IBV_SEND_SIGNALED | (r % 2 ? IBV_SEND_FENCE : 0), 64, 8,
					 peer, 64),
				0);
	for (uint64_t i = 0; i < id; i++)
		if (vp_want(a->scq, &wc, IBV_WC_SUCCESS, i))
			CHECK_EQ(wc.opcode, want[i % KINDS]);
	for (; recvs < ROUNDS * 3; recvs++)
		if (vp_want(b->rcq, &wc, IBV_WC_SUCCESS, 1000 + recvs))
			CHECK_EQ(wc.opcode,
				recvs % 3 == 2 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	vp_quiet(a->scq, 1);
	vp_quiet(b->rcq, 1);
}

/* Only every n-th request is signalled; its completion frees the slots before it. */
static void unsignalled(struct vp_end *a, const struct vp_addr *peer)
{
	struct ibv_wc wc;

	for (uint64_t every = 1; every <= DEPTH; every += 7) {
		check_case("signalled: every %llu", (unsigned long long)every);
		for (uint64_t id = 1; id <= every * LAPS; id++) {
			bool last = id % every == 0;

			if (!CHECK_EQ(vp_post_send(a, id, IBV_WR_RDMA_WRITE,
					      last ? IBV_SEND_SIGNALED : 0, 0, 32, peer, 128),
				    0))
				return;
			if (last)
				vp_want(a->scq, &wc, IBV_WC_SUCCESS, id);
		}
		vp_quiet(a->scq, 1);
	}
}

static void sq_full(struct vp_end *a, const struct vp_addr *peer)
{
	uint32_t depth = depth_of(a, false);
	struct ibv_sge sge = vp_sge(a, 0, 16);
	struct ibv_send_wr wr[4], *bad;
	struct ibv_wc wc;

	for (int lap = 0; lap < LAPS; lap++) {
		check_case("send queue full, lap %d", lap);
		for (uint32_t i = 0; i < depth - 2; i++)
			CHECK_EQ(vp_post_send(a, i, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 0, 16,
					 peer, 0),
				0);
		for (int i = 0; i < 4; i++)
			wr[i] = (struct ibv_send_wr){.wr_id = depth - 2 + i,
				.next = i < 3 ? &wr[i + 1] : NULL,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE,
				.send_flags = IBV_SEND_SIGNALED,
				.wr.rdma = {peer->addr, peer->rkey}};
		bad = NULL;
		CHECK_EQ(ibv_post_send(a->qp, wr, &bad), ENOMEM);
		CHECK(bad == &wr[2]); /* the two before it were taken */
		for (uint32_t i = 0; i < depth; i++)
			vp_want(a->scq, &wc, IBV_WC_SUCCESS, i);
		vp_quiet(a->scq, 0);
	}
}

static void rq_full(struct vp_end *a, struct vp_end *b)
{
	uint32_t depth = depth_of(b, true);
	struct ibv_recv_wr wr[3] = {{.wr_id = depth - 1, .next = &wr[1]},
		{.wr_id = depth, .next = &wr[2]}, {.wr_id = depth + 1}};
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;

	for (int lap = 0; lap < LAPS; lap++) {
		check_case("receive queue full, lap %d", lap);
		for (uint32_t i = 0; i < depth - 1; i++)
			CHECK_EQ(vp_post_recv(b, i, 0, 0), 0);
		bad = NULL;
		CHECK_EQ(ibv_post_recv(b->qp, wr, &bad), ENOMEM);
		CHECK(bad == &wr[1]);
		for (uint32_t i = 0; i < depth; i++) {
			CHECK_EQ(vp_post_send(a, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 0, NULL, 0),
				0);
			vp_want(a->scq, &wc, IBV_WC_SUCCESS, i);
		}
		for (uint32_t i = 0; i < depth; i++)
			vp_want(b->rcq, &wc, IBV_WC_SUCCESS, i);
		vp_quiet(b->rcq, 0);
	}
}

static void sig_all(void)
{
	struct vp_opts o = options();
	struct vp_end a, b;
	struct vp_addr peer;
	struct ibv_wc wc;

	check_case("sq_sig_all; one CQ for both queues");
	o.sig_all = o.one_cq = true;
	vp_pair(&a, &b, &o);
	peer = vp_addr(&b);
	for (uint64_t i = 0; i < DEPTH; i++)
		CHECK_EQ(vp_post_send(&a, i, IBV_WR_RDMA_WRITE, 0, 0, 8, &peer, 0), 0);
	for (uint64_t i = 0; i < DEPTH; i++)
		vp_want(a.scq, &wc, IBV_WC_SUCCESS, i);
	vp_pair_free(&a, &b);
}

static void in_one_process(void)
{
	struct vp_opts o = options();
	struct vp_end a, b;
	struct vp_addr peer;

	vp_pair(&a, &b, &o);
	peer = vp_addr(&b);
	order(&a, &b, &peer);
	unsignalled(&a, &peer);
	sq_full(&a, &peer);
	rq_full(&a, &b);
	vp_pair_free(&a, &b);
	sig_all();
}

/* ---- between processes: the payload ring ---- */

static uint32_t length_of(uint32_t n)
{
	return n % 3 ? 1 + (n * 2654435761u) % MESSAGE : MESSAGE;
}

/*
 * Takes up to DEPTH messages per lap, polling only when told that all that fit were sent: they pile
 * up in the ring first, then go by other ways, and must come out whole and in order.
 */
static void taker(int fd, void *arg)
{
	struct vp_opts o = options();
	struct ibv_wc wc;
	struct vp_end e;
	uint32_t n = 0;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	for (int lap = 0; lap < LAPS; lap++) {
		uint32_t count = lap % 2 ? DEPTH : 1 + lap;

		check_case("payload ring, lap %d", lap);
		for (uint32_t i = 0; i < count; i++)
			CHECK_EQ(vp_post_recv(&e, i, (size_t)i * MESSAGE, MESSAGE), 0);
		vp_sync(fd); /* send now */
		vp_sync(fd); /* all was sent */
		for (uint32_t i = 0; i < count; i++, n++) {
			if (!vp_want(e.rcq, &wc, IBV_WC_SUCCESS, i))
				return;
			CHECK_EQ(wc.byte_len, length_of(n));
			CHECK(pattern_filled(e.buf + (size_t)i * MESSAGE, wc.byte_len, n));
		}
	}
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void payload_ring(void)
{
	struct vp_child c = vp_fork(taker, NULL);
	struct vp_opts o = options();
	struct ibv_wc wc;
	struct vp_end e;
	uint32_t n = 0;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	for (int lap = 0; lap < LAPS; lap++) {
		uint32_t count = lap % 2 ? DEPTH : 1 + lap;

		check_case("payload ring, lap %d", lap);
		vp_sync(c.fd);
		for (uint32_t i = 0; i < count; i++, n++) {
			pattern_fill(e.buf + (size_t)i * MESSAGE, MESSAGE, n);
			CHECK_EQ(vp_post_send(&e, i, IBV_WR_SEND, IBV_SEND_SIGNALED,
					 (size_t)i * MESSAGE, length_of(n), NULL, 0),
				0);
		}
		for (uint32_t i = 0; i < count; i++)
			vp_want(e.scq, &wc, IBV_WC_SUCCESS, i);
		vp_sync(c.fd);
	}
	vp_join(&c);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

enum { ARRIVED = 3 };
static const uint32_t arrived_lens[ARRIVED] = {36, 37, MESSAGE};

/* What has arrived is in the buffer when dereg returns, polled or not. */
static void deregisters(int fd, void *arg)
{
	struct vp_opts o = options();
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	check_case("deregistered before it is polled");
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	for (uint32_t i = 0; i < ARRIVED; i++)
		CHECK_EQ(vp_post_recv(&e, i, (size_t)i * MESSAGE, MESSAGE), 0);
	vp_sync(fd);
	vp_sync(fd);
	CHECK_EQ(ibv_dereg_mr(e.mr), 0);
	e.mr = NULL;
	for (uint32_t i = 0; i < ARRIVED; i++)
		CHECK(pattern_filled(e.buf + (size_t)i * MESSAGE, arrived_lens[i], i));
	memset(e.buf, 0, e.len);
	for (uint32_t i = 0; i < ARRIVED; i++)
		vp_want(e.rcq, &wc, IBV_WC_SUCCESS, i);
	CHECK(pattern_all(e.buf, e.len, 0)); /* and not written once more */
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void dereg_unpolled(void)
{
	struct vp_child c = vp_fork(deregisters, NULL);
	struct vp_opts o = options();
	struct ibv_wc wc;
	struct vp_end e;

	check_case("sends to one that deregisters");
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	vp_sync(c.fd);
	for (uint32_t i = 0; i < ARRIVED; i++) {
		pattern_fill(e.buf, arrived_lens[i], i);
		CHECK_EQ(vp_post_send(&e, i, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, arrived_lens[i],
				 NULL, 0),
			0);
		vp_want(e.scq, &wc, IBV_WC_SUCCESS, i);
	}
	vp_sync(c.fd);
	vp_join(&c);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

/* Sends that wait for receives: as many as the queue holds, posted one by one afterwards. */
static void late_taker(int fd, void *arg)
{
	struct vp_opts o = options();
	struct ibv_wc wc;
	struct vp_end e;

	(void)arg;
	vp_make(&e, vp_open(), &o);
	vp_meet(&e, fd);
	for (uint32_t n = 0; n < LAPS * DEPTH; n++) {
		uint32_t i = n % DEPTH;

		check_case("late receive %u", n);
		if (!i)
			vp_sync(fd);
		CHECK_EQ(vp_post_recv(&e, n, (size_t)i * MESSAGE, MESSAGE), 0);
		if (!vp_want(e.rcq, &wc, IBV_WC_SUCCESS, n))
			return;
		CHECK_EQ(wc.byte_len, length_of(n));
		CHECK(pattern_filled(e.buf + (size_t)i * MESSAGE, wc.byte_len, n));
	}
	vp_sync(fd);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

static void parked_queue(void)
{
	struct vp_child c = vp_fork(late_taker, NULL);
	struct vp_opts o = options();
	struct ibv_wc wc;
	struct vp_end e;

	vp_make(&e, vp_open(), &o);
	vp_meet(&e, c.fd);
	for (uint32_t lap = 0; lap < LAPS; lap++) {
		check_case("a full queue waits for receives, lap %u", lap);
		for (uint32_t i = 0; i < DEPTH; i++) {
			uint32_t n = lap * DEPTH + i;

			pattern_fill(e.buf + (size_t)i * MESSAGE, MESSAGE, n);
			CHECK_EQ(vp_post_send(&e, n, IBV_WR_SEND, IBV_SEND_SIGNALED,
					 (size_t)i * MESSAGE, length_of(n), NULL, 0),
				0);
		}
		vp_sync(c.fd);
		for (uint32_t i = 0; i < DEPTH; i++)
			if (!vp_want(e.scq, &wc, IBV_WC_SUCCESS, lap * DEPTH + i))
				die("a request is lost");
	}
	vp_sync(c.fd);
	vp_join(&c);
	vp_free(&e);
	ibv_close_device(e.ctx);
}

int main(void)
{
	payload_ring();
	parked_queue();
	dereg_unpolled();
	in_one_process();
	return check_result();
}
