// SPDX-License-Identifier: BSD-3-Clause
/*
 * A peer that connects to an rsocket by plain rdma_cm and breaks its protocol: the connection
 * ends, and nothing else.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "rsock/stream.h"
#include "tests/lib/check.h"
#include "tests/lib/cm_ends.h"
#include "tests/lib/rs_ends.h"

#define MAGIC 0x57736f63u

enum { RING = 1 << 16, RQ = 100, BUF = 4096 };

struct bad_peer {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint64_t ring_addr;
	uint32_t ring_rkey;
	int victim;
};

static uint8_t buf[BUF];

static struct rs_hello good_hello(void)
{
	return (struct rs_hello){
		.magic = htobe32(MAGIC),
		.version = htobe16(1),
		.iomap_size = htobe16(1),
		.ring_addr = htobe64(4096),
		.ring_size = htobe32(RING),
		.ring_rkey = htobe32(77), /* of nothing */
		.rq_size = htobe32(RQ),
	};
}

/* Connects with that greeting; false: refused. */
static bool meet(struct bad_peer *p, int listener, uint16_t port, const void *hello, size_t len)
{
	struct rdma_conn_param param = {.private_data = hello,
		.private_data_len = len,
		.retry_count = 7,
		.rnr_retry_count = 7};
	struct rdma_cm_event *e;
	struct rs_hello theirs;

	p->ch = cm_channel();
	p->id = cm_resolved(p->ch, cm_addr4(port), true);
	p->mr = ibv_reg_mr(p->id->pd, buf, sizeof buf, IBV_ACCESS_LOCAL_WRITE);
	for (int i = 0; i < 4; i++)
		if (rdma_post_recv(p->id, NULL, buf, 64, p->mr))
			die("rdma_post_recv");
	if (rdma_connect(p->id, &param))
		die("rdma_connect");
	rs_nonblock(listener, true);
	p->victim = -1;
	for (int i = 0; i < 100 && p->victim < 0 && !cm_readable(p->ch, 0); i++) {
		rs_poll1(listener, POLLIN, 50);
		p->victim = raccept(listener, NULL, NULL);
	}
	if (rdma_get_cm_event(p->ch, &e))
		die("rdma_get_cm_event");
	if (e->event == RDMA_CM_EVENT_ESTABLISHED) {
		memcpy(&theirs, e->param.conn.private_data, sizeof theirs);
		p->ring_addr = be64toh(theirs.ring_addr);
		p->ring_rkey = be32toh(theirs.ring_rkey);
	}
	rdma_ack_cm_event(e);
	return p->victim >= 0;
}

static void part(struct bad_peer *p)
{
	ibv_dereg_mr(p->mr);
	cm_end(p->id);
	rdma_destroy_event_channel(p->ch);
	if (p->victim >= 0)
		CHECK_EQ(rclose(p->victim), 0);
}

static void say(struct bad_peer *p, const void *msg, size_t len)
{
	memcpy(buf, msg, len);
	if (rdma_post_send(p->id, NULL, buf, len, p->mr, IBV_SEND_SIGNALED))
		die("rdma_post_send");
}

static void write_imm(struct bad_peer *p, uint64_t offset, uint32_t len, uint32_t imm)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = len, .lkey = p->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .imm_data = htonl(imm),
					   .sg_list = &sge,
					   .num_sge = 1,
					   .wr.rdma = {.remote_addr = p->ring_addr + offset,
						   .rkey = p->ring_rkey},
				   },
			   *bad;

	if (ibv_post_send(p->id->qp, &wr, &bad))
		die("ibv_post_send");
}

static void expect_reset(struct bad_peer *p)
{
	char c;

	CHECK_EQ(rrecv(p->victim, &c, 1, 0), -1);
	CHECK_EQ(errno, ECONNRESET);
	CHECK_EQ(rsend(p->victim, &c, 1, 0), -1);
	CHECK_EQ(errno, EPIPE);
}

/* ---- greetings ---- */

static void bad_hello(int l, uint16_t port, const char *what, const struct rs_hello *h, size_t len)
{
	struct bad_peer p = {0};

	check_case("hello: %s", what);
	CHECK(!meet(&p, l, port, h, len));
	part(&p);
}

