// SPDX-License-Identifier: BSD-3-Clause
/*
 * Streams.  Data goes by RDMA WRITE WITH IMMEDIATE into a ring of the receiver's; the immediate
 * value is its length.  Each such message, and each control message (a SEND), takes one of the
 * peer's receives, so there is credit for two things: bytes of the ring and messages.  A control
 * message gives both as running totals.  Data leaves RESERVE messages alone: with these, credit
 * and the end of the stream can be told however full everything is.
 *
 * Nothing that a peer says is believed: totals that make no sense end the connection.
 */
#include "rsock/stream.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "face/allowed.h"
#include "face/ring.h"
#include "rsock/connect.h"
#include "rsock/iomap.h"
#include "rsock/wait.h"

enum {
	RESERVE = 4,    /* messages that data does not use */
	FOR_FIN = 1,    /* of these, what is kept for the end */
	SQ_RESERVE = 4, /* slots of the send queue that data does not use */
	BATCH = 16,     /* completions taken at once */
	LOWAT = 2048,   /* writable from so many bytes on */
	MAX_PEER_RQ = 1 << 16,
	HELLO_VERSION = 1,
};

#define HELLO_MAGIC 0x57736f63u /* "Wsoc" */
#define PAGE        4096ul

/* ---- set-up ---- */

