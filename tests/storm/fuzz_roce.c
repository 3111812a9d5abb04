// SPDX-License-Identifier: BSD-3-Clause
/*
 * libFuzzer: a datagram with anything in it.  What is read as a packet is written again as the same
 * headers, its payload lies within the datagram, and its ICRC is right once it has been put there.
 */
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"

static void same_again(const uint8_t *data, const struct roce_packet *p)
{
	struct roce_packet again;
	uint8_t head[ROCE_HEADERS_MAX + ROCE_ICRC_LEN + 4] = {0}, twice[ROCE_HEADERS_MAX];
	size_t len = roce_build(p, head);
	char text[256];

	if (len != p->op->head_len || head[0] != data[0] ||
		roce_parse(head, len + ROCE_ICRC_LEN + (p->pad ? 4 : 0), &again) != ROCE_GOOD ||
		roce_build(&again, twice) != len || memcmp(head, twice, len) ||
		roce_print(p, text, sizeof text) < 0)
		abort();
}

static void checked(const uint8_t *data, size_t size)
{
	struct icrc_path path = {.ipv6 = data[size - 1] & 1, .src_port = 1, .dst_port = ROCE_PORT};
	size_t head = size - ROCE_ICRC_LEN;
	uint16_t id = data[size - 2] * 257, found = 0;
	uint8_t *copy = malloc(size);

	if (!copy)
		return;
	memcpy(copy, data, size);
	icrc_check(&path, copy, size, &found);
	head = head < ROCE_HEADERS_MAX ? head : ROCE_HEADERS_MAX;
	icrc_put(icrc_add(icrc_begin(&path, id, size, copy, head), copy + head,
			 size - ROCE_ICRC_LEN - head),
		copy + size - ROCE_ICRC_LEN);
	found = 0;
	if (!icrc_check(&path, copy, size, &found) || (!path.ipv6 && found != id))
		abort();
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roce_packet p;

	if (size > 65507 || roce_parse(data, size, &p) != ROCE_GOOD)
		return 0;
	if (p.payload < data || p.payload + p.payload_len + p.pad + ROCE_ICRC_LEN != data + size)
		abort();
	same_again(data, &p);
	checked(data, size);
	return 0;
}
