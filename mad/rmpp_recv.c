// SPDX-License-Identifier: BSD-3-Clause
#include "mad/rmpp_recv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "mad/rmpp.h"
#include "mad/rmpp_say.h"
#include "mad/transact.h"

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
	struct rmpp_recv *next, **link; /* of its bucket */
};

/* ---- those that there are ---- */

static struct rmpp_recv **bucket(struct mad_layer *layer, const struct mad_hdr *hdr)
{
	return &layer->recvs[hash_mix(hdr->tid ^ (uint64_t)hdr->mgmt_class << 56) %
			     MAD_RECV_BUCKETS];
}

static struct rmpp_recv *find(
	struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct rmpp_recv *r = *bucket(a->port->layer, hdr);

	while (r && !(r->agent == a && r->hdr.tid == hdr->tid &&
			    r->hdr.mgmt_class == hdr->mgmt_class && r->hdr.method == hdr->method &&
			    r->from.qpn == from->qpn && mad_same_peer(&r->from, from)))
		r = r->next;
	return r;
}

static void recv_free(struct rmpp_recv *r)
{
	struct mad_layer *layer = r->agent->port->layer;

	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	if (r->complete)
		layer->n_done--;
	else
		layer->n_recvs--;
	deadline_clear(r->complete ? &layer->done_deadlines : &layer->recv_deadlines, &r->deadline);
	free(r->msg);
	free(r->came);
	free(r);
}

/* Takes its place among them; -ENOMEM. */
static int begin(struct rmpp_recv *r)
{
	struct mad_layer *layer = r->agent->port->layer;
	struct rmpp_recv **list = bucket(layer, &r->hdr);
	uint64_t until = layer->now(layer->arg) + (uint64_t)RMPP_RECV_MS * NSEC_PER_MSEC;
	int ret = deadline_set(&layer->recv_deadlines, &r->deadline, until);

	if (ret)
		return ret;
	layer->n_recvs++;
	r->next = *list;
	r->link = list;
	if (r->next)
		r->next->link = &r->next;
	*list = r;
	return 0;
}

/* ---- who gives way when there are too many ---- */

enum { SHARES = 256 };

/* How many messages come for each client, and from each sender to each; two may share a count. */
struct shares {
	uint16_t client[SHARES], sender[SHARES];
};

/* The agents of a file are one client. */
static unsigned client_share(const struct mad_agent *a)
{
	return hash_mix((uintptr_t)(a->file ? a->file : a)) % SHARES;
}

static unsigned sender_share(const struct mad_agent *a, const struct mad_addr *from)
{
	uint64_t peer[2] = {from->lid, 0};

	if (from->has_grh)
		memcpy(peer, from->grh.remote, MAD_GID);
	return hash_mix(hash_mix(client_share(a) ^ peer[0]) ^ peer[1]) % SHARES;
}

/* Calls fn with each message that is not complete. */
static void each_coming(
	struct mad_layer *layer, void (*fn)(void *arg, struct rmpp_recv *r), void *arg)
{
	for (unsigned i = 0; i < MAD_RECV_BUCKETS; i++)
		for (struct rmpp_recv *r = layer->recvs[i]; r; r = r->next)
			if (!r->complete)
				fn(arg, r);
}

static void count_shares(void *arg, struct rmpp_recv *r)
{
	struct shares *s = arg;

	s->client[client_share(r->agent)]++;
	s->sender[sender_share(r->agent, &r->from)]++;
}

struct victim {
	const struct shares *shares;
	struct rmpp_recv *r;
	unsigned client, sender; /* how many its client and its sender have */
};

/* Of the client that has most the sender that has most, and of that the oldest. */
static void choose(void *arg, struct rmpp_recv *r)
{
	struct victim *v = arg;
	unsigned client = v->shares->client[client_share(r->agent)];
	unsigned sender = v->shares->sender[sender_share(r->agent, &r->from)];

	if (v->r && (client < v->client || (client == v->client && sender < v->sender)))
		return;
	if (v->r && client == v->client && sender == v->sender &&
		r->deadline.when >= v->r->deadline.when)
		return;
	*v = (struct victim){v->shares, r, client, sender};
}

static void recv_abort(struct rmpp_recv *r, enum rmpp_status why)
{
	rmpp_abort(r->agent, &r->from, r->head, why, true);
	recv_free(r);
}

/*
 * Makes room for one more: who has clearly more than the newcomer loses one, so that nobody keeps
 * others from receiving.  False: nobody has.
 */
