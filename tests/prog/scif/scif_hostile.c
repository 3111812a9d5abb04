// SPDX-License-Identifier: BSD-3-Clause
/* Peers that speak SCIF's protocol wrongly, by raw verbs: they lose their connection, that is all.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scif/ep/wire.h"
#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/scif_ends.h"
#include "tests/lib/share_status.h"

enum { PAGE = 4096, WAIT_MS = 10000, BUF = 8192, WINDOW = 0x10000 };

/* The raw side. */
static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t *buf; /* the first words are our credit; what follows is sent, then received */
static struct wire_hello theirs;

static struct wire_hello hello_to(uint16_t port)
{
	return (struct wire_hello){
		.magic = htole32(WIRE_MAGIC),
		.version = htole16(WIRE_VERSION),
		.src_node = htole16(0),
		.src_port = htole16(5),
		.dst_port = htole16(port),
		.credit_rkey = htole32(mr->rkey),
		.credit_addr = htole64((uintptr_t)buf),
	};
}

static void begin(uint16_t port)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 128,
			.max_recv_wr = 64,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	id = cm_resolved(channel, cm_addr4(scif_cm_port(port)), false);
	if (!pd)
		pd = ibv_alloc_pd(id->verbs);
	if (!mr)
		mr = ibv_reg_mr(pd, buf, 2 * BUF,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	memset(buf, 0, BUF);
	if (!mr || rdma_create_qp(id, pd, &init))
		die("queue pair");
	for (uint64_t i = 0; i < 60; i++)
		rdma_post_recv(id, NULL, buf + BUF, 2048, mr);
}

static void dial(const struct wire_hello *hello, size_t len)
{
	struct rdma_conn_param param = {.private_data = hello,
		.private_data_len = len,
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7};

	if (rdma_connect(id, &param))
		die("rdma_connect");
}

static void drop(void)
{
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static scif_epd_t accepted;

static void *accept_it(void *l)
{
	struct scif_portID peer;

	CHECK_EQ(scif_accept(*(scif_epd_t *)l, &peer, &accepted, SCIF_ACCEPT_SYNC), 0);
	CHECK_EQ(peer.port, 5);
	return NULL;
}

/* Connects to a listener; the endpoint that was accepted. */
static scif_epd_t meet(scif_epd_t l, uint16_t port)
{
	struct wire_hello hello;
	struct rdma_cm_event *ev;
	pthread_t t;

	begin(port);
	hello = hello_to(port);
	dial(&hello, sizeof(hello));
	pthread_create(&t, NULL, accept_it, &l);
	ev = cm_take(channel, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&theirs, ev->param.conn.private_data, sizeof(theirs));
	rdma_ack_cm_event(ev);
	pthread_join(t, NULL);
	return accepted;
}

static void send_raw(size_t len, int imm)
{
	struct ibv_sge sge = {(uintptr_t)buf + 64, len, mr->lkey};
	struct ibv_send_wr wr = {.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.imm_data = htobe32(imm);
	if (ibv_post_send(id->qp, &wr, &bad))
		die("ibv_post_send");
	while (ibv_poll_cq(id->send_cq, 1, &wc) == 0)
		usleep(100);
}

/* What ought to be a message, by another request: wr is filled in but for its bytes. */
static void post_raw(struct ibv_send_wr *wr, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)buf + 64, len, mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(id->qp, wr, &bad))
		die("ibv_post_send");
	while (ibv_poll_cq(id->send_cq, 1, &wc) == 0)
		usleep(100);
	CHECK_EQ(wc.status, IBV_WC_SUCCESS);
}

/* The key of their window: their first message to us says it. */
static uint32_t window_key(void)
{
	const struct wire_ctl *ctl = (const void *)(buf + BUF);
	struct ibv_wc wc;

	while (ibv_poll_cq(id->recv_cq, 1, &wc) == 0)
		usleep(100);
	CHECK_EQ(wc.byte_len, sizeof(*ctl));
	CHECK_EQ(le32toh(ctl->op), WIRE_REGISTER);
	return le64toh(ctl->arg[3]);
}