static void greetings(int l, uint16_t port)
{
	struct rs_hello h = good_hello();

	bad_hello(l, port, "none", NULL, 0);
	bad_hello(l, port, "short", &h, 8);
	h.magic = 0;
	bad_hello(l, port, "magic", &h, sizeof h);
	h = good_hello();
	h.version = htobe16(9);
	bad_hello(l, port, "version", &h, sizeof h);
	h = good_hello();
	h.ring_size = 0;
	bad_hello(l, port, "no ring", &h, sizeof h);
	h.ring_size = ~0u;
	bad_hello(l, port, "huge ring", &h, sizeof h);
	h = good_hello();
	h.rq_size = htobe32(1);
	bad_hello(l, port, "no receives", &h, sizeof h);
	h.rq_size = ~0u;
	bad_hello(l, port, "too many receives", &h, sizeof h);
	h = good_hello();
	h.iomap_size = ~0;
	bad_hello(l, port, "mappings", &h, sizeof h);
}

/* ---- messages ---- */

static struct rs_ctl ctl_of(uint32_t type, uint32_t msgs, uint64_t consumed)
{
	return (struct rs_ctl){
		.type = htobe32(type), .msgs = htobe32(msgs), .consumed = htobe64(consumed)};
}

static void bad_message(
	int l, uint16_t port, const char *what, const struct rs_ctl *ctl, size_t len)
{
	struct rs_hello h = good_hello();
	struct bad_peer p = {0};

	check_case("message: %s", what);
	CHECK(meet(&p, l, port, &h, sizeof h));
	say(&p, ctl, len);
	expect_reset(&p);
	part(&p);
}

static void messages(int l, uint16_t port)
{
	struct rs_ctl two[2] = {ctl_of(RS_CREDIT, 0, 0)}, c = ctl_of(99, 0, 0);

	bad_message(l, port, "type", &c, sizeof c);
	c = ctl_of(RS_CREDIT, 0, 0);
	bad_message(l, port, "short", &c, 4);
	bad_message(l, port, "empty", &c, 0);
	bad_message(l, port, "long", two, sizeof c + 8);
	c = ctl_of(RS_CREDIT, 1, 0);
	bad_message(l, port, "more than was sent", &c, 16);
	c = ctl_of(RS_CREDIT, -5, 0);
	bad_message(l, port, "fewer than none", &c, 16);
	c = ctl_of(RS_CREDIT, 0, 1);
	bad_message(l, port, "more than was written", &c, 16);
	c = ctl_of(RS_CREDIT, 0, ~0ull);
	bad_message(l, port, "far more", &c, 16);
	c = ctl_of(RS_IOMAP, 0, 0);
	bad_message(l, port, "short mapping", &c, 16);
	c.index = htobe32(2);
	bad_message(l, port, "index", &c, sizeof c);
	c.index = ~0u;
	bad_message(l, port, "huge index", &c, sizeof c);
	c.index = 0;
	c.offset = c.len = ~0ull;
	bad_message(l, port, "mapping round the end", &c, sizeof c);
}

/* ---- data ---- */

static void data(int l, uint16_t port)
{
	struct rs_hello h = good_hello();
	struct rs_ctl fin = ctl_of(RS_FIN, 0, 0);
	static const struct {
		const char *what;
		uint32_t len, imm, times;
	} table[] = {
		{"a length that lies", 10, 1000000, 1},
		{"no length", 0, 0, 1},
		{"too much", BUF, BUF, 3},
	};
	char c;

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		struct bad_peer p = {0};

		check_case("data: %s", table[i].what);
		CHECK(meet(&p, l, port, &h, sizeof h));
		for (uint32_t k = 0; k < table[i].times; k++)
			write_imm(&p, 0, table[i].len, table[i].imm);
		while (rrecv(p.victim, &c, 1, MSG_DONTWAIT) >= 0 || errno == EAGAIN)
			;
		CHECK_EQ(errno, ECONNRESET);
		part(&p);
	}
	check_case("data after the end");
	struct bad_peer p = {0};

	CHECK(meet(&p, l, port, &h, sizeof h));
	say(&p, &fin, 16);
	write_imm(&p, 0, 1, 1);
	CHECK_EQ(rrecv(p.victim, &c, 1, 0), 0);
	part(&p);
	/* What it said of its memory is false: our write breaks the connection. */
	check_case("a ring that is none");
	p = (struct bad_peer){0};
	CHECK(meet(&p, l, port, &h, sizeof h));
	while (rsend(p.victim, "x", 1, 0) == 1)
		;
	CHECK(errno == ECONNRESET || errno == EPIPE);
	part(&p);
}

/* ---- operations ---- */

