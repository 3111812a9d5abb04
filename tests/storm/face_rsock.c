// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rsock/stream.h"
#include "tests/lib/check.h"
#include "tests/lib/rs_ends.h"
#include "tests/storm/face_victim.h"

enum { MAGIC = 0x57736f63, RING = 8192, RQ = 100, FAR = 64 };

static int listener, s;
static struct rs_hello theirs;
static uint8_t ring[RING]; /* what was written into the receiver's */
static uint64_t sent, taken;
static bool reset;

static uint16_t start(void)
{
	uint16_t port;

	listener = rs_listener(&port);
	rsetsockopt(listener, SOL_SOCKET, SO_RCVBUF, &(int){RING}, sizeof(int));
	rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &(int){4}, sizeof(int));
	rs_nonblock(listener, true);
	return port;
}

static uint8_t hello(const struct raw_end *r, uint8_t priv[RAW_PRIV])
{
	struct rs_hello h = {
		.magic = htobe32(MAGIC),
		.version = htobe16(1),
		.iomap_size = htobe16(4),
		.ring_addr = htobe64((uintptr_t)r->buf + RAW_BUF / 2),
		.ring_size = htobe32(RING),
		.ring_rkey = htobe32(r->mr->rkey),
		.rq_size = htobe32(RQ),
	};

	memcpy(priv, &h, sizeof h);
	return sizeof h;
}

static bool accept_it(void)
{
	s = raccept(listener, NULL, NULL);
	return s >= 0;
}

static void meet(struct raw_end *r)
{
	memcpy(&theirs, r->priv, sizeof theirs);
	memset(ring, 0, sizeof ring);
	sent = taken = 0;
	reset = false;
	rs_nonblock(s, true);
}

static uint64_t place_in_ring(uint64_t at)
{
	return be64toh(theirs.ring_addr) + at % RING;
}

static void data(struct raw_end *r, struct face_request *q)
{
	uint32_t left = RING - sent % RING;

	q->len = 1 + face_draw(400);
	if (q->len > left)
		q->len = left;
	for (uint32_t i = 0; i < q->len; i++)
		r->buf[i] = 1 + face_draw(255);
	q->wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	q->wr.imm_data = htonl(q->len);
	q->wr.wr.rdma.remote_addr = place_in_ring(sent);
	q->wr.wr.rdma.rkey = be32toh(theirs.ring_rkey);
}

static void message(struct raw_end *r, struct face_request *q)
{
	static const uint64_t words[] = {0, 1, 4096, INT64_MAX, UINT64_MAX, UINT64_MAX - 4096};
	struct rs_ctl ctl = {.type = htobe32(RS_CREDIT)};

	*q = (struct face_request){.wr.opcode = IBV_WR_SEND, .len = 16};
	if (face_draw(2)) {
		data(r, q);
		return;
	}
	if (face_draw(2)) {
		ctl.type = htobe32(1 + face_draw(5));
		ctl.offset = htobe64(words[face_draw(6)]);
		ctl.len = htobe64(words[face_draw(6)]);
		ctl.addr = htobe64(words[face_draw(6)]);
		ctl.index = htobe32(face_draw(6));
		ctl.consumed = htobe64(face_draw(20) ? 0 : words[face_draw(6)]);
		ctl.msgs = htobe32(face_draw(20) ? 0 : face_draw(3));
		q->len = sizeof ctl;
	}
	memcpy(r->buf, &ctl, sizeof ctl);
}

static void aim(struct face_request *q)
{
	q->wr.wr.rdma.remote_addr = place_in_ring(face_draw(RING));
	q->wr.wr.rdma.rkey = be32toh(theirs.ring_rkey);
}

/* Bytes that went into the ring, whether or not anybody was told. */
static void note_written(const struct raw_end *r, const struct face_request *q)
{
	uint64_t at = q->wr.wr.rdma.remote_addr - be64toh(theirs.ring_addr);

	if (q->len)
		memcpy(ring + at, r->buf, q->len);
}

static bool done(const struct raw_end *r, const struct face_request *q)
{
	switch (q->wr.opcode) {
	case IBV_WR_SEND:
		return q->len >= 16 && q->len <= sizeof(struct rs_ctl);
	case IBV_WR_SEND_WITH_IMM:
		return false;
	case IBV_WR_RDMA_WRITE:
		note_written(r, q);
		return true;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		note_written(r, q);
		if (!q->len || ntohl(q->wr.imm_data) != q->len)
			return false;
		sent += q->len;
		return true;
	default:
		return true;
	}
}

static void look(void)
{
	uint8_t got[512];
	ssize_t n;

	while ((n = rrecv(s, got, 1 + face_draw(sizeof got), 0)) > 0) {
		if (!CHECK((uint64_t)n <= sent - taken))
			exit(check_result());
		for (ssize_t i = 0; i < n; i++, taken++)
			if (got[i] != ring[taken % RING])
				die("byte %llu is %#x and was written as %#x",
					(unsigned long long)taken, got[i], ring[taken % RING]);
	}
	reset |= n < 0 && errno == ECONNRESET;
	if (n == 0 || (n < 0 && errno != EAGAIN))
		reset = true; /* the end that it said itself, or the one that it gets */
	if (!face_draw(3))
		(void)rsend(s, got, 1 + face_draw(FAR), 0);
	if (!face_draw(4))
		(void)riowrite(s, got, 8, 0, MSG_DONTWAIT);
}

static bool over(void)
{
	look();
	return reset;
}

static void close_it(void)
{
	CHECK_EQ(rclose(s), 0);
}

static void end(void)
{
	CHECK_EQ(rclose(listener), 0);
}

const struct face_victim face_rsock = {
	.name = "rsockets",
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