/* Takes a receive and leaves nothing in it: len bytes go into their window. */
static void write_imm(size_t len, uint32_t imm)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htobe32(imm)};

	wr.wr.rdma.remote_addr = WINDOW;
	wr.wr.rdma.rkey = window_key();
	post_raw(&wr, len);
}

static void send_ctl(uint32_t op, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	struct wire_ctl ctl = {.op = htole32(op),
		.id = htole32(1),
		.arg = {htole64(a), htole64(b), htole64(c), htole64(d), htole64(e)}};

	memcpy(buf + 64, &ctl, sizeof(ctl));
	send_raw(sizeof(ctl), 0);
}

/* What we write where they told us to say what we took. */
static void write_credit(uint64_t bytes, uint64_t msgs, size_t at)
{
	struct wire_credit c = {htole64(bytes), htole64(msgs)};
	struct ibv_sge sge = {(uintptr_t)buf + 64, sizeof(c), mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memcpy(buf + 64, &c, sizeof(c));
	wr.wr.rdma.remote_addr = le64toh(theirs.credit_addr) + at;
	wr.wr.rdma.rkey = le32toh(theirs.credit_rkey);
	ibv_post_send(id->qp, &wr, &bad);
	while (ibv_poll_cq(id->send_cq, 1, &wc) == 0)
		usleep(100);
}

/* The wrongs, one by one. */
static void wrong(int what)
{
	switch (what) {
	case 0:
		return send_ctl(999, 0, 0, 0, 0, 0);
	case 1:
		return send_raw(8, 0);
	case 2:
		return send_raw(8, 77); /* an immediate that means nothing */
	case 3:                         /* more bytes than the ring has */
		send_raw(2048, WIRE_DATA);
		send_raw(2048, WIRE_DATA);
		return;
	case 4:
		return send_ctl(WIRE_REGISTER, 100, PAGE, 3, 1, 0);
	case 5:
		return send_ctl(WIRE_REGISTER, PAGE, INT64_MAX - 4095, 3, 1, 0);
	case 6:
		return send_ctl(WIRE_REGISTER, PAGE, PAGE, 8, 1, 0);
	case 7: /* over another */
		send_ctl(WIRE_REGISTER, PAGE, 4 * PAGE, 3, 1, 0);
		return send_ctl(WIRE_REGISTER, 2 * PAGE, PAGE, 3, 1, 0);
	case 8:
		return send_ctl(WIRE_UNREGISTER, PAGE, 0, 0, 0, 0);
	case 9: /* a window of theirs that is open */
		return send_ctl(WIRE_RELEASED, WINDOW, 0, 0, 0, 0);
	case 10:
		return send_ctl(WIRE_RETAINED, 0, 0, 0, 0, 0);
	case 11: /* an RMA that was not begun */
		return send_ctl(WIRE_WAIT, UINT64_MAX, 0, 0, 0, 0);
	case 12:
		return send_ctl(WIRE_WANT, 1000, WANT_BYTES, 0, 0, 0);
	case 13:
		return send_ctl(WIRE_WANT, 0, 12, 0, 0, 0);
	case 14: /* took what was not sent */
		write_credit(1 << 20, 0, 0);
		return send_raw(1, WIRE_DATA);
	case 15:
		write_credit(0, UINT64_MAX, 0);
		return send_raw(1, WIRE_DATA);
	case 16: /* beyond its word */
		return write_credit(0, 0, 4096);
	case 17: /* longer than a receive: its bytes are in no receive */
		return write_imm(4095, WIRE_DATA);
	case 18:
		return write_imm(100, WIRE_DATA);
	case 19:
		return write_imm(0, WIRE_DATA);
	case 20:
		return write_imm(sizeof(struct wire_ctl), 0);
	case 21:
		return send_raw(0, WIRE_DATA);
	case 22: /* bytes, with the immediate of a control message */
		return send_raw(sizeof(struct wire_ctl), WIRE_DATA + 1);
	}
}

/* Of greetings three are no hello, of wrongs one is refused by the queue pair itself. */
enum { BAD_HELLOS = 3, REFUSED = 1 };
enum { FIRST_UNSENT = 17, WRONGS = 23 }; /* from the first on nobody has sent a byte */

/* Odd, but allowed: the connection lives, and every answer is an error. */
static void odd(scif_epd_t e)
{
	uint64_t word = 0;

	check_case("odd");
	send_ctl(WIRE_SIGNAL, 0x900000, 1, 0, 0, SCIF_SIGNAL_LOCAL);
	send_ctl(WIRE_SIGNAL, 2, 1, 0, 0, SCIF_SIGNAL_LOCAL | 1);
	send_ctl(WIRE_MAP, 0x900000, 0, 0, 0, 0);
	send_ctl(WIRE_MARK_ACK, 1, 0, 0, 0, 0);
	send_ctl(WIRE_WAIT_ACK, 1, 0, 0, 0, 0);
	send_ctl(WIRE_CREDIT, 3, 0, 0, 0, 0);
	/* a window of ours whose key opens nothing */
	send_ctl(WIRE_REGISTER, 0, PAGE, 3, 0x123456, 0);
	memcpy(buf + 64, "regular!", 8);
	send_raw(8, WIRE_DATA);
	CHECK_EQ(scif_recv(e, &word, 8, SCIF_RECV_BLOCK), 8);
	CHECK_EQ(scif_send(e, &word, 8, 0), 8);
	CHECK_EQ(scif_vwriteto(e, &word, 8, 0, SCIF_RMA_SYNC), -1);
	CHECK_EQ(errno, ECONNRESET);
}

static void bad_hello(uint16_t port, int what)
{
	struct wire_hello hello;

	check_case("hello %d", what);
	begin(port);
	hello = hello_to(port);
	if (what == 0)
		hello.magic = 0;
	if (what == 1)
		hello.version = htole16(99);
	if (what == 2)
		hello.dst_port = htole16(port + 1);
	dial(&hello, what == 3 ? 4 : sizeof(hello));
	cm_expect(channel, RDMA_CM_EVENT_REJECTED);
	drop();
}

int main(void)
{
	uint8_t *m = scif_pages(PAGE);
	uint16_t port;
	scif_epd_t l = scif_listener(4, &port), e;
	char c[64];
	int n;

	buf = scif_pages(2 * BUF);
	channel = cm_channel();
	for (int i = 0; i < 4; i++)
		bad_hello(port, i);
	for (int i = 0; i < WRONGS; i++) {
		check_case("wrong %d", i);
		e = meet(l, port);
		CHECK_EQ(scif_register(e, m, PAGE, WINDOW, 3, SCIF_MAP_FIXED), WINDOW);
		wrong(i);
		CHECK_EQ(scif_raw_poll(e, 0, WAIT_MS) & POLLHUP, POLLHUP);
		while ((n = scif_recv(e, c, sizeof(c), 0)) > 0)
			CHECK(i < FIRST_UNSENT);
		CHECK_EQ(n, -1);
		CHECK_EQ(errno, ECONNRESET);
		CHECK_EQ(scif_close(e), 0);
		cm_expect(channel, RDMA_CM_EVENT_DISCONNECTED);
		drop();
	}
	e = meet(l, port);
	odd(e);
	scif_close(e);
	cm_expect(channel, RDMA_CM_EVENT_DISCONNECTED);
	drop();
	CHECK_EQ(scif_close(l), 0);
	check_case("counted");
	CHECK_EQ(status_of(getpid(), "counters", "peer_breaches"), BAD_HELLOS + WRONGS - REFUSED);
	return check_result();
}