static uint32_t power_of_two(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

static size_t pages(size_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static int make_memory(struct rsocket *s)
{
	struct stream *st = &s->st;
	size_t ring = pages(st->ring_size),
	       rest = pages(st->tx_size) + pages(st->rq_size * RS_SLOT);
	void *mem =
		mmap(NULL, ring + rest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return -ENOMEM;
	st->mem = mem;
	st->mem_size = ring + rest;
	st->ring = st->mem;
	st->tx = st->mem + ring;
	st->slots = st->tx + pages(st->tx_size);
	st->tx_mark = calloc(st->sq_size, sizeof *st->tx_mark);
	st->peer_maps = s->opt.iomap_size ? calloc(s->opt.iomap_size, sizeof *st->peer_maps) : NULL;
	if (!st->tx_mark || (s->opt.iomap_size && !st->peer_maps))
		return -ENOMEM;
	st->ring_mr = ibv_reg_mr(s->id->pd, st->ring, st->ring_size,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	st->local_mr = ibv_reg_mr(s->id->pd, st->tx, rest, IBV_ACCESS_LOCAL_WRITE);
	return st->ring_mr && st->local_mr ? 0 : -errno;
}

static int make_queues(struct rsocket *s)
{
	struct stream *st = &s->st;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap =
			{
				.max_send_wr = st->sq_size,
				.max_recv_wr = st->rq_size,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = sizeof(struct rs_ctl),
			},
	};

	if (st->inline_size > init.cap.max_inline_data)
		init.cap.max_inline_data = st->inline_size;
	s->cc = ibv_create_comp_channel(s->id->verbs);
	if (!s->cc || fcntl(s->cc->fd, F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	s->recv_cq = ibv_create_cq(s->id->verbs, st->rq_size, NULL, s->cc, 0);
	s->send_cq = ibv_create_cq(s->id->verbs, st->sq_size, NULL, s->cc, 0);
	if (!s->recv_cq || !s->send_cq)
		return -errno;
	init.recv_cq = s->recv_cq;
	init.send_cq = s->send_cq;
	return rdma_create_qp(s->id, NULL, &init) ? -errno : 0;
}

/* Posts the receives of n slots. */
static int post_slots(struct rsocket *s, const uint64_t *slot, int n)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (int i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)s->st.slots + slot[i] * RS_SLOT,
			.length = RS_SLOT,
			.lkey = s->st.local_mr->lkey,
		};
		wr[i] = (struct ibv_recv_wr){
			.wr_id = slot[i],
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	return n ? -ibv_post_recv(s->id->qp, wr, &bad) : 0;
}

static int post_all(struct rsocket *s)
{
	int ret = 0;

	for (uint64_t i = 0; i < s->st.rq_size && !ret; i++)
		ret = post_slots(s, &i, 1);
	return ret;
}

int stream_open(struct rsocket *s, struct rs_hello *hello)
{
	struct stream *st = &s->st;
	int ret;

	st->ring_size = s->opt.rcvbuf;
	st->tx_size = s->opt.sndbuf;
	st->rq_size = s->opt.rqsize;
	st->sq_size = power_of_two(s->opt.sqsize);
	st->inline_size = s->opt.inline_size;
	ret = make_memory(s);
	if (!ret)
		ret = make_queues(s);
	if (!ret)
		ret = post_all(s);
	if (ret)
		return ret;
	*hello = (struct rs_hello){
		.magic = htobe32(HELLO_MAGIC),
		.version = htobe16(HELLO_VERSION),
		.iomap_size = htobe16(s->opt.iomap_size),
		.ring_addr = htobe64((uintptr_t)st->ring),
		.ring_size = htobe32(st->ring_size),
		.ring_rkey = htobe32(st->ring_mr->rkey),
		.rq_size = htobe32(st->rq_size),
	};
	return 0;
}

int stream_meet(struct rsocket *s, const struct rs_hello *hello)
{
	struct stream *st = &s->st;

	st->peer_ring = be64toh(hello->ring_addr);
	st->peer_rkey = be32toh(hello->ring_rkey);
	st->out.room = (struct credit){be32toh(hello->ring_size), be32toh(hello->rq_size)};
	st->n_peer_maps = be16toh(hello->iomap_size);
	if (be32toh(hello->magic) != HELLO_MAGIC || be16toh(hello->version) != HELLO_VERSION ||
		st->out.room.bytes < RS_MIN_BUF || st->out.room.bytes > RS_MAX_BUF ||
		st->out.room.msgs < RS_MIN_RQ || st->out.room.msgs > MAX_PEER_RQ ||
		st->n_peer_maps > RS_MAX_IOMAP)
		return -EPROTO;
	return 0;
}

void stream_free(struct rsocket *s)
{
	struct stream *st = &s->st;

	if (s->id && s->id->qp)
		rdma_destroy_qp(s->id);
	rs_free_cqs(s);
	iomap_free_all(s);
	if (st->ring_mr)
		ibv_dereg_mr(st->ring_mr);
	if (st->local_mr)
		ibv_dereg_mr(st->local_mr);
	if (st->mem)
		munmap(st->mem, st->mem_size);
	free(st->tx_mark);
	free(st->peer_maps);
	*st = (struct stream){0};
}

/* ---- posting ---- */

static uint32_t sq_free(const struct stream *st)
{
	return st->sq_size - (st->posted - st->done);
}

/* Posts one request; whether it completes visibly is decided here. */
static int post(struct rsocket *s, struct ibv_send_wr *wr, bool visible)
{
	struct stream *st = &s->st;
	struct ibv_send_wr *bad;
	int ret;

	if (visible || st->posted + 1 - st->signalled >= st->sq_size / 4 ||
		st->tx_head - st->signalled_head >= st->tx_size / 4)
		wr->send_flags |= IBV_SEND_SIGNALED;
	wr->wr_id = st->posted;
	ret = ibv_post_send(s->id->qp, wr, &bad);
	if (ret) {
		conn_end(s, ECONNRESET);
		return -ECONNRESET;
	}
	st->tx_mark[st->posted & (st->sq_size - 1)] = st->tx_head;
	st->posted++;
	if (wr->send_flags & IBV_SEND_SIGNALED) {
		st->signalled = st->posted;
		st->signalled_head = st->tx_head;
	}
	return 0;
}

static int say(struct rsocket *s, struct rs_ctl *ctl, enum rs_msg type, size_t len)
{
	struct stream *st = &s->st;
	struct ibv_sge sge = {.addr = (uintptr_t)ctl, .length = len};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int ret;

	ctl->type = htobe32(type);
	ctl->msgs = htobe32(st->rx.taken.msgs);
	ctl->consumed = htobe64(st->rx.taken.bytes);
	ret = post(s, &wr, type == RS_FIN);
	if (ret)
		return ret;
	st->out.sent.msgs++;
	st->rx.told = st->rx.taken;
	return 0;
}

enum { SHORT_CTL = offsetof(struct rs_ctl, offset) };

int stream_say(struct rsocket *s, enum rs_msg type, const struct rs_iomap *map)
{
	struct rs_ctl ctl = {
		.offset = htobe64(map->offset),
		.len = htobe64(map->len),
		.addr = htobe64((uintptr_t)map->buf),
		.rkey = htobe32(map->mr->rkey),
		.index = htobe32(map->index),
	};

	if (s->state != RS_CONNECTED)
		return s->state == RS_ACCEPTING ? -EAGAIN : -ENOTCONN;
	if (credit_msgs(&s->st.out) <= RESERVE || sq_free(&s->st) <= SQ_RESERVE)
		return -EAGAIN;
	return say(s, &ctl, type, sizeof ctl);
}

int stream_fin(struct rsocket *s)
{
	struct stream *st = &s->st;
	struct rs_ctl ctl = {0};
	int ret;

	if (st->tx_fin)
		return 0;
	if (s->state != RS_CONNECTED)
		return s->state == RS_ACCEPTING ? -EAGAIN : -ENOTCONN;
	if (credit_msgs(&st->out) < FOR_FIN || !sq_free(st))
		return -EAGAIN;
	ret = say(s, &ctl, RS_FIN, SHORT_CTL);
	st->tx_fin = !ret;
	return ret;
}

static bool credit_due(const struct stream *st)
{
	struct credit untold = credit_untold(&st->rx);

	return untold.msgs >= st->rq_size / 2 || untold.bytes >= st->ring_size / 4;
}

static void give_credit(struct rsocket *s)
{
	struct stream *st = &s->st;
	struct rs_ctl ctl = {0};

	if (s->state != RS_CONNECTED || !credit_due(st))
		return;
	if (credit_msgs(&st->out) > (st->tx_fin ? 0 : FOR_FIN) && sq_free(st) > 1)
		(void)say(s, &ctl, RS_CREDIT, SHORT_CTL);
}

/* ---- completions ---- */

static int on_control(struct rsocket *s, const struct ibv_wc *wc)
{
	struct stream *st = &s->st;
	struct rs_ctl ctl = {0};
	struct credit said;
	uint32_t type;

	memcpy(&ctl, st->slots + wc->wr_id * RS_SLOT, wc->byte_len);
	type = be32toh(ctl.type);
	said.bytes = be64toh(ctl.consumed);
	said.msgs = credit_whole(st->out.taken.msgs, be32toh(ctl.msgs));
	if (credit_recedes(&st->out, said) || !credit_hear(&st->out, said))
		return -EPROTO;
	switch (type) {
	case RS_CREDIT:
		return 0;
	case RS_FIN:
		st->fin = true;
		return 0;
	case RS_IOMAP:
	case RS_IOUNMAP:
		return wc->byte_len == sizeof ctl ? iomap_heard(s, type, &ctl) : -EPROTO;
	default:
		return -EPROTO;
	}
}

static int on_data(struct rsocket *s, uint32_t len)
{
	struct stream *st = &s->st;

	if (st->fin || len > st->ring_size - stream_unread(s))
		return -EPROTO;
	st->rx.came.bytes += len;
	return 0;
}

enum kind { KIND_CONTROL, KIND_DATA, KINDS };

static const struct allowed kinds[KINDS] = {
	[KIND_CONTROL] = {.opcode = IBV_WC_RECV,
		.imm = ALLOWED_NO_IMM,
		.min_bytes = SHORT_CTL,
		.max_bytes = sizeof(struct rs_ctl)},
	[KIND_DATA] = {.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.imm = ALLOWED_LENGTH_IMM,
		.min_bytes = 1,
		.max_bytes = RS_MAX_BUF},
};

static int on_message(struct rsocket *s, const struct ibv_wc *wc)
{
	int kind = allowed_kind(kinds, KINDS, wc);

	s->st.rx.came.msgs++;
	if (s->state == RS_ACCEPTING) /* this is as good as its RTU */
		s->state = RS_CONNECTED;
	if (kind == KIND_DATA)
		return on_data(s, wc->byte_len);
	return kind == KIND_CONTROL ? on_control(s, wc) : -EPROTO;
}

static void tell_breach(struct rsocket *s, const struct ibv_wc *wc)
{
	allowed_breach(s->id->verbs);
	log_refusal("rsocket %d: its connection ends, as the peer breaks the protocol: %s", s->fd,
		allowed_kind(kinds, KINDS, wc) < 0 ? allowed_not(kinds, KINDS, wc)
						   : "its message makes no sense");
}

static void take_received(struct rsocket *s)
{
	struct ibv_wc wc[BATCH];
	uint64_t again[BATCH];
	int n, bad;

	while ((n = ibv_poll_cq(s->recv_cq, BATCH, wc)) > 0) {
		bad = 0;
		for (int i = 0; i < n && !bad; i++) {
			again[i] = wc[i].wr_id;
			bad = wc[i].status ? -ECONNRESET : on_message(s, &wc[i]);
			if (bad == -EPROTO)
				tell_breach(s, &wc[i]);
		}
		if (!bad && s->state != RS_ENDED) {
			bad = post_slots(s, again, n);
			s->st.rx.taken.msgs = s->st.rx.came.msgs;
		}
		if (bad) {
			conn_end(s, ECONNRESET);
			/* What follows is not worth reading, or flushed. */
			while (bad == -EPROTO && ibv_poll_cq(s->recv_cq, BATCH, wc) > 0)
				;
		}
	}
}

static void take_sent(struct rsocket *s)
{
	struct stream *st = &s->st;
	struct ibv_wc wc[BATCH];
	int n;

	while ((n = ibv_poll_cq(s->send_cq, BATCH, wc)) > 0) {
		for (int i = 0; i < n; i++) {
			uint32_t which = (uint32_t)wc[i].wr_id;

			if (wc[i].status)
				conn_end(s, ECONNRESET);
			st->done = which + 1;
			st->tx_tail = st->tx_mark[which & (st->sq_size - 1)];
		}
	}
}

void stream_progress(struct rsocket *s)
{
	struct stream *st = &s->st;
	uint64_t msgs = st->rx.came.msgs;
	uint32_t done = st->done;
	enum rs_state state = s->state;

	if (!s->id || !s->id->qp || !st->out.room.msgs)
		return;
	take_received(s);
	if (st->posted != st->done)
		take_sent(s);
	give_credit(s);
	if (s->sleepers && (msgs != st->rx.came.msgs || done != st->done || state != s->state))
		sleepers_wake(s->sleepers);
}

bool stream_send_pends(const struct rsocket *s, bool want_out)
{
	const struct stream *st = &s->st;

	return st->posted != st->done && (want_out || st->tx_fin || credit_due(st));
}

bool stream_drained(const struct rsocket *s)
{
	return s->st.done == s->st.signalled;
}

/* ---- in ---- */

size_t stream_unread(const struct rsocket *s)
{
	return s->st.rx.came.bytes - s->st.rx.taken.bytes;
}

bool stream_readable(const struct rsocket *s)
{
	const struct stream *st = &s->st;

	return stream_unread(s) || st->fin || st->rx_shut || s->state == RS_ENDED;
}

ssize_t stream_take(struct rsocket *s, void *buf, size_t len, bool peek, size_t skip)
{
	struct stream *st = &s->st;
	uint64_t from = st->rx.taken.bytes + skip, have = st->rx.came.bytes - from;

	if (!have) {
		if (st->fin || st->rx_shut)
			return 0;
		if (s->state == RS_ENDED) {
			int err = s->err;

			s->err = 0;
			return -err;
		}
		return s->state < RS_RESOLVING ? -ENOTCONN : -EAGAIN;
	}
	if (len > have)
		len = have;
	ring_get(st->ring, st->ring_size, from, buf, len);
	if (!peek) {
		st->rx.taken.bytes += len;
		give_credit(s);
	}
	return len;
}

/* ---- out ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t tx_room(const struct stream *st)
{
	return st->tx_size - (st->tx_head - st->tx_tail);
}

bool stream_writable(const struct rsocket *s)
{
	const struct stream *st = &s->st;
	uint64_t room = least(tx_room(st), credit_bytes(&st->out));

	if (s->state == RS_ENDED || (s->state == RS_CONNECTED && st->tx_fin))
		return true;
	return s->state == RS_CONNECTED && credit_msgs(&st->out) > RESERVE &&
	       sq_free(st) > SQ_RESERVE && room >= least(LOWAT, st->out.room.bytes / 8);
}

/* Why nothing can be sent at all; 0: it can. */
static int send_error(struct rsocket *s)
{
	int err = s->err;

	if (s->state == RS_ENDED) {
		s->err = 0;
		return err ? -err : -EPIPE;
	}
	if (s->state < RS_RESOLVING)
		return -ENOTCONN;
	if (s->st.tx_fin)
		return -EPIPE;
	return s->state == RS_CONNECTED ? 0 : -EAGAIN;
}

/* The bytes of a request: sent from where they are if there are few, else from the send buffer. */
static uint32_t load(struct stream *st, const void *buf, size_t len, struct ibv_send_wr *wr)
{
	uint64_t at = st->tx_head % st->tx_size;

	if (len <= st->inline_size) {
		wr->sg_list->addr = (uintptr_t)buf;
		wr->sg_list->length = len;
		wr->send_flags = IBV_SEND_INLINE;
		return len;
	}
	len = ring_piece(st->tx_size, at, least(len, tx_room(st)));
	memcpy(st->tx + at, buf, len);
	wr->sg_list->addr = (uintptr_t)st->tx + at;
	wr->sg_list->length = len;
	wr->sg_list->lkey = st->local_mr->lkey;
	wr->send_flags = 0;
	st->tx_head += len;
	return len;
}

static ssize_t put_chunk(struct rsocket *s, const void *buf, size_t len)
{
	struct stream *st = &s->st;
	uint64_t size = st->out.room.bytes, at = st->out.sent.bytes % size, chunk;
	struct ibv_sge sge = {0};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = st->peer_ring + at, .rkey = st->peer_rkey},
	};
	int ret;

	if (credit_msgs(&st->out) <= RESERVE || sq_free(st) <= SQ_RESERVE)
		return -EAGAIN;
	/* A quarter at a time: the peer reads one while we fill the next. */
	chunk = ring_piece(size, at, least(least(len, credit_bytes(&st->out)), size / 4));
	if (!chunk || (chunk > st->inline_size && !tx_room(st)))
		return -EAGAIN;
	chunk = load(st, buf, chunk, &wr);
	wr.imm_data = htonl(chunk);
	ret = post(s, &wr, false);
	if (ret)
		return ret;
	st->out.sent.bytes += chunk;
	st->out.sent.msgs++;
	return chunk;
}

ssize_t stream_put(struct rsocket *s, const void *buf, size_t len)
{
	size_t done = 0;
	ssize_t n = send_error(s);

	if (n || !len)
		return n;
	while (done < len && (n = put_chunk(s, (const uint8_t *)buf + done, len - done)) > 0)
		done += n;
	return done ? (ssize_t)done : n;
}

ssize_t stream_write(struct rsocket *s, const void *buf, size_t len, uint64_t addr, uint32_t rkey)
{
	struct stream *st = &s->st;
	struct ibv_sge sge = {0};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {.remote_addr = addr, .rkey = rkey},
	};
	ssize_t n = send_error(s);

	if (n)
		return n;
	if (sq_free(st) <= SQ_RESERVE || (len > st->inline_size && !tx_room(st)))
		return -EAGAIN;
	len = load(st, buf, least(len, st->tx_size / 4), &wr);
	n = post(s, &wr, false);
	return n ? n : (ssize_t)len;
}
