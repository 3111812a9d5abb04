// SPDX-License-Identifier: BSD-3-Clause
#include "mad/rmpp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mad/agents.h"
#include "mad/transact.h"
#include "wire/rmpp.h"

/* ---- sending ---- */

struct rmpp_send {
	uint8_t *msg;
	size_t len;
	unsigned data_at;
	uint32_t segments;
	uint32_t acked;  /* segments up to here have arrived */
	uint32_t sent;   /* up to here they went out since the last loss */
	uint32_t window; /* the last one that may go out */
	uint32_t tries;  /* left, for this window */
	uint32_t ack_ms;
};

static bool all_arrived(const struct rmpp_send *r)
{
	return r->acked == r->segments;
}

int rmpp_send_init(struct mad_send *s, const uint8_t *msg, size_t len)
{
	struct mad_hdr hdr;
	struct rmpp_send *r;
	unsigned data_at, per;

	if (len < MAD_HDR_SIZE)
		return -EINVAL;
	wire_unpack(&mad_hdr_format, msg, &hdr);
	data_at = rmpp_data_at(hdr.mgmt_class);
	if (!data_at || len < data_at)
		return -EINVAL;
	per = MAD_SIZE - data_at;
	if (len - data_at > (size_t)RMPP_SEGMENTS_MAX * per)
		return -EMSGSIZE;
	r = calloc(1, sizeof *r);
	if (r)
		r->msg = malloc(len);
	if (!r || !r->msg) {
		free(r);
		return -ENOMEM;
	}
	memcpy(r->msg, msg, len);
	memcpy(s->mad, msg, data_at);
	r->len = len;
	r->data_at = data_at;
	r->segments = len == data_at ? 1 : (len - data_at + per - 1) / per;
	r->window = 1;
	r->tries = s->retries;
	r->ack_ms = s->timeout_ms && s->timeout_ms < RMPP_ACK_MS ? s->timeout_ms : RMPP_ACK_MS;
	s->rmpp = r;
	return 0;
}

void rmpp_send_free(struct rmpp_send *r)
{
	if (r)
		free(r->msg);
	free(r);
}

/* The bytes of data in segment n. */
static size_t bytes_of(const struct rmpp_send *r, uint32_t n)
{
	size_t per = MAD_SIZE - r->data_at, before = (n - 1) * per;
	size_t left = r->len - r->data_at - before;

	return left < per ? left : per;
}

/*
 * What PayloadLength says: of the first segment all bytes behind the RMPP headers, those of the
 * class in each of them included; of the last its own.
 */
static uint32_t payload_length(const struct rmpp_send *r, uint32_t n)
{
	uint32_t class_bytes = RMPP_PAYLOAD - (MAD_SIZE - r->data_at);

	if (n == 1)
		return r->segments * class_bytes + (r->len - r->data_at);
	return n == r->segments ? class_bytes + bytes_of(r, n) : 0;
}

static void send_segment(struct mad_send *s, uint32_t n)
{
	const struct rmpp_send *r = s->rmpp;
	struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = RMPP_DATA,
		.resp_time = RMPP_RESP_TIME_NONE,
		.flags = RMPP_ACTIVE,
		.segment = n,
		.length = payload_length(r, n)};
	uint8_t mad[MAD_SIZE] = {0};

	if (n == 1)
		hdr.flags |= RMPP_FIRST;
	if (n == r->segments)
		hdr.flags |= RMPP_LAST;
	memcpy(mad, r->msg, r->data_at);
	memcpy(mad + r->data_at, r->msg + r->data_at + (n - 1) * (size_t)(MAD_SIZE - r->data_at),
		bytes_of(r, n));
	wire_pack(&rmpp_hdr_format, &hdr, mad);
	(void)mad_post(s->agent, &s->addr, mad);
}

static void send_window(struct mad_send *s)
{
	struct rmpp_send *r = s->rmpp;

	while (r->sent < r->segments && r->sent < r->window)
		send_segment(s, ++r->sent);
}

void rmpp_send_begin(struct mad_send *s)
{
	mad_extend(s, s->rmpp->ack_ms);
	send_window(s);
}

/* Answers a segment (or what claims to be one): its headers, with another RMPP header. */
static void answer(struct mad_agent *a, const struct mad_addr *to, const uint8_t *mad,
	const struct rmpp_hdr *rmpp, bool turn)
{
	uint8_t out[MAD_SIZE] = {0};
	struct mad_hdr hdr;
	unsigned data_at;

	wire_unpack(&mad_hdr_format, mad, &hdr);
	data_at = rmpp_data_at(hdr.mgmt_class);
	memcpy(out, mad, data_at);
	if (turn)
		hdr.method ^= MAD_RESPONSE;
	wire_pack(&mad_hdr_format, &hdr, out);
	wire_pack(&rmpp_hdr_format, rmpp, out);
	(void)mad_post(a, to, out);
}

