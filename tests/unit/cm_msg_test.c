// SPDX-License-Identifier: BSD-3-Clause
/*
 * Messages of the communication manager, byte by byte: the places, widths and constants are those
 * seen in packets of the Linux kernel's; the numbers that differ from connection to connection
 * are made up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/cm_msg.h"

/* A MAD, written as places and bytes; the rest is 0. */
struct bytes {
	int at;
	const char *hex;
};

static int nibble(char c)
{
	return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void build(uint8_t mad[MAD_SIZE], const struct bytes *b)
{
	memset(mad, 0, MAD_SIZE);
	for (; b->hex; b++)
		for (int i = 0; b->hex[2 * i]; i++)
			mad[b->at + i] = nibble(b->hex[2 * i]) << 4 | nibble(b->hex[2 * i + 1]);
}

static const struct bytes req_bytes[] = {
	{0, "01070203"},          /* base 1, class 7, version 2, Send */
	{8, "0000000112345678"},  /* TID */
	{16, "0010"},             /* REQ */
	{24, "12345678"},         /* local communication id */
	{32, "0000000001061c27"}, /* TCP port space, port 7207 */
	{40, "505400fffe123456"}, /* CA GUID */
	{56, "00001101"},         /* QPN 17, 1 responder resource */
	{60, "00000001"},         /* initiator depth 1 */
	{64, "000000a0"},         /* remote CM timeout 20, RC */
	{68, "00abcda7"},         /* PSN, local CM timeout 20, 7 retries */
	{72, "ffff37f0"},         /* P_Key, MTU 1024, RNR retry 7, 15 CM retries */
	{76, "ffffffff"},         /* LIDs */
	{80, "00000000000000000000ffff0a000001"},
	{96, "00000000000000000000ffff0a000002"},
	{117, "40"},       /* hop limit */
	{119, "98"},       /* ACK timeout 19 */
	{164, "0040bd5b"}, /* IP header: version 4, source port 48475 */
	{180, "0a000001"},
	{196, "0a000002"},
	{200, "c0ffee"},
	{0, NULL},
};

static void req(void **state)
{
	uint8_t mad[MAD_SIZE], again[MAD_SIZE];
	struct cm_ip_hdr ip;
	struct cm_msg m;

	(void)state;
	build(mad, req_bytes);
	assert_int_equal(cm_msg_unpack(mad, &m), 0);
	assert_int_equal(m.hdr.attr, CM_REQ);
	assert_int_equal(m.hdr.tid, 0x0000000112345678);
	assert_int_equal(m.req.local_comm_id, 0x12345678);
	assert_int_equal(m.req.service_id, 0x01061c27);
	assert_int_equal(m.req.ca_guid, 0x505400fffe123456);
	assert_int_equal(m.req.qpn, 17);
	assert_int_equal(m.req.responder_resources, 1);
	assert_int_equal(m.req.initiator_depth, 1);
	assert_int_equal(m.req.remote_timeout, 20);
	assert_int_equal(m.req.transport, 0);
	assert_int_equal(m.req.psn, 0xabcd);
	assert_int_equal(m.req.local_timeout, 20);
	assert_int_equal(m.req.retry_count, 7);
	assert_int_equal(m.req.pkey, 0xffff);
	assert_int_equal(m.req.mtu, 3);
	assert_int_equal(m.req.rnr_retry, 7);
	assert_int_equal(m.req.max_cm_retries, 15);
	assert_int_equal(m.req.srq, 0);
	assert_int_equal(m.req.primary.local_lid, 0xffff);
	assert_int_equal(m.req.primary.hop_limit, 64);
	assert_int_equal(m.req.primary.ack_timeout, 19);
	cm_ip_hdr_unpack(m.req.priv, &ip);
	assert_int_equal(ip.ip_version, 4);
	assert_int_equal(ip.src_port, 48475);
	assert_memory_equal(ip.src + 12, "\x0a\x00\x00\x01", 4);
	assert_memory_equal(ip.dst + 12, "\x0a\x00\x00\x02", 4);
	assert_int_equal(m.req.priv[CM_IP_HDR_SIZE], 0xc0);
	assert_int_equal(cm_msg_pack(&m, again), 0);
	assert_memory_equal(mad, again, MAD_SIZE);
	memset(again + 164, 0, CM_IP_HDR_SIZE);
	cm_ip_hdr_pack(&ip, again + 164);
	assert_memory_equal(mad, again, MAD_SIZE);
}

static const struct bytes rep_bytes[] = {
	{0, "01070203"},
	{8, "0000000112345678"},
	{16, "0013"},
	{24, "aabbccdd12345678"},
	{36, "000012"},
	{44, "00fedc"},
	{48, "0101"},
	{50, "78"}, /* target ACK delay 15 */
	{51, "e0"}, /* RNR retry 7 */
	{52, "505400fffe654321"},
	{60, "beef"},
	{0, NULL},
};

static void rep(void **state)
{
	uint8_t mad[MAD_SIZE], again[MAD_SIZE];
	struct cm_msg m;

	(void)state;
	build(mad, rep_bytes);
	assert_int_equal(cm_msg_unpack(mad, &m), 0);
	assert_int_equal(m.rep.local_comm_id, 0xaabbccdd);
	assert_int_equal(m.rep.remote_comm_id, 0x12345678);
	assert_int_equal(m.rep.qpn, 18);
	assert_int_equal(m.rep.psn, 0xfedc);
	assert_int_equal(m.rep.target_ack_delay, 15);
	assert_int_equal(m.rep.rnr_retry, 7);
	assert_int_equal(m.rep.ca_guid, 0x505400fffe654321);
	assert_int_equal(m.rep.priv[1], 0xef);
	assert_int_equal(cm_msg_pack(&m, again), 0);
	assert_memory_equal(mad, again, MAD_SIZE);
}

static const struct bytes rej_bytes[] = {
	{0, "01070203"},
	{8, "0000000112345678"},
	{16, "0012"},
	{28, "12345678"},
	{32, "00"},
	{34, "001c"},
	{108, "02"},
	{0, NULL},
};

static const struct bytes dreq_bytes[] = {
	{0, "01070203"},
	{8, "0000000112345679"},
	{16, "0015"},
	{24, "12345678aabbccdd"},
	{32, "000012"},
	{0, NULL},
};

static const struct bytes sidr_rep_bytes[] = {
	{0, "01070203"},
	{8, "0000000112345679"},
	{16, "0018"},
	{24, "12345678"},
	{28, "00"},
	{32, "000013"},
	{36, "0000000001111c27"},
	{44, "01234567"},
	{120, "aa"},
	{0, NULL},
};

static void small_ones(void **state)
{
	uint8_t mad[MAD_SIZE], again[MAD_SIZE];
	struct cm_msg m;

	(void)state;
	build(mad, rej_bytes);
	assert_int_equal(cm_msg_unpack(mad, &m), 0);
	assert_int_equal(m.rej.remote_comm_id, 0x12345678);
	assert_int_equal(m.rej.reason, CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(m.rej.priv[0], 2);
	assert_int_equal(cm_msg_pack(&m, again), 0);
	assert_memory_equal(mad, again, MAD_SIZE);

	build(mad, dreq_bytes);
	assert_int_equal(cm_msg_unpack(mad, &m), 0);
	assert_int_equal(m.dreq.remote_qpn, 18);
	assert_int_equal(cm_msg_pack(&m, again), 0);
	assert_memory_equal(mad, again, MAD_SIZE);

	build(mad, sidr_rep_bytes);
	assert_int_equal(cm_msg_unpack(mad, &m), 0);
	assert_int_equal(m.sidr_rep.qpn, 19);
	assert_int_equal(m.sidr_rep.qkey, 0x01234567);
	assert_int_equal(m.sidr_rep.service_id, 0x01111c27);
	assert_int_equal(m.sidr_rep.priv[0], 0xaa);
	assert_int_equal(cm_msg_pack(&m, again), 0);
	assert_memory_equal(mad, again, MAD_SIZE);
}

/* Each message of random bytes: what is read and written again reads the same. */
static void all_fields(void **state)
{
	(void)state;
	for (int attr = CM_REQ; attr < CM_ATTR_END; attr++) {
		uint8_t mad[MAD_SIZE], again[MAD_SIZE];
		struct cm_msg m, n;

		for (int i = 0; i < MAD_SIZE; i++)
			mad[i] = i * 37 + attr * 11;
		memcpy(mad, "\x01\x07\x02\x03\0\0\0\0", 8);
		mad[16] = 0;
		mad[17] = attr;
		assert_int_equal(cm_msg_unpack(mad, &m), 0);
		assert_int_equal(cm_msg_pack(&m, again), 0);
		assert_int_equal(cm_msg_unpack(again, &n), 0);
		n.hdr = m.hdr;
		assert_memory_equal(&m, &n, sizeof m);
	}
}

static void refused(void **state)
{
	uint8_t mad[MAD_SIZE];
	struct cm_msg m = {.hdr = {.attr = 0x0f}};

	(void)state;
	assert_int_equal(cm_msg_pack(&m, mad), -EINVAL);
	for (int i = 0; i < 4; i++) { /* base version, class, class version, method */
		build(mad, req_bytes);
		mad[i] ^= 1;
		assert_int_equal(cm_msg_unpack(mad, &m), -EINVAL);
	}
	build(mad, req_bytes);
	mad[17] = 0x1b;
	assert_int_equal(cm_msg_unpack(mad, &m), -EINVAL);
	mad[16] = 0xff;
	assert_int_equal(cm_msg_unpack(mad, &m), -EINVAL);
}

static void print(void **state)
{
	uint8_t mad[MAD_SIZE];
	char text[200], cut[8];
	struct cm_msg m;
	size_t n;

	(void)state;
	build(mad, rej_bytes);
	cm_msg_unpack(mad, &m);
	n = cm_msg_print(&m, text, sizeof text);
	assert_string_equal(text, "REJ remote_comm_id=0x12345678 reason=0x1c priv=02");
	assert_int_equal(n, strlen(text));
	assert_int_equal(cm_msg_print(&m, cut, sizeof cut), n);
	assert_string_equal(cut, "REJ rem");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(req),
		cmocka_unit_test(rep),
		cmocka_unit_test(small_ones),
		cmocka_unit_test(all_fields),
		cmocka_unit_test(refused),
		cmocka_unit_test(print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
