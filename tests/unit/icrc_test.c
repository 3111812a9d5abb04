// SPDX-License-Identifier: BSD-3-Clause
/* The ICRC: of packets that Linux's rdma_rxe sent, and bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/icrc.h"

/* Whole IP packets as rdma_rxe of Linux 6.1 sent them; it counts the IPv4 identification on. */
static const char *const captured[] = {
	/* RC ACKNOWLEDGE */
	"45000030944c4000401191c00a4d000b0a4d000cc12112b7001c00001100ffff0000001100b3ee361f000001"
	"49d821ee",
	/* RC READ_REQUEST */
	"4500003cb1fd4000401174030a4d000b0a4d000ce84412b7002800000c00ffff0000001380e750c900005611"
	"a8af0840000007f7000000648e1868d3",
	/* RC ACKNOWLEDGE over IPv6 */
	"60000000001c1140fd770000000000000000000000000011fd770000000000000000000000000001cb0112b7"
	"001c00001100ffff0000432100a745591f000001595a8327",
};

enum { N_CAPTURED = sizeof captured / sizeof captured[0] };

static int nibble(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static size_t bytes_of(const char *hex, uint8_t *out)
{
	size_t n = 0;

	for (; hex[2 * n]; n++)
		out[n] = nibble(hex[2 * n]) << 4 | nibble(hex[2 * n + 1]);
	return n;
}

/* What a socket knows of a packet: its path, and where the datagram begins. */
static const uint8_t *path_of(const uint8_t *ip, struct icrc_path *path, uint16_t *id)
{
	const uint8_t *udp;

	*path = (struct icrc_path){.ipv6 = ip[0] >> 4 == 6};
	if (path->ipv6) {
		memcpy(path->src, ip + 8, 16);
		memcpy(path->dst, ip + 24, 16);
		udp = ip + 40;
	} else {
		memcpy(path->src + 12, ip + 12, 4);
		memcpy(path->dst + 12, ip + 16, 4);
		udp = ip + 20;
	}
	*id = ip[4] << 8 | ip[5];
	path->src_port = udp[0] << 8 | udp[1];
	path->dst_port = udp[2] << 8 | udp[3];
	return udp + 8;
}

static void of_rxe(void **state)
{
	(void)state;
	for (int i = 0; i < N_CAPTURED; i++) {
		uint8_t ip[128], crc[ROCE_ICRC_LEN];
		size_t len = bytes_of(captured[i], ip);
		struct roce_packet p;
		struct icrc_path path;
		uint16_t id, found;
		const uint8_t *msg = path_of(ip, &path, &id);

		len -= msg - ip;
		assert_int_equal(roce_parse(msg, len, &p), ROCE_GOOD);
		icrc_put(icrc_begin(&path, id, len, msg, p.op->head_len), crc);
		assert_memory_equal(crc, msg + len - ROCE_ICRC_LEN, ROCE_ICRC_LEN);
		found = id;
		assert_true(icrc_check(&path, msg, len, &found));
		for (unsigned guess = 0; guess < 0x10000; guess += 4099) {
			found = guess;
			assert_true(icrc_check(&path, msg, len, &found));
			assert_true(path.ipv6 || found == id);
		}
	}
}

/* A flipped bit of what is covered is noticed, for IPv4 too, whatever identification was expected.
 */
static void flipped(void **state)
{
	(void)state;
	for (int i = 0; i < N_CAPTURED; i++) {
		uint8_t ip[128];
		size_t len = bytes_of(captured[i], ip), missed = 0;
		struct icrc_path path;
		uint16_t id, found;
		uint8_t *msg = (uint8_t *)path_of(ip, &path, &id);

		len -= msg - ip;
		for (size_t bit = 0; bit < 8 * len; bit++) {
			bool covered = bit / 8 != 4; /* of the BTH: congestion marks */

			msg[bit / 8] ^= 0x80 >> bit % 8;
			found = id;
			if (icrc_check(&path, msg, len, &found) == covered)
				missed++;
			msg[bit / 8] ^= 0x80 >> bit % 8;
		}
		assert_int_equal(missed, 0);
	}
}

/* Every length and identification, in pieces as a sender has them. */
static void made(void **state)
{
	static uint8_t msg[65000];
	struct icrc_path path = {.src = {[12] = 10, 0, 0, 1},
		.dst = {[12] = 10, 0, 0, 2},
		.src_port = 49152,
		.dst_port = ROCE_PORT};

	(void)state;
	for (size_t i = 0; i < sizeof msg; i++)
		msg[i] = i * 2654435761u >> 24;
	for (size_t len = 16; len <= sizeof msg; len += len < 200 ? 4 : 4093 * 4) {
		size_t head = len - 4 < 12 ? len - 4 : 12, cut = (head + len - 4) / 2;
		uint16_t id = len * 40503, found = 0;
		uint32_t crc = icrc_begin(&path, id, len, msg, head);

		crc = icrc_add(icrc_add(crc, msg + head, cut - head), msg + cut, len - 4 - cut);
		icrc_put(crc, msg + len - 4);
		assert_true(icrc_check(&path, msg, len, &found));
		assert_int_equal(found, id);
		for (size_t i = len - 4; i < len; i++)
			msg[i] = i * 2654435761u >> 24;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_rxe),
		cmocka_unit_test(flipped),
		cmocka_unit_test(made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
