// SPDX-License-Identifier: BSD-3-Clause
#include "mad/rmpp_send.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mad/rmpp.h"
#include "mad/rmpp_say.h"
#include "mad/transact.h"

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
	mad_hdr_unpack(msg, &hdr);
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

/* The sender itself gives up: it tells, and the caller of mad_send_long() hears of it. */
static void give_up(struct mad_send *s, enum rmpp_status why)
{
	rmpp_abort(s->agent, &s->addr, s->mad, why, false);
	mad_finish(s, -ECONNABORTED, NULL, NULL, 0);
}

bool rmpp_timed_out(struct mad_send *s)
{
	struct rmpp_send *r = s->rmpp;

	if (all_arrived(r))
		return false;
	if (!r->tries) {
		s->agent->port->timed_out++;
		mad_finish(s, -ETIMEDOUT, NULL, NULL, 0);
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
		give_up(s, RMPP_BAD_STATUS);
	} else if (hdr->segment > r->segments) {
		give_up(s, RMPP_SEGMENT_TOO_BIG);
	} else if (hdr->length < r->window || hdr->length < hdr->segment) {
		/* An older ACK that was overtaken takes nothing back. */
		if (hdr->segment > r->acked)
			give_up(s, RMPP_WINDOW_TOO_SMALL);
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
		if (all_arrived(r) && !(s->response && s->timeout_ms))
			mad_finish(s, 0, NULL, NULL, 0);
	}
}

/* The message of the agent's that an ACK, a STOP or an ABORT is about, or NULL. */
static struct mad_send *find_send(
	struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s = mad_table_first(a->port->layer, hdr->tid, hdr->mgmt_class);

	while (s && !(s->rmpp && s->agent == a && mad_fits_peer(s, from, mad_is_response(hdr))))
		s = mad_table_next(s);
	return s;
}

bool rmpp_ack(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr,
	const struct rmpp_hdr *rmpp)
{
	struct mad_send *s = find_send(a, from, hdr);

	if (s && !all_arrived(s->rmpp))
		got_ack(s, rmpp);
	return s;
}

bool rmpp_send_end(struct mad_agent *a, const struct mad_addr *from, const struct mad_hdr *hdr)
{
	struct mad_send *s = find_send(a, from, hdr);

	if (!s || all_arrived(s->rmpp))
		return false;
	mad_finish(s, -ECONNABORTED, NULL, NULL, 0);
	return true;
}