/* Of any opcode, len bytes and that immediate, towards the start of the ring. */
static void request(struct bad_peer *p, enum ibv_wr_opcode opcode, uint32_t len, uint32_t imm)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = len, .lkey = p->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .opcode = opcode,
					   .imm_data = htonl(imm),
					   .sg_list = &sge,
					   .num_sge = 1,
					   .wr.rdma = {.remote_addr = p->ring_addr,
						   .rkey = p->ring_rkey},
				   },
			   *bad;

	if (ibv_post_send(p->id->qp, &wr, &bad))
		die("ibv_post_send");
}

/* Data is an RDMA WRITE, control a SEND, and neither the other. */
static void operations(int l, uint16_t port)
{
	static const struct {
		const char *what;
		enum ibv_wr_opcode opcode;
		uint32_t len, imm;
	} table[] = {
		{"data in a SEND", IBV_WR_SEND_WITH_IMM, 16, 16},
		{"a control message with an immediate", IBV_WR_SEND_WITH_IMM, 16, 0},
		{"a long one with an immediate", IBV_WR_SEND_WITH_IMM, sizeof(struct rs_ctl), 0},
		{"an empty SEND with an immediate", IBV_WR_SEND_WITH_IMM, 0, 0},
		{"a SEND as long as a receive", IBV_WR_SEND, RS_SLOT, 0},
		{"a control message that is written", IBV_WR_RDMA_WRITE_WITH_IMM, 16, 0},
	};
	struct rs_ctl credit = ctl_of(RS_CREDIT, 0, 0);
	struct rs_hello h = good_hello();

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		struct bad_peer p = {0};

		check_case("operation: %s", table[i].what);
		CHECK(meet(&p, l, port, &h, sizeof h));
		memset(buf, 0, RS_SLOT);
		memcpy(buf, &credit, sizeof credit);
		request(&p, table[i].opcode, table[i].len, table[i].imm);
		expect_reset(&p);
		part(&p);
	}
}

/* ---- datagrams ---- */

/* A queue pair that sends datagrams to an rsocket. */
struct bad_sender {
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint32_t qpn;
};

