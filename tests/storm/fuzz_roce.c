// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: a datagram with anything in it, and a peer that sends what it likes.  What is read as
 * a packet is written again as the same headers, its payload lies within the datagram, and its ICRC
 * is right once it has been put there.  A requester with work under way and a responder get one
 * packet after the other: what they ask their owner for lies within the bounds that they were
 * given.
 */
#include <stdlib.h>
#include <string.h>

#include "roce/proto/answers.h"
#include "roce/proto/req_timer.h"
#include "roce/proto/responder.h"
#include "wire/icrc.h"

enum { MTU = 256, ENTRIES = 8, LENGTH = 3000, PSN = 10 };

static void must(bool what)
{
	if (!what)
		abort();
}

static void same_again(const uint8_t *data, const struct roce_packet *p)
{
	struct roce_packet again;
	uint8_t head[ROCE_HEADERS_MAX + ROCE_ICRC_LEN + 4] = {0}, twice[ROCE_HEADERS_MAX];
	size_t len = roce_build(p, head);
	char text[256];

	must(len == p->op->head_len && head[0] == data[0]);
	must(roce_parse(head, len + ROCE_ICRC_LEN + (p->pad ? 4 : 0), &again) == ROCE_GOOD);
	must(roce_build(&again, twice) == len && !memcmp(head, twice, len));
	must(roce_print(p, text, sizeof text) > 0);
}

static void checked(const uint8_t *data, size_t size)
{
	struct icrc_path path = {.ipv6 = data[size - 1] & 1, .src_port = 1, .dst_port = ROCE_PORT};
	size_t covered = size - ROCE_ICRC_LEN;
	size_t head = covered < ROCE_HEADERS_MAX ? covered : ROCE_HEADERS_MAX;
	uint16_t id = data[size - 2] * 257, found = 0;
	uint8_t *copy = malloc(size);

	must(copy);
	memcpy(copy, data, size);
	icrc_check(&path, copy, size, &found);
	icrc_put(icrc_add(icrc_begin(&path, id, size, copy, head), copy + head, covered - head),
		copy + covered);
	found = 0;
	must(icrc_check(&path, copy, size, &found) && (path.ipv6 || found == id));
	free(copy);
}

static bool request(void *arg, uint32_t entry, struct rc_request *r)
{
	static const uint8_t acts[] = {ROCE_SEND, ROCE_READ, ROCE_FETCH_ADD, ROCE_WRITE, ROCE_READ};

	(void)arg;
	if (entry > 12)
		return false;
	*r = (struct rc_request){.act = acts[entry % 5], .length = LENGTH};
	return true;
}

static bool req_send(
	void *arg, const struct roce_packet *head, uint32_t entry, uint64_t offset, size_t len)
{
	(void)arg;
	(void)entry;
	must(head->op->name && len <= MTU && offset + len <= LENGTH);
	return true;
}

static int place(void *arg, uint32_t entry, uint64_t offset, const void *bytes, size_t len)
{
	volatile uint8_t sum = 0;

	(void)arg;
	(void)entry;
	must(offset + len <= LENGTH);
	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)bytes)[i];
	(void)sum;
	return 0;
}

static void complete(void *arg, uint32_t entry, enum ibv_wc_status status)
{
	uint32_t *next = arg;

	(void)status;
	must(entry == (*next)++);
}

static const struct rc_req_ops req_ops = {request, req_send, place, complete};

static enum resp_verdict begin(void *arg, const struct roce_packet *p)
{
	(void)arg;
	return p->op->act == ROCE_WRITE && p->length > LENGTH ? RESP_ACCESS : RESP_OK;
}

static enum resp_verdict piece(void *arg, uint64_t offset, const void *bytes, size_t len)
{
	if (offset + len > LENGTH)
		return RESP_INVALID; /* longer than its receive */
	place(arg, 0, offset, bytes, len);
	return RESP_OK;
}

static enum resp_verdict end(void *arg, const struct roce_packet *p, uint64_t length)
{
	(void)arg;
	(void)p;
	must(length <= LENGTH);
	return RESP_OK;
}

static void drop(void *arg)
{
	(void)arg;
}

static enum resp_verdict may_read(void *arg, const struct roce_packet *p)
{
	(void)arg;
	return p->length <= LENGTH && p->va <= LENGTH - p->length ? RESP_OK : RESP_ACCESS;
}

static enum resp_verdict word(void *arg, const struct roce_packet *p, uint64_t *old)
{
	(void)arg;
	*old = p->va;
	return p->op->act == ROCE_FLUSH ? RESP_OPERATION : RESP_OK;
}

static int resp_send(void *arg, const struct roce_packet *head, uint64_t va, uint32_t rkey,
	size_t len, bool again)
{
	(void)arg;
	(void)rkey;
	(void)again;
	must(head->op->name && len <= MTU && (!len || va + len <= LENGTH));
	return 1;
}

static void fatal(void *arg, enum resp_verdict why)
{
	(void)arg;
	must(why >= RESP_INVALID);
}

static const struct rc_resp_ops resp_ops = {
	begin, piece, end, drop, may_read, word, resp_send, fatal};

/* Packets, each with a byte before it that says how long it is. */
static void peer(const uint8_t *data, size_t size, bool unreliable)
{
	uint32_t ended = 0;
	const struct rc_req_config req = {.unreliable = unreliable,
		.mtu = MTU,
		.psn = PSN,
		.timeout = 100,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.entries = ENTRIES,
		.max_reads = 2};
	const struct rc_resp_config resp = {
		.unreliable = unreliable, .mtu = MTU, .psn = PSN, .max_reads = 2};
	struct rc_requester q;
	struct rc_responder r;
	struct roce_packet p;

	must(!rc_req_start(&q, &req, &req_ops, &ended) &&
		!rc_resp_start(&r, &resp, &resp_ops, NULL));
	for (uint64_t now = 1; size > 1; now += 40) {
		size_t len = data[0] % size;

		rc_req_expire(&q, now);
		rc_req_run(&q, now);
		if (roce_parse(data + 1, len, &p) == ROCE_GOOD) {
			if (roce_is_response(p.op))
				rc_req_answer(&q, &p, now);
			else if (p.op->act != ROCE_CNP)
				rc_resp_request(&r, &p);
		}
		rc_resp_run(&r, 1000, data[0] & 1);
		data += len + 1;
		size -= len + 1;
	}
	rc_req_end(&q);
	rc_resp_end(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roce_packet p;

	if (size < 1 || size > 65507)
		return 0;
	peer(data + 1, size - 1, data[0] & 1);
	if (roce_parse(data, size, &p) != ROCE_GOOD)
		return 0;
	must(p.payload >= data && p.payload + p.payload_len + p.pad + ROCE_ICRC_LEN == data + size);
	same_again(data, &p);
	checked(data, size);
	return 0;
}