static void abort_with(struct mad_agent *a, const struct mad_addr *to, const uint8_t *mad,
	enum rmpp_status status, bool turn)
{
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = status == RMPP_NO_RESOURCES ? RMPP_STOP : RMPP_ABORT,
		.resp_time = RMPP_RESP_TIME_NONE,
		.flags = RMPP_ACTIVE,
		.status = status};

	answer(a, to, mad, &hdr, turn);
}

/* The sender itself gives up: it tells, and the caller of mad_send_long() hears of it. */
static void give_up(struct mad_send *s, enum rmpp_status why, int status)
{
	abort_with(s->agent, &s->addr, s->mad, why, false);
	mad_finish(s, status, NULL, 0);
}

bool rmpp_timed_out(struct mad_send *s)
{
	struct rmpp_send *r = s->rmpp;

	if (all_arrived(r))
		return false;
	if (!r->tries) {
		s->agent->port->timed_out++;
		give_up(s, RMPP_TOO_MANY_TRIES, -ETIMEDOUT);
		return true;
	}
	r->tries--;
	s->agent->port->resent++;
	r->sent = r->acked;
	mad_extend(s, r->ack_ms);
	send_window(s);
	return true;
}

static void got_ack(struct mad_send *s, const struct rmpp_hdr *hdr)
{
	struct rmpp_send *r = s->rmpp;

	if (hdr->status) {
		give_up(s, RMPP_BAD_STATUS, -ECONNABORTED);
	} else if (hdr->segment > r->segments) {
		give_up(s, RMPP_SEGMENT_TOO_BIG, -ECONNABORTED);
	} else if (hdr->length < r->window || hdr->length < hdr->segment) {
		/* An older ACK that was overtaken takes nothing back. */
		if (hdr->segment > r->acked)
			give_up(s, RMPP_WINDOW_TOO_SMALL, -ECONNABORTED);
	} else {
		if (hdr->segment > r->acked) {
			r->acked = hdr->segment;
			r->tries = s->retries;
		}
		if (r->sent < r->acked)
			r->sent = r->acked;
		r->window = hdr->length;
		mad_extend(s, all_arrived(r) ? s->timeout_ms : r->ack_ms);
		send_window(s);
		if (all_arrived(r) && !s->response)
			mad_finish(s, 0, NULL, 0);
	}
}

/* The message of ours that an ACK, a STOP or an ABORT is about, or NULL. */
static struct mad_send *find_send(
	struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s = mad_table_first(port, hdr->tid, hdr->mgmt_class);

	while (s && !(s->rmpp && s->method == (hdr->method ^ MAD_RESPONSE) &&
			    mad_same_peer(&s->addr, from)))
		s = mad_table_next(s);
	return s;
}

/* ---- receiving ---- */

/* A message that is coming, and for a while after it came. */
struct rmpp_recv {
	struct deadline deadline; /* first member */
	struct mad_agent *agent;
	struct mad_addr from;
	struct mad_hdr hdr;
	uint8_t head[MAD_SIZE]; /* of its first segment */
	uint8_t *msg;
	uint8_t *came;  /* one for each segment that there is room for */
	uint32_t room;  /* segments */
	uint32_t whole; /* all up to here came */
	uint32_t window;
	uint32_t segments; /* 0: not known yet */
	unsigned data_at;
	size_t last_bytes;
	bool complete;
	struct rmpp_recv *next;
};

static void recv_timer(struct rmpp_recv *r, uint64_t ms)
{
	struct mad_port *port = r->agent->port;

	(void)deadline_set(
		&port->recv_deadlines, &r->deadline, port->now(port->arg) + ms * NSEC_PER_MSEC);
}

static void recv_free(struct rmpp_recv *r)
{
	struct mad_port *port = r->agent->port;
	struct rmpp_recv **link = &port->recvs;

	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	port->n_recvs--;
	deadline_clear(&port->recv_deadlines, &r->deadline);
	free(r->msg);
	free(r->came);
	free(r);
}

static struct rmpp_recv *recv_find(
	struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	for (struct rmpp_recv *r = port->recvs; r; r = r->next)
		if (r->hdr.tid == hdr->tid && r->hdr.mgmt_class == hdr->mgmt_class &&
			r->hdr.method == hdr->method && mad_same_peer(&r->from, from))
			return r;
	return NULL;
}

