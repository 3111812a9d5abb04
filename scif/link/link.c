// SPDX-License-Identifier: BSD-3-Clause
#include "scif/link/link.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/log.h"
#include "face/allowed.h"
#include "face/ring.h"
#include "scif/link/fence.h"
#include "scif/link/parts.h"
#include "scif/link/service.h"
#include "scif/link/wait.h"

enum {
	RECV_ID_BIT = 62,
	POLL_BATCH = 16,
	TELL_MSGS = 2 * WIRE_BATCH,
	TELL_BYTES = WIRE_RING / 4,
	SIGNAL_EACH = 16,
	ROOM_NS = 10 * NSEC_PER_MSEC,
	USABLE = WIRE_RING - 1,
	PAGE = 4096
};

/* ---- making and ending ---- */

/* Posts up to WIRE_BATCH receives. */
static int post_recvs(struct scif_ep *ep, const uint32_t *slot, uint32_t n)
{
	struct ibv_recv_wr wr[WIRE_BATCH], *bad;
	struct ibv_sge sge[WIRE_BATCH];
	struct link *l = &ep->link;

	for (uint32_t i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)l->mem->recvs[slot[i]], WIRE_MSG, l->mr->lkey};
		wr[i] = (struct ibv_recv_wr){.wr_id = UINT64_C(1) << RECV_ID_BIT | slot[i],
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1};
	}
	return n ? -ibv_post_recv(l->qp, wr, &bad) : 0;
}

/* Posts again what messages came in. */
static int post_spent(struct scif_ep *ep)
{
	struct link *l = &ep->link;
	int ret = post_recvs(ep, l->spent, l->rx.came.msgs - l->rx.taken.msgs);

	l->rx.taken.msgs = l->rx.came.msgs;
	foreign_store64(&l->mem->took.msgs, htole64(l->rx.taken.msgs));
	return ret;
}

static int make_qp(struct scif_ep *ep)
{
	struct link *l = &ep->link;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.cap = {.max_send_wr = SQ_DEPTH,
			.max_recv_wr = WIRE_RECVS,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = MAX_INLINE},
	};

	if (rdma_create_qp(ep->id, l->pd, &init))
		return -errno;
	l->qp = ep->id->qp;
	for (uint32_t i = 0; i < WIRE_RECVS; i++) {
		int ret = post_recvs(ep, &i, 1);

		if (ret)
			return ret;
	}
	return 0;
}