/* Asks as an rsocket does, while s answers. */
static void find(struct bad_sender *b, int s, const struct sockaddr_in *addr)
{
	struct rdma_conn_param param = {0};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = {.max_send_wr = 64, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	double until = now_ms() + CM_WAIT_MS;
	struct rdma_cm_event *e;

	b->ch = cm_channel();
	if (rdma_create_id(b->ch, &b->id, NULL, RDMA_PS_UDP) ||
		rdma_resolve_addr(b->id, NULL, (struct sockaddr *)addr, 1000))
		die("rdma_resolve_addr");
	cm_expect(b->ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(b->id, 1000))
		die("rdma_resolve_route");
	cm_expect(b->ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (rdma_create_qp(b->id, NULL, &init) || rdma_connect(b->id, &param))
		die("rdma_connect");
	while (!cm_readable(b->ch, 0) && now_ms() < until)
		rs_poll1(s, POLLIN, 20); /* it answers */
	e = cm_take(b->ch, RDMA_CM_EVENT_ESTABLISHED);
	b->ah = ibv_create_ah(b->id->pd, &e->param.ud.ah_attr);
	b->qpn = e->param.ud.qp_num;
	b->mr = ibv_reg_mr(b->id->pd, buf, sizeof buf, IBV_ACCESS_LOCAL_WRITE);
	rdma_ack_cm_event(e);
}

static void lose(struct bad_sender *b)
{
	ibv_destroy_ah(b->ah);
	ibv_dereg_mr(b->mr);
	cm_end(b->id);
	rdma_destroy_event_channel(b->ch);
}

/* n bytes of a datagram, whose header says that it is from that port. */
static void datagram(struct bad_sender *b, uint16_t port, uint32_t n, bool imm)
{
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = n, .lkey = b->mr->lkey};
	struct ibv_send_wr wr = {.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				   .sg_list = &sge,
				   .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.ud = {.ah = b->ah,
					   .remote_qpn = b->qpn,
					   .remote_qkey = RDMA_UDP_QKEY}},
			   *bad;
	struct ibv_wc wc;

	buf[0] = 1;
	memcpy(buf + 2, &(uint16_t){htons(port)}, 2);
	if (ibv_post_send(b->id->qp, &wr, &bad))
		die("ibv_post_send");
	while (ibv_poll_cq(b->id->send_cq, 1, &wc) == 0)
		sched_yield();
}

static int bound(struct sockaddr_in *addr)
{
	socklen_t len = sizeof *addr;
	int s = rsocket(AF_INET, SOCK_DGRAM, 0);

	*addr = rs_addr4(0);
	CHECK_EQ(rbind(s, (struct sockaddr *)addr, sizeof *addr), 0);
	CHECK_EQ(rgetsockname(s, (struct sockaddr *)addr, &len), 0);
	return s;
}

static void datagrams(void)
{
	struct bad_sender b;
	struct sockaddr_in addr;
	socklen_t len = sizeof addr;
	int s = bound(&addr);
	char got[16];

	check_case("datagrams");
	find(&b, s, &addr);
	memset(buf, 0, 16);
	for (int i = 0; i < 12; i++) /* lengths, and a header that is none */
		CHECK_EQ(
			rdma_post_ud_send(b.id, NULL, buf, i, b.mr, IBV_SEND_SIGNALED, b.ah, b.qpn),
			0);
	for (int i = 0; i < 12;)
		i += ibv_poll_cq(b.id->send_cq, 1, &(struct ibv_wc){0});
	datagram(&b, 0x700, 10, true); /* with an immediate */
	datagram(&b, 0x700, 10, false);
	CHECK_EQ(rrecvfrom(s, got, sizeof got, 0, (struct sockaddr *)&addr, &len), 2);
	CHECK_EQ(ntohs(addr.sin_port), 0x700);
	CHECK_EQ(rrecv(s, got, sizeof got, MSG_DONTWAIT), -1);
	CHECK_EQ(errno, EAGAIN);
	lose(&b);
	rclose(s);
}

/* Sends to an rsocket at addr, s, which answers who asks for it in its own calls alone. */
static void send_to(int from, const char *what, int s, const struct sockaddr_in *addr)
{
	ssize_t n = strlen(what), sent;

	rs_nonblock(from, true);
	while ((sent = rsendto(from, what, n, 0, (const struct sockaddr *)addr, sizeof *addr)) <
			0 &&
		errno == EAGAIN)
		rs_poll1(s, POLLIN, 1);
	CHECK_EQ(sent, n);
	rs_nonblock(from, false);
}

/*
 * Who says that it is a port which somebody else has: the answers go to that one, and a socket
 * that is connected to it hears nothing else.
 */
static void liars(void)
{
	struct sockaddr_in addr, peer;
	int s = bound(&addr), t = bound(&peer);
	struct bad_sender b;
	char got[16];

	check_case("liars");
	find(&b, s, &addr);
	send_to(t, "true", s, &addr);
	CHECK_EQ(rrecv(s, got, sizeof got, 0), 4);
	datagram(&b, ntohs(peer.sin_port), 13, false);
	CHECK_EQ(rrecv(s, got, sizeof got, 0), 5); /* anybody may send to an unconnected one */
	for (int i = 0; i < 20; i++) {
		datagram(&b, ntohs(peer.sin_port), 13, false);
		send_to(s, "to", t, &peer);
		CHECK_EQ(rrecv(t, got, sizeof got, 0), 2);
		CHECK_EQ(rrecv(s, got, sizeof got, 0), 5);
	}
	CHECK_EQ(rconnect(s, (struct sockaddr *)&peer, sizeof peer), 0);
	for (int i = 0; i < 20; i++)
		datagram(&b, ntohs(peer.sin_port), 13, false);
	send_to(t, "true", s, &addr);
	CHECK_EQ(rrecv(s, got, sizeof got, 0), 4);
	CHECK_EQ(rrecv(s, got, sizeof got, MSG_DONTWAIT), -1);
	lose(&b);
	rclose(s);
	rclose(t);
}

int main(void)
{
	struct rs_pair p;
	uint16_t port;
	int l = rs_listener(&port), one = 1;

	rsetsockopt(l, SOL_RDMA, RDMA_IOMAPSIZE, &one, sizeof one);
	rsetsockopt(l, SOL_SOCKET, SO_RCVBUF, &(int){2 * BUF}, sizeof(int));
	greetings(l, port);
	messages(l, port);
	data(l, port);
	operations(l, port);
	datagrams();
	liars();
	check_case("the listener is as good as new");
	rs_nonblock(l, false);
	p = rs_pair_at(l, port);
	CHECK_EQ(rsend(p.active, "x", 1, 0), 1);
	CHECK_EQ(rrecv(p.passive, &(char){0}, 1, 0), 1);
	rclose(p.active);
	rclose(p.passive);
	rclose(l);
	return check_result();
}
