// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/check.h"
#include "tests/lib/rpma_ends.h"
#include "tests/storm/face_victim.h"

enum { SIZE = 4096, RECEIVES = 32, PORT = 7400, DESCRIPTOR = 21 };

static struct rpma_peer *peer;
static struct rpma_ep *ep;
static struct rpma_conn_cfg *cfg;
static struct rpma_conn *conn;
static struct rpma_mr_local *mr;
static uint8_t *memory; /* the place of each receive, then what may be written */
static uint8_t greeting[RAW_PRIV];
static uint64_t key;
static struct {
	enum ibv_wc_opcode opcode;
	uint32_t len;
} due[RECEIVES];
static unsigned n_due, n_came;

static uint16_t start(void)
{
	struct rpma_mr_remote *remote;
	uint8_t desc[DESCRIPTOR];
	uint32_t rkey;

	peer = rp_peer();
	ep = rp_listen(peer);
	memory = aligned_alloc(SIZE, (RECEIVES + 1) * SIZE);
	CHECK_EQ(rpma_conn_cfg_new(&cfg), 0);
	CHECK_EQ(rpma_conn_cfg_set_rq_size(cfg, RECEIVES), 0);
	CHECK_EQ(rpma_conn_cfg_set_cq_size(cfg, 2 * RECEIVES), 0);
	CHECK_EQ(
		rpma_mr_reg(peer, memory, (RECEIVES + 1) * SIZE,
			RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC, &mr),
		0);
	remote = rp_remote(mr);
	CHECK_EQ(rpma_mr_get_descriptor(mr, desc), 0);
	memcpy(&rkey, desc + 16, sizeof rkey);
	key = rkey;
	CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	return PORT;
}

/* Descriptors are a peer's private data, too: whatever they say, none is believed in part. */
static void parse(const uint8_t *desc)
{
	struct rpma_mr_remote *remote = NULL;
	struct rpma_peer_cfg *pcfg = NULL;
	size_t size = face_draw(DESCRIPTOR + 1);

	if (!rpma_mr_remote_from_descriptor(desc, size, &remote)) {
		CHECK_EQ(size, DESCRIPTOR);
		CHECK_EQ(rpma_mr_remote_get_size(remote, &size), 0);
		CHECK(size);
		CHECK_EQ(rpma_mr_remote_delete(&remote), 0);
	}
	if (!rpma_peer_cfg_from_descriptor(desc, face_draw(2), &pcfg)) {
		CHECK(desc[0] <= 1);
		CHECK_EQ(rpma_peer_cfg_delete(&pcfg), 0);
	}
}

static uint8_t hello(const struct raw_end *r, uint8_t priv[RAW_PRIV])
{
	(void)r;
	for (int i = 0; i < RAW_PRIV; i++)
		greeting[i] = priv[i] = face_draw(3) ? face_draw(256) : 0;
	parse(greeting);
	return RAW_PRIV;
}

static void post(uint64_t i)
{
	CHECK_EQ(rpma_recv(conn, mr, i * SIZE, SIZE, (void *)i), 0);
}

static bool accept_it(void)
{
	int fd;

	if (rpma_ep_get_fd(ep, &fd) || !rp_readable(fd, 0))
		return false;
	conn = rp_answer(ep, cfg, NULL);
	rp_expect(conn, RPMA_CONN_ESTABLISHED);
	for (uint64_t i = 0; i < RECEIVES; i++)
		post(i);
	return true;
}

static void meet(struct raw_end *r)
{
	struct rpma_conn_private_data data;

	(void)r;
	n_due = n_came = 0;
	CHECK_EQ(rpma_conn_get_private_data(conn, &data), 0);
	CHECK(data.len <= RAW_PRIV);
	if (data.len && face_draw(2))
		parse(data.ptr);
}

static void message(struct raw_end *r, struct face_request *q)
{
	(void)r;
	*q = (struct face_request){.wr.opcode = IBV_WR_SEND, .len = face_draw(SIZE + 1)};
	if (face_draw(2))
		q->wr.opcode = IBV_WR_SEND_WITH_IMM;
}

static void aim(struct face_request *q)
{
	q->wr.wr.rdma.remote_addr = (uintptr_t)memory + RECEIVES * SIZE + face_draw(64);
	q->wr.wr.rdma.rkey = key;
}

static bool done(const struct raw_end *r, const struct face_request *q)
{
	bool written = q->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	(void)r;
	if (!written && q->wr.opcode != IBV_WR_SEND && q->wr.opcode != IBV_WR_SEND_WITH_IMM)
		return true;
	due[n_due % RECEIVES].opcode = written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	due[n_due++ % RECEIVES].len = q->len;
	return true;
}

/* The program gets the completion as it is, and has its opcode to tell one from the other. */
static void look(void)
{
	struct rpma_cq *cq = rp_cq(conn);
	struct ibv_wc wc;

	while (!rpma_cq_get_wc(cq, 1, &wc, NULL)) {
		if (wc.status)
			continue;
		if (!CHECK(n_came < n_due))
			return;
		CHECK_EQ(wc.opcode, due[n_came % RECEIVES].opcode);
		CHECK_EQ(wc.byte_len, due[n_came++ % RECEIVES].len);
		post(wc.wr_id);
	}
}

static bool over(void)
{
	return true;
}

static void close_it(void)
{
	CHECK_EQ(rpma_conn_disconnect(conn), 0);
	rp_expect(conn, RPMA_CONN_CLOSED);
	CHECK_EQ(rpma_conn_delete(&conn), 0);
}

static void end(void)
{
	CHECK_EQ(rpma_conn_cfg_delete(&cfg), 0);
	CHECK_EQ(rpma_ep_shutdown(&ep), 0);
	CHECK_EQ(rpma_mr_dereg(&mr), 0);
	CHECK_EQ(rpma_peer_delete(&peer), 0);
	free(memory);
}

const struct face_victim face_rpma = {
	.name = "librpma",
	.listen = start,
	.hello = hello,
	.accept = accept_it,
	.meet = meet,
	.message = message,
	.aim = aim,
	.done = done,
	.look = look,
	.over = over,
	.close = close_it,
	.end = end,
};