int link_create(struct scif_ep *ep)
{
	struct ibv_comp_channel *channel = service_channel(ep->id->verbs);
	size_t size = (sizeof(struct link_mem) + PAGE - 1) & -(size_t)PAGE;
	struct link *l = &ep->link;

	if (!channel)
		return -ENOMEM;
	l->tx.room = (struct credit){USABLE, WIRE_RECVS};
	l->mem = aligned_alloc(PAGE, size);
	if (!l->mem)
		return -ENOMEM;
	memset(l->mem, 0, sizeof(*l->mem));
	l->pd = ibv_alloc_pd(ep->id->verbs);
	if (l->pd)
		l->mr = ibv_reg_mr(l->pd, l->mem, sizeof(*l->mem), IBV_ACCESS_LOCAL_WRITE);
	if (l->mr)
		l->credit_mr = ibv_reg_mr(l->pd, &l->mem->credit,
			WIRE_TOOK_AT + sizeof(l->mem->took),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (l->credit_mr)
		l->all_mr = ibv_reg_mr(
			l->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	if (l->credit_mr)
		l->cq = ibv_create_cq(ep->id->verbs, SQ_DEPTH + WIRE_RECVS, ep, channel, 0);
	if (!l->cq || ibv_req_notify_cq(l->cq, 0))
		return -(errno ? errno : ENOMEM);
	l->armed = true;
	return make_qp(ep);
}

void link_fail(struct scif_ep *ep)
{
	struct link *l = &ep->link;

	while (l->after) {
		struct after *a = l->after;

		l->after = a->next;
		if (a->mr)
			ibv_dereg_mr(a->mr);
		free(a);
	}
	l->after_end = &l->after;
}

void ep_reset(struct scif_ep *ep)
{
	if (ep->state != EP_CONNECTED && ep->state != EP_CONNECTING && ep->state != EP_REQUEST)
		return;
	ep->state = EP_DISCONNECTED;
	link_fail(ep);
	if (ep->standin.sock >= 0)
		standin_hang_up(&ep->standin);
	ep_changed(ep);
}

void link_destroy(struct link *l, struct rdma_cm_id *id)
{
	if (l->qp)
		rdma_destroy_qp(id);
	l->qp = NULL;
	if (l->cq)
		ibv_destroy_cq(l->cq);
	l->cq = NULL;
	if (l->all_mr)
		ibv_dereg_mr(l->all_mr);
	l->all_mr = NULL;
	if (l->credit_mr)
		ibv_dereg_mr(l->credit_mr);
	l->credit_mr = NULL;
	if (l->mr)
		ibv_dereg_mr(l->mr);
	l->mr = NULL;
	free(l->mem);
	l->mem = NULL;
}

void link_free_pd(struct link *l)
{
	if (l->pd)
		ibv_dealloc_pd(l->pd);
	l->pd = NULL;
}

/* Another one is on another machine, or of another fabric there.  In the network's byte order. */
static uint64_t adapter_guid(const struct rdma_cm_id *id)
{
	return id->verbs ? ibv_get_device_guid(id->verbs->device) : 0;
}

struct wire_hello link_hello(const struct scif_ep *ep, struct scif_id dst)
{
	const struct link *l = &ep->link;

	return (struct wire_hello){
		.magic = htole32(WIRE_MAGIC),
		.version = htole16(WIRE_VERSION),
		.src_node = htole16(ep->port->id.node),
		.src_port = htole16(ep->port->id.port),
		.dst_node = htole16(dst.node),
		.dst_port = htole16(dst.port),
		.credit_rkey = htole32(l->credit_mr->rkey),
		.credit_addr = htole64((uintptr_t)&l->mem->credit),
		.host = adapter_guid(ep->id),
	};
}

int link_meet(struct scif_ep *ep, const struct rdma_cm_id *id, const struct wire_hello *hello)
{
	struct link *l = &ep->link;

	if (le32toh(hello->magic) != WIRE_MAGIC || le16toh(hello->version) != WIRE_VERSION)
		return -EPROTO;
	l->credit_addr = le64toh(hello->credit_addr);
	l->credit_rkey = le32toh(hello->credit_rkey);
	l->far = hello->host != adapter_guid(id);
	ep->peer = (struct scif_id){le16toh(hello->src_node), le16toh(hello->src_port)};
	l->ready = true;
	return 0;
}

bool link_idle(const struct scif_ep *ep)
{
	const struct link *l = &ep->link;

	return l->tx.sent.bytes == l->tx_total && l->ctl_head == l->ctl_tail &&
	       l->sq_done == l->sq_posted;
}

/* Whether what was posted is complete may be unknown: then posts something that will tell. */
static void ask_for_completion(struct scif_ep *ep);

void link_settle(struct scif_ep *ep)
{
	const struct link *l = &ep->link;

	link_poll(ep);
	if (link_is_live(ep) && l->sq_signaled != l->sq_posted && l->tx.sent.bytes == l->tx_total &&
		l->ctl_head == l->ctl_tail)
		ask_for_completion(ep);
}

void link_await_arrival(struct scif_ep *ep)
{
	const struct link *l = &ep->link;
	uint64_t spin = 0;

	link_poll(ep);
	while (ep->state == EP_CONNECTED && (l->ctl_head != l->ctl_tail || l->sq_done < l->told_wr))
		ep_wait(ep, &spin, 0);
}

/* ---- requests ---- */

static void broken(struct scif_ep *ep, const char *why)
{
	if (ep->state == EP_DISCONNECTED)
		return;
	log_line(LOG_LVL_INFO, "SCIF: connection to %u:%u ends: %s", ep->peer.node, ep->peer.port,
		why);
	ep_reset(ep);
	rdma_disconnect(ep->id);
}

/* The same for a peer that says what the protocol has not. */
static void breach(struct scif_ep *ep, const char *why)
{
	if (ep->state == EP_DISCONNECTED)
		return;
	allowed_breach(ep->id->verbs);
	broken(ep, why);
}

bool link_has_room(const struct scif_ep *ep)
{
	return ep->link.sq_posted - ep->link.sq_done < SQ_DEPTH - SQ_SPARE;
}

static bool has_room_for_message(const struct scif_ep *ep)
{
	return ep->link.sq_posted - ep->link.sq_done < SQ_DEPTH;
}

/* Posts one; whether it is signaled is up to its flags. */
static int64_t post(struct scif_ep *ep, struct ibv_send_wr *wr)
{
	struct link *l = &ep->link;
	struct ibv_send_wr *bad;
	int ret;

	wr->wr_id = l->sq_posted + 1;
	wr->next = NULL;
	ret = ibv_post_send(l->qp, wr, &bad);
	if (ret) {
		broken(ep, "a request cannot be posted");
		return -ECONNRESET;
	}
	++l->sq_posted;
	if (wr->send_flags & IBV_SEND_SIGNALED)
		l->sq_signaled = l->sq_posted;
	return l->sq_posted;
}

int64_t link_post(struct scif_ep *ep, struct ibv_send_wr *wr)
{
	wr->send_flags |= IBV_SEND_SIGNALED;
	return post(ep, wr);
}

/* The same for what nobody waits for: only now and then does the queue say how far it is. */
static int64_t post_quietly(struct scif_ep *ep, struct ibv_send_wr *wr)
{
	if (ep->link.sq_posted - ep->link.sq_signaled >= SIGNAL_EACH)
		wr->send_flags |= IBV_SEND_SIGNALED;
	return post(ep, wr);
}

static void finish(struct scif_ep *ep, struct after *a)
{
	uint64_t word = htole64(a->wr);

	if (a->mr)
		ibv_dereg_mr(a->mr);
	if (a->store)
		fence_store(ep, a->loff, a->lval);
	if (a->local)
		windows_ref(&ep->own, a->loff, a->lat_len, -1);
	if (a->remote)
		windows_ref(&ep->theirs, a->roff, a->rat_len, -1);
	if (a->answer)
		ep->link.answers--;
	if (a->answer && link_say(ep, WIRE_WAIT_ACK, a->id, &word, 1))
		broken(ep, "it does not take our answers");
	if ((a->local || a->remote) && (ep->own.closed || ep->theirs.closed))
		link_calls.reg_unused(ep);
	free(a);
}

static void finish_done(struct scif_ep *ep)
{
	struct link *l = &ep->link;

	while (l->after && l->after->wr <= l->sq_done) {
		struct after *a = l->after;

		l->after = a->next;
		if (!l->after)
			l->after_end = &l->after;
		finish(ep, a);
	}
}

void link_after(struct scif_ep *ep, struct after *a)
{
	struct link *l = &ep->link;
	struct after **at = l->after_end;

	/* requests of several threads come nearly in order */
	if (l->after && (*l->after).wr > a->wr)
		at = &l->after;
	else if (l->after)
		for (at = &l->after; *at && (*at)->wr <= a->wr;)
			at = &(*at)->next;
	a->next = *at;
	*at = a;
	if (!a->next)
		l->after_end = &a->next;
	finish_done(ep);
}

/* ---- messages out ---- */

static int send_message(struct scif_ep *ep, struct ibv_send_wr *wr, uint32_t len)
{
	if (len <= MAX_INLINE)
		wr->send_flags |= IBV_SEND_INLINE;
	if (post_quietly(ep, wr) < 0)
		return -ECONNRESET;
	ep->link.tx.sent.msgs++;
	return 0;
}

/* Does somebody wait until it has arrived? */
static bool is_awaited(const struct wire_ctl *ctl)
{
	uint32_t op = le32toh(ctl->op);

	return op == WIRE_REGISTER || op == WIRE_UNREGISTER;
}

static int send_ctl(struct scif_ep *ep, const struct wire_ctl *ctl)
{
	struct link *l = &ep->link;
	struct wire_ctl *copy = &l->mem->ctl[l->tx.sent.msgs % WIRE_RECVS];
	struct ibv_sge sge = {
		.addr = (uintptr_t)copy, .length = sizeof(*copy), .lkey = l->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	bool awaited = is_awaited(ctl);
	int ret;

	*copy = *ctl;
	if (awaited)
		wr.send_flags = IBV_SEND_SIGNALED;
	ret = send_message(ep, &wr, sizeof(*copy));
	if (!ret && awaited)
		l->told_wr = l->sq_posted;
	return ret;
}

static int send_bytes(struct scif_ep *ep)
{
	struct link *l = &ep->link;
	uint32_t at = l->tx.sent.bytes % WIRE_RING, n = l->tx_total - l->tx.sent.bytes, first;
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_IMM, .sg_list = sge, .num_sge = 1};

	if (n > WIRE_MSG)
		n = WIRE_MSG;
	first = ring_piece(WIRE_RING, at, n);
	wr.imm_data = htobe32(WIRE_DATA);
	sge[0] = (struct ibv_sge){(uintptr_t)l->mem->out + at, first, l->mr->lkey};
	if (n > first) {
		sge[1] = (struct ibv_sge){(uintptr_t)l->mem->out, n - first, l->mr->lkey};
		wr.num_sge = 2;
	}
	l->tx.sent.bytes += n;
	return send_message(ep, &wr, n);
}

/* What the peer says to have taken; it must be possible. */
static bool take_credit(struct link *l, const struct wire_credit *credit)
{
	struct credit said = {.bytes = le64toh(foreign_load64(&credit->bytes)),
		.msgs = le64toh(foreign_load64(&credit->msgs))};

	return credit_hear(&l->tx, said);
}

/* Looks at what the peer told, and at what we asked for. */
static bool look_at_credit(struct scif_ep *ep)
{
	struct link *l = &ep->link;

	if (l->look_wr && l->look_wr <= l->sq_done) {
		l->look_wr = 0;
		if (!take_credit(l, &l->mem->looked))
			return false;
	}
	return take_credit(l, &l->mem->credit);
}

/* Asks to be told once there is more, when there is nothing left. */
static void want(struct scif_ep *ep, enum wire_want what)
{
	struct link *l = &ep->link;
	struct wire_ctl ctl = {.op = htole32(WIRE_WANT)};

	if ((l->want_sent & what) || !credit_msgs(&l->tx) || !has_room_for_message(ep))
		return;
	ctl.arg[0] = htole64(l->tx.taken.bytes);
	ctl.arg[1] = htole64(what);
	if (send_ctl(ep, &ctl) == 0)
		l->want_sent |= what;
}

/* Sends what waits, as far as there is room for it. */
static void flush_out(struct scif_ep *ep)
{
	struct link *l = &ep->link;

	while (ep->state != EP_DISCONNECTED && l->ready && has_room_for_message(ep)) {
		if (l->ctl_head == l->ctl_tail && l->tx.sent.bytes == l->tx_total)
			break;
		if (credit_msgs(&l->tx) <= WIRE_SPARE) {
			want(ep, WANT_MSGS);
			break;
		}
		if (l->ctl_head != l->ctl_tail)
			send_ctl(ep, &l->ctl[l->ctl_head++ % MAX_CTL]);
		else
			send_bytes(ep);
	}
	if (ep->state == EP_CONNECTED && !link_tx_room(ep))
		want(ep, WANT_BYTES);
}

/* Rings the peer's bell if there is now what it waits for. */
static void ring(struct scif_ep *ep)
{
	struct link *l = &ep->link;
	struct wire_ctl ctl = {.op = htole32(WIRE_CREDIT)};
	uint32_t now = l->peer_wants;

	if (l->rx.taken.bytes == l->peer_knows)
		now &= ~(uint32_t)WANT_BYTES;
	if (!now || !credit_msgs(&l->tx) || !has_room_for_message(ep))
		return;
	ctl.arg[0] = htole64(now);
	if (send_ctl(ep, &ctl) == 0)
		l->peer_wants &= ~now;
}

static int64_t write_credit(struct scif_ep *ep, unsigned flags)
{
	struct link *l = &ep->link;
	struct wire_credit now = {htole64(l->rx.taken.bytes), htole64(l->rx.taken.msgs)};
	struct ibv_sge sge = {.addr = (uintptr_t)&now, .length = sizeof(now)};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_INLINE | flags};
	int64_t ret;

	wr.wr.rdma.remote_addr = l->credit_addr;
	wr.wr.rdma.rkey = l->credit_rkey;
	ret = post_quietly(ep, &wr);
	if (ret >= 0)
		l->rx.told = l->rx.taken;
	return ret;
}

static void ask_for_completion(struct scif_ep *ep)
{
	if (ep->link.ready && has_room_for_message(ep))
		write_credit(ep, IBV_SEND_SIGNALED);
}

/* Is there enough that was taken and processed, or does the peer wait for any? */
static bool has_news(const struct link *l)
{
	struct credit untold = credit_untold(&l->rx);

	return untold.bytes >= TELL_BYTES || untold.msgs >= TELL_MSGS ||
	       ((l->peer_wants & WANT_BYTES) && untold.bytes) ||
	       ((l->peer_wants & WANT_MSGS) && untold.msgs);
}

/* Tells the peer what was taken and processed. */
static void tell_credit(struct scif_ep *ep)
{
	struct link *l = &ep->link;

	if (ep->state == EP_DISCONNECTED || !l->ready || !has_room_for_message(ep))
		return;
	if ((l->peer_wants & WANT_MSGS) && post_spent(ep))
		return broken(ep, "a receive cannot be posted");
	if (has_news(l) && write_credit(ep, 0) < 0)
		return;
	if (l->peer_wants)
		ring(ep);
}

int link_say(struct scif_ep *ep, enum wire_op op, uint32_t id, const uint64_t *arg, int args)
{
	struct link *l = &ep->link;
	struct wire_ctl *ctl = &l->ctl[l->ctl_tail % MAX_CTL];

	if (l->ctl_tail - l->ctl_head >= MAX_CTL)
		return -ENOBUFS;
	*ctl = (struct wire_ctl){.op = htole32(op), .id = htole32(id)};
	for (int i = 0; i < args; i++)
		ctl->arg[i] = htole64(arg[i]);
	l->ctl_tail++;
	return 0;
}

int link_ask(struct scif_ep *ep, enum wire_op op, const uint64_t *arg, int args, uint64_t *answer,
	int words)
{
	struct link *l = &ep->link;
	struct rpc rpc = {.id = ++l->rpc_id, .answer = answer, .words = words, .next = l->rpcs},
		   **at;
	uint64_t spin = 0;
	int ret;

	l->rpcs = &rpc;
	while ((ret = link_say(ep, op, rpc.id, arg, args)) && ep->state == EP_CONNECTED)
		ep_wait(ep, &spin, 0);
	link_poll(ep);
	while (!rpc.done && ep->state == EP_CONNECTED)
		ep_wait(ep, &spin, 0); /* no signal ends it: the answer must find us */
	for (at = &l->rpcs; *at != &rpc;)
		at = &(*at)->next;
	*at = rpc.next;
	return rpc.done ? 0 : -ECONNRESET;
}

/* ---- messages in ---- */

static void answered(struct scif_ep *ep, const struct wire_ctl *c)
{
	for (struct rpc *r = ep->link.rpcs; r; r = r->next) {
		if (r->id != c->id || r->done)
			continue;
		memcpy(r->answer, c->arg, r->words * sizeof(*r->answer));
		r->done = true;
	}
}

static int wanted(struct scif_ep *ep, uint64_t bytes, uint64_t what)
{
	struct link *l = &ep->link;

	if (bytes > l->rx.taken.bytes || (what != WANT_BYTES && what != WANT_MSGS))
		return -EPROTO;
	l->peer_wants |= what;
	if (what == WANT_BYTES)
		l->peer_knows = bytes;
	return 0;
}

static int on_ctl(struct scif_ep *ep, const struct wire_ctl *raw)
{
	struct wire_ctl c = {.op = le32toh(raw->op), .id = le32toh(raw->id)};

	for (int i = 0; i < 5; i++)
		c.arg[i] = le64toh(raw->arg[i]);
	switch (c.op) {
	case WIRE_REGISTER:
	case WIRE_UNREGISTER:
	case WIRE_RETAINED:
	case WIRE_RELEASED:
		return link_calls.reg_told(ep, &c);
	case WIRE_MARK:
	case WIRE_WAIT:
	case WIRE_SIGNAL:
		return fence_asked(ep, &c);
	case WIRE_MARK_ACK:
	case WIRE_WAIT_ACK:
	case WIRE_SIGNAL_ACK:
	case WIRE_MAP_ACK:
		answered(ep, &c);
		return 0;
	case WIRE_MAP:
		return link_calls.map_asked(ep, &c);
	case WIRE_WANT:
		return wanted(ep, c.arg[0], c.arg[1]);
	case WIRE_CREDIT:
		ep->link.want_sent &= ~c.arg[0];
		return 0;
	}
	return -EPROTO;
}

static int on_bytes(struct scif_ep *ep, const uint8_t *p, uint32_t n)
{
	struct link *l = &ep->link;

	if (n > USABLE - link_rx_avail(ep))
		return -EPROTO;
	ring_put(l->in, WIRE_RING, l->rx.came.bytes, p, n);
	l->rx.came.bytes += n;
	return 0;
}

enum kind { KIND_CTL, KIND_BYTES, KINDS };

static const struct allowed kinds[KINDS] = {
	[KIND_CTL] = {.opcode = IBV_WC_RECV,
		.imm = ALLOWED_NO_IMM,
		.min_bytes = sizeof(struct wire_ctl),
		.max_bytes = sizeof(struct wire_ctl)},
	[KIND_BYTES] = {.opcode = IBV_WC_RECV,
		.imm = ALLOWED_THIS_IMM,
		.value = WIRE_DATA,
		.min_bytes = 1,
		.max_bytes = WIRE_MSG},
};

/* 0; -EPROTO: *why; another negative errno: it is our own fault. */
static int on_message(struct scif_ep *ep, const struct ibv_wc *wc, const char **why)
{
	uint32_t slot = wc->wr_id & (WIRE_RECVS - 1);
	struct link *l = &ep->link;
	const uint8_t *p = l->mem->recvs[slot];
	int ret = -EPROTO, kind = allowed_kind(kinds, KINDS, wc);

	if (kind == KIND_BYTES)
		ret = on_bytes(ep, p, wc->byte_len);
	else if (kind == KIND_CTL)
		ret = on_ctl(ep, (const struct wire_ctl *)p);
	if (ret && ret != -ENOMEM) {
		ret = -EPROTO;
		*why = kind < 0 ? allowed_not(kinds, KINDS, wc) : "its messages make no sense";
	}
	l->spent[l->rx.came.msgs - l->rx.taken.msgs] = slot;
	l->rx.came.msgs++;
	return ret || l->rx.came.msgs - l->rx.taken.msgs < WIRE_BATCH ? ret : post_spent(ep);
}

/* Why a connection is over. */
struct over {
	const char *why; /* NULL: it is not */
	bool breach;     /* the peer broke the protocol */
};

static void take_one(struct scif_ep *ep, const struct ibv_wc *wc, struct over *over)
{
	int ret;

	if (wc->status != IBV_WC_SUCCESS) {
		over->why = over->why ? over->why : ibv_wc_status_str(wc->status);
	} else if (!(wc->wr_id >> RECV_ID_BIT)) {
		ep->link.sq_done = wc->wr_id;
	} else if (!over->why) {
		ret = on_message(ep, wc, &over->why);
		over->breach = ret == -EPROTO;
		if (ret && !over->why)
			over->why = "there is no memory for what it asks";
	}
}

/* Takes all completions; *over: one says that the connection is. */
static void take_completions(struct scif_ep *ep, struct over *over)
{
	struct ibv_wc wc[POLL_BATCH];
	int n;

	do {
		n = ibv_poll_cq(ep->link.cq, POLL_BATCH, wc);
		for (int i = 0; i < n; i++)
			take_one(ep, &wc[i], over);
		if (n > 0)
			ep_changed(ep);
	} while (n == POLL_BATCH);
	if (n < 0)
		over->why = "its completion queue fails";
}

bool link_is_live(const struct scif_ep *ep)
{
	/* the state first: once it is EP_CLOSED the link belongs to who closes */
	return (ep->state == EP_CONNECTED || ep->state == EP_CONNECTING) && ep->link.qp;
}

void link_poll(struct scif_ep *ep)
{
	struct over over = {0};

	if (!link_is_live(ep))
		return;
	take_completions(ep, &over);
	finish_done(ep);
	if (!over.why && !look_at_credit(ep))
		over = (struct over){"it cannot have taken what was not sent", true};
	if (over.why) {
		(over.breach ? breach : broken)(ep, over.why);
		return;
	}
	flush_out(ep);
	tell_credit(ep);
}

void link_ready(struct scif_ep *ep)
{
	if (ep->state != EP_CONNECTED)
		return;
	if (link_rx_avail(ep))
		standin_mark(&ep->standin);
	if (ep->standin.filled && link_tx_room(ep))
		standin_unfill(&ep->standin);
}

void link_arm(struct scif_ep *ep)
{
	if (link_is_live(ep)) {
		ibv_req_notify_cq(ep->link.cq, 0);
		ep->link.armed = true;
	}
	link_poll(ep);
}

/* ---- bytes ---- */

/* Reads what the peer took; link_poll() takes it in when it is there, mostly at once. */
static void ask_room(struct scif_ep *ep)
{
	struct link *l = &ep->link;
	struct ibv_sge sge = {(uintptr_t)&l->mem->looked, sizeof(l->mem->looked), l->mr->lkey};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1};
	int64_t number;

	if (ep->state != EP_CONNECTED || l->look_wr || l->tx.sent.bytes == l->tx.taken.bytes ||
		!has_room_for_message(ep))
		return;
	wr.wr.rdma.remote_addr = l->credit_addr + WIRE_TOOK_AT;
	wr.wr.rdma.rkey = l->credit_rkey;
	number = link_post(ep, &wr);
	if (number < 0)
		return;
	l->look_wr = number;
	link_poll(ep);
}