static bool make_room(struct mad_agent *a, const struct mad_addr *from)
{
	struct mad_layer *layer = a->port->layer;
	struct shares shares = {{0}, {0}};
	struct victim v = {.shares = &shares};
	unsigned client, sender;

	each_coming(layer, count_shares, &shares);
	each_coming(layer, choose, &v);
	client = shares.client[client_share(a)];
	sender = shares.sender[sender_share(a, from)];
	if (!v.r || (v.client < client + 2 && (v.client != client || v.sender < sender + 2)))
		return false;
	recv_abort(v.r, RMPP_NO_RESOURCES);
	return true;
}

static struct rmpp_recv *recv_new(struct mad_agent *a, const struct mad_addr *from,
	const struct mad_hdr *hdr, const uint8_t *mad)
{
	struct rmpp_recv *r = NULL;

	if (a->port->layer->n_recvs < RMPP_RECVS_MAX || make_room(a, from))
		r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->agent = a;
	r->from = *from;
	r->hdr = *hdr;
	r->data_at = rmpp_data_at(hdr->mgmt_class);
	r->window = 1;
	memcpy(r->head, mad, MAD_SIZE);
	if (begin(r)) {
		free(r);
		return NULL;
	}
	return r;
}

/* It came as a whole, and is kept to be acknowledged again: without memory not even that. */
static void done(struct rmpp_recv *r)
{
	struct mad_layer *layer = r->agent->port->layer;
	uint64_t until = layer->now(layer->arg) + (uint64_t)RMPP_DONE_MS * NSEC_PER_MSEC;

	deadline_clear(&layer->recv_deadlines, &r->deadline);
	layer->n_recvs--;
	layer->n_done++;
	r->complete = true;
	free(r->came);
	r->came = NULL;
	if (deadline_set(&layer->done_deadlines, &r->deadline, until))
		recv_free(r);
	else if (layer->n_done > RMPP_DONE_MAX)
		recv_free((struct rmpp_recv *)deadline_pop(&layer->done_deadlines, UINT64_MAX));
}

/* ---- its segments ---- */

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
		.flags = RMPP_ACTIVE,
		.segment = r->whole,
		.length = r->window};

	rmpp_answer(r->agent, &r->from, r->head, &hdr, true);
}

/* Gives it to whom it is for; the callbacks may end the agent. */
static void hand_over(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const uint8_t *msg, size_t len)
{
	struct mad_send *s;

	if (!mad_is_response(hdr)) {
		a->receive_long(a, from, msg, len);
		return;
	}
	s = mad_awaiting(a, from, hdr);
	if (s)
		mad_finish(s, 0, from, msg, len);
	else
		a->port->drops[MAD_DROP_NO_REQUEST]++;
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

	memcpy(msg, r->head, r->data_at);
	r->msg = NULL;
	send_ack(r);
	done(r);
	hand_over(a, &from, &hdr, msg, len);
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
	if (r->whole < r->window)
		return;
	r->window += RMPP_WINDOW;
	send_ack(r);
}

/* Does it begin a message?  A response only if something waits for it, which then has time again.
 */
static bool is_welcome(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s;

	if (!mad_is_response(hdr))
		return true;
	s = mad_awaiting(a, from, hdr);
	if (s && s->timeout_ms)
		mad_extend(s, s->timeout_ms);
	return s;
}

bool rmpp_segment(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const struct rmpp_hdr *rmpp, const uint8_t *mad)
{
	struct rmpp_recv *r = find(a, from, hdr);

	if (!(r && r->complete) && !is_welcome(a, from, hdr))
		return false;
	if (rmpp->status) {
		rmpp_abort(a, from, mad, RMPP_BAD_STATUS, true);
		if (r && !r->complete)
			recv_free(r);
		return true;
	}
	if (!r && rmpp->segment == 1)
		r = recv_new(a, from, hdr, mad);
	if (!r)
		return false;
	got_segment(r, rmpp, mad);
	return true;
}

/* ---- their ends ---- */

bool rmpp_recv_end(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct rmpp_recv *r = find(a, from, hdr);

	if (!r || r->complete)
		return false;
	recv_free(r);
	return true;
}

void rmpp_forget(struct mad_agent *a)
{
	struct mad_layer *layer = a->port->layer;

	if (!mad_registration_has_rmpp(&a->reg))
		return;
	for (unsigned i = 0; i < MAD_RECV_BUCKETS; i++)
		for (struct rmpp_recv *r = layer->recvs[i], *next; r; r = next) {
			next = r->next;
			if (r->agent == a)
				recv_free(r);
		}
}

void rmpp_run(struct mad_layer *layer, uint64_t now)
{
	struct deadline *d;

	while ((d = deadline_pop(&layer->recv_deadlines, now)))
		recv_abort((struct rmpp_recv *)d, RMPP_TOO_LONG);
	while ((d = deadline_pop(&layer->done_deadlines, now)))
		recv_free((struct rmpp_recv *)d);
}
