// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scif/ep/wire.h"
#include "tests/lib/check.h"
#include "tests/lib/scif_ends.h"
#include "tests/storm/face_victim.h"

enum { PAGE = 4096, WINDOW = 0x10000, MOST_BYTES = 1 << 16, WAIT_MS = 20000 };

static scif_epd_t listener, ep;
static uint16_t port;
static uint8_t *memory;
static struct wire_hello theirs;
static uint32_t window_key;
static uint8_t sent[MOST_BYTES]; /* the bytes that scif_recv() has to give, in order */
static uint32_t n_sent, n_taken;
static bool reset;

static uint16_t start(void)
{
	memory = scif_pages(PAGE);
	listener = scif_listener(4, &port);
	return scif_cm_port(port);
}

static uint8_t hello(const struct raw_end *r, uint8_t priv[RAW_PRIV])
{
	struct wire_hello h = {
		.magic = htole32(WIRE_MAGIC),
		.version = htole16(WIRE_VERSION),
		.src_port = htole16(5),
		.dst_port = htole16(port),
		.credit_rkey = htole32(r->mr->rkey),
		.credit_addr = htole64((uintptr_t)r->buf + RAW_BUF - PAGE),
	};

	memcpy(priv, &h, sizeof h);
	return sizeof h;
}

static bool accept_it(void)
{
	struct scif_portID peer;

	return scif_accept(listener, &peer, &ep, 0) == 0;
}

static void meet(struct raw_end *r)
{
	const struct wire_ctl *ctl;
	uint32_t len;

	memcpy(&theirs, r->priv, sizeof theirs);
	n_sent = n_taken = 0;
	reset = false;
	CHECK_EQ(scif_register(ep, memory, PAGE, WINDOW, SCIF_PROT_READ | SCIF_PROT_WRITE,
			 SCIF_MAP_FIXED),
		WINDOW);
	while (!(ctl = (const void *)raw_heard(r, &len)) && !raw_hung_up(r))
		;
	window_key = ctl && le32toh(ctl->op) == WIRE_REGISTER ? le64toh(ctl->arg[3]) : 0;
}

static void bytes(struct raw_end *r, struct face_request *q)
{
	q->wr.opcode = IBV_WR_SEND_WITH_IMM;
	q->wr.imm_data = htonl(WIRE_DATA);
	q->len = 1 + face_draw(300);
	for (uint32_t i = 0; i < q->len; i++)
		r->buf[i] = 1 + face_draw(255);
}

static void message(struct raw_end *r, struct face_request *q)
{
	static const uint64_t words[] = {0, 1, 2, 3, 4, 5, PAGE, 2 * PAGE, WINDOW, WINDOW + 8,
		INT64_MAX, UINT64_MAX, 1u << 31};
	struct wire_ctl ctl = {.op = htole32(1 + face_draw(15)), .id = htole32(face_draw(3))};

	*q = (struct face_request){.len = sizeof ctl};
	if (face_draw(2)) {
		bytes(r, q);
		return;
	}
	for (int i = 0; i < 5; i++)
		ctl.arg[i] = htole64(words[face_draw(sizeof words / sizeof *words)]);
	memcpy(r->buf, &ctl, sizeof ctl);
	q->wr.opcode = IBV_WR_SEND;
}

static void aim(struct face_request *q)
{
	bool window = face_draw(2);

	q->wr.wr.rdma.remote_addr = window ? WINDOW : le64toh(theirs.credit_addr) + face_draw(80);
	q->wr.wr.rdma.rkey = window ? window_key : le32toh(theirs.credit_rkey);
}

static bool done(const struct raw_end *r, const struct face_request *q)
{
	switch (q->wr.opcode) {
	case IBV_WR_SEND:
		return q->len == sizeof(struct wire_ctl);
	case IBV_WR_SEND_WITH_IMM:
		if (!q->len || ntohl(q->wr.imm_data) != WIRE_DATA)
			return false;
		memcpy(sent + n_sent, r->buf, q->len);
		n_sent += q->len;
		return true;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return false;
	default:
		return true;
	}
}

static void look(void)
{
	uint8_t got[WIRE_RING];
	int n;

	while ((n = scif_recv(ep, got, 1 + face_draw(sizeof got), 0)) > 0) {
		if (!CHECK((uint32_t)n <= n_sent - n_taken) ||
			!CHECK(!memcmp(got, sent + n_taken, n)))
			exit(check_result());
		n_taken += n;
	}
	reset |= n < 0 && errno == ECONNRESET;
	if (n < 0)
		CHECK(errno == ECONNRESET || errno == EAGAIN);
	else if (!face_draw(3))
		(void)scif_send(ep, got, 1 + face_draw(64), 0);
}

static bool over(void)
{
	look();
	return reset && scif_raw_poll(ep, 0, 0) & POLLHUP;
}

static void close_it(void)
{
	CHECK_EQ(scif_close(ep), 0);
}

static void end(void)
{
	CHECK_EQ(scif_close(listener), 0);
}

const struct face_victim face_scif = {
	.name = "SCIF",
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