static struct rmpp_recv *recv_new(struct mad_agent *a, const struct mad_addr *from,
	const struct mad_hdr *hdr, const uint8_t *mad)
{
	struct mad_port *port = a->port;
	struct rmpp_recv *r = port->n_recvs < RMPP_RECVS_MAX ? calloc(1, sizeof *r) : NULL;

	if (!r)
		return NULL;
	r->agent = a;
	r->from = *from;
	r->hdr = *hdr;
	r->data_at = rmpp_data_at(hdr->mgmt_class);
	r->window = RMPP_WINDOW;
	memcpy(r->head, mad, MAD_SIZE);
	if (deadline_set(&port->recv_deadlines, &r->deadline,
		    port->now(port->arg) + (uint64_t)RMPP_RECV_MS * NSEC_PER_MSEC)) {
		free(r);
		return NULL;
	}
	r->next = port->recvs;
	port->recvs = r;
	port->n_recvs++;
	return r;
}

/* Room for all segments of the window. */
static bool recv_room(struct rmpp_recv *r)
{
	size_t per = MAD_SIZE - r->data_at;
	uint32_t want = r->room ? 2 * r->room : RMPP_WINDOW;
	uint8_t *msg, *came;

	if (r->room >= r->window)
		return true;
	while (want < r->window)
		want *= 2;
	if (want > RMPP_SEGMENTS_MAX)
		return false;
	msg = realloc(r->msg, r->data_at + want * per);
	if (msg)
		r->msg = msg;
	came = realloc(r->came, want);
	if (came)
		r->came = came;
	if (!msg || !came)
		return false;
	memset(r->came + r->room, 0, want - r->room);
	r->room = want;
	return true;
}

static void send_ack(struct rmpp_recv *r)
{
	const struct rmpp_hdr hdr = {.version = RMPP_VERSION,
		.type = RMPP_ACK,
		.resp_time = RMPP_RESP_TIME_NONE,
		.flags = RMPP_ACTIVE,
		.segment = r->whole,
		.length = r->window};

	answer(r->agent, &r->from, r->head, &hdr, true);
}

/* It is all there. */
static void deliver(struct rmpp_recv *r)
{
	size_t per = MAD_SIZE - r->data_at;
	size_t len = r->data_at + (r->segments - 1) * per + r->last_bytes;
	struct mad_agent *a = r->agent;
	struct mad_addr from = r->from;
	struct mad_hdr hdr = r->hdr;
	uint8_t *msg = r->msg;
	struct mad_send *s;

	memcpy(msg, r->head, r->data_at);
	r->complete = true;
	r->msg = NULL; /* the callbacks may unregister the agent, and r with it */
	recv_timer(r, RMPP_DONE_MS);
	send_ack(r);
	if (!(hdr.method & MAD_RESPONSE)) {
		a->receive_long(a, &from, msg, len);
	} else {
		s = mad_awaiting(a->port, &from, &hdr);
		if (s)
			mad_finish(s, 0, msg, len);
		else
			a->port->drops[MAD_DROP_NO_REQUEST]++;
	}
	free(msg);
}

/* Bytes of data in the last segment by its PayloadLength, or -1. */
static int last_bytes(const struct rmpp_recv *r, const struct rmpp_hdr *hdr)
{
	uint32_t class_bytes = RMPP_PAYLOAD - (MAD_SIZE - r->data_at);

	if (hdr->length < class_bytes || hdr->length > RMPP_PAYLOAD)
		return -1;
	return hdr->length - class_bytes;
}

/* The segment fits what is known of the message: 0, or why not. */
static enum rmpp_status judge(struct rmpp_recv *r, const struct rmpp_hdr *hdr)
{
	bool last = hdr->flags & RMPP_LAST;

	if (!hdr->segment || (hdr->segment == 1) != !!(hdr->flags & RMPP_FIRST))
		return RMPP_BAD_SEGMENT;
	if (hdr->segment > r->window || (r->segments && hdr->segment > r->segments))
		return RMPP_SEGMENT_TOO_BIG;
	if (last && last_bytes(r, hdr) < 0)
		return RMPP_BAD_LENGTH;
	if (last && hdr->segment < r->whole)
		return RMPP_BAD_LENGTH;
	return RMPP_OK;
}

static void take(struct rmpp_recv *r, const struct rmpp_hdr *hdr, const uint8_t *mad)
{
	size_t per = MAD_SIZE - r->data_at, at = hdr->segment - 1;

	memcpy(r->msg + r->data_at + at * per, mad + r->data_at, per);
	r->came[at] = 1;
	if (hdr->flags & RMPP_LAST) {
		r->segments = hdr->segment;
		r->last_bytes = last_bytes(r, hdr);
	}
	while (r->whole < r->room && r->came[r->whole])
		r->whole++;
}

static void recv_abort(struct rmpp_recv *r, enum rmpp_status why)
{
	abort_with(r->agent, &r->from, r->head, why, true);
	recv_free(r);
}