void link_await_room(struct scif_ep *ep, uint32_t n)
{
	uint64_t until = 0, spin = 0;

	if (link_tx_room(ep) >= n || ep->link.tx.sent.bytes == ep->link.tx.taken.bytes)
		return;
	ask_room(ep);
	while (ep->state == EP_CONNECTED && ep->link.look_wr) {
		until = until ? until : clock_ns() + ROOM_NS;
		if (ep_wait(ep, &spin, until))
			break;
	}
}

bool link_has_tx_room(struct scif_ep *ep)
{
	if (!link_tx_room(ep) && !ep->standin.filled)
		ask_room(ep);
	return link_tx_room(ep);
}

uint32_t link_tx_room(struct scif_ep *ep)
{
	struct link *l = &ep->link;

	return USABLE - (uint32_t)(l->tx_total - l->tx.taken.bytes);
}

uint32_t link_rx_avail(const struct scif_ep *ep)
{
	return ep->link.rx.came.bytes - ep->link.rx.taken.bytes;
}

void link_put(struct scif_ep *ep, const uint8_t *p, uint32_t n)
{
	struct link *l = &ep->link;

	ring_put(l->mem->out, WIRE_RING, l->tx_total, p, n);
	l->tx_total += n;
	flush_out(ep);
}

void link_take(struct scif_ep *ep, uint8_t *p, uint32_t n)
{
	struct link *l = &ep->link;

	ring_get(l->in, WIRE_RING, l->rx.taken.bytes, p, n);
	l->rx.taken.bytes += n;
	foreign_store64(&l->mem->took.bytes, htole64(l->rx.taken.bytes));
	if (ep->state == EP_CONNECTED)
		tell_credit(ep);
}