static void got_segment(struct rmpp_recv *r, const struct rmpp_hdr *hdr, const uint8_t *mad)
{
	enum rmpp_status why = r->complete ? RMPP_OK : judge(r, hdr);

	if (why != RMPP_OK) {
		recv_abort(r, why);
		return;
	}
	if (r->complete || hdr->segment <= r->whole) {
		send_ack(r); /* the one before was lost */
		return;
	}
	if (!recv_room(r)) {
		recv_abort(r, RMPP_NO_RESOURCES);
		return;
	}
	take(r, hdr, mad);
	if (r->segments && r->whole >= r->segments) {
		deliver(r);
		return;
	}
	if (r->whole == r->window)
		r->window += RMPP_WINDOW;
	else if (hdr->segment > 1) /* the first opens the sender's window */
		return;
	send_ack(r);
}

/* Whose message it is: of who is registered for the request, or of who waits for the response. */
static struct mad_agent *owner_of(
	struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s = hdr->method & MAD_RESPONSE ? mad_awaiting(port, from, hdr) : NULL;
	struct mad_agent *a = s ? s->agent : mad_registered(port, hdr);

	return a && a->receive_long ? a : NULL;
}

/* The response that a request waits for is coming: it has time again. */
static void response_comes(
	struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s = hdr->method & MAD_RESPONSE ? mad_awaiting(port, from, hdr) : NULL;

	if (s)
		mad_extend(s, s->timeout_ms);
}

static bool got_data(struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr,
	const struct rmpp_hdr *rmpp, const uint8_t *mad)
{
	struct rmpp_recv *r = recv_find(port, from, hdr);
	struct mad_agent *a = r ? r->agent : owner_of(port, from, hdr);

	if (!a)
		return false;
	if (rmpp->status) {
		abort_with(a, from, mad, RMPP_BAD_STATUS, true);
		if (r && !r->complete)
			recv_free(r);
		return true;
	}
	if (!r && rmpp->segment == 1)
		r = recv_new(a, from, hdr, mad);
	if (r && !r->complete)
		response_comes(port, from, hdr);
	if (r)
		got_segment(r, rmpp, mad);
	else
		port->drops[MAD_DROP_RMPP]++;
	return true;
}

/* The other side gave up, as sender or as receiver. */
static bool got_end(struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s = find_send(port, from, hdr);
	struct rmpp_recv *r = recv_find(port, from, hdr);

	if (s && !all_arrived(s->rmpp))
		mad_finish(s, -ECONNABORTED, NULL, 0);
	else if (r && !r->complete)
		recv_free(r);
	else
		return false;
	return true;
}

/* A version or type that does not exist: the sender, if it is known, is told. */
static bool refuse(struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t *mad, enum rmpp_status why)
{
	struct rmpp_recv *r = recv_find(port, from, hdr);
	struct mad_agent *a = r ? r->agent : owner_of(port, from, hdr);

	if (!a)
		return false;
	abort_with(a, from, mad, why, true);
	if (r && !r->complete)
		recv_free(r);
	return true;
}

bool rmpp_receive(struct mad_port *port, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t mad[MAD_SIZE])
{
	struct rmpp_hdr rmpp;
	struct mad_send *s;
	bool taken = false;

	if (!rmpp_data_at(hdr->mgmt_class) || !mad_class_has_rmpp(port, hdr->mgmt_class))
		return false;
	wire_unpack(&rmpp_hdr_format, mad, &rmpp);
	if (!(rmpp.flags & RMPP_ACTIVE))
		return false;
	if (rmpp.version != RMPP_VERSION) {
		taken = refuse(port, from, hdr, mad, RMPP_BAD_VERSION);
	} else if (rmpp.type == RMPP_DATA) {
		taken = got_data(port, from, hdr, &rmpp, mad);
	} else if (rmpp.type == RMPP_ACK) {
		s = find_send(port, from, hdr);
		taken = s;
		if (s && !all_arrived(s->rmpp))
			got_ack(s, &rmpp);
	} else if (rmpp.type == RMPP_STOP || rmpp.type == RMPP_ABORT) {
		taken = got_end(port, from, hdr);
	} else {
		taken = refuse(port, from, hdr, mad, RMPP_BAD_TYPE);
	}
	if (!taken)
		port->drops[MAD_DROP_RMPP]++;
	return true;
}

void rmpp_forget(struct mad_agent *a)
{
	for (struct rmpp_recv *r = a->port->recvs, *next; r; r = next) {
		next = r->next;
		if (r->agent == a)
			recv_free(r);
	}
}

void rmpp_run(struct mad_port *port, uint64_t now)
{
	struct deadline *d;

	while ((d = deadline_pop(&port->recv_deadlines, now))) {
		struct rmpp_recv *r = (struct rmpp_recv *)d;

		if (r->complete)
			recv_free(r);
		else
			recv_abort(r, RMPP_TOO_LONG);
	}
}
